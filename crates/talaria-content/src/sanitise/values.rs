//! JSON values of a server: structured content and `_meta`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{strip_tags, strip_terminal};

/// Removes TAG characters from every string and every key. A key that then equals another gets
/// a mark, so that neither value is lost.
pub fn strip_value(value: &mut Value) {
    map_strings(value, &|text| strip_tags(text));
}

/// The value as one line of JSON for a model: no control characters, no line separators.
pub(crate) fn json_line(value: &Value) -> String {
    let line = value.to_string();
    let line = if line.contains("\\u001b") || line.contains(is_c1) {
        let mut cleaned = value.clone();
        map_strings(&mut cleaned, &|text| strip_terminal(text));
        cleaned.to_string()
    } else {
        line
    };
    if !line.contains(is_breaking) {
        return line;
    }
    let mut escaped = String::with_capacity(line.len() + 16);
    for character in line.chars() {
        if is_breaking(character) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_c1(character: char) -> bool {
    ('\u{7f}'..='\u{9f}').contains(&character)
}

/// Characters that JSON leaves as they are although they break a line or are controls.
fn is_breaking(character: char) -> bool {
    is_c1(character) || matches!(character, '\u{2028}' | '\u{2029}')
}

fn map_strings(value: &mut Value, change: &impl Fn(&str) -> Cow<'_, str>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if let Cow::Owned(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(items) => {
            for item in items {
                map_strings(item, change);
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                map_strings(member, change);
            }
            if members
                .keys()
                .any(|key| matches!(change(key), Cow::Owned(_)))
            {
                *members = with_changed_keys(std::mem::take(members), change);
            }
        }
    }
}

fn with_changed_keys(
    members: Map<String, Value>,
    change: &impl Fn(&str) -> Cow<'_, str>,
) -> Map<String, Value> {
    let mut renamed = Map::with_capacity(members.len());
    for (key, value) in members {
        let mut key = change(&key).into_owned();
        while renamed.contains_key(&key) {
            key.push('~');
        }
        renamed.insert(key, value);
    }
    renamed
}
