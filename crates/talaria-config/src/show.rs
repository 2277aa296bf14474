//! The configuration as it took effect, secrets masked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::secrets::{MASK, SecretValues, mask_args, mask_url};
use crate::tree::{
    Config, HttpConfig, HttpKind, MainModel, ProviderFacts, ServerConfig, ServerEntry,
    TalariaConfig, TransportConfig, Verify,
};
use crate::units::{show_duration, show_size};

mod vision;

impl Config {
    /// Every value that is used, in the shape of the file; tokens, headers, environments, what
    /// came out of the environment and [every secret](Self::secrets) are masked.
    #[must_use]
    pub fn show(&self) -> Value {
        let mut hidden = self.environment_values.clone();
        hidden.extend(self.secrets());
        let servers: Map<String, Value> = self
            .servers
            .iter()
            .map(|(name, entry)| (name.as_str().to_owned(), show_entry(entry, &hidden)))
            .collect();
        let (custom, named): (Vec<_>, Vec<_>) = self
            .gate
            .providers
            .iter()
            .partition(|provider| provider.is_custom);
        let named: Map<String, Value> = named
            .into_iter()
            .map(|provider| (provider.name.clone(), show_provider(provider, &hidden)))
            .collect();
        let custom: Vec<Value> = custom
            .into_iter()
            .map(|provider| show_provider(provider, &hidden))
            .collect();
        json!({
            "talaria": show_own(self),
            "mcp_servers": servers,
            "tool_budget": { "mcp_result_size_chars": self.result_size_chars },
            "agent": {
                "image_input_mode": self.gate.mode.as_str(),
                "prefer_native": self.gate.prefer_native,
            },
            "vision": {
                "embed_target_bytes": self.talaria.images.budget,
                "max_calls_per_image": self.talaria.images.max_calls_per_image,
            },
            "model": show_main(&self.gate.main, &hidden),
            "providers": named,
            "custom_providers": custom,
            "fallback_providers": vision::providers(&self.vision, &hidden),
            "auxiliary": { "vision": vision::auxiliary(&self.vision, &hidden) },
            "security": {
                "allow_private_urls": self.vision.allow_private_urls,
                "allow_tun_fakeip": self.vision.allow_tun_fakeip,
                "osv_check": self.security.osv_check,
                "osv_url": hidden.mask(&mask_url(&self.security.osv_url)),
            },
        })
    }
}

fn show_main(main: &MainModel, secrets: &SecretValues) -> Value {
    json!({
        "provider": main.provider,
        "default": main.model,
        "base_url": main.base_url.as_ref().map(|url| secrets.mask(&url.masked())),
        "api_key": vision::key(main.api_key.as_ref()),
        "api_mode": main.api,
        "supports_vision": main.supports_vision,
    })
}

fn show_provider(provider: &ProviderFacts, secrets: &SecretValues) -> Value {
    let models: Map<String, Value> = provider
        .models
        .iter()
        .map(|(name, facts)| {
            let shown = json!({
                "supports_vision": facts.supports_vision,
                "tool_result_images": facts.tool_result_images,
            });
            (name.clone(), shown)
        })
        .collect();
    let images = &provider.tool_result_images;
    let images = if images.by_api.is_empty() {
        json!(images.any)
    } else {
        json!(images.by_api)
    };
    json!({
        "name": provider.name,
        "base_url": provider.base_url.as_ref().map(|url| secrets.mask(&url.masked())),
        "api_key": vision::key(provider.api_key.as_ref()),
        "default_model": provider.default_model,
        "api_mode": provider.api,
        "tool_result_images": images,
        "models": models,
    })
}

fn show_own(config: &Config) -> Value {
    let own: &TalariaConfig = &config.talaria;
    let tokens: Vec<Value> = own
        .tokens
        .iter()
        .map(|token| {
            let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
            json!({
                "name": token.name, "token": MASK, "scopes": scopes, "servers": token.servers,
            })
        })
        .collect();
    json!({
        "listen": own.listen.to_string(),
        "home": own.home.display().to_string(),
        "allowed_hosts": own.allowed_hosts,
        "auth": { "tokens": tokens, "open_probes": own.open_probes },
        "media": {
            "max_bytes": show_size(own.media.max_bytes),
            "ttl": show_duration(own.media.ttl),
            "grace": show_duration(own.media.grace),
            "public_url": own.media.public_url.as_deref().map(mask_url),
            "fsync": own.media.fsync,
        },
        "images": {
            "workers": own.images.workers.map_or_else(|| json!("auto"), |count| json!(count)),
            "queue": own.images.queue,
            "allowed_roots": own.images.allowed_roots,
            "tiles": own.images.tiles.as_str(),
            "image_delivery": own.images.image_delivery.as_str(),
        },
        "vision": vision::own(&config.vision),
        "calls": {
            "describe_images": config.vision.describe_images.as_str(),
            "max_call_duration": show_duration(own.calls.max_call_duration),
            "drain_timeout": show_duration(own.calls.drain_timeout),
            "wrap_untrusted": own.calls.wrap_untrusted,
        },
        "limits": {
            "message_bytes": show_size(own.limits.message_bytes as u64),
            "body_bytes": show_size(own.limits.body_bytes as u64),
            "pending_per_server": own.limits.pending_per_server,
            "pending_per_token": own.limits.pending_per_token,
            "stderr_log_bytes": show_size(own.limits.stderr_log_bytes),
            "blocking_jobs": own.limits.blocking_jobs,
        },
        "watch_config": own.watch_config,
    })
}

fn show_entry(entry: &ServerEntry, secrets: &SecretValues) -> Value {
    match entry {
        ServerEntry::Usable(server) => show_server(server, secrets),
        ServerEntry::Broken { problem } => json!({ "broken": problem }),
    }
}

fn show_server(server: &ServerConfig, secrets: &SecretValues) -> Value {
    let mut shown = match &server.transport {
        TransportConfig::Stdio {
            command,
            args,
            env,
            cwd,
        } => json!({
            "command": secrets.mask(command),
            "args": mask_args(args, secrets),
            "env": masked(env),
            "cwd": cwd.as_ref().map(|path| path.display().to_string()),
        }),
        TransportConfig::Http(http) => show_http(http, secrets),
    };
    let rest = json!({
        "enabled": server.enabled,
        "timeout": show_duration(server.timeout),
        "connect_timeout": show_duration(server.connect_timeout),
        "rpc_concurrency": server.rpc_concurrency,
        "name_prefix": server.name_prefix.as_str(),
        "trust": server.trust.as_str(),
        "keepalive_interval": server.keepalive_interval.map(show_duration),
        "lazy": server.lazy,
        "idle_timeout_seconds": show_duration(server.idle_timeout.unwrap_or_default()),
        "max_lifetime_seconds": show_duration(server.max_lifetime.unwrap_or_default()),
        "protocol": server.protocol.as_str(),
        "tools": {
            "include": server.tools.include,
            "exclude": server.tools.exclude,
            "resources": !server.tools.without_resources,
            "prompts": !server.tools.without_prompts,
        },
    });
    if let (Some(shown), Value::Object(rest)) = (shown.as_object_mut(), rest) {
        shown.extend(rest);
    }
    shown
}

fn show_http(http: &HttpConfig, secrets: &SecretValues) -> Value {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let transport = match http.kind {
        HttpKind::Auto => None,
        HttpKind::Streamable | HttpKind::Sse => Some(http.kind.as_str()),
    };
    let verify = match &http.tls.verify {
        Verify::System => json!(true),
        Verify::Off => json!(false),
        Verify::Ca(file) => json!(file.display().to_string()),
    };
    let cert = match &http.tls.key_password {
        None => json!(path(&http.tls.client_cert)),
        Some(_) => json!([
            path(&http.tls.client_cert),
            path(&http.tls.client_key),
            MASK
        ]),
    };
    let identity = http
        .identity_header
        .as_ref()
        .map(|(name, _)| json!({ "name": name, "value_from": "static", "value": MASK }));
    json!({
        "url": secrets.mask(&http.masked_url()),
        "headers": masked(&http.headers),
        "transport": transport,
        "ssl_verify": verify,
        "client_cert": cert,
        "client_key": path(&http.tls.client_key),
        "strict_redirect_headers": http.strict_redirect_headers,
        "skip_preflight": http.skip_preflight,
        "identity_header": identity,
    })
}

fn masked(values: &BTreeMap<String, String>) -> Map<String, Value> {
    let names = values.keys();
    names
        .map(|name| (name.clone(), Value::from(MASK)))
        .collect()
}
