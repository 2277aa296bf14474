//! What a reference inside a schema leads to. Nothing outside the schema is ever looked at.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// References that may follow each other.
const MAX_HOPS: usize = 32;
/// Nesting in which anchors are looked for.
const MAX_DEPTH: usize = 64;

/// A whole schema, in which references are looked up.
#[derive(Debug)]
pub(super) struct References<'a> {
    root: &'a Value,
    anchors: BTreeMap<&'a str, &'a Value>,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let mut anchors = BTreeMap::new();
        collect_anchors(root, MAX_DEPTH, &mut anchors);
        Self { root, anchors }
    }

    /// The schema that a reference names, which may be a reference again.
    pub(super) fn find(&self, reference: &str) -> Option<&'a Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if !base.is_empty() && self.root.get("$id").and_then(Value::as_str) != Some(base) {
            return None;
        }
        let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
        let found = if fragment.is_empty() {
            self.root
        } else if fragment.starts_with('/') {
            self.root.pointer(&fragment)?
        } else {
            self.anchors.get(fragment.as_ref()).copied()?
        };
        (found.is_object() || found.is_boolean()).then_some(found)
    }

    /// Whether following a reference ends at a schema.
    pub(super) fn leads_somewhere(&self, reference: &str) -> bool {
        let mut reference = reference;
        for _ in 0..MAX_HOPS {
            let Some(found) = self.find(reference) else {
                return false;
            };
            match found.get("$ref").and_then(Value::as_str) {
                Some(next) => reference = next,
                None => return true,
            }
        }
        false
    }
}

fn collect_anchors<'a>(
    schema: &'a Value,
    depth: usize,
    anchors: &mut BTreeMap<&'a str, &'a Value>,
) {
    let Some(deeper) = depth.checked_sub(1) else {
        return;
    };
    match schema {
        Value::Object(members) => {
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = members.get(key).and_then(Value::as_str) {
                    anchors.entry(name).or_insert(schema);
                }
            }
            for member in members.values() {
                collect_anchors(member, deeper, anchors);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_anchors(item, deeper, anchors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds what another schema says about the same value. What is said already stays, properties
/// and required names come together.
pub(super) fn merge(schema: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (key, theirs) in other {
        match (schema.get_mut(key), theirs) {
            (Some(Value::Object(ours)), Value::Object(theirs)) if key == "properties" => {
                for (name, property) in theirs {
                    ours.entry(name).or_insert_with(|| property.clone());
                }
            }
            (Some(Value::Array(ours)), Value::Array(theirs)) if key == "required" => {
                for name in theirs {
                    if !ours.contains(name) {
                        ours.push(name.clone());
                    }
                }
            }
            (Some(_), _) => {}
            (None, _) => {
                schema.insert(key.clone(), theirs.clone());
            }
        }
    }
}
