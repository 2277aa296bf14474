//! One content block: which kind it is by what it holds, and what becomes of it
//! (specification 1.1).

mod failed;
mod link;
mod media;
mod refusal;
mod resource;
mod unknown;

use serde_json::Value;
use talaria_types::NoticeCode;

use crate::delivery::BlockFate;
use crate::fields::{self, Object, Text};
use crate::media_types;
use crate::render::Format;
use crate::sanitise::json_line;
use crate::sniff::sniff;
use crate::source::{Source, of_text};

use super::lines::Audience;
use super::planner::{Planner, Refusal};
use super::shapes::Located;

pub(super) use media::MediaKind;
pub(super) use refusal::{reason, refusal_code};

impl Planner {
    /// Reads one block; exactly one record is made of it.
    pub(super) fn read_block(&mut self, index: usize, block: Located) {
        let Located { value, at } = block;
        match value {
            Value::Object(object) => self.read_object(index, object, &at),
            Value::String(text) => {
                self.note_bare_value(index);
                self.read_text(index, text);
            }
            Value::Null => self.refuse(Refusal {
                index,
                code: NoticeCode::MalformedBlock,
                message: "MCP content dropped: the block is null".to_owned(),
                is_usable: false,
                audience: Audience::Everybody,
            }),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                self.note_bare_value(index);
                self.read_text(index, json_line(&value));
            }
        }
        self.collect_block_strays(index, &at);
    }

    fn read_object(&mut self, index: usize, mut object: Object, at: &str) {
        let kind = fields::string(&object, &["type"])
            .unwrap_or_default()
            .to_owned();
        let media = MediaKind::of(&kind, fields::media_type(&object));
        let text = self.text_of(index, &mut object, media);
        let has_text = text.is_some();
        if let Some(text) = text {
            self.read_text(index, text);
        }
        if let Some(media) = media
            && let Some(source) = self.media_source(&mut object, at)
        {
            self.read_media(index, media, &object, source);
            return;
        }
        if has_text {
            return;
        }
        if link::is_link(&kind, &object) {
            self.read_link(index, &object);
            return;
        }
        let has_resource = object.get("resource").is_some_and(|inner| !inner.is_null());
        // Contents of a resource where blocks belong have no type.
        if kind == "resource" || has_resource || (kind.is_empty() && object.contains_key("blob")) {
            self.read_resource_block(index, object, at);
            return;
        }
        match media {
            Some(media) => self.refuse_media_without_data(index, media, &object),
            None if kind == "text" => self.refuse_empty_text(index),
            None => self.read_unknown(index, &kind, &mut object, at),
        }
    }

    /// The text of a block, whatever its type. In a block of pictures or sound, text that is the
    /// base64 of such a thing is its payload in the wrong field.
    fn text_of(
        &mut self,
        index: usize,
        object: &mut Object,
        media: Option<MediaKind>,
    ) -> Option<String> {
        let text = match fields::take_text(object, "text") {
            Text::Absent => return None,
            Text::String(text) => text,
            Text::Other(json) => {
                self.notices.add(
                    NoticeCode::MalformedBlock,
                    Some(index),
                    "the text of the block is no string; it is shown as JSON",
                );
                json
            }
        };
        if media.is_some() {
            self.notices.add(
                NoticeCode::MalformedBlock,
                Some(index),
                "a block of pictures or sound holds text",
            );
            if !object.contains_key("data") && is_media_data(&text) {
                object.insert("data".to_owned(), Value::String(text));
                return None;
            }
        }
        Some(text)
    }

    /// A text of the server as a block of its own.
    pub(super) fn read_text(&mut self, index: usize, text: String) {
        if text.trim().is_empty() {
            self.push_words(index, text, true);
            self.refuse_empty_text(index);
        } else {
            self.record(index, BlockFate::Delivered);
            self.push_words(index, text, true);
        }
    }

    /// A blank text leaves a notice, but no line: there is nothing to read about.
    fn refuse_empty_text(&mut self, index: usize) {
        self.record(index, BlockFate::Refused(NoticeCode::EmptyBlock));
        self.notices.add(
            NoticeCode::EmptyBlock,
            Some(index),
            "the text block holds no words",
        );
    }

    fn note_bare_value(&mut self, index: usize) {
        self.notices.add(
            NoticeCode::MalformedBlock,
            Some(index),
            "the block is no object; it was read as text",
        );
    }

    /// Whether unknown blocks and empty links stay as bare as Hermes leaves them.
    pub(super) fn is_hermes(&self) -> bool {
        self.request.format == Format::Hermes
    }
}

/// Whether a text is data that a picture or sound block could hold, be it whole or broken.
fn is_media_data(text: &str) -> bool {
    const MAX_WORD_CHARACTERS: usize = 60;
    let symbol = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte);
    let is_one_word = text.len() >= MAX_WORD_CHARACTERS
        && text
            .bytes()
            .all(|byte| symbol(byte) || byte.is_ascii_whitespace())
        && text.bytes().take(MAX_WORD_CHARACTERS).all(symbol);
    is_one_word
        || match of_text(text) {
            Source::Content(content) => sniff(content.head()).is_some(),
            Source::Absent | Source::Refused(_) => false,
        }
}

/// A declared type as it may be written down: a proper one in its base form.
pub(super) fn declared(object: &Object) -> Option<String> {
    let declared = fields::media_type(object)?;
    Some(media_types::base(declared).unwrap_or_else(|| crate::sanitise::one_line(declared)))
}
