//! The properties of an input schema, as far as they matter here.

use serde_json::{Value, json};

/// Arguments of a tool that are looked at.
const MAX_PROPERTIES: usize = 256;
/// Bytes of a description that are read.
const MAX_READ: usize = 8 * 1024;
/// Alternatives of a schema that are looked at.
const MAX_ALTERNATIVES: usize = 16;
/// References that are followed from one schema to the next.
const MAX_REFERENCES: usize = 4;

/// One declared argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Property<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    /// It takes a string, or a list of strings.
    pub(super) takes_text: bool,
    /// It takes a list.
    pub(super) is_list: bool,
    pub(super) is_required: bool,
    schema: &'a Value,
}

/// The declared arguments in their order.
pub(super) fn properties(definition: &Value) -> Vec<Property<'_>> {
    let schema = definition.get("inputSchema");
    let declared = schema.and_then(|it| it.get("properties"));
    let Some(declared) = declared.and_then(Value::as_object) else {
        return Vec::new();
    };
    let required: Vec<&str> = schema
        .and_then(|it| it.get("required"))
        .and_then(Value::as_array)
        .map(|names| {
            names
                .iter()
                .filter_map(Value::as_str)
                .take(MAX_PROPERTIES)
                .collect()
        })
        .unwrap_or_default();
    declared
        .iter()
        .take(MAX_PROPERTIES)
        .map(|(name, declared)| {
            let schema = resolved(definition, declared);
            let own = text(declared, "description");
            Property {
                name,
                description: if own.is_empty() {
                    text(schema, "description")
                } else {
                    own
                },
                takes_text: takes(schema, "string") || takes_list(schema),
                is_list: !takes(schema, "string") && takes_list(schema),
                is_required: required.contains(&name.as_str()),
                schema,
            }
        })
        .collect()
}

/// What a schema refers to inside of the tool's own; itself where that is nowhere.
fn resolved<'a>(definition: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_REFERENCES {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference
            .and_then(|it| it.strip_prefix('#'))
            .and_then(|pointer| definition.get("inputSchema")?.pointer(pointer));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

impl Property<'_> {
    /// The only values it takes, or the one it has of itself.
    pub(super) fn fixed(&self) -> Option<Value> {
        let schema = self.schema;
        let first = schema.get("enum").and_then(|values| values.get(0));
        schema
            .get("const")
            .or_else(|| schema.get("default"))
            .or(first)
            .cloned()
    }

    /// A harmless value of its type.
    pub(super) fn filling(&self) -> Value {
        if let Some(fixed) = self.fixed() {
            return fixed;
        }
        let schema = self.schema;
        if takes(schema, "string") {
            return json!("");
        }
        if takes(schema, "boolean") {
            return json!(false);
        }
        if takes(schema, "integer") || takes(schema, "number") {
            return schema.get("minimum").cloned().unwrap_or_else(|| json!(0));
        }
        if takes(schema, "array") {
            return json!([]);
        }
        if takes(schema, "object") {
            return json!({});
        }
        Value::Null
    }
}

/// Whether a value of this type is taken. A schema that names no type takes every one.
fn takes(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => return name == wanted,
        Some(Value::Array(names)) => return names.iter().any(|name| name == wanted),
        Some(_) | None => {}
    }
    let alternatives = ["anyOf", "oneOf"]
        .iter()
        .find_map(|key| schema.get(*key)?.as_array());
    if let Some(alternatives) = alternatives {
        let mut looked_at = alternatives.iter().take(MAX_ALTERNATIVES);
        return looked_at.any(|it| it.get("type").is_some_and(|name| name == wanted));
    }
    match schema.get("enum").and_then(|values| values.get(0)) {
        Some(value) => wanted == "string" && value.is_string(),
        None => wanted == "string",
    }
}

fn takes_list(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "array")
        && schema
            .get("items")
            .is_none_or(|items| takes(items, "string"))
}

/// The beginning of a text.
fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    let text = schema.get(key).and_then(Value::as_str).unwrap_or_default();
    beginning(text)
}

/// As much of a description as is read.
pub(super) fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_READ))
        .unwrap_or_default()
}
