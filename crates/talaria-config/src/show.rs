//! The configuration as it took effect, secrets masked.

use serde_json::{Map, Value, json};

use crate::secrets::{MASK, SecretValues, mask_args, mask_url};
use crate::tree::{
    Config, MainModel, ProviderFacts, ServerConfig, ServerEntry, TalariaConfig, TransportConfig,
};
use crate::units::{show_duration, show_size};

impl Config {
    /// Every value that is used, in the shape of the file; tokens, headers, environments and
    /// what came out of the environment are masked.
    #[must_use]
    pub fn show(&self) -> Value {
        let servers: Map<String, Value> = self
            .servers
            .iter()
            .map(|(name, entry)| (name.as_str().to_owned(), show_entry(entry, &self.secrets)))
            .collect();
        let (custom, named): (Vec<_>, Vec<_>) = self
            .gate
            .providers
            .iter()
            .partition(|provider| provider.is_custom);
        let named: Map<String, Value> = named
            .into_iter()
            .map(|provider| {
                (
                    provider.name.clone(),
                    show_provider(provider, &self.secrets),
                )
            })
            .collect();
        let custom: Vec<Value> = custom
            .into_iter()
            .map(|provider| show_provider(provider, &self.secrets))
            .collect();
        json!({
            "talaria": show_own(&self.talaria),
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
            "model": show_main(&self.gate.main, &self.secrets),
            "providers": named,
            "custom_providers": custom,
        })
    }
}

fn show_main(main: &MainModel, secrets: &SecretValues) -> Value {
    json!({
        "provider": main.provider,
        "default": main.model,
        "base_url": main.base_url.as_ref().map(|url| secrets.mask(&url.masked())),
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
        "api_mode": provider.api,
        "tool_result_images": images,
        "models": models,
    })
}

fn show_own(own: &TalariaConfig) -> Value {
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
        "calls": {
            "max_call_duration": show_duration(own.calls.max_call_duration),
            "drain_timeout": show_duration(own.calls.drain_timeout),
        },
        "limits": {
            "message_bytes": show_size(own.limits.message_bytes as u64),
            "body_bytes": show_size(own.limits.body_bytes as u64),
            "pending_per_server": own.limits.pending_per_server,
            "pending_per_token": own.limits.pending_per_token,
            "stderr_log_bytes": show_size(own.limits.stderr_log_bytes),
            "blocking_jobs": own.limits.blocking_jobs,
        },
    })
}

fn show_entry(entry: &ServerEntry, secrets: &SecretValues) -> Value {
    match entry {
        ServerEntry::Usable(server) => show_server(server, secrets),
        ServerEntry::Broken { problem } => json!({ "broken": problem }),
    }
}

fn show_server(server: &ServerConfig, secrets: &SecretValues) -> Value {
    let masked = |names: Vec<&String>| -> Map<String, Value> {
        names
            .into_iter()
            .map(|name| (name.clone(), Value::from(MASK)))
            .collect()
    };
    let mut shown = match &server.transport {
        TransportConfig::Stdio {
            command,
            args,
            env,
            cwd,
        } => json!({
            "command": secrets.mask(command),
            "args": mask_args(args, secrets),
            "env": masked(env.keys().collect()),
            "cwd": cwd.as_ref().map(|path| path.display().to_string()),
        }),
        TransportConfig::Http { url, headers } => json!({
            "url": secrets.mask(&mask_url(url)),
            "headers": masked(headers.keys().collect()),
        }),
    };
    let rest = json!({
        "enabled": server.enabled,
        "timeout": show_duration(server.timeout),
        "connect_timeout": show_duration(server.connect_timeout),
        "rpc_concurrency": server.rpc_concurrency,
        "name_prefix": server.name_prefix.as_str(),
        "trust": server.trust.as_str(),
        "keepalive_interval": server.keepalive_interval.map(show_duration),
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
