//! Ollama: `/api/version` tells that it is one, `/api/show` what a model can do.

use reqwest::Client;
use serde_json::{Value, json};
use url::Url;

use super::{Finding, Server, send};

/// Whether an Ollama answers there.
///
/// # Errors
/// Nobody answers at all.
pub(super) async fn is_ollama(client: &Client, root: &Url) -> Result<bool, &'static str> {
    let Ok(url) = root.join("api/version") else {
        return Ok(false);
    };
    let reply = send(client.get(url)).await?;
    let version = reply.json.as_ref().and_then(|json| json.get("version"));
    Ok(reply.status == 200 && version.is_some_and(Value::is_string))
}

/// Asks about a model.
pub(super) async fn ask(client: &Client, root: &Url, model: &str) -> Finding {
    let Ok(url) = root.join("api/show") else {
        return Finding::nothing("the endpoint is no address");
    };
    let body = json!({ "model": model }).to_string();
    let request = client
        .post(url)
        .header(reqwest::header::CONTENT_TYPE, "application/json")
        .body(body);
    let (sees, detail) = match send(request).await {
        Err(failure) => return Finding::nothing(failure),
        Ok(reply) if reply.status == 404 => (None, "Ollama does not have the model".to_owned()),
        Ok(reply) if reply.status != 200 => (None, format!("Ollama answers {}", reply.status)),
        Ok(reply) => match reply.json.as_ref().and_then(sight) {
            None => (None, "Ollama's answer does not say it".to_owned()),
            sees => (sees, "Ollama, /api/show".to_owned()),
        },
    };
    Finding {
        server: Server::Ollama,
        sees,
        detail,
    }
}

/// `capabilities` says it; servers from before it list the parts of a model.
fn sight(answer: &Value) -> Option<bool> {
    if let Some(capabilities) = answer.get("capabilities").and_then(Value::as_array) {
        return Some(capabilities.iter().any(|word| word == "vision"));
    }
    let has_projector = answer.get("projector_info").is_some_and(Value::is_object);
    let parts = answer.get("model_info").and_then(Value::as_object);
    let has_part = parts.is_some_and(|parts| parts.keys().any(|key| key.contains(".vision.")));
    (has_projector || has_part).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sight_is_read_from_capabilities_or_parts() {
        for (answer, sees) in [
            (
                json!({"capabilities": ["completion", "vision"]}),
                Some(true),
            ),
            (
                json!({"capabilities": ["completion", "tools"]}),
                Some(false),
            ),
            (json!({"capabilities": []}), Some(false)),
            (json!({"capabilities": "vision"}), None),
            (
                json!({"projector_info": {"general.architecture": "clip"}}),
                Some(true),
            ),
            (
                json!({"model_info": {"mllama.vision.block_count": 32}}),
                Some(true),
            ),
            (json!({"model_info": {"llama.block_count": 32}}), None),
            (json!({"error": "no"}), None),
            (json!([]), None),
        ] {
            assert_eq!(sight(&answer), sees, "{answer}");
        }
    }
}
