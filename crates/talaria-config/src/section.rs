//! Reads typed values out of one map, filling in variables and collecting what is wrong.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::defaults::MAX_COUNT;
use crate::interpolate::Variables;
use crate::problem::Findings;
use crate::schema::Kind;
use crate::secrets::is_secret_name;
use crate::units::{parse_duration, parse_seconds, parse_size};

/// One map of the tree and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Section<'a> {
    at: String,
    map: Option<&'a Map<String, Value>>,
    variables: Variables<'a>,
}

impl<'a> Section<'a> {
    /// The map at a path; anything else reads as empty (the audit has said so).
    pub(crate) fn new(at: String, value: Option<&'a Value>, variables: Variables<'a>) -> Self {
        Self {
            at,
            map: value.and_then(Value::as_object),
            variables,
        }
    }

    /// The whole file.
    pub(crate) const fn whole(root: &'a Map<String, Value>, variables: Variables<'a>) -> Self {
        Self {
            at: String::new(),
            map: Some(root),
            variables,
        }
    }

    /// Whether a map stands here.
    pub(crate) const fn is_map(&self) -> bool {
        self.map.is_some()
    }

    /// The section below this one.
    pub(crate) fn child(&self, key: &str) -> Self {
        Self::new(self.path(key), self.get(key), self.variables)
    }

    /// The full path of a key.
    pub(crate) fn path(&self, key: &str) -> String {
        if self.at.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.at)
        }
    }

    /// The variables that fill in its texts.
    pub(crate) const fn variables(&self) -> Variables<'a> {
        self.variables
    }

    /// The value, unless it is absent or null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map?.get(key).filter(|value| !value.is_null())
    }

    /// The keys, in the order of the file.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        self.map.into_iter().flat_map(Map::keys)
    }

    /// Where it stands.
    pub(crate) fn at(&self) -> &str {
        &self.at
    }

    pub(crate) fn boolean(&self, findings: &mut Findings, key: &str) -> Option<bool> {
        let text = self.scalar(findings, key, Kind::Bool)?;
        let read = boolean_word(&text);
        if read.is_none() {
            findings.error(&self.path(key), wants(Kind::Bool, self.needs_units()));
        }
        read
    }

    pub(crate) fn duration(&self, findings: &mut Findings, key: &str) -> Option<Duration> {
        let text = self.scalar(findings, key, Kind::Duration)?;
        let read = read_duration(&text, self.needs_units());
        if read.is_none() {
            findings.error(&self.path(key), wants(Kind::Duration, self.needs_units()));
        }
        read
    }

    /// A duration that must not be zero.
    pub(crate) fn positive_duration(&self, findings: &mut Findings, key: &str) -> Option<Duration> {
        let duration = self.duration(findings, key)?;
        if duration.is_zero() {
            findings.error(&self.path(key), "must be more than zero");
            return None;
        }
        Some(duration)
    }

    /// A size between two bounds.
    pub(crate) fn size(
        &self,
        findings: &mut Findings,
        key: &str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let text = self.scalar(findings, key, Kind::Size)?;
        let Some(size) = read_size(&text, self.needs_units()) else {
            findings.error(&self.path(key), wants(Kind::Size, self.needs_units()));
            return None;
        };
        if !bounds.contains(&size) {
            let message = format!("must be {} to {} bytes", bounds.start(), bounds.end());
            findings.error(&self.path(key), message);
            return None;
        }
        Some(size)
    }

    /// A whole number from 1.
    pub(crate) fn count(&self, findings: &mut Findings, key: &str) -> Option<NonZeroUsize> {
        let text = self.scalar(findings, key, Kind::Count)?;
        let read = text
            .parse::<usize>()
            .ok()
            .filter(|count| *count <= MAX_COUNT);
        let read = read.and_then(NonZeroUsize::new);
        if read.is_none() {
            findings.error(
                &self.path(key),
                format!("must be a whole number, 1 to {MAX_COUNT}"),
            );
        }
        read
    }

    /// Text, variables filled in; numbers and booleans count as their text.
    pub(crate) fn text(&self, findings: &mut Findings, key: &str, kind: Kind) -> Option<String> {
        self.scalar(findings, key, kind)
    }

    /// Text without blanks around it, none where nothing is left or it is no text: what a key
    /// that Hermes reads too may hold.
    pub(crate) fn word(&self, findings: &mut Findings, key: &str) -> Option<String> {
        self.word_of(findings, key, Kind::Any)
    }

    /// The same of another kind, which decides what an unset variable means.
    pub(crate) fn word_of(&self, findings: &mut Findings, key: &str, kind: Kind) -> Option<String> {
        let value = self.get(key)?;
        scalar_text(value)?;
        let text = fill(findings, self.variables, &self.path(key), value, kind)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// One of a few words, blanks and case aside.
    pub(crate) fn one_of<T: Copy>(
        &self,
        findings: &mut Findings,
        key: &str,
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let text = self.text(findings, key, Kind::Text)?;
        let found = all
            .iter()
            .copied()
            .find(|value| text.trim().eq_ignore_ascii_case(name(*value)));
        if found.is_none() {
            let known: Vec<String> = all.iter().map(|it| format!("`{}`", name(*it))).collect();
            let message = format!("must be {}", known.join(" or "));
            findings.error(&self.path(key), message);
        }
        found
    }

    /// A truth value as the look-up of models reads it: words and 0 or 1; anything else is no
    /// opinion (specification 2.3).
    pub(crate) fn opinion(&self, findings: &mut Findings, key: &str) -> Option<bool> {
        let text = self.word(findings, key)?;
        let opinion = boolean_word(&text);
        if opinion.is_none() {
            findings.warn(&self.path(key), "is not true or false and is ignored");
        }
        opinion
    }

    /// A list of texts; a single text is a list of one.
    pub(crate) fn text_list(&self, findings: &mut Findings, key: &str) -> Option<Vec<String>> {
        let path = self.path(key);
        let value = self.get(key)?;
        let Some(items) = value.as_array() else {
            let text = fill(findings, self.variables, &path, value, Kind::TextList)?;
            return Some(vec![text]);
        };
        let texts = items.iter().enumerate().filter_map(|(index, item)| {
            fill(
                findings,
                self.variables,
                &format!("{path}[{index}]"),
                item,
                Kind::TextList,
            )
        });
        Some(texts.collect())
    }

    /// A map of texts.
    pub(crate) fn text_map(&self, findings: &mut Findings, key: &str) -> Vec<(String, String)> {
        let path = self.path(key);
        match self.get(key) {
            None => Vec::new(),
            Some(Value::Object(map)) => map
                .iter()
                .filter_map(|(name, value)| {
                    let path = format!("{path}.{name}");
                    let text = fill(findings, self.variables, &path, value, Kind::SecretMap)?;
                    Some((name.clone(), text))
                })
                .collect(),
            Some(_) => {
                findings.error(&path, "must be a map of names and texts");
                Vec::new()
            }
        }
    }

    fn scalar(&self, findings: &mut Findings, key: &str, kind: Kind) -> Option<String> {
        fill(
            findings,
            self.variables,
            &self.path(key),
            self.get(key)?,
            kind,
        )
    }

    fn needs_units(&self) -> bool {
        needs_units(&self.at)
    }
}

/// The text of a scalar with its variables filled in.
///
/// An unset variable is an error where the kind says so, else a warning.
pub(crate) fn fill(
    findings: &mut Findings,
    variables: Variables<'_>,
    path: &str,
    value: &Value,
    kind: Kind,
) -> Option<String> {
    let Some(raw) = scalar_text(value) else {
        findings.error(path, wants(kind, needs_units(path)));
        return None;
    };
    let filled = variables.fill(&raw);
    let fails = match kind {
        Kind::Secret | Kind::Url | Kind::Command | Kind::Args | Kind::SecretMap => true,
        Kind::Bool
        | Kind::Word(_)
        | Kind::Duration
        | Kind::Size
        | Kind::Count
        | Kind::Number
        | Kind::Text
        | Kind::TextList
        | Kind::Any => false,
    };
    for name in &filled.used {
        let Some(value) = variables.environment.get(name) else {
            continue;
        };
        if value.trim() != value {
            let message = format!("the variable `{name}` begins or ends with blanks");
            findings.warn("", message);
        }
        if fails {
            findings.secrets.remember(name, value);
        }
        if is_secret_name(name) {
            findings.named_secrets.keep(value);
        }
    }
    for name in &filled.unset {
        let message = format!("the variable `{name}` is not set");
        if fails {
            findings.error(path, message);
        } else {
            findings.warn(path, format!("{message}; the text stays as it is"));
        }
    }
    if fails && !filled.unset.is_empty() {
        None
    } else {
        Some(filled.text)
    }
}

/// The text of a scalar; none for maps, lists and null.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `true` or `false` as people write them.
pub(crate) fn boolean_word(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

pub(crate) fn read_duration(text: &str, needs_units: bool) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse::<f64>() {
        return if needs_units {
            None
        } else {
            parse_seconds(seconds)
        };
    }
    parse_duration(text)
}

pub(crate) fn read_size(text: &str, needs_units: bool) -> Option<u64> {
    if let Ok(bytes) = text.trim().parse::<u64>() {
        return if needs_units { None } else { Some(bytes) };
    }
    parse_size(text)
}

/// Whether bare numbers are refused at a path: in our own section they are.
pub(crate) fn needs_units(at: &str) -> bool {
    at == "talaria" || at.starts_with("talaria.")
}

/// What a value of the wrong kind is told.
pub(crate) fn wants(kind: Kind, needs_units: bool) -> String {
    match kind {
        Kind::Bool => "must be true or false".to_owned(),
        Kind::Word(_) => format!("must be {}", kind.describe()),
        Kind::Duration | Kind::Size => wants_unit(kind, needs_units),
        Kind::Count => "must be a whole number".to_owned(),
        Kind::Number => "must be a number".to_owned(),
        Kind::Text | Kind::Secret | Kind::Url | Kind::Command | Kind::Any => {
            "must be a text".to_owned()
        }
        Kind::Args => "must be a list of texts, or a line as for a shell".to_owned(),
        Kind::TextList => "must be a list of texts".to_owned(),
        Kind::SecretMap => "must be a text".to_owned(),
    }
}

fn wants_unit(kind: Kind, needs_units: bool) -> String {
    let (what, unit) = if kind == Kind::Size {
        ("a size with its unit, such as `64KiB` or `10GiB`", "bytes")
    } else {
        (
            "a duration with its unit, such as `180s`, `10m` or `24h`",
            "seconds",
        )
    };
    if needs_units {
        format!("must be {what}")
    } else {
        format!("must be a number of {unit}, or {what}")
    }
}
