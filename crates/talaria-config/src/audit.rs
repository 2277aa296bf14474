//! Goes through the whole tree once: unknown keys, maps and lists in the wrong place, and the
//! values of keys that no part uses yet.

use serde_json::{Map, Value};

use crate::problem::Findings;
use crate::schema::{self, Key, Kind, Place, Stage};
use crate::section::{boolean_word, needs_units, read_duration, read_size, scalar_text, wants};
use crate::yaml;

/// What happens to an unknown key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    /// An error, with a suggestion.
    Refused,
    /// An error where it is a near miss of a known key, else a warning.
    Suspected,
    /// Nothing.
    Ignored,
}

/// Audits what stands below a path. `pattern` is the path with names and indices generalised.
pub(crate) fn audit(findings: &mut Findings, at: &str, pattern: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Object(map) => audit_map(findings, at, pattern, map),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            if is_under(pattern, "talaria") || is_under(pattern, "mcp_servers") {
                findings.error(at, "must be a map");
            } else {
                // Hermes reads a section that is no map as absent.
                findings.warn(at, "is not a map and is ignored");
            }
        }
    }
}

/// Warns of top-level sections that are misspelt; all unknown ones are Hermes' business.
pub(crate) fn audit_top_level(findings: &mut Findings, root: &Map<String, Value>) {
    for name in root.keys() {
        if schema::children("").any(|known| known == name) {
            continue;
        }
        let is_path = schema::children("").any(|known| {
            name.strip_prefix(known)
                .is_some_and(|rest| rest.starts_with('.'))
        });
        if is_path {
            findings.warn(
                name,
                "is not a section and is ignored; write sections as nested maps",
            );
        } else if let Some(near) = schema::near_miss(name, schema::children("")) {
            findings.warn(
                name,
                format!("is not a section and is ignored; did you mean `{near}`?"),
            );
        }
    }
}

fn audit_map(findings: &mut Findings, at: &str, pattern: &str, map: &Map<String, Value>) {
    for (name, value) in map {
        let child_at = format!("{at}.{name}");
        let child_pattern = format!("{pattern}.{name}");
        if name.contains(['.', '*', '[']) {
            // A path as a key would be found in the table and yet never be read.
            unknown_key(findings, &child_at, pattern, name);
            continue;
        }
        match schema::place(&child_pattern) {
            Place::Leaf(key) => audit_leaf(findings, &child_at, key, value),
            Place::Section => audit(findings, &child_at, &child_pattern, value),
            Place::NamedSections => {
                audit_named(findings, &child_at, &format!("{child_pattern}.*"), value);
            }
            Place::ListOfSections => {
                audit_list(findings, &child_at, &format!("{child_pattern}[]"), value);
            }
            Place::Unknown => unknown_key(findings, &child_at, pattern, name),
        }
    }
}

/// Audits each section of a map whose keys the operator names.
pub(crate) fn audit_named(findings: &mut Findings, at: &str, pattern: &str, value: &Value) {
    for (name, section) in value.as_object().into_iter().flatten() {
        audit(findings, &format!("{at}.{name}"), pattern, section);
    }
}

/// Audits each section of a list.
pub(crate) fn audit_list(findings: &mut Findings, at: &str, pattern: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                audit(findings, &format!("{at}[{index}]"), pattern, item);
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            match unknown_policy(pattern) {
                Unknown::Refused | Unknown::Suspected => findings.error(at, "must be a list"),
                Unknown::Ignored => findings.warn(at, "is not a list and is ignored"),
            }
        }
    }
}

fn unknown_key(findings: &mut Findings, at: &str, pattern: &str, name: &str) {
    let near = schema::near_miss(name, schema::children(pattern));
    match (unknown_policy(pattern), near) {
        (Unknown::Refused | Unknown::Suspected, Some(near)) => {
            findings.error(at, format!("is not a known key; did you mean `{near}`?"));
        }
        (Unknown::Refused, None) => {
            let known: Vec<_> = schema::children(pattern)
                .map(|key| format!("`{key}`"))
                .collect();
            findings.error(
                at,
                format!("is not a known key; known are {}", known.join(", ")),
            );
        }
        (Unknown::Suspected, None) => findings.warn(at, "is not a known key and is ignored"),
        (Unknown::Ignored, _) => {}
    }
}

fn unknown_policy(pattern: &str) -> Unknown {
    if is_under(pattern, "talaria") {
        Unknown::Refused
    } else if ["mcp_servers", "vision", "auxiliary.vision"]
        .into_iter()
        .any(|root| is_under(pattern, root))
    {
        Unknown::Suspected
    } else {
        Unknown::Ignored
    }
}

fn is_under(pattern: &str, root: &str) -> bool {
    pattern
        .strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn audit_leaf(findings: &mut Findings, at: &str, key: &Key, value: &Value) {
    if key.stage == Stage::Used || value.is_null() {
        return;
    }
    let strict = needs_units(at);
    let holds_variable = scalar_text(value).is_some_and(|text| text.contains("${"));
    if !holds_variable && !fits(key.kind, value, strict) {
        findings.error(at, wants(key.kind, strict));
    } else if !is_default(key, value) {
        findings.warn(at, "is accepted but not used yet");
    }
}

fn fits(kind: Kind, value: &Value, strict: bool) -> bool {
    let scalar = scalar_text(value);
    let scalar = scalar.as_deref();
    let texts = |items: &[Value]| items.iter().all(|item| scalar_text(item).is_some());
    match kind {
        Kind::Bool => scalar.and_then(boolean_word).is_some(),
        Kind::Word(words) => scalar.is_some_and(|text| {
            words
                .iter()
                .any(|word| word.eq_ignore_ascii_case(text.trim()))
        }),
        Kind::Duration => scalar.is_some_and(|text| read_duration(text, strict).is_some()),
        Kind::Size => scalar.is_some_and(|text| read_size(text, strict).is_some()),
        Kind::Count => scalar.is_some_and(|text| text.trim().parse::<u64>().is_ok()),
        Kind::Number => scalar.is_some_and(|text| text.trim().parse::<f64>().is_ok()),
        Kind::Text | Kind::Secret | Kind::Url | Kind::Command => scalar.is_some(),
        Kind::Args | Kind::TextList => {
            scalar.is_some() || value.as_array().is_some_and(|items| texts(items))
        }
        Kind::SecretMap => value.is_object(),
        Kind::Any => true,
    }
}

/// Whether a value is what stands in the table as the default of its key.
pub(crate) fn is_default(key: &Key, value: &Value) -> bool {
    let Ok(default) = yaml::parse(key.default) else {
        return false;
    };
    if *value == default {
        return true;
    }
    let (Some(value), Some(default)) = (scalar_text(value), scalar_text(&default)) else {
        return false;
    };
    match key.kind {
        Kind::Duration => read_duration(&value, false) == read_duration(&default, false),
        Kind::Size => read_size(&value, false) == read_size(&default, false),
        Kind::Bool => boolean_word(&value) == boolean_word(&default),
        Kind::Word(_)
        | Kind::Count
        | Kind::Number
        | Kind::Text
        | Kind::Secret
        | Kind::Url
        | Kind::Command
        | Kind::Args
        | Kind::TextList
        | Kind::SecretMap
        | Kind::Any => value.trim().eq_ignore_ascii_case(default.trim()),
    }
}
