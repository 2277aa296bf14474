//! Where schemas stand inside a schema.

use serde_json::{Map, Value};

/// Whose value a schema inside another one describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The same value.
    Same,
    /// A part of it, or none.
    Part,
}

/// Keywords that hold a map of schemas.
const MAPS: [(&str, Subject); 5] = [
    ("properties", Subject::Part),
    ("patternProperties", Subject::Part),
    ("$defs", Subject::Part),
    ("definitions", Subject::Part),
    ("dependentSchemas", Subject::Same),
];

/// Keywords that hold a schema or a list of them.
const SCHEMAS: [(&str, Subject); 16] = [
    ("allOf", Subject::Same),
    ("anyOf", Subject::Same),
    ("oneOf", Subject::Same),
    ("not", Subject::Same),
    ("if", Subject::Same),
    ("then", Subject::Same),
    ("else", Subject::Same),
    ("items", Subject::Part),
    ("prefixItems", Subject::Part),
    ("additionalItems", Subject::Part),
    ("contains", Subject::Part),
    ("additionalProperties", Subject::Part),
    ("unevaluatedItems", Subject::Part),
    ("unevaluatedProperties", Subject::Part),
    ("propertyNames", Subject::Part),
    ("contentSchema", Subject::Part),
];

/// The six types of JSON Schema besides `null`, and words that people write in their place.
const TYPES: [(&str, &[&str]); 6] = [
    ("string", &["str", "text"]),
    ("integer", &["int", "long"]),
    ("number", &["float", "double", "decimal"]),
    ("boolean", &["bool"]),
    ("object", &["dict", "map", "record", "struct"]),
    ("array", &["list", "tuple"]),
];

/// Calls a function for each schema directly inside this one.
pub(super) fn for_each(
    schema: &mut Map<String, Value>,
    visit: &mut dyn FnMut(&str, Subject, &mut Value),
) {
    for (keyword, subject) in MAPS {
        if let Some(Value::Object(members)) = schema.get_mut(keyword) {
            for (name, member) in members {
                visit(&format!("{keyword}/{name}"), subject, member);
            }
        }
    }
    for (keyword, subject) in SCHEMAS {
        match schema.get_mut(keyword) {
            Some(Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    visit(&format!("{keyword}/{index}"), subject, item);
                }
            }
            Some(inside @ (Value::Object(_) | Value::Bool(_))) => visit(keyword, subject, inside),
            Some(Value::Null | Value::Number(_) | Value::String(_)) | None => {}
        }
    }
}

/// The schema without keywords whose value no reader takes: for one of them a provider refuses
/// the whole request.
pub(super) fn well_shaped(schema: &Value) -> Value {
    let mut schema = schema.clone();
    drop_misshapen(&mut schema);
    schema
}

fn drop_misshapen(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    members.retain(|keyword, value| is_shaped(keyword, value));
    for_each(members, &mut |_, _, inside| drop_misshapen(inside));
}

fn is_shaped(keyword: &str, value: &Value) -> bool {
    match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            value.is_number()
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => value.is_u64(),
        "title" | "description" | "pattern" | "format" | "$comment" | "contentEncoding"
        | "contentMediaType" => value.is_string(),
        "uniqueItems" | "nullable" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
        "examples" => value.is_array(),
        "required" => value
            .as_array()
            .is_some_and(|names| names.iter().all(Value::is_string)),
        _ => true,
    }
}

/// The type that a word means, whatever its case.
pub(super) fn type_of(word: &str) -> Option<&'static str> {
    let word = word.trim().to_ascii_lowercase();
    if matches!(word.as_str(), "null" | "none") {
        return Some("null");
    }
    let mut types = TYPES.iter();
    types
        .find(|(name, others)| *name == word || others.contains(&word.as_str()))
        .map(|(name, _)| *name)
}

/// Whether a schema takes nothing but null.
pub(super) fn is_null(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else {
        return false;
    };
    let is_null_list = |values: &Vec<Value>| values.iter().all(|value| value.is_null());
    schema.get("type").and_then(Value::as_str) == Some("null")
        || schema.get("const").is_some_and(Value::is_null)
        || schema
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(is_null_list)
}
