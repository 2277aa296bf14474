//! The keywords that combine schemas.

use serde_json::{Map, Value};

use super::super::words::At;
use super::{Given, Walk, types};

impl Walk<'_> {
    /// The keywords that combine schemas.
    pub(super) fn combined(
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
