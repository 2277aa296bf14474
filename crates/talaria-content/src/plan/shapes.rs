//! The shapes in which servers hand over a result, the old ones included (design decision 13).

use serde_json::Value;

use crate::fields::{Object, flag};

/// How many wrappers are taken off.
const MAX_WRAPPERS: usize = 4;

/// A value and its RFC 6901 pointer inside the raw result.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) value: Value,
    pub(super) at: String,
}

/// A result taken apart.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) blocks: Vec<Located>,
    pub(super) structured: Option<Located>,
    pub(super) meta: Option<Located>,
    pub(super) is_error: bool,
    /// In words, where the result did not have the shape of the protocol.
    pub(super) oddity: Option<&'static str>,
}

/// Takes a `CallToolResult` apart, or what a server sent in its place.
pub(super) fn tool_result(json: Value, at: &str) -> Shape {
    read(json, at, 0)
}

fn read(json: Value, at: &str, depth: usize) -> Shape {
    match json {
        Value::Null => Shape::default(),
        Value::Object(object) => object_result(object, at, depth),
        Value::String(_) => Shape {
            blocks: vec![Located {
                value: text_block(json),
                at: at.to_owned(),
            }],
            oddity: Some("the result is a bare string; it was read as text"),
            ..Shape::default()
        },
        Value::Array(items) if looks_like_blocks(&items) => Shape {
            blocks: located_items(items, at),
            oddity: Some("the result is a bare list; it was read as its content"),
            ..Shape::default()
        },
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => Shape {
            structured: Some(Located {
                value: json,
                at: at.to_owned(),
            }),
            oddity: Some("the result is a bare value; it was read as structured content"),
            ..Shape::default()
        },
    }
}

fn object_result(mut object: Object, at: &str, depth: usize) -> Shape {
    let mut shape = Shape {
        is_error: flag(&object, &["isError", "is_error"]),
        meta: take(&mut object, &["_meta"], at),
        structured: take(
            &mut object,
            &["structuredContent", "structured_content"],
            at,
        ),
        ..Shape::default()
    };
    let content = take(&mut object, &["content", "contents"], at);
    let is_empty = content.as_ref().is_none_or(|content| match &content.value {
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            false
        }
    });
    if let Some(content) = content {
        read_content(content, &mut shape);
    }
    let wrapped = take(&mut object, &["toolResult"], at);
    match wrapped {
        Some(wrapped) if is_empty && shape.structured.is_none() && depth < MAX_WRAPPERS => {
            let inner = read(wrapped.value, &wrapped.at, depth + 1);
            shape.is_error |= inner.is_error;
            shape.blocks = inner.blocks;
            shape.structured = inner.structured;
            shape.meta = shape.meta.or(inner.meta);
            shape.oddity = Some("the result came in the old `toolResult` wrapper");
        }
        Some(wrapped) if shape.structured.is_none() => {
            shape.structured = Some(wrapped);
            shape.oddity = Some("the old field `toolResult` was read as structured content");
        }
        Some(_) | None => {}
    }
    if is_empty && shape.structured.is_none() && shape.blocks.is_empty() {
        read_unknown_object(object, at, &mut shape);
    }
    shape
}

fn read_content(content: Located, shape: &mut Shape) {
    let Located { value, at } = content;
    match value {
        Value::Null => {}
        Value::Array(items) => shape.blocks = located_items(items, &at),
        Value::String(_) => {
            shape.oddity = Some("`content` is a bare string; it was read as text");
            shape.blocks.push(Located {
                value: text_block(value),
                at,
            });
        }
        Value::Object(ref object) if is_block(object) => {
            shape.oddity = Some("`content` is a single block without a list around it");
            shape.blocks.push(Located { value, at });
        }
        Value::Object(_) | Value::Bool(_) | Value::Number(_) if shape.structured.is_none() => {
            shape.oddity = Some("`content` is no list; it was read as structured content");
            shape.structured = Some(Located { value, at });
        }
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => {
            shape.oddity = Some("`content` is no list; it was read as text");
            shape.blocks.push(Located { value, at });
        }
    }
}

/// An object without any field of the protocol: all of it is what the tool has to say.
fn read_unknown_object(mut object: Object, at: &str, shape: &mut Shape) {
    for plumbing in [
        "isError",
        "is_error",
        "resultType",
        "ttlMs",
        "cacheScope",
        "nextCursor",
    ] {
        object.shift_remove(plumbing);
    }
    object.retain(|_, value| !value.is_null());
    if !object.is_empty() {
        shape.oddity = Some("the result has no content; it was read as structured content");
        shape.structured = Some(Located {
            value: Value::Object(object),
            at: at.to_owned(),
        });
    }
}

/// Takes the first of several fields that is there and not null.
pub(super) fn take(object: &mut Object, names: &[&str], at: &str) -> Option<Located> {
    names.iter().find_map(|name| {
        let value = object.shift_remove(*name)?;
        (!value.is_null()).then(|| Located {
            value,
            at: format!("{at}/{name}"),
        })
    })
}

pub(super) fn located_items(items: Vec<Value>, at: &str) -> Vec<Located> {
    items
        .into_iter()
        .enumerate()
        .map(|(index, value)| Located {
            value,
            at: format!("{at}/{index}"),
        })
        .collect()
}

/// A bare string as the block it should have been.
fn text_block(text: Value) -> Value {
    Value::Object(Object::from_iter([
        ("type".to_owned(), Value::from("text")),
        ("text".to_owned(), text),
    ]))
}

fn looks_like_blocks(items: &[Value]) -> bool {
    !items.is_empty()
        && items
            .iter()
            .all(|item| item.as_object().is_some_and(is_block))
}

fn is_block(object: &Object) -> bool {
    object.get("type").is_some_and(Value::is_string) || object.contains_key("resource")
}
