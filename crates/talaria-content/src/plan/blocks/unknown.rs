//! Blocks of a type that the protocol does not have (specification 1.1, step 4).

use serde_json::Value;
use talaria_types::NoticeCode;

use crate::delivery::BlockFate;
use crate::fields::{self, Object};
use crate::plan::FileBody;
use crate::plan::lines::{Audience, FileStyle, PartContent};
use crate::plan::planner::{Planner, Refusal};
use crate::repeats::Piece;
use crate::sanitise::{address, field, json_line};
use crate::sniff::sniff;
use crate::source::{self, Content, Source};

use super::declared;

const SAVED: FileStyle = FileStyle::Marker {
    opening: "MCP content of an unsupported block saved to",
    what: "payload",
};

/// Fields that the notice names, or that say nothing to a model.
const SAID: &[&str] = &[
    "type",
    "mimeType",
    "uri",
    "size",
    "sizeInBytes",
    "name",
    "annotations",
    "_meta",
];
/// How long the rest of a block may be to be shown.
const MAX_REST_CHARACTERS: usize = 2_000;

impl Planner {
    /// Says what was dropped. A payload inside is saved all the same, except in format `hermes`.
    pub(super) fn read_unknown(&mut self, index: usize, kind: &str, object: &mut Object, at: &str) {
        let message = format!(
            "MCP content dropped: unsupported block ({})",
            details(kind, object)
        );
        let rescued = if self.is_hermes() {
            None
        } else {
            self.rescue(object, at)
        };
        match rescued {
            None => {
                self.refuse(Refusal {
                    index,
                    code: NoticeCode::UnsupportedBlock,
                    message,
                    is_usable: false,
                    audience: Audience::Everybody,
                });
                self.show_rest(index, object);
            }
            Some(content) => {
                let message = message.replacen("content dropped", "content without support", 1);
                self.notices
                    .add(NoticeCode::UnsupportedBlock, Some(index), message.as_str());
                let line = format!("[{message}; its payload was saved]");
                self.push(Some(index), Audience::Everybody, PartContent::Own(line));
                let file = self.want_plain_file(content, declared(object), Some(index), SAVED);
                self.push(Some(index), Audience::Everybody, PartContent::File(file));
                self.record(index, BlockFate::Saved);
            }
        }
    }

    /// Shows what else a block nobody knows holds, where that is short.
    fn show_rest(&mut self, index: usize, object: &Object) {
        let mut rest = object.clone();
        rest.retain(|key, value| !SAID.contains(&key.as_str()) && !value.is_null());
        if rest.is_empty() {
            return;
        }
        let json = json_line(&Value::Object(rest));
        if json.chars().count() <= MAX_REST_CHARACTERS && !holds_data(&json) {
            let pieces = vec![Piece::Words(format!("It holds: {json}"))];
            self.push(Some(index), Audience::NotHermes, PartContent::Words(pieces));
        }
    }

    /// The payload of a block nobody knows: one that is declared, or that its bytes prove.
    fn rescue(&mut self, object: &mut Object, at: &str) -> Option<Content> {
        let is_declared = fields::media_type(object).is_some();
        ["data", "blob"].into_iter().find_map(|name| {
            let pointer = format!("{at}/{name}");
            match source::take(&mut self.payloads, &pointer, object.get_mut(name)) {
                Source::Content(content) => {
                    let is_staged = matches!(content.body, FileBody::Staged(_));
                    let is_one = is_declared || is_staged || sniff(content.head()).is_some();
                    is_one.then_some(content)
                }
                Source::Absent | Source::Refused(_) => None,
            }
        })
    }
}

/// Whether a text has a word that is longer than words are.
fn holds_data(text: &str) -> bool {
    const MAX_WORD_CHARACTERS: usize = 200;
    text.split(|character: char| {
        !(character.is_ascii_alphanumeric() || "+/-_=".contains(character))
    })
    .any(|word| word.len() > MAX_WORD_CHARACTERS)
}

/// What handles the block has, so that the model can ask for it in another way.
fn details(kind: &str, object: &Object) -> String {
    let kind = if kind.is_empty() {
        "none".to_owned()
    } else {
        field(kind)
    };
    let mut details = vec![format!("type={kind}")];
    if let Some(media_type) = fields::media_type(object) {
        details.push(format!("mimeType={}", field(media_type)));
    }
    if let Some(uri) = fields::words(object, &["uri"]) {
        details.push(format!("uri={}", address(uri)));
    }
    if let Some(size) = fields::size(object, &["size", "sizeInBytes"]) {
        details.push(format!("size={size}"));
    }
    if let Some(name) = fields::words(object, &["name"]) {
        details.push(format!("name={}", field(name)));
    }
    details.join(", ")
}
