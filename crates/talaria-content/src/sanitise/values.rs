//! JSON values of a server: structured content and `_meta`.

use std::borrow::Cow;
use std::collections::HashMap;

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

/// Changes every string and every key.
pub(crate) fn map_strings(value: &mut Value, change: &impl Fn(&str) -> Cow<'_, str>) {
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
    // Counted by name: thousands of keys may become the same one.
    let mut taken: HashMap<String, usize> = HashMap::new();
    for (key, value) in members {
        let changed = change(&key).into_owned();
        let mut key = changed.clone();
        while renamed.contains_key(&key) {
            let count = taken.entry(changed.clone()).or_insert(0);
            *count += 1;
            key = match *count {
                1 => format!("{changed}~"),
                count => format!("{changed}~{count}"),
            };
        }
        renamed.insert(key, value);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_become_one_are_told_apart_in_linear_time() {
        let members: Map<String, Value> = (0..20_000)
            .map(|number| (format!("a{number}"), Value::from(number)))
            .collect();
        let mut value = Value::Object(members);
        map_strings(&mut value, &|_| Cow::Owned("a".to_owned()));
        let keys: Vec<_> = value.as_object().unwrap().keys().take(4).cloned().collect();
        assert_eq!(keys, ["a", "a~", "a~2", "a~3"]);
        assert_eq!(value.as_object().map(Map::len), Some(20_000));
    }
}
