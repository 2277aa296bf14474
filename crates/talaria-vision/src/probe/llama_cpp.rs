//! llama.cpp's server: `/v1/props`, and `/props` where there is no such path.

use reqwest::Client;
use serde_json::Value;
use url::Url;

use super::{Finding, Reply, Server, send};

/// Keys that the props of llama.cpp have and those of nobody else.
const MARKS: [&str; 4] = [
    "default_generation_settings",
    "build_info",
    "total_slots",
    "model_path",
];

/// Asks what the server was started with. Where its name does not tell that it is one of
/// llama.cpp, its answer must.
pub(super) async fn ask(client: &Client, root: &Url, is_named: bool) -> Finding {
    for path in ["v1/props", "props"] {
        let Ok(url) = root.join(path) else {
            break;
        };
        match send(client.get(url)).await {
            Err(failure) => return Finding::nothing(failure),
            Ok(reply) if reply.status == 404 => {}
            Ok(reply) => return read(&reply, path, is_named),
        }
    }
    Finding::nothing("the server is not known")
}

fn read(reply: &Reply, path: &str, is_named: bool) -> Finding {
    let props = reply.json.as_ref().and_then(Value::as_object);
    let has_mark = props.is_some_and(|props| MARKS.iter().any(|mark| props.contains_key(*mark)));
    if !is_named && !has_mark && !reply.server.starts_with("llama.cpp") {
        return Finding::nothing("the server is not known");
    }
    let modalities = props.and_then(|props| props.get("modalities"));
    let (sees, detail) = match modalities.filter(|_| reply.status == 200).and_then(sight) {
        None if reply.status != 200 => (None, format!("llama.cpp answers {}", reply.status)),
        None => (None, "llama.cpp's answer does not say it".to_owned()),
        sees => (sees, format!("llama.cpp, /{path}")),
    };
    Finding {
        server: Server::LlamaCpp,
        sees,
        detail,
    }
}

/// A map with the boolean `vision`, or in older builds a list of words.
fn sight(modalities: &Value) -> Option<bool> {
    match modalities {
        Value::Object(map) => map.get("vision")?.as_bool(),
        Value::Array(words) => Some(words.iter().any(|word| word == "vision")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn g65_sight_is_a_boolean_of_a_map_or_a_word_of_a_list() {
        for (modalities, sees) in [
            (json!({"vision": true, "audio": false}), Some(true)),
            (json!({"vision": false}), Some(false)),
            (json!({"vision": "yes"}), None),
            (json!({"vision": 1}), None),
            (json!({"vision": null}), None),
            (json!({"audio": true}), None),
            (json!({}), None),
            (json!(["vision"]), Some(true)),
            (json!(["text", "vision"]), Some(true)),
            (json!(["text"]), Some(false)),
            (json!([]), Some(false)),
            (json!("vision"), None),
            (json!(true), None),
            (json!(null), None),
        ] {
            assert_eq!(sight(&modalities), sees, "{modalities}");
        }
    }
}
