//! Finds the error in an answer, under any status.

use std::time::Duration;

use serde_json::{Map, Value};

use super::wait;

/// Longest code of a provider that is shown.
const MAX_CODE_CHARS: usize = 64;
/// Most names of keys in an outline.
const MAX_OUTLINE_KEYS: usize = 12;

/// An error as a provider tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Complaint {
    /// In words.
    pub(super) message: String,
    /// Typed codes, the most telling first.
    pub(super) tokens: Vec<String>,
    /// A code that is a number.
    pub(super) number: Option<i64>,
    /// Whose numbers these are.
    pub(super) numbers: Numbers,
    /// The parameter that it is about.
    pub(super) param: String,
    /// How long to wait.
    pub(super) wait: Option<Duration>,
}

/// Whose numbers the codes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::describe) enum Numbers {
    /// Those of HTTP, or unknown ones.
    #[default]
    Any,
    /// Those of `MiniMax`' `base_resp`.
    MiniMax,
    /// Those of z.ai, which stand in `error.code`.
    Zai,
}

impl Complaint {
    /// Says whose numbers these are, unless the answer itself shows it.
    pub(super) fn numbered_by(mut self, numbers: Numbers) -> Self {
        if self.numbers == Numbers::Any {
            self.numbers = numbers;
        }
        self
    }

    /// The code to show: what stands for it, made of harmless characters.
    pub(super) fn code(&self) -> Option<String> {
        let number = self.number.map(|number| number.to_string());
        let code = self.tokens.first().cloned().or(number)?;
        let is_plain = code.len() <= MAX_CODE_CHARS
            && code
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        is_plain.then_some(code)
    }

    /// Whether it is the temperature that is refused, which some models do not take.
    pub(super) fn is_about_temperature(&self) -> bool {
        self.param == "temperature" || self.message.to_ascii_lowercase().contains("temperature")
    }

    fn add(&mut self, value: Option<&Value>) {
        match value {
            Some(Value::String(text)) => match text.parse::<i64>() {
                Ok(number) => self.number = self.number.or(Some(number)),
                Err(_) if text.is_empty() => {}
                Err(_) => self.tokens.push(text.clone()),
            },
            Some(Value::Number(number)) => self.number = self.number.or_else(|| number.as_i64()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {}
        }
    }
}

/// An error that there is no doubt about, whatever else the answer holds.
pub(super) fn strong(value: &Value) -> Option<Complaint> {
    let root = value.as_object()?;
    if let Some(error) = root.get("error").filter(|error| is_something(error)) {
        return Some(read(error, root));
    }
    if let Some(error) = first(root, "errors") {
        return Some(read(error, root));
    }
    if let Some(complaint) = minimax(root) {
        return Some(complaint);
    }
    if is_false(root.get("success")) || is_kind(root, "type", &["error"]) {
        return Some(read_root(root));
    }
    if is_kind(root, "status", &["failed", "error"]) {
        return Some(read_root(root));
    }
    let choice = first(root, "choices").and_then(Value::as_object);
    if let Some(choice) = choice
        && let Some(error) = choice.get("error").filter(|error| is_something(error))
    {
        return Some(read(error, root));
    }
    coded(root)
}

/// An error that is all of an answer that is to be a text. Nothing but the plainest signs: whoever
/// asked may have wanted an object.
pub(super) fn of_text(value: &Value) -> Option<Complaint> {
    let root = value.as_object()?;
    if let Some(error) = root.get("error").filter(|error| is_something(error)) {
        return Some(read(error, root));
    }
    let is_failure = is_false(root.get("success")) || is_false(root.get("ok"));
    minimax(root).or_else(|| is_failure.then(|| read_root(root)))
}

/// What may be an error, where there is no answer.
pub(super) fn weak(value: &Value) -> Option<Complaint> {
    match value {
        Value::Object(root) => Some(read_root(root)).filter(|it| *it != Complaint::default()),
        Value::String(text) => Some(Complaint {
            message: text.clone(),
            ..Complaint::default()
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

/// What there is instead of an answer: names of keys, never values.
pub(super) fn outline(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "an empty object".to_owned(),
        Value::Object(map) => {
            let names: Vec<&str> = map
                .keys()
                .take(MAX_OUTLINE_KEYS)
                .map(String::as_str)
                .collect();
            super::one_line(&format!("an object with {}", names.join(", ")))
        }
        Value::Array(_) => "a list".to_owned(),
        Value::String(_) => "a text".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => "a bare value".to_owned(),
    }
}

/// `MiniMax`: the status is always 200, the truth stands in `base_resp`.
fn minimax(root: &Map<String, Value>) -> Option<Complaint> {
    let inner = root.get("base_resp")?.as_object()?;
    let number = match inner.get("status_code")? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    (number != Some(0)).then(|| Complaint {
        message: text(inner, &["status_msg"]).to_owned(),
        number,
        numbers: Numbers::MiniMax,
        ..Complaint::default()
    })
}

/// A code at the root that is no success, next to nothing that a model's API would answer.
fn coded(root: &Map<String, Value>) -> Option<Complaint> {
    let number = match root.get("code")? {
        Value::Number(number) => number.as_i64()?,
        Value::String(text) => text.trim().parse().ok()?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let is_success = number == 0 || (200..300).contains(&number) || is_true(root.get("success"));
    let has_shape = ["choices", "candidates", "output"]
        .iter()
        .any(|key| root.get(*key).is_some_and(is_something));
    let is_status = (400..600).contains(&number);
    (!is_success && (is_status || !has_shape)).then(|| read_root(root))
}

/// An `error` in any of its forms.
fn read(error: &Value, root: &Map<String, Value>) -> Complaint {
    let mut complaint = Complaint::default();
    match error {
        Value::Object(map) => fill(&mut complaint, map),
        Value::String(text) => text.clone_into(&mut complaint.message),
        Value::Array(items) => {
            if let Some(Value::Object(map)) = items.first() {
                fill(&mut complaint, map);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => complaint.add(Some(error)),
    }
    if complaint.message.is_empty() {
        text(root, &["message", "msg", "detail"]).clone_into(&mut complaint.message);
    }
    for key in ["code", "status"] {
        complaint.add(root.get(key));
    }
    complaint
}

fn read_root(root: &Map<String, Value>) -> Complaint {
    let mut complaint = Complaint::default();
    let words = ["message", "msg", "detail", "error_description", "title"];
    text(root, &words).clone_into(&mut complaint.message);
    for key in ["code", "status_code", "error_code"] {
        complaint.add(root.get(key));
    }
    if complaint.message.is_empty()
        && let Some(Value::Object(detail)) = first(root, "detail")
    {
        text(detail, &["msg", "message"]).clone_into(&mut complaint.message);
    }
    complaint
}

fn fill(complaint: &mut Complaint, map: &Map<String, Value>) {
    text(map, &["message", "msg", "detail", "error"]).clone_into(&mut complaint.message);
    complaint.add(map.get("code"));
    let details = map.get("details").and_then(Value::as_array);
    for detail in details.into_iter().flatten().filter_map(Value::as_object) {
        complaint.add(detail.get("reason"));
        let delay = detail.get("retryDelay").and_then(Value::as_str);
        complaint.wait = complaint.wait.or_else(|| delay.and_then(wait::of_google));
    }
    for key in ["type", "status"] {
        complaint.add(map.get(key));
    }
    if let Some(inner @ Value::Object(_)) = map.get("error") {
        *complaint = read(inner, map);
        return;
    }
    text(map, &["param"]).clone_into(&mut complaint.param);
    // OpenRouter passes on what its upstream said.
    let raw = map.get("metadata").and_then(|it| it.get("raw"));
    if let Some(raw) = raw.and_then(Value::as_str) {
        complaint.message = format!("{}: {raw}", complaint.message);
    }
}

fn text<'a>(map: &'a Map<String, Value>, keys: &[&str]) -> &'a str {
    let mut found = keys.iter().filter_map(|key| map.get(*key)?.as_str());
    found
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default()
}

fn first<'a>(root: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    root.get(key)?.as_array()?.first()
}

fn is_kind(root: &Map<String, Value>, key: &str, words: &[&str]) -> bool {
    let word = root.get(key).and_then(Value::as_str);
    word.is_some_and(|word| words.contains(&word))
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        // Some gateways send the shape of an error with nothing in it.
        Value::Array(items) => items.iter().any(is_something),
        Value::Object(map) => map.values().any(is_something),
    }
}

fn is_false(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(value)) => !value,
        Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("false"),
        Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) | None => false,
    }
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(value)) => *value,
        Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
        Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) | None => false,
    }
}
