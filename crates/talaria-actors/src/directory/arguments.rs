//! Whether a call's arguments fit the tool's input schema, told before anything is sent. Pure.
//!
//! The schema is a server's word, so it is read with care: what is odd about it makes the check
//! milder, never the call impossible. Nothing outside the schema is looked at, nesting and work
//! are bounded, and patterns are matched in linear time.

use serde_json::{Map, Value};

mod survey;
mod walk;
mod words;

pub(crate) use survey::Unusable;

use survey::Patterns;
use walk::Walk;

/// Misfits that are told.
const TOLD: usize = 5;

/// What is known of one tool's input schema.
#[derive(Debug)]
pub(crate) struct ArgumentCheck {
    patterns: Patterns,
    /// `$ref` stands alone, as before draft 2019-09.
    reference_alone: bool,
}

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The arguments fit, as far as anybody can tell.
    Fits,
    /// They do not; the sentence says where and what is expected.
    Refused(String),
    /// Finding out would take too long.
    TooCostly,
}

impl ArgumentCheck {
    /// Reads a schema once.
    ///
    /// # Errors
    /// It cannot be enforced.
    pub(crate) fn of(schema: &Value) -> Result<Self, Unusable> {
        let patterns = survey::survey(schema)?;
        let dialect = schema.get("$schema").and_then(Value::as_str);
        let is_old = |dialect: &str| {
            ["draft-03", "draft-04", "draft-06", "draft-07"]
                .iter()
                .any(|draft| dialect.contains(draft))
        };
        Ok(Self {
            patterns,
            reference_alone: dialect.is_some_and(is_old),
        })
    }

    /// Looks whether arguments fit the schema that [`Self::of`] read.
    pub(crate) fn check(&self, schema: &Value, arguments: &Map<String, Value>) -> Verdict {
        let mut walk = Walk::new(schema, &self.patterns, self.reference_alone);
        let misfits = walk.arguments(arguments);
        if walk.is_exhausted() {
            return Verdict::TooCostly;
        }
        if misfits.is_empty() {
            return Verdict::Fits;
        }
        let told: Vec<_> = misfits
            .iter()
            .take(TOLD)
            .map(|misfit| format!("{}: {}", misfit.pointer, misfit.expected))
            .collect();
        let more = misfits.len().saturating_sub(told.len());
        let rest = if more == 0 {
            String::new()
        } else {
            format!("; and {more} more")
        };
        Verdict::Refused(format!("{}{rest}", told.join("; ")))
    }
}

#[cfg(test)]
mod tests;
