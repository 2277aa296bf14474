//! Handshake results in the strict form that rmcp types, made from whatever a server sent.

use rmcp::model::{DiscoverResult, InitializeResult, ProtocolVersion, ServerResult};
use serde_json::{Map, Value, json};

const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Reads the result of `initialize`; `None` unless it is an object.
pub(super) fn initialize(result: &Value) -> Option<ServerResult> {
    let result = result.as_object()?;
    let version =
        text(result, "protocolVersion").unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE.as_str());
    let mut strict = json!({
        "protocolVersion": version,
        "capabilities": capabilities(result.get("capabilities")),
        "serverInfo": implementation(result.get("serverInfo")),
    });
    keep_instructions(&mut strict, result);
    let typed: InitializeResult = serde_json::from_value(strict).ok()?;
    Some(ServerResult::InitializeResult(typed))
}

/// Reads the result of `server/discover`; `None` unless it names a revision that needs no
/// `initialize`: any other is agreed on there.
pub(super) fn discover(result: &Value) -> Option<ServerResult> {
    let result = result.as_object()?;
    let versions: Vec<&str> = result
        .get("supportedVersions")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if !versions.contains(&ProtocolVersion::LATEST.as_str()) {
        return None;
    }
    let info = result
        .get("_meta")
        .and_then(|meta| meta.get(SERVER_INFO_KEY));
    let mut strict = json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": capabilities(result.get("capabilities")),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { SERVER_INFO_KEY: implementation(info.or_else(|| result.get("serverInfo"))) },
    });
    keep_instructions(&mut strict, result);
    let typed: DiscoverResult = serde_json::from_value(strict).ok()?;
    Some(ServerResult::DiscoverResult(typed))
}

fn keep_instructions(strict: &mut Value, result: &Map<String, Value>) {
    if let (Some(strict), Some(instructions)) =
        (strict.as_object_mut(), text(result, "instructions"))
    {
        strict.insert("instructions".to_owned(), instructions.into());
    }
}

/// The three capabilities we use; `true` and an odd shape count as offered, null and `false`
/// do not.
fn capabilities(offered: Option<&Value>) -> Value {
    let mut strict = Map::new();
    for name in ["tools", "resources", "prompts"] {
        match offered.and_then(|offered| offered.get(name)) {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(settings) => {
                let changes = settings.get("listChanged") == Some(&Value::Bool(true));
                strict.insert(name.to_owned(), json!({ "listChanged": changes }));
            }
        }
    }
    Value::Object(strict)
}

fn implementation(info: Option<&Value>) -> Value {
    let word = |key: &str| {
        let word = info.and_then(|info| info.get(key)).and_then(Value::as_str);
        word.filter(|word| !word.is_empty())
            .unwrap_or("unknown")
            .to_owned()
    };
    json!({ "name": word("name"), "version": word("version") })
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}
