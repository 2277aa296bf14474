//! Failed results as one string, for the formats that want no more (specification 1.14).

use serde_json::Value;
use talaria_types::NoticeCode;

use crate::delivery::BlockFate;
use crate::fields::{self, Object, Text};
use crate::plan::kinds;
use crate::plan::planner::Planner;
use crate::plan::shapes::Located;

impl Planner {
    /// Keeps the texts of a failed result and leaves everything else out.
    pub(in crate::plan) fn read_error_texts(&mut self, blocks: Vec<Located>) {
        for (index, block) in blocks.into_iter().enumerate() {
            self.kind = kinds::of_block(&block.value);
            let text = match block.value {
                Value::Object(object) => error_text(object),
                Value::String(text) => Some(text),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
            };
            match text.filter(|text| !text.trim().is_empty()) {
                Some(text) => {
                    self.record(index, BlockFate::Delivered);
                    self.push_words(index, text, true);
                }
                None => {
                    let code = NoticeCode::LeftOutOfError;
                    self.record(index, BlockFate::Refused(code));
                    let message = format!("a {} block is left out of the failed result", self.kind);
                    self.notices.add(code, Some(index), message);
                }
            }
        }
    }
}

fn error_text(mut object: Object) -> Option<String> {
    let own = text(&mut object);
    own.or_else(|| text(object.get_mut("resource")?.as_object_mut()?))
}

fn text(object: &mut Object) -> Option<String> {
    match fields::take_text(object, "text") {
        Text::Absent => None,
        Text::String(text) | Text::Other(text) => Some(text),
    }
}
