//! Reads a schema once: is it one, does it stay within itself, which patterns does it hold.

use std::collections::BTreeMap;

use regex_lite::{Regex, RegexBuilder};
use serde_json::{Map, Value};

/// Schemas within one schema.
const MOST_SCHEMAS: usize = 20_000;
/// Nesting of schemas.
const DEEPEST: usize = 64;
/// Patterns within one schema; more are not enforced.
const MOST_PATTERNS: usize = 64;
/// Characters of a pattern; a longer one is not enforced.
const LONGEST_PATTERN: usize = 1000;
/// Bytes that a pattern may take up once it is read.
const PATTERN_BYTES: usize = 256 * 1024;

/// Words that may stand after `type`.
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];
/// Keywords that hold one schema.
const ONE: [&str; 10] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords that hold schemas by name.
const NAMED: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords that hold a list of schemas.
const LISTED: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// The patterns of a schema; none stands for one that cannot be matched here.
pub(crate) type Patterns = BTreeMap<String, Option<Regex>>;

/// Why a schema is not enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is not a JSON schema.
    Malformed,
    /// It refers to something that is not in it.
    RefersOutside,
    /// It is too large or too deep.
    TooLarge,
}

impl Unusable {
    /// The reason in words.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "it is not a JSON schema",
            Self::RefersOutside => "it refers to something that is not in it",
            Self::TooLarge => "it is too large",
        }
    }
}

/// Reads a whole schema.
///
/// # Errors
/// It cannot be enforced.
pub(super) fn survey(root: &Value) -> Result<Patterns, Unusable> {
    let mut survey = Survey {
        root,
        schemas: 0,
        patterns: Patterns::new(),
    };
    survey.schema(root, 0)?;
    Ok(survey.patterns)
}

/// What a local reference points at.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    // Escapes of URIs are rare, and a pointer that has some simply leads nowhere.
    root.pointer(fragment)
}

struct Survey<'a> {
    root: &'a Value,
    schemas: usize,
    patterns: Patterns,
}

impl Survey<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Result<(), Unusable> {
        self.schemas += 1;
        if self.schemas > MOST_SCHEMAS || depth > DEEPEST {
            return Err(Unusable::TooLarge);
        }
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(Unusable::Malformed);
            }
        };
        for (key, value) in fields {
            self.keyword(key, value, depth)?;
        }
        Ok(())
    }

    fn keyword(&mut self, key: &str, value: &Value, depth: usize) -> Result<(), Unusable> {
        match key {
            "$ref" => self.reference(value),
            "$dynamicRef" | "$recursiveRef" => Err(Unusable::RefersOutside),
            // A new base for references.
            "$id" | "id" if depth > 0 && value.is_string() => Err(Unusable::RefersOutside),
            "type" => known_types(value),
            "required" => texts(value),
            "dependentRequired" => {
                let lists = value.as_object().ok_or(Unusable::Malformed)?;
                lists.values().try_for_each(texts)
            }
            "enum" if !value.is_array() => Err(Unusable::Malformed),
            "pattern" => {
                self.pattern(value.as_str().ok_or(Unusable::Malformed)?);
                Ok(())
            }
            "items" => match value.as_array() {
                Some(items) => self.list(items, depth),
                None => self.schema(value, depth + 1),
            },
            _ if ONE.contains(&key) => self.schema(value, depth + 1),
            _ if NAMED.contains(&key) => {
                let named = value.as_object().ok_or(Unusable::Malformed)?;
                self.named(key, named, depth)
            }
            _ if LISTED.contains(&key) => {
                self.list(value.as_array().ok_or(Unusable::Malformed)?, depth)
            }
            _ => Ok(()),
        }
    }

    fn named(
        &mut self,
        key: &str,
        named: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), Unusable> {
        for (name, schema) in named {
            if key == "patternProperties" {
                self.pattern(name);
            }
            self.schema(schema, depth + 1)?;
        }
        Ok(())
    }

    fn list(&mut self, schemas: &[Value], depth: usize) -> Result<(), Unusable> {
        schemas
            .iter()
            .try_for_each(|schema| self.schema(schema, depth + 1))
    }

    fn reference(&self, value: &Value) -> Result<(), Unusable> {
        let reference = value.as_str().ok_or(Unusable::Malformed)?;
        match resolve(self.root, reference) {
            Some(Value::Object(_) | Value::Bool(_)) => Ok(()),
            Some(_) | None => Err(Unusable::RefersOutside),
        }
    }

    fn pattern(&mut self, pattern: &str) {
        if self.patterns.contains_key(pattern) {
            return;
        }
        let fits = self.patterns.len() < MOST_PATTERNS && pattern.len() <= LONGEST_PATTERN;
        let read = || {
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(PATTERN_BYTES).build().ok()
        };
        let regex = if fits { read() } else { None };
        self.patterns.insert(pattern.to_owned(), regex);
    }
}

fn known_types(value: &Value) -> Result<(), Unusable> {
    let is_known = |word: &Value| word.as_str().is_some_and(|word| TYPES.contains(&word));
    let all = match value.as_array() {
        Some(words) => words.iter().all(is_known),
        None => is_known(value),
    };
    if all {
        Ok(())
    } else {
        Err(Unusable::Malformed)
    }
}

fn texts(value: &Value) -> Result<(), Unusable> {
    let list = value.as_array().ok_or(Unusable::Malformed)?;
    if list.iter().all(Value::is_string) {
        Ok(())
    } else {
        Err(Unusable::Malformed)
    }
}
