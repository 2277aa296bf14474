//! The bytes behind a payload field, in whatever way they arrive.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use talaria_types::{Payload, PayloadRefusal};

use crate::base64_guard::decode;
use crate::plan::FileBody;

/// What a payload field holds.
#[derive(Debug)]
pub(crate) enum Source {
    /// No such field, or null.
    Absent,
    /// Bytes.
    Content(Content),
    /// Something that cannot be used.
    Refused(Refused),
}

/// Usable bytes.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) body: FileBody,
    /// The type a `data:` prefix names.
    pub(crate) url_type: Option<String>,
}

/// Why there are none.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) refusal: PayloadRefusal,
    /// The words that stood in the place of data, where they are worth showing.
    pub(crate) words: Option<String>,
}

impl Source {
    /// The source, where the field is there.
    pub(crate) fn found(self) -> Option<Self> {
        match self {
            Self::Absent => None,
            Self::Content(_) | Self::Refused(_) => Some(self),
        }
    }
}

impl Content {
    pub(crate) const fn of_bytes(bytes: Vec<u8>) -> Self {
        Self {
            body: FileBody::Bytes(bytes),
            url_type: None,
        }
    }

    /// The beginning of the bytes.
    pub(crate) fn head(&self) -> &[u8] {
        match &self.body {
            FileBody::Bytes(bytes) => bytes,
            FileBody::Staged(staged) => &staged.head,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        match &self.body {
            FileBody::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            FileBody::Staged(staged) => staged.bytes,
        }
    }

    /// All bytes, where they are at hand.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        match &self.body {
            FileBody::Bytes(bytes) => Some(bytes),
            FileBody::Staged(staged) => {
                let head = u64::try_from(staged.head.len()).unwrap_or(u64::MAX);
                (head == staged.bytes).then_some(staged.head.as_slice())
            }
        }
    }

    /// Whether these are exactly the bytes given.
    pub(crate) fn equals(&self, other: &[u8]) -> bool {
        match &self.body {
            FileBody::Bytes(bytes) => bytes == other,
            FileBody::Staged(staged) => {
                usize::try_from(staged.bytes).is_ok_and(|length| length == other.len())
                    && staged.sha256 == sha256(other)
            }
        }
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Takes the payload of a field: the handle under its pointer, or what stands in the JSON.
pub(crate) fn take(
    payloads: &mut BTreeMap<String, Payload>,
    pointer: &str,
    value: Option<&mut Value>,
) -> Source {
    if let Some(payload) = payloads.remove(pointer) {
        return of_payload(payload);
    }
    match value.map(Value::take) {
        None | Some(Value::Null) => Source::Absent,
        Some(Value::String(text)) => of_text(&text),
        Some(value) => match bytes_of_array(&value) {
            Some(bytes) if bytes.is_empty() => refused(PayloadRefusal::Empty),
            Some(bytes) => Source::Content(Content::of_bytes(bytes)),
            None => refused(PayloadRefusal::NotBase64 {
                reason: "it is no string".to_owned(),
            }),
        },
    }
}

/// A payload that the wire layer took out of the JSON.
pub(crate) fn of_payload(payload: Payload) -> Source {
    match payload {
        Payload::Staged(staged) => Source::Content(Content {
            body: FileBody::Staged(staged),
            url_type: None,
        }),
        Payload::Refused(refusal) => refused(refusal),
    }
}

/// A payload that stands in the JSON.
pub(crate) fn of_text(text: &str) -> Source {
    match decode(text) {
        Ok((bytes, decoded)) => Source::Content(Content {
            body: FileBody::Bytes(bytes),
            url_type: decoded.data_url_type,
        }),
        Err(refusal) => {
            let words = match refusal {
                PayloadRefusal::NotBase64 { .. } => sentence(text),
                PayloadRefusal::Empty
                | PayloadRefusal::Address { .. }
                | PayloadRefusal::TooLarge { .. }
                | PayloadRefusal::NotStored { .. } => None,
            };
            Source::Refused(Refused { refusal, words })
        }
    }
}

const fn refused(refusal: PayloadRefusal) -> Source {
    Source::Refused(Refused {
        refusal,
        words: None,
    })
}

/// Some servers put a sentence or a path where data belongs; it says what happened, unlike broken
/// data.
fn sentence(text: &str) -> Option<String> {
    const MAX_CHARACTERS: usize = 200;
    const MAX_WORD_CHARACTERS: usize = 40;
    let text = text.trim();
    let is_broken = text.contains(|character: char| {
        character == char::REPLACEMENT_CHARACTER || character.is_control()
    });
    let is_place = text.len() <= MAX_CHARACTERS && text.contains('/') && text.contains(['.', ':']);
    let is_prose = text.contains(char::is_whitespace)
        && text
            .split_whitespace()
            .all(|word| word.chars().count() <= MAX_WORD_CHARACTERS);
    (!is_broken && (is_place || is_prose)).then(|| text.chars().take(MAX_CHARACTERS).collect())
}

/// JavaScript servers that forget to encode send the bytes as numbers.
fn bytes_of_array(value: &Value) -> Option<Vec<u8>> {
    let numbers = match value {
        Value::Array(numbers) => numbers,
        Value::Object(buffer) if buffer.get("type")?.as_str()? == "Buffer" => {
            buffer.get("data")?.as_array()?
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return None;
        }
    };
    numbers
        .iter()
        .map(|number| u8::try_from(number.as_u64()?).ok())
        .collect()
}
