//! `structuredContent` that a text block already gives (specification 1.8).

use serde_json::Value;

/// Whether one of the text blocks is the structured content written as JSON, or whether its
/// wrapper `{"result": …}` or `{"content": …}` holds exactly the text blocks.
pub(crate) fn repeats_text(structured: &Value, texts: &[&str]) -> bool {
    texts
        .iter()
        .any(|text| is_json_of(text, structured) || structured.as_str() == Some(*text))
        || wraps_text(structured, texts)
}

/// The wrapper that the Python SDK puts around results that are no objects, or that
/// server-filesystem and others put around their text.
fn wraps_text(structured: &Value, texts: &[&str]) -> bool {
    let Some(wrapper) = structured.as_object() else {
        return false;
    };
    if wrapper.len() != 1 {
        return false;
    }
    match wrapper.get("result").or_else(|| wrapper.get("content")) {
        Some(Value::String(result)) => texts.contains(&result.as_str()),
        Some(Value::Array(items)) => {
            !items.is_empty()
                && items.len() == texts.len()
                && items.iter().zip(texts).all(|(item, text)| match item {
                    Value::String(words) => words == text,
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => is_json_of(text, item),
                })
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

/// Whether a text, read as JSON, strictly equals a value: blanks, key order and escapes do not
/// matter, types do.
fn is_json_of(text: &str, value: &Value) -> bool {
    let Some(first) = text.trim_start().chars().next() else {
        return false;
    };
    let may_be = match value {
        Value::Null => first == 'n',
        Value::Bool(_) => matches!(first, 't' | 'f'),
        Value::Number(_) => first == '-' || first.is_ascii_digit(),
        Value::String(_) => first == '"',
        Value::Array(_) => first == '[',
        Value::Object(_) => first == '{',
    };
    may_be && serde_json::from_str::<Value>(text).is_ok_and(|read| equal(&read, value))
}

/// Equality in which `1` and `1.0` are one number.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.as_f64() == right.as_f64() && left.is_f64() != right.is_f64())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| equal(left, right)))
        }
        (left, right) => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::repeats_text;
    use serde_json::json;

    #[test]
    fn c29_sees_through_blanks_order_and_escapes() {
        for text in ["{\"b\":1, \"a\":2}", " {\n\"a\": 2.0, \"\\u0062\": 1}\n"] {
            assert!(
                repeats_text(&json!({"a": 2, "b": 1}), &["note", text]),
                "{text}"
            );
        }
    }

    #[test]
    fn c30_does_not_mix_types() {
        assert!(!repeats_text(
            &json!({"enabled": true}),
            &["{\"enabled\": 1}"]
        ));
        assert!(!repeats_text(&json!({"a": 0}), &["{\"a\": \"0\"}"]));
        assert!(!repeats_text(&json!({"a": 0}), &["{\"a\": false}"]));
        assert!(!repeats_text(&json!({"a": 1}), &["{\"a\": 1, \"b\": 2}"]));
        assert!(!repeats_text(&json!({"a": 1}), &["2 names"]));
    }

    #[test]
    fn sees_through_the_wrappers() {
        assert!(repeats_text(&json!({"result": "ann\nbob"}), &["ann\nbob"]));
        assert!(repeats_text(&json!({"content": "ann\nbob"}), &["ann\nbob"]));
        assert!(repeats_text(
            &json!({"result": ["ann", "bob"]}),
            &["ann", "bob"]
        ));
        assert!(repeats_text(
            &json!({"result": [{"a": 1}, {"a": 2}]}),
            &["{\"a\":1}", "{\"a\": 2}"]
        ));
    }

    #[test]
    fn does_not_take_a_different_list_for_the_same() {
        assert!(!repeats_text(
            &json!({"result": ["ann\nbob", "carol"]}),
            &["ann", "bob", "carol"]
        ));
        assert!(!repeats_text(
            &json!({"result": ["ann", "bob"]}),
            &["ann\nbob"]
        ));
        assert!(!repeats_text(
            &json!({"result": ["ann", "bob"]}),
            &["2 names"]
        ));
        assert!(!repeats_text(&json!({"result": []}), &[]));
        assert!(!repeats_text(&json!({"result": "a", "more": 1}), &["a"]));
    }
}
