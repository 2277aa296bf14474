//! Reading fields of a server's objects: a field of the wrong type counts as absent.

use serde_json::{Map, Value};

use crate::sanitise::json_line;

/// An object of a server.
pub(crate) type Object = Map<String, Value>;

/// A string field; the first of several spellings that is one.
pub(crate) fn string<'a>(object: &'a Object, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| object.get(*name)?.as_str())
}

/// A string field that holds more than blanks.
pub(crate) fn words<'a>(object: &'a Object, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        object
            .get(*name)?
            .as_str()
            .filter(|text| !text.trim().is_empty())
    })
}

/// The declared media type, in the spellings that servers use.
pub(crate) fn media_type(object: &Object) -> Option<&str> {
    words(object, &["mimeType", "mime_type", "media_type"])
}

/// A size in bytes: a whole number, also where it is written with a point.
pub(crate) fn size(object: &Object, names: &[&str]) -> Option<u64> {
    names
        .iter()
        .find_map(|name| whole_number(object.get(*name)?))
}

/// Servers that know no integers write `12.0`.
fn whole_number(value: &Value) -> Option<u64> {
    if let Some(number) = value.as_u64() {
        return Some(number);
    }
    let number = value.as_f64()?;
    if number < 0.0 || number.fract() != 0.0 || number > 9_007_199_254_740_992.0 {
        return None;
    }
    format!("{number:.0}").parse().ok()
}

/// A text field taken out of its object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// No such field, null, or an empty string.
    Absent,
    /// A string.
    String(String),
    /// Something else, as JSON.
    Other(String),
}

/// Takes a text field, also where a server put a number or an object.
pub(crate) fn take_text(object: &mut Object, name: &str) -> Text {
    match object.get_mut(name).map(Value::take) {
        None | Some(Value::Null) => Text::Absent,
        Some(Value::String(text)) if text.is_empty() => Text::Absent,
        Some(Value::String(text)) => Text::String(text),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            Text::Other(json_line(&other))
        }
    }
}

/// Whether a flag is set; lenient, because a failure must not read like a success.
pub(crate) fn flag(object: &Object, names: &[&str]) -> bool {
    names
        .iter()
        .filter_map(|name| object.get(*name))
        .any(|value| match value {
            Value::Bool(flag) => *flag,
            Value::String(text) => text.eq_ignore_ascii_case("true"),
            Value::Number(number) => number.as_i64() == Some(1),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        })
}

#[cfg(test)]
mod tests {
    use super::{flag, size};
    use serde_json::json;

    #[test]
    fn reads_sizes_of_either_spelling() {
        let object = json!({"a": 12, "b": 12.0, "c": 12.5, "d": -1, "e": "12", "f": 1e300});
        let object = object.as_object().unwrap();
        assert_eq!(size(object, &["a"]), Some(12));
        assert_eq!(size(object, &["x", "b"]), Some(12));
        for name in ["c", "d", "e", "f"] {
            assert_eq!(size(object, &[name]), None, "{name}");
        }
    }

    #[test]
    fn reads_flags_of_any_spelling() {
        let object = json!({"a": true, "b": "True", "c": 1, "d": null, "e": "no", "f": {}});
        let object = object.as_object().unwrap();
        for name in ["a", "b", "c"] {
            assert!(flag(object, &[name]), "{name}");
        }
        for name in ["d", "e", "f", "x"] {
            assert!(!flag(object, &[name]), "{name}");
        }
    }
}
