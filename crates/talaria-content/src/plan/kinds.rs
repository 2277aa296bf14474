//! The kinds of blocks that are counted: what a block says it is.

use serde_json::Value;

pub(super) const UNKNOWN: &str = "unknown";
const RESOURCE: &str = "resource";

/// The kind of a content block.
pub(super) fn of_block(block: &Value) -> &'static str {
    if block.is_string() {
        return "text";
    }
    match block.get("type").and_then(Value::as_str) {
        Some("text") => "text",
        Some("image") => "image",
        Some("audio") => "audio",
        Some("resource") => RESOURCE,
        Some("resource_link") => "resource_link",
        Some(_) | None if has(block, "resource") => RESOURCE,
        Some(_) => UNKNOWN,
        None if has(block, "text") => "text",
        None if has(block, "uri") => "resource_link",
        None => UNKNOWN,
    }
}

/// The kind of an item of `contents`.
pub(super) fn of_content(content: &Value) -> &'static str {
    let is_block = content.get("type").is_some_and(Value::is_string) || has(content, "resource");
    if content.is_object() && !is_block {
        RESOURCE
    } else {
        of_block(content)
    }
}

/// The kind of a message: that of its first block.
pub(super) fn of_message(message: &Value) -> &'static str {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks.first().map_or(UNKNOWN, of_block),
        Some(block) => of_block(block),
        None => of_block(message),
    }
}

fn has(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|inner| !inner.is_null())
}
