//! A clean `CallToolResult`: our text, prepared pictures, links into our own store.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::delivery::{Artifact, Delivery};
use crate::sanitise::json_line;

use super::provider::spoken;

/// What is escaped in the path of a file URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// The delivery as the result of `tools/call`.
pub(super) fn call_tool_result(delivery: &Delivery) -> Value {
    let mut content: Vec<Value> = texts(delivery)
        .into_iter()
        .map(|text| json!({ "type": "text", "text": text }))
        .collect();
    content.extend(delivery.attachments.iter().map(|attachment| {
        json!({
            "type": "image",
            "data": attachment.data,
            "mimeType": attachment.media_type,
        })
    }));
    content.extend(delivery.artifacts.iter().map(link));
    let mut result = Map::new();
    result.insert("content".to_owned(), content.into());
    if let Some(structured @ Value::Object(_)) = &delivery.structured {
        result.insert("structuredContent".to_owned(), structured.clone());
    }
    if let Some(meta @ Value::Object(_)) = &delivery.meta {
        result.insert("_meta".to_owned(), meta.clone());
    }
    result.insert("isError".to_owned(), delivery.is_error.into());
    Value::Object(result)
}

/// The text without the lines that repeat a field of the result. Structured content keeps a block
/// of its own, as the protocol wants it for clients that know no structured content; those that do
/// recognise the repetition.
fn texts(delivery: &Delivery) -> Vec<String> {
    let structured = delivery.structured.as_ref().map(json_line);
    let structured_line = structured
        .as_ref()
        .map(|json| format!("structuredContent: {json}"));
    let meta_line = delivery
        .meta
        .as_ref()
        .map(|meta| format!("_meta: {}", json_line(meta)));
    let text = spoken(delivery);
    let is_field =
        |line: &str| structured_line.as_deref() == Some(line) || meta_line.as_deref() == Some(line);
    let has_structured = text
        .split('\n')
        .any(|line| structured_line.as_deref() == Some(line));
    let own: Vec<&str> = text.split('\n').filter(|line| !is_field(line)).collect();
    let own = own.join("\n");
    let twin = structured.filter(|_| has_structured);
    let texts: Vec<String> = [Some(own), twin]
        .into_iter()
        .flatten()
        .filter(|text| !text.trim().is_empty())
        .collect();
    if texts.is_empty() {
        // Only `_meta` was there: the model still reads it.
        return vec![text.into_owned()];
    }
    texts
}

fn link(artifact: &Artifact) -> Value {
    let uri = artifact.url.clone().unwrap_or_else(|| {
        let path = artifact.path.display().to_string();
        format!("file://{}", utf8_percent_encode(&path, PATH))
    });
    json!({
        "type": "resource_link",
        "uri": uri,
        "name": artifact.name,
        "mimeType": artifact.media_type,
        "size": artifact.bytes,
    })
}
