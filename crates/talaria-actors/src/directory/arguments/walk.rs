//! Walks a schema and the arguments together.
//!
//! Where the specification of JSON schema is stricter than servers are, the check is mild:
//! `oneOf` takes what fits more than one alternative, `format` and `unevaluated…` are not looked
//! at, `nullable` of OpenAPI counts, and what has a default or is given as null may be left out.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::survey::{Patterns, resolve};
use super::words::{At, Misfit, listed, short, type_of};

/// Steps of one check.
const FUEL: usize = 50_000;
/// Nesting of schemas and references while walking.
const DEEPEST: usize = 128;
/// Bytes of text that cost one step.
const BYTES_PER_STEP: usize = 256;
/// Bytes of a text that is matched against a pattern.
const LONGEST_MATCHED: usize = 16 * 1024;
/// Items of a list that shall differ.
const MOST_COMPARED: usize = 200;
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

    fn text(&mut self, schema: &Map<String, Value>, text: &str, at: At<'_>) -> bool {
        let least = count(schema, "minLength");
        let most = count(schema, "maxLength");
        if (least.is_some() || most.is_some()) && self.burn(1 + text.len() / BYTES_PER_STEP) {
            let length = text.chars().count();
            if !self.within(length, least, most, "characters", at) {
                return false;
            }
        }
        let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else {
            return true;
        };
        if self.matches(pattern, text) {
            return true;
        }
        self.misfit(at, || format!("must match the pattern {}", short(pattern)))
    }

    /// Whether a text matches; one that cannot be told counts as if it did.
    fn matches(&mut self, pattern: &str, text: &str) -> bool {
        let Some(Some(regex)) = self.patterns.get(pattern) else {
            return true;
        };
        if text.len() > LONGEST_MATCHED || !self.burn(1 + text.len() / 16) {
            return true;
        }
        regex.is_match(text)
    }

    fn within(
        &mut self,
        length: usize,
        least: Option<usize>,
        most: Option<usize>,
        what: &str,
        at: At<'_>,
    ) -> bool {
        if let Some(least) = least.filter(|least| length < *least) {
            return self.misfit(at, || format!("must have at least {least} {what}"));
        }
        if let Some(most) = most.filter(|most| length > *most) {
            return self.misfit(at, || format!("must have at most {most} {what}"));
        }
        true
    }

    fn number(&mut self, schema: &Map<String, Value>, number: &Number, at: At<'_>) -> bool {
        let Some(given) = number.as_f64() else {
            return true;
        };
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let is_set = |key: &str| schema.get(key) == Some(&Value::Bool(true));
        if let Some(least) = bound("minimum") {
            // Before draft 6, `exclusiveMinimum` said how `minimum` is meant.
            let strict = is_set("exclusiveMinimum");
            if given < least || (strict && given <= least) {
                let how = if strict { "more than" } else { "at least" };
                return self.misfit(at, || format!("must be {how} {least}"));
            }
        }
        if let Some(most) = bound("maximum") {
            let strict = is_set("exclusiveMaximum");
            if given > most || (strict && given >= most) {
                let how = if strict { "less than" } else { "at most" };
                return self.misfit(at, || format!("must be {how} {most}"));
            }
        }
        if let Some(least) = bound("exclusiveMinimum").filter(|least| given <= *least) {
            return self.misfit(at, || format!("must be more than {least}"));
        }
        if let Some(most) = bound("exclusiveMaximum").filter(|most| given >= *most) {
            return self.misfit(at, || format!("must be less than {most}"));
        }
        match bound("multipleOf") {
            Some(step) if step > 0.0 && !is_multiple(given, step) => {
                self.misfit(at, || format!("must be a multiple of {step}"))
            }
            Some(_) | None => true,
        }
    }

    fn array(
        &mut self,
        schema: &Map<String, Value>,
        items: &[Value],
        at: At<'_>,
        depth: usize,
    ) -> bool {
        let (least, most) = (count(schema, "minItems"), count(schema, "maxItems"));
        let mut fits = self.within(items.len(), least, most, "items", at);
        let listed = schema.get("items").and_then(Value::as_array);
        let first = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .or(listed);
        let rest = if listed.is_some() {
            schema.get("additionalItems")
        } else {
            schema.get("items")
        };
        for (index, item) in items.iter().enumerate() {
            let own = first.and_then(|first| first.get(index));
            if let Some(schema) = own.or(rest) {
                fits &= self.value(schema, item, at.index(index), depth + 1);
            }
            if self.exhausted {
                return true;
            }
        }
        if let Some(wanted) = schema.get("contains")
            && count(schema, "minContains") != Some(0)
        {
            self.silent += 1;
            let found = items
                .iter()
                .any(|item| self.value(wanted, item, at, depth + 1));
            self.silent -= 1;
            if !found {
                fits &= self.misfit(at, || "lacks an item of the kind it must have".to_owned());
            }
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) && items.len() <= MOST_COMPARED {
            let mut rest = items;
            while let [first, others @ ..] = rest {
                if others.iter().any(|other| self.same(first, other)) {
                    return self.misfit(at, || "must not hold an item twice".to_owned());
                }
                rest = others;
            }
        }
        fits
    }

    fn object(
        &mut self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        at: At<'_>,
        depth: usize,
    ) -> bool {
        let mut fits = self.required(schema, members, at);
        let (least, most) = (
            count(schema, "minProperties"),
            count(schema, "maxProperties"),
        );
        fits &= self.within(members.len(), least, most, "members", at);
        let properties = schema.get("properties").and_then(Value::as_object);
        let by_pattern = schema.get("patternProperties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let required: Option<BTreeSet<&str>> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect());
        for (name, member) in members {
            if self.exhausted {
                return true;
            }
            let here = at.key(name);
            let mut is_known = false;
            if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
                is_known = true;
                // Models write null for what they leave out.
                if !member.is_null()
                    || required
                        .as_ref()
                        .is_some_and(|names| names.contains(name.as_str()))
                {
                    fits &= self.value(schema, member, here, depth + 1);
                }
            }
            for (pattern, schema) in by_pattern.into_iter().flatten() {
                match self.patterns.get(pattern) {
                    Some(Some(_)) if self.matches(pattern, name) => {
                        is_known = true;
                        fits &= self.value(schema, member, here, depth + 1);
                    }
                    Some(Some(_)) => {}
                    // Nobody can tell whom it means.
                    Some(None) | None => is_known = true,
                }
            }
            match others {
                Some(Value::Bool(false)) if !is_known => {
                    fits &= self.misfit(here, || unknown(properties));
                }
                Some(schema) if !is_known => {
                    fits &= self.value(schema, member, here, depth + 1);
                }
                Some(_) | None => {}
            }
            if let Some(names) = schema.get("propertyNames") {
                let name = Value::String(name.clone());
                fits &= self.value(names, &name, here, depth + 1);
            }
        }
        fits
    }

    fn required(
        &mut self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        at: At<'_>,
    ) -> bool {
        let always = schema.get("required").into_iter();
        let dependent = schema.get("dependentRequired").and_then(Value::as_object);
        let dependent = dependent.into_iter().flatten();
        let because = dependent.filter(|(name, _)| members.contains_key(*name));
        let lists = always.chain(because.map(|(_, list)| list));
        let names = lists.filter_map(Value::as_array).flatten();
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fits = true;
        for name in names.filter_map(Value::as_str) {
            if !self.burn(1) {
                return true;
            }
            // What has a default may be left out, although schemas made from types require it.
            let has_default = properties
                .and_then(|properties| properties.get(name))
                .is_some_and(|property| property.get("default").is_some());
            if !members.contains_key(name) && !has_default {
                fits = self.misfit(at.key(name), || "is required and missing".to_owned());
            }
        }
        fits
    }

    /// The keywords that combine schemas.
    fn combined(
        &mut self,
        schema: &Map<String, Value>,
        given: &Given<'_>,
        at: At<'_>,
        depth: usize,
    ) -> bool {
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        let mut fits = true;
        for one in list("allOf").into_iter().flatten() {
            fits &= self.given(one, given, at, depth + 1);
        }
        for key in ["anyOf", "oneOf"] {
            let Some(alternatives) = list(key) else {
                continue;
            };
            if !self.any(alternatives, given, at, depth) {
                fits = self.misfit(at, || fits_none(alternatives, given));
            }
        }
        if let Some(unwanted) = schema.get("not")
            && self.quietly(unwanted, given, at, depth)
            && !self.exhausted
        {
            fits = self.misfit(at, || "is of a kind that is not allowed".to_owned());
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.quietly(condition, given, at, depth) {
                schema.get("then")
            } else {
                schema.get("else")
            };
            if let Some(branch) = branch {
                fits &= self.given(branch, given, at, depth + 1);
            }
        }
        if let (Some(dependent), Given::Object(members)) = (
            schema.get("dependentSchemas").and_then(Value::as_object),
            given.members(),
        ) {
            for (_, one) in dependent
                .iter()
                .filter(|(name, _)| members.contains_key(*name))
            {
                fits &= self.given(one, given, at, depth + 1);
            }
        }
        fits
    }

    fn any(&mut self, alternatives: &[Value], given: &Given<'_>, at: At<'_>, depth: usize) -> bool {
        alternatives
            .iter()
            .any(|alternative| self.quietly(alternative, given, at, depth))
    }

    fn quietly(&mut self, schema: &Value, given: &Given<'_>, at: At<'_>, depth: usize) -> bool {
        self.silent += 1;
        let fits = self.given(schema, given, at, depth + 1);
        self.silent -= 1;
        fits
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

fn fits_none(alternatives: &[Value], given: &Given<'_>) -> String {
    let words: Vec<&str> = alternatives
        .iter()
        .filter_map(Value::as_object)
        .flat_map(types)
        .collect();
    let got = given.kind();
    let of_type = words.contains(&got) || (got == "number" && words.contains(&"integer"));
    if words.is_empty() || of_type {
        return format!("fits none of {} alternatives", alternatives.len());
    }
    format!("expected {}, got {got}", words.join(" or "))
}

fn unknown(properties: Option<&Map<String, Value>>) -> String {
    match properties.filter(|properties| !properties.is_empty()) {
        Some(properties) => {
            let names: Vec<_> = properties.keys().cloned().collect();
            format!("is not known; known are {}", listed(names.into_iter()))
        }
        None => "is not known; there are none".to_owned(),
    }
}

fn count(schema: &Map<String, Value>, key: &str) -> Option<usize> {
    let limit = schema.get(key).and_then(Value::as_u64)?;
    usize::try_from(limit).ok()
}

fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Floating point divides with small faults, which are forgiven.
fn is_multiple(given: f64, step: f64) -> bool {
    let times = given / step;
    !times.is_finite() || (times - times.round()).abs() < 1e-9 * times.abs().max(1.0)
}
