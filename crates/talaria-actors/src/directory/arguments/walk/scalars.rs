//! Texts and numbers against the keywords that bound them.

use serde_json::{Map, Number, Value};

use super::super::words::{At, short};
use super::{Walk, count};

/// Bytes of text that cost one step.
const BYTES_PER_STEP: usize = 256;
/// Bytes of a text that is matched against a pattern.
const LONGEST_MATCHED: usize = 16 * 1024;

impl Walk<'_> {
    pub(super) fn text(&mut self, schema: &Map<String, Value>, text: &str, at: At<'_>) -> bool {
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
    pub(super) fn matches(&mut self, pattern: &str, text: &str) -> bool {
        let Some(Some(regex)) = self.patterns.get(pattern) else {
            return true;
        };
        if text.len() > LONGEST_MATCHED || !self.burn(1 + text.len() / 16) {
            return true;
        }
        regex.is_match(text)
    }

    pub(super) fn within(
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

    pub(super) fn number(
        &mut self,
        schema: &Map<String, Value>,
        number: &Number,
        at: At<'_>,
    ) -> bool {
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
}

/// Floating point divides with small faults, which are forgiven.
fn is_multiple(given: f64, step: f64) -> bool {
    let times = given / step;
    !times.is_finite() || (times - times.round()).abs() < 1e-9 * times.abs().max(1.0)
}
