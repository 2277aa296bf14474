//! The configuration as it took effect, secrets masked.

use serde_json::{Map, Value, json};

use crate::secrets::{MASK, SecretValues, mask_args, mask_url};
use crate::tree::{Config, ServerConfig, ServerEntry, TalariaConfig, TransportConfig};
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
        json!({
            "talaria": show_own(&self.talaria),
            "mcp_servers": servers,
            "tool_budget": { "mcp_result_size_chars": self.result_size_chars },
            "agent": { "image_input_mode": self.image_input_mode.as_str() },
        })
    }
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
