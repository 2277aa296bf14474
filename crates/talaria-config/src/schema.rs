//! The table of keys: what may be set, of which kind, with which default.
//!
//! Unknown keys are found with it, values that no part uses yet are checked with it, and the
//! tables of `docs/config.md` are made from it.

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`; the words yes, no, on, off count too.
    Bool,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A duration: with a unit; in Hermes' sections a bare number means seconds.
    Duration,
    /// A size: with a unit; in Hermes' sections a bare number means bytes.
    Size,
    /// A whole number that is not negative.
    Count,
    /// A number.
    Number,
    /// Text.
    Text,
    /// Text that is never shown; an unset variable in it is an error.
    Secret,
    /// An address; an unset variable in it is an error.
    Url,
    /// A program; an unset variable in it is an error.
    Command,
    /// Arguments: a list, a JSON list in a string, or a line as for a shell; an unset variable
    /// in it is an error.
    Args,
    /// A list of texts; a single text is a list of one.
    TextList,
    /// A map of texts that are never shown; an unset variable in it is an error.
    SecretMap,
    /// Anything; wrong values mean the default, as Hermes has it.
    Any,
}

impl Kind {
    /// The kind in words, for messages and the documentation.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "boolean".to_owned(),
            Self::Word(words) => words
                .iter()
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(" or "),
            Self::Duration => "duration".to_owned(),
            Self::Size => "size".to_owned(),
            Self::Count => "whole number".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Secret => "secret text".to_owned(),
            Self::Url => "address".to_owned(),
            Self::Command => "program".to_owned(),
            Self::Args => "list of texts, or a line".to_owned(),
            Self::TextList => "list of texts".to_owned(),
            Self::SecretMap => "map of secret texts".to_owned(),
            Self::Any => "see text".to_owned(),
        }
    }
}

/// Whether a part that stands uses the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It does.
    Used,
    /// Accepted and checked; a value other than the default leaves a warning.
    Later,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Path; `*` stands for a name the operator chooses, `[]` for each entry of a list.
    pub path: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// Default as YAML; empty where there is none.
    pub default: &'static str,
    /// Whether it is used.
    pub stage: Stage,
    /// What it does.
    pub help: &'static str,
}

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
    "talaria.vision.total_timeout", Duration, "180s", Later,
        "Limit of a whole description, all attempts included.";
    "talaria.vision.hedge_after", Duration, "null", Later,
        "Ask the next model as well after this time.";
    "talaria.vision.cache_ttl", Duration, "10m", Later,
        "How long a description is remembered.";
    "talaria.calls.describe_images", Word(&["auto", "true", "false"]), "auto", Later,
        "Describe images the model cannot see.";
    "talaria.calls.max_call_duration", Duration, "3600s", Used,
        "Upper bound of any call, progress or not.";
    "talaria.calls.drain_timeout", Duration, "30s", Used,
        "How long a shutdown waits for calls that run.";
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
    "talaria.watch_config", Bool, "true", Later,
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
        "Endpoint of a Streamable HTTP server. Either this or `command`.";
    "mcp_servers.*.headers", SecretMap, "{}", Used,
        "Headers of every request to it.";
    "mcp_servers.*.transport", Word(&["stdio", "http", "streamable-http", "sse"]), "", Used,
        "Follows from `command` or `url`; `sse` is refused, it is not available yet.";
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
    "mcp_servers.*.keepalive_interval", Duration, "180", Later,
        "How often an idle session is probed; at least 5 s. Stdio servers are probed only when it is set.";
    "mcp_servers.*.tools.include", TextList, "", Used,
        "Tools to offer, by name or shell wildcard; beats `exclude`. An empty list offers none.";
    "mcp_servers.*.tools.exclude", TextList, "[]", Used,
        "Tools not to offer, by name or shell wildcard.";
    "mcp_servers.*.tools.resources", Bool, "true", Used,
        "Offer the resource utilities where the server has resources.";
    "mcp_servers.*.tools.prompts", Bool, "true", Used,
        "Offer the prompt utilities where the server has prompts.";
    "mcp_servers.*.idle_timeout_seconds", Duration, "0", Later,
        "End an idle session after this time; 0 never.";
    "mcp_servers.*.max_lifetime_seconds", Duration, "0", Later,
        "End a session after this time; 0 never.";
    "mcp_servers.*.lifecycle.idle_timeout_seconds", Duration, "0", Later,
        "Same as `idle_timeout_seconds`.";
    "mcp_servers.*.lifecycle.max_lifetime_seconds", Duration, "0", Later,
        "Same as `max_lifetime_seconds`.";
    "mcp_servers.*.lazy", Bool, "false", Later,
        "Connect at the first call.";
    "mcp_servers.*.ssl_verify", Any, "true", Later,
        "Check the server's certificate, or the path of an authority to check it with.";
    "mcp_servers.*.client_cert", Any, "", Later,
        "Client certificate: path, or list of certificate, key and password.";
    "mcp_servers.*.client_key", Text, "", Later,
        "Key of the client certificate.";
    "mcp_servers.*.identity_header.name", Text, "", Later,
        "Header that names the caller.";
    "mcp_servers.*.identity_header.value_from", Word(&["static", "profile"]), "", Later,
        "Where its value comes from.";
    "mcp_servers.*.identity_header.value", Text, "", Later,
        "Its value when static.";
    "mcp_servers.*.strict_redirect_headers", Bool, "false", Later,
        "Drop all configured headers on a redirect to another origin.";
    "mcp_servers.*.skip_preflight", Bool, "false", Later,
        "Connect without probing the endpoint first.";
    "mcp_servers.*.protocol", Word(&["auto", "stateless", "legacy"]), "auto", Later,
        "Protocol to speak.";
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
    "model.api_mode", Any, "", Used, "Its API shape.";
    "model.supports_vision", Any, "", Used,
        "The main model sees pictures; overrides the catalogue for it, or for every model where this section names none.";
    "providers.*.base_url", Any, "", Used, "Endpoint of a provider; an address of this machine or network is asked what its models see.";
    "providers.*.url", Any, "", Used, "The same; the first of these that is set counts.";
    "providers.*.api", Any, "", Used, "The same.";
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
    "custom_providers[].api_mode", Any, "", Used, "As under `providers`.";
    "custom_providers[].transport", Any, "", Used, "As under `providers`.";
    "custom_providers[].tool_result_images", Any, "", Used, "As under `providers`.";
    "custom_providers[].models.*.supports_vision", Any, "", Used, "As under `providers`.";
    "custom_providers[].models.*.vision", Any, "", Used, "As under `providers`.";
    "custom_providers[].models.*.tool_result_images", Bool, "", Used, "As under `providers`.";
    "fallback_providers", Any, "", Later, "Providers to ask when the first fails.";
    "vision.embed_target_bytes", Any, "262144", Used,
        "Largest image handed to a model, 65536 to 4194304 characters of data URL; other numbers are brought within, anything else means the default.";
    "vision.max_calls_per_image", Any, "", Used,
        "How often one session is shown the same image; 0, as when unset, is unlimited.";
    "auxiliary.vision.provider", Any, "auto", Used,
        "Provider that describes images. Naming it, a model or an endpoint here keeps pixels from the model in mode `auto`.";
    "auxiliary.vision.model", Any, "", Used, "Model that describes images.";
    "auxiliary.vision.base_url", Any, "", Used, "Endpoint; beats `provider`.";
    "auxiliary.vision.api_key", Secret, "", Later, "Its key.";
    "auxiliary.vision.timeout", Duration, "120", Later, "Limit of one attempt.";
    "auxiliary.vision.download_timeout", Duration, "30", Later, "Limit of fetching an image.";
    "auxiliary.vision.temperature", Number, "0.1", Later, "Sampling temperature.";
    "auxiliary.vision.max_concurrency", Count, "", Later, "Descriptions at a time; default: processors.";
    "auxiliary.vision.fallback_chain[].provider", Text, "", Later, "Provider of a later link.";
    "auxiliary.vision.fallback_chain[].model", Text, "", Later, "Model of a later link.";
    "auxiliary.vision.fallback_chain[].base_url", Url, "", Later, "Endpoint of a later link.";
    "auxiliary.vision.fallback_chain[].api_key", Secret, "", Later, "Key of a later link.";
    "auxiliary.vision.fallback_chain[].timeout", Duration, "", Later, "Limit of a later link.";
    "auxiliary.vision.mcp_fallback[].server", Text, "", Later, "MCP server of a last link.";
    "auxiliary.vision.mcp_fallback[].tool", Text, "", Later, "Its tool.";
    "auxiliary.vision.mcp_fallback[].prompt_arg", Text, "prompt", Later, "Argument that takes the question.";
    "auxiliary.vision.mcp_fallback[].image_arg", Text, "image_source", Later, "Argument that takes the image.";
    "auxiliary.vision.mcp_fallback[].image_form", Word(&["auto", "path", "url", "data", "base64"]), "auto", Later,
        "How the image is handed over.";
    "auxiliary.vision.mcp_fallback[].timeout", Duration, "60", Later, "Limit of the call.";
    "auxiliary.vision.mcp_fallback[].failure_patterns", TextList, "[]", Later,
        "Answers that are failures in disguise, as regular expressions.";
    "gateway.max_inbound_media_bytes", Size, "134217728", Later, "Largest media message taken in; 0 is unlimited.";
    "security.allow_private_urls", Bool, "false", Later, "Fetch images from private addresses.";
    "security.allow_tun_fakeip", Bool, "false", Later, "Accept the fake addresses of a tunnel.";
}

/// What stands at a path of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A key with a value.
    Leaf(&'static Key),
    /// A map of further keys.
    Section,
    /// A map whose keys the operator names.
    NamedSections,
    /// A list of maps.
    ListOfSections,
    /// Nothing.
    Unknown,
}

/// What stands at this path.
pub(crate) fn place(path: &str) -> Place {
    for key in KEYS {
        let Some(rest) = key.path.strip_prefix(path) else {
            continue;
        };
        if rest.is_empty() {
            return Place::Leaf(key);
        }
        if rest.starts_with("[]") {
            return Place::ListOfSections;
        }
        if rest.starts_with(".*") {
            return Place::NamedSections;
        }
        if rest.starts_with('.') {
            return Place::Section;
        }
    }
    Place::Unknown
}

/// Names of the keys directly below a path; the top-level sections for the empty path.
pub(crate) fn children(path: &str) -> impl Iterator<Item = &'static str> {
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("{path}.")
    };
    let mut last = "";
    KEYS.iter().filter_map(move |key| {
        let rest = key.path.strip_prefix(prefix.as_str())?;
        let name = rest.split(['.', '[']).next()?;
        if name == last {
            return None;
        }
        last = name;
        Some(name)
    })
}

/// The known name that a misspelt one is closest to, if it is close.
pub(crate) fn near_miss(
    name: &str,
    known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let folded = fold(name);
    let reach = match folded.chars().count() {
        0..=5 => 1,
        6..=11 => 2,
        _ => 3,
    };
    known
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&folded, &fold(candidate)),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= reach)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Spelling without case, `-` and `_`.
fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .take(64)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_is_listed_once_and_found() {
        let paths: BTreeSet<_> = KEYS.iter().map(|key| key.path).collect();
        assert_eq!(paths.len(), KEYS.len());
        for key in KEYS {
            assert!(matches!(place(key.path), Place::Leaf(found) if found.path == key.path));
            assert!(key.help.ends_with('.'), "{}", key.path);
        }
    }

    #[test]
    fn places_are_told_apart() {
        assert!(matches!(place("talaria"), Place::Section));
        assert!(matches!(
            place("talaria.auth.tokens"),
            Place::ListOfSections
        ));
        assert!(matches!(place("mcp_servers"), Place::NamedSections));
        assert!(matches!(place("mcp_servers.*.tools"), Place::Section));
        assert!(matches!(place("mcp"), Place::Section));
        assert!(matches!(place("mcp_serv"), Place::Unknown));
        assert!(matches!(place("talaria.med"), Place::Unknown));
    }

    #[test]
    fn near_misses_are_found() {
        let near = |name| near_miss(name, children("mcp_servers.*"));
        assert_eq!(near("comand"), Some("command"));
        assert_eq!(near("connectTimeout"), Some("connect_timeout"));
        assert_eq!(near("rpc-concurrency"), Some("rpc_concurrency"));
        assert_eq!(near("uri"), Some("url"));
        assert_eq!(near("description"), None);
        assert_eq!(near("type"), None);
    }
}
