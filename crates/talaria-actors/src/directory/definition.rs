//! Tool definitions as callers see them: sanitised, with an input schema that was mended, and
//! looked through for words that are meant to steer a model.

use serde_json::{Map, Value};
use talaria_config::ToolFilter;
use talaria_content::injection::{scan_text, scan_tool};
use talaria_content::sanitise;
use talaria_content::tools::{Mended, mend_input_schema};
use talaria_telemetry::events;
use talaria_types::ServerName;

use crate::directory::{ToolDraft, ToolTarget, filter};

/// Tools taken of one server.
const MAX_TOOLS: usize = 4096;
/// Nesting of a definition; what is deeper becomes null.
const MAX_DEPTH: usize = 64;

/// Where words for the whole server stand.
pub(crate) const INSTRUCTIONS: &str = "instructions";

/// Says what a server's instructions hold that is meant to steer a model.
pub(crate) fn tell_of_instructions(server: &ServerName, instructions: Option<&str>) {
    for finding in instructions.map_or_else(Vec::new, |words| scan_text(INSTRUCTIONS, words)) {
        events::steering_counted(server, &finding.pattern);
        events::steering_told(server, None, &finding.pattern, &finding.excerpt);
    }
}

/// Makes drafts of a merged `tools/list` result. What is not a tool is left out.
pub(crate) fn drafts(listed: Value, offered: &ToolFilter) -> Vec<ToolDraft> {
    let Value::Object(mut listed) = listed else {
        return Vec::new();
    };
    let Some(Value::Array(tools)) = listed.remove("tools") else {
        return Vec::new();
    };
    let offers = |tool: &Value| {
        let name = tool.get("name").and_then(Value::as_str);
        name.is_some_and(|name| filter::offers(offered, name))
    };
    if tools.len() > MAX_TOOLS {
        tracing::warn!(
            tools = tools.len(),
            "only the first {MAX_TOOLS} tools are offered"
        );
    }
    tools
        .into_iter()
        .take(MAX_TOOLS)
        .filter(offers)
        .filter_map(draft)
        .collect()
}

/// A draft that was made before, as it was kept.
pub(crate) fn recalled(
    target: ToolTarget,
    read_only: bool,
    definition: Map<String, Value>,
) -> ToolDraft {
    let findings = match &target {
        ToolTarget::Tool(name) => scan_tool(name, &definition),
        ToolTarget::Utility(_) => Vec::new(),
    };
    ToolDraft {
        target,
        read_only,
        definition,
        mended: Vec::new(),
        findings,
    }
}

fn draft(tool: Value) -> Option<ToolDraft> {
    let Value::Object(mut tool) = tool else {
        return None;
    };
    let Some(Value::String(name)) = tool.remove("name") else {
        return None;
    };
    if name.is_empty() {
        return None;
    }
    let hint = tool
        .get("annotations")
        .and_then(|annotations| annotations.get("readOnlyHint"));
    let read_only = hint == Some(&Value::Bool(true));
    let schema = tool.remove("inputSchema");
    let mut definition = Map::new();
    for (key, value) in tool {
        if !value.is_null() {
            definition.insert(clean(&key), clean_value(value, MAX_DEPTH));
        }
    }
    let schema = schema.map_or(Value::Null, |schema| clean_value(schema, MAX_DEPTH));
    let Mended { schema, changes } = mend_input_schema(schema);
    definition.insert("inputSchema".to_owned(), schema);
    let findings = scan_tool(&name, &definition);
    Some(ToolDraft {
        target: ToolTarget::Tool(name),
        read_only,
        definition,
        mended: changes,
        findings,
    })
}

fn clean_value(value: Value, depth: usize) -> Value {
    let Some(deeper) = depth.checked_sub(1) else {
        return Value::Null;
    };
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(items) => items
            .into_iter()
            .map(|item| clean_value(item, deeper))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (clean(&key), clean_value(value, deeper)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

fn clean(text: &str) -> String {
    sanitise::model_text(text).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(tool: &Value) -> ToolDraft {
        let mut drafts = drafts(json!({ "tools": [tool] }), &ToolFilter::default());
        assert_eq!(drafts.len(), 1);
        drafts.remove(0)
    }

    #[test]
    fn hidden_characters_leave_names_descriptions_and_schemas() {
        let tool = one(&json!({
            "name": "t",
            "description": "hi\u{e0041}\u{1b}[31m there\nnext",
            "inputSchema": { "properties": { "a\u{e0042}": { "description": "x\u{e0043}" } } },
            "annotations": null,
        }));
        let definition = Value::Object(tool.definition);
        let text = definition.to_string();
        assert!(
            !text.chars().any(|c| matches!(c, '\u{e0000}'..='\u{e007f}')),
            "{text}"
        );
        assert!(!text.contains("\\u001b"), "{text}");
        assert!(text.contains("there\\nnext"), "{text}");
        assert!(
            definition["inputSchema"]["properties"]["a"].is_object(),
            "{text}"
        );
        assert!(definition.get("annotations").is_none());
    }

    #[test]
    fn the_input_schema_is_always_an_object() {
        for schema in [
            json!(null),
            json!("string"),
            json!({}),
            json!({ "type": "string" }),
            json!({ "properties": [] }),
        ] {
            let tool = one(&json!({ "name": "t", "inputSchema": schema }));
            let expected = json!({ "type": "object", "properties": {} });
            assert_eq!(tool.definition["inputSchema"], expected, "{schema}");
        }
        let kept = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] });
        let tool = one(&json!({ "name": "t", "inputSchema": kept }));
        assert_eq!(tool.definition["inputSchema"], kept);
    }

    #[test]
    fn l19_only_a_true_hint_makes_a_tool_read_only() {
        for (hint, expected) in [
            (json!(true), true),
            (json!("true"), false),
            (json!(1), false),
        ] {
            let tool = one(&json!({ "name": "t", "annotations": { "readOnlyHint": hint } }));
            assert_eq!(tool.read_only, expected, "{hint}");
        }
        assert!(!one(&json!({ "name": "t" })).read_only);
    }

    #[test]
    fn what_is_no_tool_is_left_out() {
        let listed = json!({ "tools": [1, { "name": "" }, { "name": 3 }, {}, { "name": "ok" }] });
        assert_eq!(drafts(listed, &ToolFilter::default()).len(), 1);
        assert!(drafts(Value::Null, &ToolFilter::default()).is_empty());
        assert!(drafts(json!({ "tools": "none" }), &ToolFilter::default()).is_empty());
    }

    #[test]
    fn nesting_is_bounded() {
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!({ "a": deep });
        }
        let tool = one(&json!({ "name": "t", "x": deep }));
        let text = Value::Object(tool.definition).to_string();
        assert!(text.matches("\"a\"").count() <= MAX_DEPTH);
        assert!(text.contains("null"), "what is deeper became null");
    }
}
