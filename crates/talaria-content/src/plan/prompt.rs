//! `prompts/get`: messages whose content is read like the content of a tool (specification 1.15).

use serde_json::Value;
use talaria_types::NoticeCode;

use crate::delivery::BlockFate;
use crate::fields;
use crate::repeats::Piece;
use crate::sanitise::one_line;

use super::kinds;
use super::lines::{Audience, PartContent};
use super::planner::{Planner, Refusal};
use super::shapes::{Located, located_items, take, tool_result};

/// What a prompt says besides its messages.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) description: Option<String>,
    /// The role of each message, where it names one.
    pub(super) roles: Vec<Option<String>>,
}

impl Planner {
    pub(super) fn read_prompt(&mut self, json: Value) {
        if json.get("messages").is_none_or(Value::is_null) {
            // An answer of another shape is read like the answer of a tool.
            self.read_tool_result(tool_result(json, ""));
            self.is_error = false;
            return;
        }
        let Value::Object(mut object) = json else {
            return;
        };
        self.meta = take(&mut object, &["_meta"], "");
        let mut frame = Frame {
            description: fields::words(&object, &["description"]).map(str::to_owned),
            roles: Vec::new(),
        };
        if let Some(description) = &frame.description {
            self.push(
                None,
                Audience::NotHermes,
                PartContent::Own("[MCP prompt description]".to_owned()),
            );
            let pieces = vec![Piece::Words(description.clone())];
            self.push(None, Audience::NotHermes, PartContent::Words(pieces));
        }
        let messages = match take(&mut object, &["messages"], "") {
            Some(Located {
                value: Value::Array(items),
                at,
            }) => located_items(items, &at),
            Some(located) => vec![located],
            None => Vec::new(),
        };
        for (index, message) in messages.into_iter().enumerate() {
            self.kind = kinds::of_message(&message.value);
            frame.roles.push(self.read_message(index, message));
        }
        self.prompt = Some(frame);
    }

    fn read_message(&mut self, index: usize, message: Located) -> Option<String> {
        let Located { value, at } = message;
        let (role, content) = match value {
            Value::Object(mut object) => {
                let role = fields::words(&object, &["role"]).map(one_line);
                (role, take(&mut object, &["content"], &at))
            }
            value @ Value::String(_) => (None, Some(Located { value, at })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => (None, None),
        };
        let shown = role
            .as_deref()
            .map_or_else(|| "unknown".to_owned(), crate::sanitise::field);
        let opening = format!("[MCP prompt message, role {shown}]");
        self.push(Some(index), Audience::NotHermes, PartContent::Own(opening));
        match content {
            Some(Located {
                value: Value::String(text),
                ..
            }) => self.read_text(index, text),
            Some(Located {
                value: Value::Array(items),
                at,
            }) if !items.is_empty() => {
                for block in located_items(items, &at) {
                    self.read_block(index, block);
                }
            }
            Some(
                located @ Located {
                    value: Value::Object(_),
                    ..
                },
            ) => {
                self.read_block(index, located);
            }
            Some(_) | None => self.refuse(Refusal {
                index,
                code: NoticeCode::MalformedBlock,
                message: "MCP prompt message holds no content".to_owned(),
                is_usable: false,
                audience: Audience::NotHermes,
            }),
        }
        if self.blocks.len() <= index {
            self.record(index, BlockFate::Refused(NoticeCode::EmptyBlock));
        }
        role
    }
}
