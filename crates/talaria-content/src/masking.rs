//! Configured secrets in what leaves: nobody needs them back, and a model that has read one may
//! tell it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::redact::REDACTED;
use crate::sanitise::{map_strings, strip_tags, strip_terminal};

/// What an address leaves as it is.
const IN_ADDRESSES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Finds configured secrets, as they are and as they stand in addresses and in JSON. Cheap to
/// clone; never prints one.
#[derive(Clone, Default)]
pub struct Masker(Option<Arc<AhoCorasick>>);

impl Masker {
    /// A masker for these secrets; without one it does nothing.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let forms: BTreeSet<String> = secrets
            .into_iter()
            .filter(|secret| !secret.is_empty())
            .flat_map(forms)
            .collect();
        if forms.is_empty() {
            return Self::default();
        }
        // It fails only where the secrets have billions of characters.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms);
        Self(automaton.ok().map(Arc::new))
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The text with every secret replaced. One that is pulled apart by characters nobody sees
    /// is found too.
    #[must_use]
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(automaton) = &self.0 else {
            return Cow::Borrowed(text);
        };
        let tagless = strip_tags(text);
        let visible = strip_terminal(&tagless);
        if !automaton.is_match(visible.as_ref()) {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(visible.len());
        automaton.replace_all_with(&visible, &mut masked, |_, _, out| {
            out.push_str(REDACTED);
            true
        });
        Cow::Owned(masked)
    }

    /// Masks a text in place.
    pub fn mask_text(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.mask(text) {
            *text = masked;
        }
    }

    /// Masks every string and every key of a value.
    pub fn mask_value(&self, value: &mut Value) {
        if !self.is_empty() {
            map_strings(value, &|text| self.mask(text));
        }
    }

    /// Masks every string of a value; its keys keep the paths that lead to them.
    pub(crate) fn mask_strings(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.mask_text(text),
            Value::Array(items) => {
                for item in items {
                    self.mask_strings(item);
                }
            }
            Value::Object(members) => {
                for member in members.values_mut() {
                    self.mask_strings(member);
                }
            }
        }
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() {
            "Masker(nothing)"
        } else {
            "Masker(hidden)"
        })
    }
}

/// A secret as it may stand in a text.
fn forms(secret: &str) -> Vec<String> {
    let in_address = utf8_percent_encode(secret, IN_ADDRESSES).to_string();
    let in_json = Value::from(secret).to_string();
    let in_json = in_json.trim_matches('"').to_owned();
    vec![secret.to_owned(), in_address, in_json]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masker() -> Masker {
        Masker::new([
            "hunter2hunter2",
            "hunter2hunter2-longer",
            "p@ss/word",
            "two\nlines",
        ])
    }

    #[test]
    fn s02_secrets_are_replaced_wherever_they_stand() {
        for (text, expected) in [
            ("nothing here", "nothing here"),
            ("a hunter2hunter2 b", "a [REDACTED] b"),
            ("hunter2hunter2-longer!", "[REDACTED]!"),
            ("hunter2hunter2hunter2hunter2", "[REDACTED][REDACTED]"),
            (
                "https://h/?k=p%40ss%2Fword&x=1",
                "https://h/?k=[REDACTED]&x=1",
            ),
            (r#"{"k":"two\nlines"}"#, r#"{"k":"[REDACTED]"}"#),
            ("two\nlines", "[REDACTED]"),
            ("hunter2", "hunter2"),
        ] {
            assert_eq!(masker().mask(text), expected, "{text}");
        }
    }

    #[test]
    fn a_secret_pulled_apart_by_hidden_characters_is_found() {
        let apart = "x hunter2\u{e0041}hun\u{1b}[31mter2 y";
        assert_eq!(masker().mask(apart), "x [REDACTED] y");
        let clean = "x hun\u{e0041}ter y";
        assert_eq!(masker().mask(clean), clean, "others are somebody else's");
    }

    #[test]
    fn values_lose_secrets_in_strings_and_keys() {
        let mut value = json!({ "hunter2hunter2": ["p@ss/word", 1, { "a": "two\nlines" }] });
        let mut strings = value.clone();
        masker().mask_value(&mut value);
        assert_eq!(
            value,
            json!({ "[REDACTED]": ["[REDACTED]", 1, { "a": "[REDACTED]" }] })
        );
        masker().mask_strings(&mut strings);
        assert!(strings.get("hunter2hunter2").is_some());
    }

    #[test]
    fn without_secrets_nothing_is_done() {
        let masker = Masker::new([""]);
        assert!(masker.is_empty());
        assert!(matches!(masker.mask("a\u{e0041}"), Cow::Borrowed(_)));
        assert_eq!(
            format!("{masker:?} {:?}", self::masker()),
            "Masker(nothing) Masker(hidden)"
        );
    }
}
