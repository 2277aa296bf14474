//! The answers of format `hermes`: keys, their order and the pure rule on size
//! (specification 1.8, 1.9 and 1.14, cases C37 to C45).

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::delivery::{Attachment, Delivery};
use crate::sanitise::strip_tags;
use crate::text_only::{split_notes, told_in_words};

use super::python_json;

/// Characters of a text or of structured content before it is cut.
const MAX_CHARACTERS: usize = 2_000_000;
/// Characters of an error.
const MAX_ERROR_CHARACTERS: usize = 2_048;
const ERROR_CUT: &str = "… [truncated]";
/// What is said about pictures of a delivery that came without its own words for it.
const PICTURES_FOLLOW: &str = "[MCP images: the images of this result are attached]";
/// The share of a cut text that its beginning gets, in tenths.
const HEAD_TENTHS: usize = 4;

/// An answer before it is written.
#[derive(Debug)]
pub(crate) enum Body {
    /// A failed result.
    Error(String),
    /// Any other.
    Value(Value),
}

impl Body {
    /// A result that is only a text.
    pub(crate) fn text(text: &str) -> Self {
        Self::Value(json!({ "result": text }))
    }

    /// The answer with notes inside its text, so that it stays one JSON value.
    pub(crate) fn with_notes(self, notes: &str) -> Self {
        match self {
            Self::Value(Value::Object(mut answer)) => {
                add_notes(&mut answer, notes);
                Self::Value(Value::Object(answer))
            }
            other @ (Self::Error(_) | Self::Value(_)) => other,
        }
    }
}

/// Appends to `result`, where that is a text; structured content in its place makes room.
pub(crate) fn add_notes(answer: &mut Map<String, Value>, notes: &str) {
    let result = answer.insert("result".to_owned(), Value::String(notes.to_owned()));
    match result {
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => {
            answer.insert("result".to_owned(), format!("{text}\n{notes}").into());
        }
        Some(structured) => {
            answer.insert("structuredContent".to_owned(), structured);
        }
        None => {}
    }
}

/// An answer that carries pixels: the JSON, what is said about the pictures, the pictures.
fn envelope(body: &str, notes: &str, attachments: &[Attachment]) -> String {
    let mut content = vec![
        json!({ "type": "text", "text": body }),
        json!({ "type": "text", "text": notes }),
    ];
    content.extend(attachments.iter().map(
        |attachment| json!({ "type": "image_url", "image_url": { "url": attachment.data_url() } }),
    ));
    python_json::to_string(&json!({
        "_multimodal": true,
        "content": content,
        "text_summary": body,
    }))
}

/// Puts text, structured content and `_meta` together.
pub(crate) fn result(
    text: String,
    has_usable_text: bool,
    structured: Option<Value>,
    meta: Option<Value>,
) -> Body {
    let text = match truncate(&text, MAX_CHARACTERS) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cut) => cut,
    };
    let structured = structured.and_then(|structured| capped(structured, has_usable_text));
    let mut answer = Map::new();
    let has_text = !text.is_empty();
    if has_text {
        answer.insert("result".to_owned(), Value::String(text));
    }
    if let Some(structured) = structured {
        let key = if has_text {
            "structuredContent"
        } else {
            "result"
        };
        answer.insert(key.to_owned(), structured);
    }
    if let Some(meta) = meta {
        answer.insert("_meta".to_owned(), meta);
    }
    if !answer.contains_key("result") {
        answer.insert("result".to_owned(), Value::String(String::new()));
    }
    Body::Value(Value::Object(answer))
}

/// Structured content of sane size; beyond it, a cut string that only stands in for a text.
fn capped(structured: Value, has_usable_text: bool) -> Option<Value> {
    let json = python_json::to_string(&structured);
    match truncate(&json, MAX_CHARACTERS) {
        Cow::Borrowed(_) => Some(structured),
        Cow::Owned(_) if has_usable_text => None,
        Cow::Owned(cut) => Some(Value::String(cut)),
    }
}

/// The messages of a prompt, with the text of each.
pub(crate) fn prompt(
    description: Option<&str>,
    roles: &[Option<String>],
    texts: &[String],
) -> Value {
    let messages: Vec<Value> = roles
        .iter()
        .zip(texts)
        .map(|(role, text)| match role {
            Some(role) => json!({ "role": role, "content": text }),
            None => json!({ "content": text }),
        })
        .collect();
    let mut answer = Map::new();
    answer.insert("messages".to_owned(), messages.into());
    if let Some(description) = description {
        let description = crate::sanitise::model_text(description).into_owned();
        answer.insert("description".to_owned(), description.into());
    }
    Value::Object(answer)
}

/// Writes an answer.
pub(crate) fn render(body: &Body) -> String {
    match body {
        Body::Error(error) => python_json::to_string(&json!({ "error": error })),
        Body::Value(value) => python_json::to_string(value),
    }
}

/// The body of a delivery: its answer, or the envelope around it where there are pictures. `mark`
/// has the last word on each text.
pub(super) fn answer(delivery: &Delivery, mark: &dyn Fn(&str) -> String) -> String {
    let has_pictures = !delivery.attachments.is_empty() && !delivery.is_error;
    let wrapped =
        |answer: &str, notes: &str| envelope(&mark(answer), &mark(notes), &delivery.attachments);
    match (&delivery.hermes.body, &delivery.hermes.picture_notes) {
        (Some(answer), Some(notes)) if has_pictures => wrapped(answer, notes),
        (Some(answer), _) => mark(answer),
        (None, _) if has_pictures => {
            let (words, notes) = split_notes(&delivery.text);
            let notes = if notes.is_empty() {
                PICTURES_FOLLOW
            } else {
                notes
            };
            wrapped(&of_text(words, false), notes)
        }
        (None, _) => mark(&of_text(&told_in_words(delivery), delivery.is_error)),
    }
}

/// An answer made of the model text, for a delivery that was planned for another format.
fn of_text(text: &str, is_error: bool) -> String {
    if is_error {
        return render(&Body::Error(bounded_error(text)));
    }
    render(&Body::text(text))
}

/// An error that does not fill the context.
pub(crate) fn bounded_error(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => {
            format!(
                "{}{ERROR_CUT}",
                strip_tags(text.get(..end).unwrap_or_default())
            )
        }
    }
}

/// A text of at most so many characters: 40 parts of its beginning, 60 of its end, and a label
/// between them on top. No cut leaves half a flag, half a line of ours, or a new first word of
/// a line.
pub(crate) fn truncate(text: &str, characters: usize) -> Cow<'_, str> {
    if text.len() <= characters {
        return Cow::Borrowed(text);
    }
    let total = text.chars().count();
    if total <= characters {
        return Cow::Borrowed(text);
    }
    let head = characters.saturating_mul(HEAD_TENTHS) / 10;
    let tail = characters - head;
    let at = |index: usize| {
        text.char_indices()
            .nth(index)
            .map_or(text.len(), |(at, _)| at)
    };
    let beginning = strip_tags(without_half_line(text.get(..at(head)).unwrap_or_default()));
    let (before, end) = text.split_at_checked(at(total - tail)).unwrap_or_default();
    let end = strip_tags(end);
    let mark = if before.ends_with('\n') || end.is_empty() {
        ""
    } else {
        "…"
    };
    Cow::Owned(format!(
        "{beginning}\n\n... [MCP RESULT TRUNCATED: {} of {total} characters left out] \
         ...\n\n{mark}{end}",
        total - characters
    ))
}

/// The text without its last line where that began as a line of ours.
fn without_half_line(text: &str) -> &str {
    let start = text.rfind('\n').map_or(0, |newline| newline + 1);
    let is_ours = |line: &str| {
        ["MEDIA:", "[MCP "].iter().any(|opening| {
            line.starts_with(opening) || (!line.is_empty() && opening.starts_with(line))
        })
    };
    match text.get(start..) {
        Some(line) if is_ours(line) => text.get(..start).unwrap_or_default(),
        Some(_) | None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, bounded_error, render, result, truncate};
    use serde_json::{Value, json};

    fn answer(text: &str, usable: bool, structured: Option<Value>, meta: Option<Value>) -> String {
        render(&result(text.to_owned(), usable, structured, meta))
    }

    #[test]
    fn writes_every_shape_of_the_table() {
        let structured = || Some(json!({"x": 1}));
        let meta = || Some(json!({"com.e/h": "é"}));
        for (text, structured, meta, expected) in [
            ("t", None, None, "{\"result\": \"t\"}"),
            (
                "t",
                structured(),
                None,
                "{\"result\": \"t\", \"structuredContent\": {\"x\": 1}}",
            ),
            (
                "t",
                None,
                meta(),
                "{\"result\": \"t\", \"_meta\": {\"com.e/h\": \"é\"}}",
            ),
            (
                "t",
                structured(),
                meta(),
                "{\"result\": \"t\", \"structuredContent\": {\"x\": 1}, \"_meta\": {\"com.e/h\": \"é\"}}",
            ),
            ("", structured(), None, "{\"result\": {\"x\": 1}}"),
            (
                "",
                structured(),
                meta(),
                "{\"result\": {\"x\": 1}, \"_meta\": {\"com.e/h\": \"é\"}}",
            ),
            (
                "",
                None,
                meta(),
                "{\"_meta\": {\"com.e/h\": \"é\"}, \"result\": \"\"}",
            ),
            ("", None, None, "{\"result\": \"\"}"),
            (
                " ",
                structured(),
                None,
                "{\"result\": \" \", \"structuredContent\": {\"x\": 1}}",
            ),
        ] {
            assert_eq!(
                answer(text, !text.trim().is_empty(), structured, meta),
                expected
            );
        }
    }

    #[test]
    fn c40_c41_structured_content_of_millions_only_fills_an_empty_result() {
        let large = json!({"k": "x".repeat(3_000_000)});
        assert_eq!(
            answer("ok", true, Some(large.clone()), None),
            "{\"result\": \"ok\"}"
        );
        let Body::Value(value) = result(String::new(), false, Some(large), None) else {
            panic!("no value")
        };
        let cut = value["result"].as_str().unwrap();
        assert!(cut.starts_with("{\"k\": \"xx") && cut.ends_with("xx\"}"));
        assert!(cut.chars().count() < 2_000_200);
    }

    #[test]
    fn c42_cuts_a_text_in_forty_and_sixty_parts() {
        let text: String = (0..2_000_001)
            .map(|n| if n % 7 == 0 { 'é' } else { 'x' })
            .collect();
        let cut = truncate(&text, 2_000_000);
        let (head, tail) = cut.split_once("\n\n... [MCP RESULT TRUNCATED").unwrap();
        let (_, tail) = tail.split_once("...\n\n…").unwrap();
        assert_eq!(head.chars().count(), 800_000);
        assert_eq!(tail.chars().count(), 1_200_000);
        assert!(text.starts_with(head) && text.ends_with(tail));
    }

    #[test]
    fn leaves_what_fits() {
        let text = "é".repeat(10);
        assert_eq!(truncate(&text, 10), text);
        assert_eq!(bounded_error("x"), "x");
        assert_eq!(bounded_error(&"x".repeat(3000)).chars().count(), 2048 + 13);
    }
}
