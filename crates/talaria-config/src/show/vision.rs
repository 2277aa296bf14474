//! What describes pictures, as it took effect.

use serde_json::{Value, json};

use crate::secrets::{MASK, SecretValues};
use crate::tree::{BackendConfig, McpFallback, Pattern, Secret, VisionConfig};
use crate::units::show_duration;

/// `auxiliary.vision`.
pub(super) fn auxiliary(vision: &VisionConfig, secrets: &SecretValues) -> Value {
    let mut shown = backend(&vision.aux, secrets);
    let chain: Vec<Value> = vision
        .fallback_chain
        .iter()
        .map(|link| backend(link, secrets))
        .collect();
    let tools: Vec<Value> = vision.mcp_fallback.iter().map(tool).collect();
    let rest = json!({
        "temperature": vision.temperature,
        "download_timeout": show_duration(vision.download_timeout),
        "max_concurrency": vision.max_concurrency,
        "fallback_chain": chain,
        "mcp_fallback": tools,
    });
    if let (Some(shown), Value::Object(rest)) = (shown.as_object_mut(), rest) {
        shown.extend(rest);
    }
    shown
}

/// `fallback_providers`.
pub(super) fn providers(vision: &VisionConfig, secrets: &SecretValues) -> Value {
    let links = vision.fallback_providers.iter();
    links.map(|link| backend(link, secrets)).collect()
}

/// `talaria.vision`.
pub(super) fn own(vision: &VisionConfig) -> Value {
    json!({
        "total_timeout": show_duration(vision.total_timeout),
        "hedge_after": vision.hedge_after.map(show_duration),
        "cache_ttl": show_duration(vision.cache_ttl),
    })
}

/// A key as it may be shown.
pub(super) fn key(key: Option<&Secret>) -> Value {
    key.map_or(Value::Null, |_| Value::from(MASK))
}

fn backend(backend: &BackendConfig, secrets: &SecretValues) -> Value {
    let mut shown = json!({
        "provider": backend.provider.as_deref().unwrap_or("auto"),
        "model": backend.model,
        "base_url": backend.base_url.as_ref().map(|url| secrets.mask(&url.masked())),
        "api_key": key(backend.api_key.as_ref()),
        "api_mode": backend.api,
        "timeout": show_duration(backend.timeout),
    });
    if let (Some(problem), Some(shown)) = (&backend.problem, shown.as_object_mut()) {
        shown.insert("broken".to_owned(), Value::from(problem.as_str()));
    }
    shown
}

fn tool(tool: &McpFallback) -> Value {
    let patterns: Vec<_> = tool.failure_patterns.iter().map(Pattern::as_str).collect();
    json!({
        "server": tool.server.as_str(),
        "tool": tool.tool,
        "prompt_arg": tool.prompt_arg,
        "image_arg": tool.image_arg,
        "image_form": tool.image_form.as_str(),
        "timeout": show_duration(tool.timeout),
        "failure_patterns": patterns,
        "prompt": tool.prompt,
        "allow_remote_path": tool.allow_remote_path,
    })
}
