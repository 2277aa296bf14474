//! Schemas without what providers refuse: unions at the top, tuples, lists without items, unions
//! that only say that a value may be absent.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::keywords::{for_each, is_null, well_shaped};
use super::references::{References, merge};

/// Unions inside unions and references to references that are folded at the top.
const MAX_FOLDS: usize = 8;
/// Objects that come together at the top of one schema.
const MAX_OBJECTS: usize = 64;
/// Keywords that no provider takes at the top.
const ONLY_BELOW: [&str; 8] = [
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "dependentSchemas",
    "dependentRequired",
];
/// Longest key of a property.
const MAX_KEY_BYTES: usize = 64;

/// An input schema as OpenAI and Anthropic take it. References and their definitions stay.
pub(super) fn schema(schema: &Value) -> Value {
    let mut schema = folded(&well_shaped(schema));
    simplify(&mut schema, true);
    schema
}

/// The schema with one object at the top: what its unions and its references say there comes
/// together. Of alternatives, only what all of them require is required.
pub(super) fn folded(schema: &Value) -> Value {
    let mut folder = Folder {
        references: References::new(schema),
        budget: MAX_OBJECTS,
        open: Vec::new(),
    };
    let mut root = folder.object_of(schema, MAX_FOLDS).unwrap_or_default();
    root.insert("type".to_owned(), Value::from("object"));
    root.entry("properties").or_insert_with(|| json!({}));
    Value::Object(root)
}

struct Folder<'a> {
    references: References<'a>,
    budget: usize,
    /// References that are being followed; none of them is followed again inside.
    open: Vec<String>,
}

impl Folder<'_> {
    /// What a schema says of an object; `None` where it is about anything else.
    fn object_of(&mut self, schema: &Value, folds: usize) -> Option<Map<String, Value>> {
        let schema = schema.as_object()?;
        if !may_be_object(schema) {
            return None;
        }
        let folds = folds.checked_sub(1)?;
        self.budget = self.budget.checked_sub(1)?;
        let mut object = schema.clone();
        if let Some(Value::String(reference)) = object.remove("$ref")
            && !self.open.contains(&reference)
            && let Some(target) = self.references.find(&reference)
        {
            self.open.push(reference);
            let target = self.object_of(target, folds);
            self.open.pop();
            merge(&mut object, &target.unwrap_or_default());
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(branches)) = object.remove(keyword) else {
                continue;
            };
            let branches: Vec<_> = branches
                .iter()
                .filter_map(|branch| self.object_of(branch, folds))
                .collect();
            if keyword == "allOf" {
                for branch in &branches {
                    merge(&mut object, branch);
                }
            } else {
                merge(&mut object, &any_of(branches));
            }
        }
        for keyword in ONLY_BELOW {
            object.remove(keyword);
        }
        Some(object)
    }
}

fn may_be_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    }
}

/// One object that takes what any of several takes.
fn any_of(branches: Vec<Map<String, Value>>) -> Map<String, Value> {
    let mut properties: Map<String, Value> = Map::new();
    let mut required: Option<Vec<Value>> = None;
    for branch in branches {
        let names = match branch.get("required") {
            Some(Value::Array(names)) => names.clone(),
            Some(_) | None => Vec::new(),
        };
        required = Some(match required {
            None => names,
            Some(held) => held.into_iter().filter(|it| names.contains(it)).collect(),
        });
        let Some(Value::Object(theirs)) = branch.get("properties") else {
            continue;
        };
        for (name, property) in theirs {
            match properties.get_mut(name) {
                None => {
                    properties.insert(name.clone(), property.clone());
                }
                Some(held) => either(held, property),
            }
        }
    }
    let mut object = Map::new();
    object.insert("properties".to_owned(), Value::Object(properties));
    if let Some(required) = required.filter(|names| !names.is_empty()) {
        object.insert("required".to_owned(), Value::Array(required));
    }
    object
}

/// A property that two alternatives have.
fn either(held: &mut Value, other: &Value) {
    if held == other {
        return;
    }
    match held.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(branches) => {
            if !branches.contains(other) {
                branches.push(other.clone());
            }
        }
        None => *held = json!({ "anyOf": [held.take(), other] }),
    }
}

/// Makes a schema and those inside it plain. `may_omit` says whether the value may be left out,
/// so that null need not be among what it can be.
fn simplify(schema: &mut Value, may_omit: bool) {
    if schema.is_boolean() {
        *schema = json!({});
        return;
    }
    let Value::Object(members) = schema else {
        return;
    };
    collapse_union(members, may_omit);
    constants_to_enum(members);
    complete(members);
    let required = match members.get("required") {
        Some(Value::Array(names)) => names.clone(),
        Some(_) | None => Vec::new(),
    };
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.retain(|_, property| *property != Value::Bool(false));
    }
    for_each(members, &mut |place, _, inside| {
        if matches!(
            place,
            "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems"
        ) && inside.is_boolean()
        {
            return;
        }
        let may_omit = place
            .strip_prefix("properties/")
            .is_some_and(|name| !required.iter().any(|held| held == name));
        simplify(inside, may_omit);
    });
}

/// `X or null` becomes `X`, and null only stays where the value cannot be left out; a union of
/// one becomes that one.
fn collapse_union(schema: &mut Map<String, Value>, may_omit: bool) {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(branches)) = schema.get(keyword) else {
            continue;
        };
        let held: Vec<&Value> = branches.iter().filter(|it| !is_null(it)).collect();
        let has_null = held.len() < branches.len();
        let [Value::Object(only)] = held.as_slice() else {
            continue;
        };
        let mut only = only.clone();
        schema.remove(keyword);
        if has_null && keyword != "allOf" {
            if may_omit {
                if schema.get("default").is_some_and(Value::is_null) {
                    schema.remove("default");
                }
            } else {
                allow_null(&mut only);
            }
        }
        merge(schema, &only);
    }
}

fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(Value::String(name)) = schema.get("type") {
        let types = json!([name, "null"]);
        schema.insert("type".to_owned(), types);
        if let Some(Value::Array(values)) = schema.get_mut("enum") {
            values.push(Value::Null);
        }
    }
}

/// A union of constants becomes an enumeration.
fn constants_to_enum(schema: &mut Map<String, Value>) {
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = schema.get(keyword) else {
            continue;
        };
        let Some(values) = branches.iter().map(constants).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let distinct = distinct(values.into_iter().flatten());
        schema.remove(keyword);
        if let Some(name) = common_type(&distinct) {
            schema.insert("type".to_owned(), Value::from(name));
        }
        schema.insert("enum".to_owned(), Value::Array(distinct));
    }
}

/// Each value once, in their order.
fn distinct(values: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let values = values.into_iter();
    values
        .filter(|value| seen.insert(value.to_string()))
        .collect()
}

fn constants(branch: &Value) -> Option<Vec<Value>> {
    if let Some(value) = branch.get("const") {
        return Some(vec![value.clone()]);
    }
    branch.get("enum")?.as_array().cloned()
}

/// The type that all values have.
fn common_type(values: &[Value]) -> Option<&'static str> {
    let all = |fits: fn(&Value) -> bool| values.iter().all(fits);
    if all(Value::is_string) {
        Some("string")
    } else if all(|value| value.is_i64() || value.is_u64()) {
        Some("integer")
    } else if all(Value::is_number) {
        Some("number")
    } else if all(Value::is_boolean) {
        Some("boolean")
    } else {
        None
    }
}

/// Types that follow from the rest, and what the items of a list are.
fn complete(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(tuple)) = schema.remove("prefixItems") {
        let mut kinds = distinct(tuple);
        let items = if kinds.len() == 1 {
            kinds.pop().unwrap_or_default()
        } else {
            json!({ "anyOf": kinds })
        };
        schema.insert("items".to_owned(), items);
    }
    if !schema.contains_key("type") {
        let values = schema.get("enum").and_then(Value::as_array);
        let name = if schema.contains_key("properties") {
            Some("object")
        } else if schema.contains_key("items") {
            Some("array")
        } else {
            values.and_then(|values| common_type(values))
        };
        if let Some(name) = name {
            schema.insert("type".to_owned(), Value::from(name));
        }
    }
    let is_list = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "array"),
        Some(name) => name == "array",
        None => false,
    };
    if is_list && !schema.contains_key("items") {
        schema.insert("items".to_owned(), json!({}));
    }
}

/// The schema without properties whose key Anthropic refuses, and with it the whole request.
pub(super) fn with_plain_keys(mut schema: Value) -> Value {
    drop_odd_keys(&mut schema);
    schema
}

fn drop_odd_keys(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.retain(|key, _| is_plain_key(key));
    }
    if let Some(Value::Array(names)) = members.get_mut("required") {
        names.retain(|name| name.as_str().is_some_and(is_plain_key));
    }
    for_each(members, &mut |_, _, inside| drop_odd_keys(inside));
}

fn is_plain_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !key.is_empty() && key.len() <= MAX_KEY_BYTES && key.bytes().all(fits)
}
