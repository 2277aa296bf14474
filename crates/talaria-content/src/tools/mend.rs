//! Input schemas that are broken in the ways people report, made whole.
//!
//! What comes out is JSON Schema 2020-12, an object with properties, whose references resolve
//! inside it. It means what the server meant, as far as that can be known; arguments are checked
//! with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::keywords::{Subject, for_each, type_of};
use super::references::References;

/// Values of one schema; what has more is no description of arguments.
const MAX_VALUES: usize = 10_000;
/// Bytes of its texts.
const MAX_BYTES: usize = 1024 * 1024;
/// Changes that are told; a list of thousands helps nobody.
const MAX_CHANGES: usize = 16;
/// Keywords whose value may be null.
const VALUES: [&str; 5] = ["default", "const", "enum", "examples", "example"];
/// Keywords that lead to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A schema after mending.
#[derive(Clone, Debug, PartialEq)]
pub struct Mended {
    /// The schema.
    pub schema: Value,
    /// What was taken away because it cannot be meant, one line each.
    pub changes: Vec<String>,
}

/// Mends an input schema as a server sent it.
#[must_use]
pub fn mend_input_schema(schema: Value) -> Mended {
    let mut changes = Changes::default();
    let mut room = Room {
        values: MAX_VALUES,
        bytes: MAX_BYTES,
    };
    let mut root = match schema {
        Value::Object(_) if !room.takes(&schema) => {
            changes.add("", "the input schema is too large to be offered");
            Map::new()
        }
        Value::Object(root) => root,
        Value::Null => Map::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            changes.add("", "the input schema is no schema");
            Map::new()
        }
    };
    move_definitions(&mut root);
    root.insert("type".to_owned(), Value::from("object"));
    if !root.get("properties").is_some_and(Value::is_object) {
        root.insert("properties".to_owned(), json!({}));
    }
    let mut schema = Value::Object(root);
    drop_dangling(&mut schema, &mut changes);
    mend(&mut schema, "", &Known::NOTHING, &mut changes);
    Mended {
        schema,
        changes: changes.lines,
    }
}

/// How much of a schema still fits.
struct Room {
    values: usize,
    bytes: usize,
}

impl Room {
    fn takes(&mut self, value: &Value) -> bool {
        let Some(values) = self.values.checked_sub(1) else {
            return false;
        };
        self.values = values;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => self.takes_text(text),
            Value::Array(items) => items.iter().all(|item| self.takes(item)),
            Value::Object(members) => members
                .iter()
                .all(|(key, member)| self.takes_text(key) && self.takes(member)),
        }
    }

    const fn takes_text(&mut self, text: &str) -> bool {
        match self.bytes.checked_sub(text.len()) {
            Some(bytes) => {
                self.bytes = bytes;
                true
            }
            None => false,
        }
    }
}

/// The properties that a schema and those around it name for one value.
struct Known<'a> {
    names: BTreeSet<String>,
    around: Option<&'a Self>,
}

impl Known<'_> {
    const NOTHING: Known<'static> = Known {
        names: BTreeSet::new(),
        around: None,
    };

    fn has(&self, name: &str) -> bool {
        self.names.contains(name) || self.around.is_some_and(|around| around.has(name))
    }
}

#[derive(Debug, Default)]
struct Changes {
    lines: Vec<String>,
}

impl Changes {
    fn add(&mut self, at: &str, what: &str) {
        if self.lines.len() < MAX_CHANGES {
            let separator = if at.is_empty() { "" } else { ": " };
            self.lines.push(format!("{at}{separator}{what}"));
        }
    }
}

/// The older name of `$defs`, and the references to it.
fn move_definitions(root: &mut Map<String, Value>) {
    let Some(Value::Object(older)) = root.remove("definitions") else {
        return;
    };
    let mut names = BTreeMap::new();
    let mut newer = match root.remove("$defs") {
        Some(Value::Object(newer)) => newer,
        Some(_) | None => Map::new(),
    };
    for (name, schema) in older {
        let mut free = name.clone();
        while newer.get(&free).is_some_and(|held| *held != schema) {
            free.push('_');
        }
        names.insert(escaped(&name), escaped(&free));
        newer.insert(free, schema);
    }
    root.insert("$defs".to_owned(), Value::Object(newer));
    let mut whole = Value::Object(std::mem::take(root));
    rename_references(&mut whole, &names);
    if let Value::Object(renamed) = whole {
        *root = renamed;
    }
}

fn rename_references(schema: &mut Value, names: &BTreeMap<String, String>) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(Value::String(reference)) = members.get_mut("$ref")
        && let Some(rest) = reference.strip_prefix("#/definitions/")
    {
        let (name, deeper) = rest.split_once('/').unwrap_or((rest, ""));
        let name = names.get(name).map_or(name, String::as_str);
        let separator = if deeper.is_empty() { "" } else { "/" };
        *reference = format!("#/$defs/{name}{separator}{deeper}");
    }
    for_each(members, &mut |_, _, inside| {
        rename_references(inside, names);
    });
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Takes out references that lead nowhere or outside: nobody fetches them.
fn drop_dangling(schema: &mut Value, changes: &mut Changes) {
    let whole = schema.clone();
    let references = References::new(&whole);
    drop_dangling_in(schema, &references, changes);
}

fn drop_dangling_in(schema: &mut Value, references: &References<'_>, changes: &mut Changes) {
    let Value::Object(members) = schema else {
        return;
    };
    for keyword in REFERENCES {
        let Some(held) = members.remove(keyword) else {
            continue;
        };
        match held.as_str() {
            Some(reference) if references.leads_somewhere(reference) => {
                // Without an identifier of its own, a schema is named by what stands behind `#`.
                let inside = reference
                    .find('#')
                    .map_or("#", |at| reference.get(at..).unwrap_or("#"));
                members.insert("$ref".to_owned(), Value::from(inside));
            }
            Some(reference) => {
                changes.add(
                    "",
                    &format!("the reference `{}` leads nowhere", short(reference)),
                );
            }
            None => {}
        }
    }
    for_each(members, &mut |_, _, inside| {
        drop_dangling_in(inside, references, changes);
    });
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Mends one schema and those inside it. `outer` are the properties that schemas around it name
/// for the same value.
fn mend(schema: &mut Value, at: &str, outer: &Known<'_>, changes: &mut Changes) {
    match schema {
        Value::Object(_) | Value::Bool(_) => {}
        Value::String(word) => {
            // A type alone, in place of a schema.
            *schema = match type_of(word) {
                Some(name) => json!({ "type": name }),
                None => json!({}),
            };
        }
        Value::Null | Value::Number(_) | Value::Array(_) => *schema = json!({}),
    }
    let Value::Object(members) = schema else {
        return;
    };
    tidy(members);
    lift_required(members);
    let names = match members.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        Some(_) | None => BTreeSet::new(),
    };
    let known = Known {
        names,
        around: Some(outer),
    };
    for_each(members, &mut |place, subject, inside| {
        let outer = match subject {
            Subject::Same => &known,
            Subject::Part => &Known::NOTHING,
        };
        mend(inside, &format!("{at}/{place}"), outer, changes);
    });
    drop_ghosts(members, at, &known, changes);
}

/// Keywords whose value is of the wrong kind or of an older draft.
fn tidy(schema: &mut Map<String, Value>) {
    schema.retain(|key, value| {
        let is_value = VALUES.contains(&key.as_str());
        let is_named = matches!(key.as_str(), "$schema" | "$id");
        (is_value && key != "enum") || (!is_named && !value.is_null())
    });
    if let Some(types) = schema.remove("type")
        && let Some(types) = tidy_type(&types)
    {
        schema.insert("type".to_owned(), types);
    }
    for (keyword, fits) in [
        ("properties", Value::is_object as fn(&Value) -> bool),
        ("patternProperties", Value::is_object),
        ("$defs", Value::is_object),
        ("allOf", is_full_list),
        ("anyOf", is_full_list),
        ("oneOf", is_full_list),
        ("prefixItems", is_full_list),
        ("enum", is_full_list),
        ("description", Value::is_string),
        ("title", Value::is_string),
    ] {
        if schema.get(keyword).is_some_and(|value| !fits(value)) {
            schema.remove(keyword);
        }
    }
    for (exclusive, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if let Some(Value::Bool(is_exclusive)) = schema.get(exclusive) {
            let is_exclusive = *is_exclusive;
            schema.remove(exclusive);
            if is_exclusive && let Some(number) = schema.remove(bound) {
                schema.insert(exclusive.to_owned(), number);
            }
        }
    }
    if let Some(Value::Array(tuple)) = schema.get("items") {
        let tuple = Value::Array(tuple.clone());
        schema.remove("items");
        if is_full_list(&tuple) {
            schema.insert("prefixItems".to_owned(), tuple);
        }
        if let Some(rest) = schema.remove("additionalItems") {
            schema.insert("items".to_owned(), rest);
        }
    }
}

fn is_full_list(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty())
}

/// A type or a list of them, in the words of JSON Schema.
fn tidy_type(types: &Value) -> Option<Value> {
    match types {
        Value::String(word) => type_of(word).map(Value::from),
        Value::Array(words) => {
            let mut known: Vec<Value> = Vec::new();
            for word in words.iter().filter_map(Value::as_str).filter_map(type_of) {
                if !known.contains(&Value::from(word)) {
                    known.push(word.into());
                }
            }
            match known.len() {
                0 => None,
                1 => known.pop(),
                _ => Some(Value::Array(known)),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// `required: true` on a property is draft 3; it belongs to the object around it.
fn lift_required(schema: &mut Map<String, Value>) {
    let mut lifted = Vec::new();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            let Value::Object(property) = property else {
                continue;
            };
            if let Some(Value::Bool(is_required)) = property.get("required") {
                if *is_required {
                    lifted.push(name.clone());
                }
                property.remove("required");
            }
        }
    }
    if lifted.is_empty() {
        return;
    }
    let held = schema.entry("required").or_insert_with(|| json!([]));
    if !held.is_array() {
        *held = json!([]);
    }
    if let Value::Array(names) = held {
        names.extend(lifted.into_iter().map(Value::from));
    }
}

/// Names that are required and that no property has: no arguments would ever fit.
fn drop_ghosts(
    schema: &mut Map<String, Value>,
    at: &str,
    known: &Known<'_>,
    changes: &mut Changes,
) {
    let says_properties = schema.contains_key("properties");
    let Some(required) = schema.remove("required") else {
        return;
    };
    let Value::Array(names) = required else {
        return;
    };
    let mut kept: Vec<Value> = Vec::new();
    let mut seen = BTreeSet::new();
    for name in names {
        let Value::String(name) = name else {
            continue;
        };
        if says_properties && !known.has(&name) {
            changes.add(
                at,
                &format!("`{}` is required and no property", short(&name)),
            );
        } else if seen.insert(name.clone()) {
            kept.push(Value::String(name));
        }
    }
    if !kept.is_empty() {
        schema.insert("required".to_owned(), Value::Array(kept));
    }
}
