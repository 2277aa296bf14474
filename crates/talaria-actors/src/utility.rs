//! The utility tools over a server's resources and prompts (specification 1.15).

use serde_json::{Map, Value, json};
use talaria_content::ResultKind;
use talaria_mcp::{PeerInfo, Rpc, RpcLimits};
use talaria_types::{Failure, RawResult, WireNote};

use crate::directory::{ToolDraft, ToolTarget, Utility};
use crate::paging;
use crate::upstream::Upstream;

/// The utilities a server's capabilities allow.
pub(crate) fn offered(peer: &PeerInfo, filter: &talaria_config::ToolFilter) -> Vec<ToolDraft> {
    let mut utilities = Vec::new();
    if peer.resources && !filter.without_resources {
        utilities.extend([Utility::ListResources, Utility::ReadResource]);
    }
    if peer.prompts && !filter.without_prompts {
        utilities.extend([Utility::ListPrompts, Utility::GetPrompt]);
    }
    utilities.into_iter().map(draft).collect()
}

/// The first required parameter that is not there.
pub(crate) fn missing_parameter(
    utility: Utility,
    arguments: &Map<String, Value>,
) -> Option<&'static str> {
    let required = match utility {
        Utility::ListResources | Utility::ListPrompts => return None,
        Utility::ReadResource => "uri",
        Utility::GetPrompt => "name",
    };
    let given = arguments
        .get(required)
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty());
    (!given).then_some(required)
}

/// The answer to a call that lacks a parameter; the server is not asked.
pub(crate) fn missing_parameter_answer(parameter: &str) -> RawResult {
    RawResult::from_json(json!({
        "content": [{ "type": "text", "text": format!("Missing required parameter '{parameter}'") }],
        "isError": true,
    }))
}

/// Runs a utility on a session.
///
/// # Errors
/// Those of the session.
pub(crate) async fn execute(
    session: &dyn Upstream,
    utility: Utility,
    arguments: &Map<String, Value>,
    limits: &RpcLimits,
) -> Result<(RawResult, ResultKind), Failure> {
    let text = |key: &str| {
        arguments
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    match utility {
        Utility::ListResources => {
            let pages = paging::collect(session, paging::Listing::Resources, limits).await?;
            Ok((whole(pages), ResultKind::ListResources))
        }
        Utility::ListPrompts => {
            let pages = paging::collect(session, paging::Listing::Prompts, limits).await?;
            Ok((whole(pages), ResultKind::ListPrompts))
        }
        Utility::ReadResource => {
            let rpc = Rpc::ReadResource { uri: text("uri") };
            Ok((
                session.request(rpc, limits.clone()).await?,
                ResultKind::ReadResource,
            ))
        }
        Utility::GetPrompt => {
            let rpc = Rpc::GetPrompt {
                name: text("name"),
                arguments: prompt_arguments(arguments.get("arguments")),
            };
            Ok((
                session.request(rpc, limits.clone()).await?,
                ResultKind::GetPrompt,
            ))
        }
    }
}

/// The merged list, with a word where there is more than was read.
fn whole(pages: paging::Pages) -> RawResult {
    let mut merged = pages.merged;
    if let Some(cut) = pages.cut {
        tracing::warn!("list cut short: {cut}");
        merged.notes.push(WireNote::ListCut);
    }
    merged
}

/// The protocol takes strings: other values are JSON-encoded, nulls dropped.
fn prompt_arguments(given: Option<&Value>) -> Map<String, Value> {
    let Some(Value::Object(given)) = given else {
        return Map::new();
    };
    given
        .iter()
        .filter_map(|(name, value)| {
            let text = match value {
                Value::Null => return None,
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    value.to_string()
                }
            };
            Some((name.clone(), Value::String(text)))
        })
        .collect()
}

fn draft(utility: Utility) -> ToolDraft {
    let (description, properties, required) = match utility {
        Utility::ListResources => (
            "List the resources this server offers, with their addresses.",
            json!({}),
            json!([]),
        ),
        Utility::ReadResource => (
            "Read one resource of this server by its address. Files are saved and named by path.",
            json!({ "uri": { "type": "string", "description": "Address of the resource." } }),
            json!(["uri"]),
        ),
        Utility::ListPrompts => (
            "List the prompt templates this server offers.",
            json!({}),
            json!([]),
        ),
        Utility::GetPrompt => (
            "Get one prompt template of this server, filled in.",
            json!({
                "name": { "type": "string", "description": "Name of the prompt." },
                "arguments": {
                    "type": "object",
                    "description": "Values for the template's arguments.",
                    "additionalProperties": true,
                },
            }),
            json!(["name"]),
        ),
    };
    let mut definition = Map::new();
    definition.insert("description".to_owned(), Value::from(description));
    definition.insert(
        "inputSchema".to_owned(),
        json!({ "type": "object", "properties": properties, "required": required }),
    );
    definition.insert("annotations".to_owned(), json!({ "readOnlyHint": true }));
    ToolDraft {
        target: ToolTarget::Utility(utility),
        read_only: true,
        definition,
        mended: Vec::new(),
        findings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_arguments_become_strings_and_nulls_go() {
        let given = json!({ "a": "x", "b": 1, "c": [true], "d": null });
        let expected = json!({ "a": "x", "b": "1", "c": "[true]" });
        assert_eq!(Value::Object(prompt_arguments(Some(&given))), expected);
        assert!(prompt_arguments(Some(&json!("no object"))).is_empty());
    }

    #[test]
    fn c50_read_resource_needs_its_uri() {
        let missing = |arguments: Value| {
            let Value::Object(arguments) = arguments else {
                panic!("not an object")
            };
            missing_parameter(Utility::ReadResource, &arguments)
        };
        assert_eq!(missing(json!({})), Some("uri"));
        assert_eq!(missing(json!({ "uri": "" })), Some("uri"));
        assert_eq!(missing(json!({ "uri": 3 })), Some("uri"));
        assert_eq!(missing(json!({ "uri": "x:y" })), None);
    }
}
