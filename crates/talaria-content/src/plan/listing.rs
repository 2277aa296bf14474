//! `resources/list` and `prompts/list` as clean JSON (specification 1.15).

use serde_json::Value;
use talaria_types::NoticeCode;

use crate::fields::{self, Object};
use crate::sanitise::strip_value;

use super::planner::Planner;
use super::shapes::{Located, take};

impl Planner {
    pub(super) fn read_resource_list(&mut self, json: Value) {
        let entries = self.entries(json, "resources");
        let (bare, full): (Vec<Value>, Vec<Value>) = entries.iter().map(resource).unzip();
        self.set_listing("resources", bare.into(), full.into());
    }

    pub(super) fn read_prompt_list(&mut self, json: Value) {
        let entries = self.entries(json, "prompts");
        let prompts: Value = entries.iter().map(prompt).collect();
        self.set_listing("prompts", prompts.clone(), prompts);
    }

    fn entries(&mut self, json: Value, name: &str) -> Vec<Object> {
        let Value::Object(mut object) = json else {
            return Vec::new();
        };
        self.meta = take(&mut object, &["_meta"], "");
        let Some(Value::Array(items)) = object.shift_remove(name) else {
            return Vec::new();
        };
        let mut entries = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::Object(entry) => entries.push(entry),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_) => {
                    let message = format!("entry {index} of the list is no object; it is left out");
                    self.notices
                        .add(NoticeCode::MalformedBlock, Some(index), message);
                }
            }
        }
        entries
    }

    fn set_listing(&mut self, name: &str, bare: Value, full: Value) {
        let under_name = |entries| Value::Object(Object::from_iter([(name.to_owned(), entries)]));
        let mut bare = under_name(bare);
        strip_value(&mut bare);
        self.listing = Some(bare);
        self.structured = Some(Located {
            value: under_name(full),
            at: format!("/{name}"),
        });
    }
}

/// The entry as Hermes gives it, and with all the protocol has.
fn resource(entry: &Object) -> (Value, Value) {
    let mut bare = Object::new();
    copy_string(entry, &mut bare, &["uri"]);
    copy_string(entry, &mut bare, &["name"]);
    copy_words(entry, &mut bare, "description");
    if let Some(media_type) = fields::media_type(entry) {
        bare.insert("mimeType".to_owned(), media_type.into());
    }
    let mut full = bare.clone();
    copy_words(entry, &mut full, "title");
    if let Some(size) = fields::size(entry, &["size"]) {
        full.insert("size".to_owned(), size.into());
    }
    (bare.into(), full.into())
}

fn prompt(entry: &Object) -> Value {
    let mut prompt = Object::new();
    copy_string(entry, &mut prompt, &["name"]);
    copy_words(entry, &mut prompt, "description");
    if let Some(arguments) = entry.get("arguments").and_then(Value::as_array) {
        let arguments: Vec<Value> = arguments
            .iter()
            .filter_map(Value::as_object)
            .map(argument)
            .collect();
        if !arguments.is_empty() {
            prompt.insert("arguments".to_owned(), arguments.into());
        }
    }
    prompt.into()
}

fn argument(entry: &Object) -> Value {
    let mut argument = Object::new();
    copy_string(entry, &mut argument, &["name"]);
    copy_words(entry, &mut argument, "description");
    if let Some(required) = entry.get("required").and_then(Value::as_bool) {
        argument.insert("required".to_owned(), required.into());
    }
    argument.into()
}

fn copy_string(from: &Object, to: &mut Object, names: &[&str]) {
    if let (Some(name), Some(text)) = (names.first(), fields::string(from, names)) {
        to.insert((*name).to_owned(), text.into());
    }
}

fn copy_words(from: &Object, to: &mut Object, name: &str) {
    if let Some(text) = fields::words(from, &[name]) {
        to.insert(name.to_owned(), text.into());
    }
}
