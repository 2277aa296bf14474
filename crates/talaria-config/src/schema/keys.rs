//! The table itself.

use super::{Key, Kind, Stage};

macro_rules! keys {
    ($($path:literal, $kind:expr, $default:literal, $stage:ident, $help:literal;)*) => {
        /// Every key, in the order of the documentation.
        pub const KEYS: &[Key] = {
            use Kind::{
                Any, Args, Bool, Command, Count, Duration, Number, Secret, SecretMap, Size, Text,
                TextList, Url, Word,
            };
            &[$(Key {
                path: $path,
                kind: $kind,
                default: $default,
                stage: Stage::$stage,
                help: $help,
            },)*]
        };
    };
}

keys! {
    "talaria.listen", Text, "127.0.0.1:8700", Used,
        "IP address and port. Anything but loopback needs `auth.tokens`.";
    "talaria.home", Text, "~/.talaria", Used,
        "Directory of `cache/` and `logs/`. A relative path counts from the configuration file.";
    "talaria.allowed_hosts", TextList, "[]", Used,
        "Host names that requests may carry in `Host` and `Origin` besides loopback and the listen address.";
    "talaria.auth.tokens[].name", Text, "", Used,
        "Name of the token in logs and as owner of artifacts; unique.";
    "talaria.auth.tokens[].token", Secret, "", Used,
        "The bearer token: at least 16 visible ASCII characters, unique. Take it from the environment: `${env:NAME}`.";
    "talaria.auth.tokens[].scopes", TextList, "[call]", Used,
        "What it may do: `call` tools and deliver results, `approve` write tools of untrusted servers, read all `artifacts`, read `metrics` and probes, `admin` servers.";
    "talaria.auth.tokens[].servers", TextList, "[\"*\"]", Used,
        "Servers it may use; `*` is all.";
    "talaria.auth.open_probes", Bool, "false", Used,
        "Answer `/healthz` and `/readyz` without a token.";
    "talaria.media.max_bytes", Size, "10GiB", Used,
        "Quota of the media store.";
    "talaria.media.ttl", Duration, "24h", Used,
        "Age at which a file expires.";
    "talaria.media.grace", Duration, "10m", Used,
        "A file younger than this is never removed, whatever the quota says.";
    "talaria.media.public_url", Url, "null", Used,
        "Base of artifact addresses when Talaria stands behind a proxy.";
    "talaria.media.fsync", Bool, "false", Used,
        "Flush every file to the disk before it gets its name.";
    "talaria.images.workers", Any, "auto", Used,
        "Threads that decode and resize images: `auto`, one per processor, or a number.";
    "talaria.images.queue", Count, "64", Used,
        "Images that may wait for a worker.";
    "talaria.images.allowed_roots", TextList, "[]", Used,
        "Directories besides the media store from which images may be read; absolute paths.";
    "talaria.images.tiles", Word(&["off", "on", "auto"]), "off", Used,
        "Cut images that are too large to be read in one piece into tiles: `on` always, `auto` where they would be hard to read.";
    "talaria.images.image_delivery", Word(&["tool_result", "user_message"]), "tool_result", Used,
        "Where images go on routes that take none in tool results: `tool_result` nowhere, `user_message` into a user message after the tool result.";
    "talaria.vision.total_timeout", Duration, "180s", Used,
        "Limit of a whole description, all attempts included; later links keep at least 10 s of it, or their own limit.";
    "talaria.vision.hedge_after", Duration, "null", Used,
        "Ask the next link as well when one has not answered after this time; the first good answer counts. Unset: one after the other.";
    "talaria.vision.cache_ttl", Duration, "10m", Used,
        "How long a description is remembered; `0s` not at all.";
    "talaria.calls.describe_images", Word(&["auto", "true", "false"]), "auto", Used,
        "Describe images the model cannot see: `auto` where there is somebody to describe them, `true` always, `false` never.";
    "talaria.calls.max_call_duration", Duration, "3600s", Used,
        "Upper bound of any call, progress or not.";
    "talaria.calls.drain_timeout", Duration, "30s", Used,
        "How long a shutdown waits for calls that run.";
    "talaria.calls.wrap_untrusted", Bool, "false", Used,
        "In formats `text` and `hermes`, put results of 32 characters and more into an element that says they are data, not instructions.";
    "talaria.limits.message_bytes", Size, "160MiB", Used,
        "Largest message of a server; a larger one fails its own call.";
    "talaria.limits.body_bytes", Size, "96MiB", Used,
        "Largest request body.";
    "talaria.limits.pending_per_server", Count, "64", Used,
        "Calls that may wait at one server.";
    "talaria.limits.pending_per_token", Count, "32", Used,
        "Calls of one token that may wait or run.";
    "talaria.limits.stderr_log_bytes", Size, "10MiB", Used,
        "Size at which the log of a server's stderr starts over.";
    "talaria.limits.blocking_jobs", Count, "8", Used,
        "Disk jobs and large parses that may run at a time.";
    "talaria.watch_config", Bool, "true", Used,
        "Apply changes of the file without a reload command.";

    "mcp_servers.*.command", Command, "", Used,
        "Program of a stdio server. Either this or `url`.";
    "mcp_servers.*.args", Args, "[]", Used,
        "Its arguments: a list, a JSON list in a string, or a line as for a shell.";
    "mcp_servers.*.env", SecretMap, "{}", Used,
        "Its own environment, added to the short list that every server gets.";
    "mcp_servers.*.cwd", Text, "", Used,
        "Its working directory.";
    "mcp_servers.*.url", Url, "", Used,
        "Endpoint of a server over HTTP, or its socket: `unix:///run/server.sock`, with `:/path` behind it where its path is not `/mcp`. Either this or `command`.";
    "mcp_servers.*.headers", SecretMap, "{}", Used,
        "Headers of every request to it.";
    "mcp_servers.*.transport", Word(&["stdio", "http", "streamable-http", "sse"]), "", Used,
        "Follows from `command` or `url`. `http` is Streamable HTTP, `sse` the older HTTP+SSE; with neither word the older one is tried where the first connect shows that the newer is not understood.";
    "mcp_servers.*.enabled", Bool, "true", Used,
        "Start it.";
    "mcp_servers.*.timeout", Duration, "300", Used,
        "Idle timer of a call; progress renews it. Default: `timeouts.mcp.tool_call`.";
    "mcp_servers.*.connect_timeout", Duration, "60", Used,
        "Limit of connecting and initialising.";
    "mcp_servers.*.rpc_concurrency", Count, "1", Used,
        "Requests at a time; 8 where `supports_parallel_tool_calls` is true.";
    "mcp_servers.*.supports_parallel_tool_calls", Bool, "false", Used,
        "Its tools may be called at the same time.";
    "mcp_servers.*.name_prefix", Word(&["default", "none"]), "default", Used,
        "`default` offers tools as `mcp__server__tool`, `none` under their own names.";
    "mcp_servers.*.trust", Any, "full", Used,
        "`full`, or `untrusted`: tools that are not read-only need an approval. Any other word means `untrusted`.";
    "mcp_servers.*.keepalive_interval", Duration, "180", Used,
        "How often an idle session is probed; at least 5 s. Stdio servers are probed only when it is set.";
    "mcp_servers.*.tools.include", TextList, "", Used,
        "Tools to offer, by name or shell wildcard; beats `exclude`. An empty list offers none.";
    "mcp_servers.*.tools.exclude", TextList, "[]", Used,
        "Tools not to offer, by name or shell wildcard.";
    "mcp_servers.*.tools.resources", Bool, "true", Used,
        "Offer the resource utilities where the server has resources.";
    "mcp_servers.*.tools.prompts", Bool, "true", Used,
        "Offer the prompt utilities where the server has prompts.";
    "mcp_servers.*.idle_timeout_seconds", Duration, "0", Used,
        "End a session that had no call for this time; the next call starts another. 0 never.";
    "mcp_servers.*.max_lifetime_seconds", Duration, "0", Used,
        "End a session of this age; the next call starts another. 0 never.";
    "mcp_servers.*.lifecycle.idle_timeout_seconds", Duration, "0", Used,
        "Same as `idle_timeout_seconds`.";
    "mcp_servers.*.lifecycle.max_lifetime_seconds", Duration, "0", Used,
        "Same as `max_lifetime_seconds`.";
    "mcp_servers.*.lazy", Bool, "false", Used,
        "Offer its tools as they were last time and connect at the first call.";
    "mcp_servers.*.ssl_verify", Any, "true", Used,
        "Check the server's certificate, or the path of the authorities (PEM) to check it with.";
    "mcp_servers.*.client_cert", Any, "", Used,
        "Client certificate (PEM): path, or list of certificate, key and password of the key. Relative paths count from the configuration file.";
    "mcp_servers.*.client_key", Text, "", Used,
        "Key of the client certificate.";
    "mcp_servers.*.identity_header.name", Text, "", Used,
        "A further header that names the caller.";
    "mcp_servers.*.identity_header.value_from", Word(&["static"]), "", Used,
        "Where its value comes from; Hermes' `profile` is an error, since there are no profiles here.";
    "mcp_servers.*.identity_header.value", Secret, "", Used,
        "Its value.";
    "mcp_servers.*.strict_redirect_headers", Bool, "false", Used,
        "Drop all configured headers on a redirect to another origin, not only those that log in.";
    "mcp_servers.*.skip_preflight", Bool, "false", Used,
        "Connect without probing the endpoint first.";
    "mcp_servers.*.protocol", Word(&["auto", "stateless", "legacy"]), "auto", Used,
        "Revision to speak: `legacy` begins with a handshake, `stateless` goes without, `auto` asks whether the server can go without and begins with a handshake where it cannot.";
    "mcp_servers.*.auth", Word(&["oauth", "none"]), "", Later,
        "How to log in.";
    "mcp_servers.*.oauth.client_id", Text, "", Later, "OAuth client.";
    "mcp_servers.*.oauth.client_secret", Secret, "", Later, "Its secret.";
    "mcp_servers.*.oauth.scope", Text, "", Later, "Scopes to ask for.";
    "mcp_servers.*.oauth.redirect_port", Count, "", Later, "Port of the login callback.";
    "mcp_servers.*.oauth.redirect_uri", Text, "", Later, "Address of the login callback.";
    "mcp_servers.*.oauth.redirect_host", Text, "", Later, "Host of the login callback.";
    "mcp_servers.*.oauth.client_name", Text, "", Later, "Name to register under.";
    "mcp_servers.*.oauth.client_metadata_url", Text, "", Later, "Address of the client metadata document.";
    "mcp_servers.*.oauth.cimd", Bool, "", Later, "Use a client metadata document.";
    "mcp_servers.*.oauth.user_agent", Text, "", Later, "User agent of the login.";
    "mcp_servers.*.oauth.timeout", Duration, "300", Later, "Limit of a login.";
    "mcp_servers.*.oauth.flow", Text, "", Later, "Grant to use.";
    "mcp_servers.*.sampling.enabled", Bool, "true", Later, "Let the server ask our model.";
    "mcp_servers.*.sampling.model", Text, "", Later, "Model that answers.";
    "mcp_servers.*.sampling.allowed_models", TextList, "[]", Later, "Models the server may name.";
    "mcp_servers.*.sampling.max_rpm", Count, "10", Later, "Requests in a minute.";
    "mcp_servers.*.sampling.timeout", Duration, "30", Later, "Limit of one request.";
    "mcp_servers.*.sampling.max_tokens_cap", Count, "4096", Later, "Most tokens of an answer.";
    "mcp_servers.*.sampling.max_tool_rounds", Count, "5", Later, "Rounds of tool use; 0 allows none.";
    "mcp_servers.*.sampling.log_level", Text, "", Later, "Level of its log lines.";
    "mcp_servers.*.sampling.expose_client_tools", Bool, "false", Later, "Offer our tools to that model.";
    "mcp_servers.*.elicitation.enabled", Bool, "true", Later, "Answer the server's questions to the user.";
    "mcp_servers.*.elicitation.timeout", Duration, "300", Later, "How long a question waits.";

    "mcp.client", Bool, "on", Used, "Switch for all MCP servers.";
    "mcp.stdio_servers", Bool, "on", Used, "Switch for all stdio servers.";
    "timeouts.mcp.tool_call", Duration, "300", Used, "Default of every server's `timeout`.";
    "tool_budget.mcp_result_size_chars", Count, "50000", Used,
        "Characters of a result the model reads; the whole of a longer one is in a file.";
    "agent.image_input_mode", Any, "auto", Used,
        "`auto`, `native` or `text`; any other word means `auto`.";
    "agent.prefer_native", Bool, "false", Used,
        "Let `auto` send pixels to a model that sees although a vision backend is configured.";
    "model.provider", Any, "", Used,
        "Provider of the main model, which stands in where a request names no route. The section may be the model's name alone.";
    "model.default", Any, "", Used, "The main model.";
    "model.name", Any, "", Used, "The same; the first of these that is set counts.";
    "model.model", Any, "", Used, "The same.";
    "model.base_url", Any, "", Used, "Its endpoint.";
    "model.api_key", Secret, "", Used, "Its key, where it describes images; default: the variable of the provider.";
    "model.key_env", Any, "", Used, "The variable that holds its key.";
    "model.api_mode", Any, "", Used, "Its API shape.";
    "model.supports_vision", Any, "", Used,
        "The main model sees pictures; overrides the catalogue for it, or for every model where this section names none.";
    "providers.*.base_url", Any, "", Used, "Endpoint of a provider; an address of this machine or network is asked what its models see.";
    "providers.*.url", Any, "", Used, "The same; the first of these that is set counts.";
    "providers.*.api", Any, "", Used, "The same.";
    "providers.*.api_key", Secret, "", Used, "Its key, where it describes images; an unset variable costs this provider only.";
    "providers.*.key_env", Any, "", Used, "The variable that holds its key.";
    "providers.*.default_model", Any, "", Used, "Its model where nobody names one; only for describing images.";
    "providers.*.model", Any, "", Used, "The same.";
    "providers.*.api_mode", Any, "", Used, "Its API shape where a request names none.";
    "providers.*.transport", Any, "", Used, "The same.";
    "providers.*.tool_result_images", Any, "", Used,
        "Its tool results may carry pictures: true, false, or a map of API shapes to true or false. Beats what Talaria knows of the provider.";
    "providers.*.models.*.supports_vision", Any, "", Used, "One of its models sees pictures; overrides the catalogue.";
    "providers.*.models.*.vision", Any, "", Used, "The same under its older name.";
    "providers.*.models.*.tool_result_images", Bool, "", Used,
        "Tool results for one of its models may carry pictures; beats the provider's.";
    "custom_providers[].name", Any, "", Used, "Name of a provider of your own.";
    "custom_providers[].base_url", Any, "", Used, "As under `providers`.";
    "custom_providers[].url", Any, "", Used, "As under `providers`.";
    "custom_providers[].api", Any, "", Used, "As under `providers`.";
    "custom_providers[].api_key", Secret, "", Used, "As under `providers`.";
    "custom_providers[].key_env", Any, "", Used, "As under `providers`.";
    "custom_providers[].default_model", Any, "", Used, "As under `providers`.";
    "custom_providers[].model", Any, "", Used, "As under `providers`.";
    "custom_providers[].api_mode", Any, "", Used, "As under `providers`.";
    "custom_providers[].transport", Any, "", Used, "As under `providers`.";
    "custom_providers[].tool_result_images", Any, "", Used, "As under `providers`.";
    "custom_providers[].models.*.supports_vision", Any, "", Used, "As under `providers`.";
    "custom_providers[].models.*.vision", Any, "", Used, "As under `providers`.";
    "custom_providers[].models.*.tool_result_images", Bool, "", Used, "As under `providers`.";
    "fallback_providers", Any, "", Used, "Providers that describe images when those before them fail and `auxiliary.vision.provider` is `auto`: names, or maps as in `fallback_chain`.";
    "vision.embed_target_bytes", Any, "262144", Used,
        "Largest image handed to a model, 65536 to 4194304 characters of data URL; other numbers are brought within, anything else means the default.";
    "vision.max_calls_per_image", Any, "", Used,
        "How often one session is shown the same image; 0, as when unset, is unlimited.";
    "auxiliary.vision.provider", Any, "auto", Used,
        "Provider that describes images; `auto`: that of the main model, then those of which a key is known; `none`: nobody. Naming a provider, a model or an endpoint here keeps pixels from the model in mode `auto`.";
    "auxiliary.vision.model", Any, "", Used, "Model that describes images; default: the variable `AUXILIARY_VISION_MODEL`, then the provider's own.";
    "auxiliary.vision.base_url", Url, "", Used, "Endpoint; beats `provider`.";
    "auxiliary.vision.api_key", Secret, "", Used, "Its key; default: the variable of the provider. An unset variable costs this backend only.";
    "auxiliary.vision.key_env", Any, "", Used, "The variable that holds its key.";
    "auxiliary.vision.api_mode", Any, "", Used,
        "Its API shape: `openai-chat`, `openai-responses`, `anthropic`, `gemini`; default: that of the provider.";
    "auxiliary.vision.timeout", Duration, "120", Used, "Limit of one attempt.";
    "auxiliary.vision.download_timeout", Duration, "30", Used, "Limit of fetching an image; the variable `HERMES_VISION_DOWNLOAD_TIMEOUT` beats it.";
    "auxiliary.vision.temperature", Number, "0.1", Used, "Sampling temperature, 0 to 2.";
    "auxiliary.vision.max_concurrency", Count, "", Used, "Descriptions at a time; default: 256.";
    "auxiliary.vision.fallback_chain[].provider", Text, "", Used, "Provider of a later link.";
    "auxiliary.vision.fallback_chain[].model", Text, "", Used, "Model of a later link.";
    "auxiliary.vision.fallback_chain[].base_url", Url, "", Used, "Endpoint of a later link.";
    "auxiliary.vision.fallback_chain[].api_key", Secret, "", Used, "Key of a later link.";
    "auxiliary.vision.fallback_chain[].key_env", Any, "", Used, "The variable that holds its key.";
    "auxiliary.vision.fallback_chain[].api_mode", Any, "", Used, "API shape of a later link.";
    "auxiliary.vision.fallback_chain[].timeout", Duration, "", Used, "Limit of a later link; default: that of `auxiliary.vision`.";
    "auxiliary.vision.mcp_fallback[].server", Text, "", Used, "MCP server of a last link.";
    "auxiliary.vision.mcp_fallback[].tool", Text, "", Used, "Its tool.";
    "auxiliary.vision.mcp_fallback[].prompt_arg", Text, "", Used, "Argument that takes the question; default: found in the tool's schema.";
    "auxiliary.vision.mcp_fallback[].image_arg", Text, "", Used, "Argument that takes the image; default: found in the tool's schema.";
    "auxiliary.vision.mcp_fallback[].image_form", Word(&["auto", "path", "url", "data", "base64"]), "auto", Used,
        "How the image is handed over; `auto`: as the tool's schema says, else a path to a stdio server and a data URL to a remote one.";
    "auxiliary.vision.mcp_fallback[].timeout", Duration, "60", Used, "Limit of the call, waiting included.";
    "auxiliary.vision.mcp_fallback[].failure_patterns", TextList, "", Used,
        "Answers that are failures in disguise, as regular expressions; default: those of well-known servers, such as `^Failed to perform VLM analysis`.";
    "auxiliary.vision.mcp_fallback[].prompt", Text, "", Used, "The question where nobody asks one.";
    "auxiliary.vision.mcp_fallback[].allow_remote_path", Bool, "false", Used,
        "Hand paths of this machine to a server that is reached over HTTP.";
    "gateway.max_inbound_media_bytes", Size, "134217728", Later, "Largest media message taken in; 0 is unlimited.";
    "security.allow_private_urls", Bool, "false", Used, "Fetch images from private addresses too; those of cloud metadata stay closed.";
    "security.allow_tun_fakeip", Bool, "false", Used, "Fetch images also where a tunnel answers with fake addresses (198.18.0.0/15).";
    "security.osv_check", Bool, "true", Used,
        "Look up packages that `npx`, `uvx` or `pipx` would run and refuse those known as malware; a look-up that fails refuses nothing.";
    "security.osv_url", Url, "https://api.osv.dev/v1/query", Used, "Where they are looked up.";
}
