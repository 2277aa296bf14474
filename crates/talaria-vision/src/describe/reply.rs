//! What an HTTP answer of a backend came to. Status and typed codes decide first, texts last, so
//! that a number in an id is never taken for a bill (specification 3.1).
//!
//! Answers are untrusted, whatever the operator thinks of the backend: nothing here fails, and
//! only text that somebody can see is ever an answer.

use std::time::SystemTime;

use serde_json::Value;

use talaria_content::sanitise::strip_terminal;

use super::verdict::{Fault, FaultKind, Origin, Verdict};

mod answer;
mod complaint;
mod confession;
mod kind;
mod visible;
mod wait;

use answer::{Finish, Found};
use complaint::Complaint;
pub(super) use complaint::Numbers;
pub(super) use visible::one_line;

/// An answer as it came over the wire, its body read up to a bound.
#[derive(Clone, Copy, Debug)]
pub struct HttpReply<'a> {
    /// Status.
    pub status: u16,
    /// The header `retry-after`.
    pub retry_after: Option<&'a str>,
    /// The header `retry-after-ms`.
    pub retry_after_ms: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
    /// When it came, to count dates from.
    pub now: SystemTime,
}

/// What an answer came to, and whether it was the temperature that was refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) verdict: Verdict,
    pub(super) refuses_temperature: bool,
}

/// What an answer came to.
#[must_use]
pub fn read_reply(reply: &HttpReply<'_>) -> Verdict {
    read(reply, Numbers::Any).verdict
}

/// What a text comes to that a tool gave as its answer: the rules for the text of an HTTP
/// answer. Nothing says whether it is complete, so thoughts alone are no last word.
#[must_use]
pub fn read_text(text: &str) -> Verdict {
    if let Some(complaint) = object(text).as_ref().and_then(complaint::of_text) {
        let fault = Fault::new(FaultKind::ErrorInside, &one_line(&complaint.message));
        return Verdict::Failed(fault.with_provider_code(complaint.code()));
    }
    let found = Found {
        text: text.to_owned(),
        has_place: true,
        ..Found::default()
    };
    judge(&found, &Value::Null)
}

/// A text that is one object as a whole.
fn object(text: &str) -> Option<Value> {
    let text = text.trim();
    let is_object = text.starts_with('{') && text.ends_with('}');
    is_object.then(|| serde_json::from_str(text).ok()).flatten()
}

/// The same for a backend whose numbered codes are known.
pub(super) fn read(reply: &HttpReply<'_>, numbers: Numbers) -> Reading {
    let body = Body::read(reply.body);
    let is_good = (200..300).contains(&reply.status);
    let complaint = match &body {
        Body::Json(value) if is_good => complaint::strong(value),
        Body::Json(value) => complaint::strong(value).or_else(|| complaint::weak(value)),
        Body::Empty | Body::Html(_) | Body::Text { .. } => None,
    };
    let complaint = complaint.map(|it| it.numbered_by(numbers));
    let verdict = match (&complaint, &body) {
        (Some(complaint), _) => Verdict::Failed(told(reply, complaint)),
        (None, Body::Json(value)) if is_good => judge(&answer::find(value), value),
        (None, _) if is_good => Verdict::Failed(unreadable(&body)),
        (None, _) => Verdict::Failed(untold(reply, &body)),
    };
    let refuses_temperature = complaint.is_some_and(|it| it.is_about_temperature())
        && matches!(&verdict, Verdict::Failed(fault) if fault.kind == FaultKind::BadRequest);
    let verdict = match verdict {
        Verdict::Failed(fault) => {
            let header = wait::of_headers(reply.retry_after, reply.retry_after_ms, reply.now);
            let wait = header.or(fault.retry_after);
            Verdict::Failed(fault.with_status(reply.status).with_retry_after(wait))
        }
        Verdict::Answer(_) | Verdict::Reasoned(_) => verdict,
    };
    Reading {
        verdict,
        refuses_temperature,
    }
}

/// A body as far as it can be read.
enum Body {
    Empty,
    Json(Value),
    /// Its title.
    Html(String),
    Text {
        line: String,
        is_cut: bool,
    },
}

impl Body {
    fn read(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            return Self::Empty;
        }
        if bytes.starts_with(b"<") {
            return Self::Html(visible::title(bytes));
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Array(mut items)) if items.len() == 1 => Self::Json(items.remove(0)),
            Ok(value) => Self::Json(value),
            Err(error) => {
                let text = String::from_utf8_lossy(bytes);
                // Bytes that are no UTF-8 inside a text cost that text its characters only.
                if let Ok(value) = serde_json::from_str(&text) {
                    return Self::Json(value);
                }
                let is_cut = error.is_eof() && matches!(bytes.first(), Some(b'{' | b'['));
                Self::Text {
                    line: one_line(&text),
                    is_cut,
                }
            }
        }
    }
}

/// A body of a successful answer that is not even JSON.
fn unreadable(body: &Body) -> Fault {
    match body {
        Body::Empty => Fault::new(FaultKind::Empty, "it has no body"),
        Body::Html(title) => Fault::new(FaultKind::NotJson, &page(title)),
        Body::Text { is_cut: true, .. } => Fault::new(FaultKind::NotJson, "it is cut off"),
        Body::Text { line, .. } => Fault::new(FaultKind::NotJson, line),
        Body::Json(_) => Fault::new(FaultKind::Malformed, ""),
    }
}

/// An error that the body tells.
fn told(reply: &HttpReply<'_>, complaint: &Complaint) -> Fault {
    let kind = kind::of(reply.status, complaint);
    Fault::new(kind, &one_line(&complaint.message))
        .with_provider_code(complaint.code())
        .with_retry_after(complaint.wait)
}

/// An error of which only the status is known.
fn untold(reply: &HttpReply<'_>, body: &Body) -> Fault {
    let (words, is_page) = match body {
        Body::Empty => (String::new(), false),
        Body::Html(title) => (page(title), true),
        Body::Text { line, .. } => (line.clone(), false),
        Body::Json(value) => (one_line(&value.to_string()), false),
    };
    Fault::new(kind::of_status(reply.status, &words, is_page), &words)
}

fn page(title: &str) -> String {
    if title.is_empty() {
        "it is an HTML page".to_owned()
    } else {
        format!("it is an HTML page: {title}")
    }
}

/// What the texts of a successful answer come to.
fn judge(found: &Found, value: &Value) -> Verdict {
    if found.finish == Finish::Error {
        return Verdict::failed(FaultKind::ErrorInside, "it ended in an error");
    }
    // By the rule that the text of an answer is cleaned by later: what is left here is left there.
    let text = strip_terminal(&found.text);
    let (text, thoughts) = visible::without_thinking(&text);
    let reasoning = strip_terminal(&found.reasoning);
    let reasoning = [&*reasoning, thoughts.as_str()].concat();
    if found.finish == Finish::Filtered {
        let words = if visible::is_blank(&found.refusal) {
            "it was withheld by a filter".to_owned()
        } else {
            one_line(&found.refusal)
        };
        return Verdict::failed(FaultKind::RefusalOnly, &words);
    }
    let (text, held_data) = visible::without_data(text.trim());
    let text = text.trim();
    if !visible::is_blank(text) {
        if let Some(kind) = confession::confession(text) {
            return Verdict::Failed(Fault::new(kind, &one_line(text)).with_origin(Origin::Words));
        }
        return Verdict::Answer(text.to_owned());
    }
    if held_data {
        return Verdict::failed(FaultKind::Malformed, "it holds encoded data and no words");
    }
    if !visible::is_blank(&found.refusal) {
        return Verdict::failed(FaultKind::RefusalOnly, &one_line(&found.refusal));
    }
    if !visible::is_blank(&reasoning) {
        // What was cut off before its end, or may have been, is nobody's last word.
        return if found.finish == Finish::Complete {
            let (reasoning, _) = visible::without_data(reasoning.trim());
            if visible::is_blank(&reasoning) {
                return Verdict::failed(FaultKind::Empty, "");
            }
            Verdict::Reasoned(reasoning.trim().to_owned())
        } else {
            Verdict::failed(FaultKind::ReasoningOnly, "")
        };
    }
    if found.has_place {
        return Verdict::failed(FaultKind::Empty, "");
    }
    let words = complaint::weak(value).map(|it| one_line(&it.message));
    let words = words.unwrap_or_else(|| complaint::outline(value));
    Verdict::failed(FaultKind::Malformed, &words)
}

#[cfg(test)]
mod tests;
