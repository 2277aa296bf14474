//! Counts the blocks of a result as the server sent them, before any rule has seen them.
//!
//! The fates are counted from the delivery, so the two sums differ if a block is ever lost.

use std::collections::BTreeMap;

use serde_json::Value;
use talaria_content::ResultKind;
use talaria_telemetry::events;

/// Wrappers looked into.
const MAX_WRAPPERS: usize = 4;

/// How many blocks there are of each kind. A result may hold a million.
pub(super) type Tally = BTreeMap<&'static str, usize>;

/// Counts blocks by their kind.
pub(super) fn tally(kinds: impl IntoIterator<Item = &'static str>) -> Tally {
    let mut tally = Tally::new();
    for kind in kinds {
        *tally.entry(kind).or_default() += 1;
    }
    tally
}

/// Tells the metrics what was received.
pub(super) fn tell(received: &Tally) {
    for (kind, blocks) in received {
        events::blocks_received(kind, *blocks);
    }
}

/// The kind of each block received, in order.
pub(super) fn kinds(result: &Value, kind: &ResultKind) -> Vec<&'static str> {
    match kind {
        ResultKind::ToolCall => tool_blocks(result, 0)
            .iter()
            .map(|block| of_block(block))
            .collect(),
        ResultKind::ReadResource => listed(result, "contents").map_or_else(
            || kinds(result, &ResultKind::ToolCall),
            |contents| contents.iter().map(|content| of_content(content)).collect(),
        ),
        ResultKind::GetPrompt => listed(result, "messages").map_or_else(
            || kinds(result, &ResultKind::ToolCall),
            |messages| messages.iter().map(|message| of_message(message)).collect(),
        ),
        // Lists hold entries, not blocks.
        ResultKind::ListResources | ResultKind::ListPrompts => Vec::new(),
    }
}

/// Whether a picture may stand in blocks of these kinds without a payload that was staged.
pub(super) fn may_hold_pictures(received: &Tally) -> bool {
    !received
        .keys()
        .all(|kind| matches!(*kind, "text" | "resource_link"))
}

/// The blocks of a tool result, in the shapes that decision 13 reads.
fn tool_blocks(result: &Value, depth: usize) -> Vec<&Value> {
    let content = ["content", "contents"]
        .iter()
        .find_map(|key| result.get(key).filter(|value| !value.is_null()));
    let is_structured = ["structuredContent", "structured_content"]
        .iter()
        .any(|key| has(result, key));
    match (result, content) {
        (Value::String(_), _) => vec![result],
        (Value::Array(items), _) if !items.is_empty() && items.iter().all(is_block) => {
            items.iter().collect()
        }
        (_, Some(Value::Array(items))) if !items.is_empty() => items.iter().collect(),
        (_, Some(text @ Value::String(_))) => vec![text],
        (_, Some(Value::Array(_)) | None) => match result.get("toolResult") {
            Some(wrapped) if !is_structured && depth < MAX_WRAPPERS => {
                tool_blocks(wrapped, depth + 1)
            }
            Some(_) | None => Vec::new(),
        },
        (_, Some(value)) if is_block(value) || is_structured => vec![value],
        (_, Some(_)) => Vec::new(),
    }
}

fn listed<'a>(result: &'a Value, key: &str) -> Option<Vec<&'a Value>> {
    let value = result.get(key).filter(|value| !value.is_null())?;
    Some(
        value
            .as_array()
            .map_or_else(|| vec![value], |items| items.iter().collect()),
    )
}

fn has(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|inner| !inner.is_null())
}

fn is_block(value: &Value) -> bool {
    value.get("type").is_some_and(Value::is_string) || value.get("resource").is_some()
}

fn of_content(content: &Value) -> &'static str {
    if content.is_object() && !is_block(content) {
        "resource"
    } else {
        of_block(content)
    }
}

fn of_message(message: &Value) -> &'static str {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks.first().map_or("unknown", of_block),
        Some(block) => of_block(block),
        None => of_block(message),
    }
}

fn of_block(block: &Value) -> &'static str {
    if block.is_string() {
        return "text";
    }
    match block.get("type").and_then(Value::as_str) {
        Some("text") => "text",
        Some("image") => "image",
        Some("audio") => "audio",
        Some("resource") => "resource",
        Some("resource_link") => "resource_link",
        Some(_) | None if has(block, "resource") => "resource",
        Some(_) => "unknown",
        None if has(block, "text") => "text",
        None if has(block, "uri") => "resource_link",
        None => "unknown",
    }
}
