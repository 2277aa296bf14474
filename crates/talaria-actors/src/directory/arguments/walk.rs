//! Walks a schema and the arguments together.
//!
//! Where the specification of JSON schema is stricter than servers are, the check is mild:
//! `oneOf` takes what fits more than one alternative, `format` and `unevaluated…` are not looked
//! at, `nullable` of OpenAPI counts, and what has a default or is given as null may be left out.

use serde_json::{Map, Number, Value};

mod containers;
mod scalars;
mod unions;

use super::survey::{Patterns, resolve};
use super::words::{At, Misfit, listed, short, type_of};

/// Steps of one check.
const FUEL: usize = 50_000;
/// Nesting of schemas and references while walking.
const DEEPEST: usize = 128;
/// Misfits that are looked for.
const ENOUGH: usize = 50;

/// One check under way.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    root: &'a Value,
    patterns: &'a Patterns,
    reference_alone: bool,
    fuel: usize,
    exhausted: bool,
    misfits: Vec<Misfit>,
    /// Within alternatives only the outcome counts.
    silent: usize,
}

impl<'a> Walk<'a> {
    pub(super) const fn new(
        root: &'a Value,
        patterns: &'a Patterns,
        reference_alone: bool,
    ) -> Self {
        Self {
            root,
            patterns,
            reference_alone,
            fuel: FUEL,
            exhausted: false,
            misfits: Vec::new(),
            silent: 0,
        }
    }

    /// Whether the check was given up.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Everything that does not fit.
    pub(super) fn arguments(&mut self, arguments: &Map<String, Value>) -> Vec<Misfit> {
        let root = self.root;
        if let Value::Object(schema) = root {
            self.references(schema, &Given::Object(arguments), At::ROOT, 0);
            if !self.stands_alone(schema) {
                self.combined(schema, &Given::Object(arguments), At::ROOT, 0);
                self.object(schema, arguments, At::ROOT, 0);
            }
        }
        std::mem::take(&mut self.misfits)
    }

    fn burn(&mut self, steps: usize) -> bool {
        match self.fuel.checked_sub(steps) {
            Some(left) => {
                self.fuel = left;
                true
            }
            None => {
                self.fuel = 0;
                self.exhausted = true;
                false
            }
        }
    }

    fn misfit(&mut self, at: At<'_>, expected: impl FnOnce() -> String) -> bool {
        if self.silent == 0 && self.misfits.len() < ENOUGH {
            self.misfits.push(Misfit {
                pointer: at.pointer(),
                expected: expected(),
            });
        }
        false
    }

    /// Whether a value fits a schema.
    fn value(&mut self, schema: &Value, value: &Value, at: At<'_>, depth: usize) -> bool {
        if depth > DEEPEST {
            self.exhausted = true;
        }
        if !self.burn(1) || self.exhausted {
            return true;
        }
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => return self.misfit(at, || "is not allowed".to_owned()),
            Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => return true,
        };
        if value.is_null() && fields.get("nullable") == Some(&Value::Bool(true)) {
            return true;
        }
        let given = Given::of(value);
        let mut fits = self.references(fields, &given, at, depth);
        if self.stands_alone(fields) {
            return fits;
        }
        if !self.types(fields, value, at) {
            return false;
        }
        fits &= self.chosen(fields, value, at);
        fits &= match value {
            Value::String(text) => self.text(fields, text, at),
            Value::Number(number) => self.number(fields, number, at),
            Value::Array(items) => self.array(fields, items, at, depth),
            Value::Object(members) => self.object(fields, members, at, depth),
            Value::Null | Value::Bool(_) => true,
        };
        fits & self.combined(fields, &given, at, depth)
    }

    fn stands_alone(&self, schema: &Map<String, Value>) -> bool {
        self.reference_alone && schema.contains_key("$ref")
    }

    fn given(&mut self, schema: &Value, given: &Given<'_>, at: At<'_>, depth: usize) -> bool {
        match given {
            Given::Value(value) => self.value(schema, value, at, depth),
            Given::Object(members) => {
                // The arguments as a whole, which are no value of their own.
                let fields = match schema {
                    Value::Object(fields) => fields,
                    Value::Bool(false) => return self.misfit(at, || "is not allowed".to_owned()),
                    Value::Bool(true)
                    | Value::Null
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_) => return true,
                };
                if depth > DEEPEST {
                    self.exhausted = true;
                }
                if !self.burn(1) || self.exhausted {
                    return true;
                }
                let mut fits = self.references(fields, given, at, depth);
                if self.stands_alone(fields) {
                    return fits;
                }
                if !takes(fields, "object") {
                    return self.misfit(at, || expected_types(fields, "object"));
                }
                fits &= self.object(fields, members, at, depth);
                fits & self.combined(fields, given, at, depth)
            }
        }
    }

    fn references(
        &mut self,
        schema: &Map<String, Value>,
        given: &Given<'_>,
        at: At<'_>,
        depth: usize,
    ) -> bool {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return true;
        };
        let root = self.root;
        resolve(root, reference).is_none_or(|target| self.given(target, given, at, depth + 1))
    }

    fn types(&mut self, schema: &Map<String, Value>, value: &Value, at: At<'_>) -> bool {
        let kind = type_of(value);
        let is_whole = matches!(value, Value::Number(number) if is_whole(number));
        if takes(schema, kind) || (is_whole && takes(schema, "integer")) {
            return true;
        }
        self.misfit(at, || expected_types(schema, kind))
    }

    fn chosen(&mut self, schema: &Map<String, Value>, value: &Value, at: At<'_>) -> bool {
        if let Some(only) = schema.get("const")
            && !self.same(only, value)
        {
            return self.misfit(at, || format!("must be {}", short(&only.to_string())));
        }
        let Some(Value::Array(choices)) = schema.get("enum") else {
            return true;
        };
        if choices.iter().any(|choice| self.same(choice, value)) {
            return true;
        }
        self.misfit(at, || {
            let choices = choices.iter().map(Value::to_string);
            format!("must be one of {}", listed(choices))
        })
    }

    /// Whether two values are one as JSON: 1 is 1.0.
    fn same(&mut self, one: &Value, other: &Value) -> bool {
        if !self.burn(1) {
            return true;
        }
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => {
                one == other || one.as_f64() == other.as_f64()
            }
            (Value::Array(ones), Value::Array(others)) => {
                ones.len() == others.len()
                    && ones
                        .iter()
                        .zip(others)
                        .all(|(one, other)| self.same(one, other))
            }
            (Value::Object(ones), Value::Object(others)) => {
                ones.len() == others.len()
                    && ones.iter().all(|(key, one)| {
                        others.get(key).is_some_and(|other| self.same(one, other))
                    })
            }
            (one, other) => one == other,
        }
    }
}

/// What is checked: a value, or the arguments as a whole.
#[derive(Clone, Copy, Debug)]
enum Given<'a> {
    Value(&'a Value),
    Object(&'a Map<String, Value>),
}

impl<'a> Given<'a> {
    const fn of(value: &'a Value) -> Self {
        Self::Value(value)
    }

    /// The same, as an object where it is one.
    const fn members(self) -> Self {
        match self {
            Self::Value(Value::Object(members)) | Self::Object(members) => Self::Object(members),
            Self::Value(value) => Self::Value(value),
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Value(value) => type_of(value),
            Self::Object(_) => "object",
        }
    }
}

/// Whether a schema takes values of a type.
fn takes(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(word)) => word == kind,
        Some(Value::Array(words)) => words.iter().any(|word| word.as_str() == Some(kind)),
        Some(_) | None => true,
    }
}

fn expected_types(schema: &Map<String, Value>, got: &str) -> String {
    let words: Vec<_> = types(schema).collect();
    format!("expected {}, got {got}", words.join(" or "))
}

fn types(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let several = schema.get("type").and_then(Value::as_array);
    let one = schema.get("type").filter(|_| several.is_none());
    several
        .into_iter()
        .flatten()
        .chain(one)
        .filter_map(Value::as_str)
}

fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn count(schema: &Map<String, Value>, key: &str) -> Option<usize> {
    let limit = schema.get(key).and_then(Value::as_u64)?;
    usize::try_from(limit).ok()
}
