//! Configured secrets in what leaves: nobody needs them back, and a model that has read one may
//! tell it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::names::is_invisible;
use crate::redact::REDACTED;
use crate::sanitise::{map_strings, strip_tags, strip_terminal};

/// What an address leaves as it is.
const IN_ADDRESSES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Shortest piece of base64 that is looked for: a shorter one stands in other texts, too.
const MIN_BASE64_CHARACTERS: usize = 8;

/// Finds configured secrets, as they are and as they stand in addresses, in JSON and in base64.
/// Cheap to clone; never prints one.
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

    /// Whether a secret stands in the text.
    #[must_use]
    pub fn finds(&self, text: &str) -> bool {
        matches!(self.mask(text), Cow::Owned(_))
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
        let bare = Bare::of(&visible);
        let mut masked = String::new();
        let mut copied = 0;
        for found in automaton.find_iter(bare.text.as_ref()) {
            masked.push_str(
                visible
                    .get(copied..bare.at(found.start()))
                    .unwrap_or_default(),
            );
            masked.push_str(REDACTED);
            copied = bare.at(found.end());
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        masked.push_str(visible.get(copied..).unwrap_or_default());
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

/// A text without the characters that nobody sees, and where each stretch of it comes from.
struct Bare<'t> {
    text: Cow<'t, str>,
    /// For each unseen character, in order: where it stood in `text`, and where what follows it
    /// begins in the original.
    gaps: Vec<(usize, usize)>,
}

impl<'t> Bare<'t> {
    fn of(visible: &'t str) -> Self {
        let mut gaps = Vec::new();
        if visible.is_ascii() || !visible.contains(is_invisible) {
            return Self {
                text: Cow::Borrowed(visible),
                gaps,
            };
        }
        let mut text = String::with_capacity(visible.len());
        for (at, character) in visible.char_indices() {
            if is_invisible(character) {
                gaps.push((text.len(), at + character.len_utf8()));
            } else {
                text.push(character);
            }
        }
        Self {
            text: Cow::Owned(text),
            gaps,
        }
    }

    /// Where a place in `text` is in the original.
    fn at(&self, place: usize) -> usize {
        let before = self.gaps.partition_point(|(at, _)| *at <= place);
        match before.checked_sub(1).and_then(|last| self.gaps.get(last)) {
            Some((at, original)) => original + (place - at),
            None => place,
        }
    }
}

/// A secret as it may stand in a text: as it is, percent-encoded, in JSON, in base64.
fn forms(secret: &str) -> Vec<String> {
    let in_address = utf8_percent_encode(secret, IN_ADDRESSES).to_string();
    let in_json = Value::from(secret).to_string();
    let in_json = in_json.trim_matches('"').to_owned();
    let mut forms = vec![
        secret.to_owned(),
        in_small_letters(&in_address),
        in_address,
        in_json,
    ];
    for offset in 0..3 {
        let (plain, in_names) = (STANDARD_NO_PAD, URL_SAFE_NO_PAD);
        forms.extend(
            [&plain, &in_names]
                .into_iter()
                .filter_map(|alphabet| in_base64(alphabet, secret, offset)),
        );
    }
    forms
}

/// The percent-encoding with small letters, which some write.
fn in_small_letters(encoded: &str) -> String {
    let mut digits = 0;
    let mut small = String::with_capacity(encoded.len());
    for letter in encoded.chars() {
        if digits > 0 {
            digits -= 1;
            small.push(letter.to_ascii_lowercase());
        } else {
            digits = if letter == '%' { 2 } else { 0 };
            small.push(letter);
        }
    }
    small
}

/// What of the base64 of a longer text is the same whatever stands around the secret, which
/// begins `offset` bytes into a group of three.
fn in_base64(alphabet: &GeneralPurpose, secret: &str, offset: usize) -> Option<String> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret.as_bytes());
    let encoded = alphabet.encode(&padded);
    let (start, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
    let stable = encoded.get(start..end)?;
    (stable.len() >= MIN_BASE64_CHARACTERS).then(|| stable.to_owned())
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
            ("https://h/?k=p%40ss%2fword", "https://h/?k=[REDACTED]"),
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
        for apart in [
            "x hunter2\u{200b}hun\u{ad}ter2 y",
            "x \u{2060}hunter2hunter2\u{200b} y",
        ] {
            let masked = masker().mask(apart).into_owned();
            assert_eq!(
                super::super::sanitise::visible_line(&masked),
                "x [REDACTED] y",
                "{apart:?}"
            );
        }
        let clean = "x hun\u{e0041}ter y";
        assert_eq!(masker().mask(clean), clean, "others are somebody else's");
    }

    #[test]
    fn a_secret_in_base64_is_found_wherever_it_begins() {
        let alphabets = [base64::engine::general_purpose::STANDARD, URL_SAFE_NO_PAD];
        for (alphabet, before) in alphabets
            .iter()
            .flat_map(|alphabet| ["", "u:", "me:", "user:"].map(|before| (alphabet, before)))
        {
            for (secret, after) in [("hunter2hunter2", ""), ("p@ss/word?~", ":tail")] {
                let masker = Masker::new([secret]);
                let told = alphabet.encode(format!("{before}{secret}{after}"));
                let masked = masker.mask(&told).into_owned();
                assert!(masked.contains(REDACTED), "{told}");
                let left = masked.replace(REDACTED, "");
                assert!(
                    left.len() <= before.len() * 4 / 3 + after.len() * 4 / 3 + 8,
                    "{masked}"
                );
            }
        }
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
