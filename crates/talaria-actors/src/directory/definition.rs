//! Tool definitions as callers see them: sanitised, with an input schema every provider takes.

use serde_json::{Map, Value, json};
use talaria_config::ToolFilter;
use talaria_content::sanitise;

use crate::directory::{ToolDraft, ToolTarget, filter};

/// Tools taken of one server.
const MAX_TOOLS: usize = 4096;
/// Nesting of a definition; what is deeper becomes null.
const MAX_DEPTH: usize = 64;

/// Makes drafts of a merged `tools/list` result. What is not a tool is left out.
pub(crate) fn drafts(listed: Value, offered: &ToolFilter) -> Vec<ToolDraft> {
    let Value::Object(mut listed) = listed else {
        return Vec::new();
    };
    let Some(Value::Array(tools)) = listed.remove("tools") else {
        return Vec::new();
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
        .filter_map(draft)
        .filter(|tool| offers(offered, tool))
        .collect()
}

fn offers(offered: &ToolFilter, tool: &ToolDraft) -> bool {
    filter::offers(offered, tool.target.raw_name())
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
    definition.insert("inputSchema".to_owned(), input_schema(schema));
    Some(ToolDraft {
        target: ToolTarget::Tool(name),
        read_only,
        definition,
    })
}

/// The root of an input schema is an object with properties, whatever the server wrote.
fn input_schema(schema: Option<Value>) -> Value {
    let Some(Value::Object(schema)) = schema else {
        return json!({ "type": "object", "properties": {} });
    };
    let Value::Object(mut schema) = clean_value(Value::Object(schema), MAX_DEPTH) else {
        return json!({ "type": "object", "properties": {} });
    };
    schema.insert("type".to_owned(), Value::from("object"));
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    Value::Object(schema)
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
