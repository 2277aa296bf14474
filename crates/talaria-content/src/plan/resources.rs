//! `resources/read`: every content like an embedded resource (specification 1.15).

use serde_json::Value;

use crate::fields::Object;

use super::kinds;
use super::planner::Planner;
use super::shapes::{Located, Shape, located_items, take, tool_result};

impl Planner {
    pub(super) fn read_resources(&mut self, json: Value) {
        if json.get("contents").is_none_or(Value::is_null) {
            // An answer of another shape is read like the answer of a tool.
            self.read_tool_result(tool_result(json, ""));
            self.is_error = false;
            return;
        }
        let Value::Object(object) = json else { return };
        let shape = contents(object);
        self.meta = shape.meta;
        for (index, content) in shape.blocks.into_iter().enumerate() {
            self.kind = kinds::of_content(&content.value);
            match content {
                Located {
                    value: Value::Object(object),
                    at,
                } if !is_block(&object) => {
                    self.read_resource(index, object, &at);
                    self.collect_block_strays(index, &at);
                }
                block @ Located { .. } => self.read_block(index, block),
            }
        }
    }
}

fn contents(mut object: Object) -> Shape {
    let meta = take(&mut object, &["_meta"], "");
    let blocks = match take(&mut object, &["contents"], "") {
        Some(Located {
            value: Value::Array(items),
            at,
        }) => located_items(items, &at),
        Some(located) => vec![located],
        None => Vec::new(),
    };
    Shape {
        blocks,
        meta,
        ..Shape::default()
    }
}

/// Whether somebody put a whole content block where a resource belongs.
fn is_block(object: &Object) -> bool {
    object.get("resource").is_some_and(Value::is_object)
        || matches!(
            object.get("type").and_then(Value::as_str),
            Some("text" | "image" | "audio" | "resource_link")
        )
}
