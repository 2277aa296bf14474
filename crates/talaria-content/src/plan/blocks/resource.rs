//! Embedded resources, and the contents of `resources/read` (specification 1.5).

use serde_json::Value;
use talaria_types::{NoticeCode, PayloadRefusal};

use crate::delivery::{ArtifactKind, BlockFate};
use crate::fields::{self, Object, Text};
use crate::media_types;
use crate::names::{hinted_name, safe_name, split, tidy, with_extension};
use crate::plan::lines::{Audience, File, FileShape, FileStyle, PartContent, TextView};
use crate::plan::planner::{Planner, Refusal};
use crate::plan::{FileRequest, ReaderTool, ResultKind};
use crate::sanitise::{address, field, one_line};
use crate::sniff::{Class, Whole, decode_text, sniff};
use crate::source::{self, Content, Source};

use super::declared;
use super::refusal::{message, refusal_code};

const WHAT: &str = "embedded resource";
const RESOURCE: FileStyle = FileStyle::Marker {
    opening: "MCP resource saved to",
    what: WHAT,
};

/// What the bytes of a resource are.
pub(in crate::plan) struct Judged {
    pub(in crate::plan) kind: ArtifactKind,
    pub(in crate::plan) media_type: String,
    /// Whether the bytes themselves prove the type.
    pub(in crate::plan) is_proven: bool,
}

/// Bytes, then the declared type, then the name.
pub(in crate::plan) fn judge(head: &[u8], declared: Option<&str>, name: Option<&str>) -> Judged {
    let declared = declared
        .and_then(media_types::base)
        .filter(|declared| !media_types::is_generic(declared))
        .map(|declared| media_types::usual(&declared).to_owned());
    let named = name
        .and_then(|name| split(name).1)
        .and_then(media_types::type_of)
        .filter(|named| !media_types::is_generic(named))
        .map(str::to_owned);
    let Some(sniffed) = sniff(head) else {
        let media_type = declared
            .or(named)
            .unwrap_or_else(|| "application/octet-stream".to_owned());
        let kind = match media_type.starts_with("audio/") {
            true => ArtifactKind::Audio,
            false => ArtifactKind::Document,
        };
        return Judged {
            kind,
            media_type,
            is_proven: false,
        };
    };
    // Many formats are built on others; the one that is named more closely is meant.
    let finer = [declared, named]
        .into_iter()
        .flatten()
        .find(|claimed| media_types::refines(claimed, sniffed.media_type));
    let kind = match sniffed.class {
        Class::Raster => ArtifactKind::Image,
        Class::Audio => ArtifactKind::Audio,
        Class::Vector => ArtifactKind::Document,
        Class::Document
            if finer
                .as_deref()
                .is_some_and(|finer| finer.starts_with("audio/")) =>
        {
            ArtifactKind::Audio
        }
        Class::Document => ArtifactKind::Document,
    };
    let media_type = match finer {
        Some(finer) if kind != ArtifactKind::Image => finer,
        Some(_) | None => sniffed.media_type.to_owned(),
    };
    Judged {
        kind,
        media_type,
        is_proven: true,
    }
}

impl Planner {
    /// A block with a `resource` inside, or one that is the resource itself.
    pub(super) fn read_resource_block(&mut self, index: usize, mut object: Object, at: &str) {
        match object.get_mut("resource").map(Value::take) {
            Some(Value::Object(resource)) => {
                self.read_resource(index, resource, &format!("{at}/resource"));
            }
            Some(Value::String(uri)) => {
                object.insert("uri".to_owned(), Value::String(uri));
                self.read_link(index, &object);
            }
            None | Some(Value::Null) if object.contains_key("blob") => {
                self.read_resource(index, object, at);
            }
            None | Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                self.refuse(Refusal {
                    index,
                    code: NoticeCode::MalformedBlock,
                    message: "MCP embedded resource is unusable, the block holds no resource"
                        .to_owned(),
                    is_usable: false,
                    audience: Audience::Everybody,
                });
            }
        }
    }

    /// The resource itself: text, bytes, both or neither.
    pub(in crate::plan) fn read_resource(&mut self, index: usize, mut object: Object, at: &str) {
        let blob = self.blob(&mut object, at);
        let text = self.resource_text(index, &mut object);
        let has_words = text.as_ref().is_some_and(|text| !text.trim().is_empty());
        let repeats_text = match (&blob, &text) {
            (Source::Content(content), Some(text)) => has_words && content.equals(text.as_bytes()),
            (Source::Absent | Source::Refused(_) | Source::Content(_), _) => false,
        };
        if let Some(text) = text {
            if has_words {
                self.record(index, BlockFate::Delivered);
            }
            self.push_words(index, text, false);
        }
        match blob {
            Source::Content(_) if repeats_text => {}
            Source::Content(content) => self.save_resource(index, &object, content),
            Source::Absent if has_words => {}
            Source::Absent => self.refuse_empty(index, &object),
            Source::Refused(refused) if refused.refusal == PayloadRefusal::Empty => {
                if !has_words {
                    self.refuse_empty(index, &object);
                }
            }
            Source::Refused(refused) => {
                let uri = fields::words(&object, &["uri"]);
                let mut message = message(WHAT, &label(&object), uri, &refused.refusal);
                if let Some(words) = &refused.words {
                    message.push_str(&format!("; it reads: {}", field(words)));
                }
                self.refuse(Refusal {
                    index,
                    code: refusal_code(&refused.refusal),
                    message,
                    is_usable: true,
                    audience: Audience::Everybody,
                });
            }
        }
    }

    fn blob(&mut self, object: &mut Object, at: &str) -> Source {
        ["blob", "data"]
            .into_iter()
            .find_map(|name| {
                let pointer = format!("{at}/{name}");
                source::take(&mut self.payloads, &pointer, object.get_mut(name)).found()
            })
            .unwrap_or(Source::Absent)
    }

    fn resource_text(&mut self, index: usize, object: &mut Object) -> Option<String> {
        match fields::take_text(object, "text") {
            Text::Absent => None,
            Text::String(text) => Some(text),
            Text::Other(json) => {
                self.notices.add(
                    NoticeCode::MalformedBlock,
                    Some(index),
                    "the text of the resource is no string; it is shown as JSON",
                );
                Some(json)
            }
        }
    }

    fn save_resource(&mut self, index: usize, object: &Object, content: Content) {
        let uri = fields::words(object, &["uri"]);
        let declared = declared(object).or_else(|| content.url_type.clone());
        let hint = uri
            .and_then(hinted_name)
            .or_else(|| fields::words(object, &["name", "title"]).and_then(tidy));
        let judged = judge(content.head(), declared.as_deref(), hint.as_deref());
        let name = match hint {
            Some(hint) if judged.is_proven => with_extension(&hint, &judged.media_type),
            Some(hint) => hint,
            None => safe_name("", Some(&judged.media_type)),
        };
        self.note_resource_type(index, declared.as_deref(), &judged);
        let text = self.inline_text(&content, &judged);
        let file = self.files.len();
        if text.is_some() {
            self.push(Some(index), Audience::Everybody, PartContent::TextOf(file));
        }
        self.push(Some(index), Audience::Everybody, PartContent::File(file));
        self.record(index, BlockFate::Saved);
        self.has_usable_text = true;
        self.files.push(File {
            label: label(object),
            shape: FileShape {
                media_type: judged.media_type.clone(),
                declared: declared.clone(),
                bytes: content.length(),
                is_readable: text.is_some(),
            },
            request: Some(FileRequest {
                kind: judged.kind,
                name,
                named: true,
                media_type: judged.media_type,
                declared_type: declared,
                source_uri: uri.map(source_uri),
                body: content.body,
            }),
            block: Some(index),
            style: match judged.kind {
                ArtifactKind::Image | ArtifactKind::Audio => FileStyle::Media(WHAT),
                ArtifactKind::Document | ArtifactKind::Text => RESOURCE,
            },
            text,
        });
    }

    fn note_resource_type(&mut self, index: usize, declared: Option<&str>, judged: &Judged) {
        let Some(declared) = declared.filter(|declared| !media_types::is_generic(declared)) else {
            return;
        };
        let is_finer = media_types::refines(&judged.media_type, declared);
        if judged.is_proven && !is_finer && media_types::usual(declared) != judged.media_type {
            let is = &judged.media_type;
            self.notices.add(
                NoticeCode::TypeMismatch,
                Some(index),
                format!("declared as {}, but the bytes are {is}", field(declared)),
            );
        }
    }

    /// Text that the model can read at once; of a staged file only the beginning is at hand.
    fn inline_text(&self, content: &Content, judged: &Judged) -> Option<TextView> {
        if judged.kind != ArtifactKind::Document || !media_types::is_textual(&judged.media_type) {
            return None;
        }
        let budget = self.request.result_size_chars;
        let view = match content.whole() {
            Some(bytes) => TextView::new(&self.shown(bytes, Whole::Yes)?, true, budget),
            None => TextView::new(&self.shown(content.head(), Whole::No)?, false, budget),
        };
        Some(view)
    }

    /// The text inside bytes, without configured secrets.
    fn shown(&self, bytes: &[u8], whole: Whole) -> Option<String> {
        let text = decode_text(bytes, whole)?;
        Some(self.request.masker.mask(&text).into_owned())
    }

    /// A resource that holds nothing still has an address, and a tool may read it.
    fn refuse_empty(&mut self, index: usize, object: &Object) {
        let mut message = "MCP embedded resource is empty".to_owned();
        if let Some(uri) = fields::words(object, &["uri"]) {
            message.push_str(&format!(": uri={}", address(uri)));
            if let Some(media_type) = declared(object) {
                message.push_str(&format!(", mimeType={}", field(&media_type)));
            }
            if self.request.kind != ResultKind::ReadResource {
                message.push_str(" — ");
                message.push_str(&how_to_read(&self.request.reader));
            }
        }
        self.refuse(Refusal {
            index,
            code: NoticeCode::EmptyBlock,
            message,
            is_usable: false,
            audience: Audience::Everybody,
        });
    }
}

/// Where a file comes from, of a length that an address has.
fn source_uri(uri: &str) -> String {
    const MAX_CHARACTERS: usize = 4_096;
    one_line(uri).chars().take(MAX_CHARACTERS).collect()
}

/// The tool that reads a resource, or that there is none.
pub(super) fn how_to_read(reader: &ReaderTool) -> String {
    match reader {
        ReaderTool::Registered(tool) => format!("fetch it with {}", field(tool)),
        ReaderTool::Missing => "no tool is available to read it from this server".to_owned(),
    }
}

/// What a line calls the resource: its declared type and its address, so that one of several is
/// told from the others.
fn label(object: &Object) -> String {
    match (fields::media_type(object), fields::words(object, &["uri"])) {
        (Some(declared), Some(uri)) => format!("{}, uri={}", field(declared), address(uri)),
        (Some(declared), None) => field(declared),
        (None, Some(uri)) => address(uri),
        (None, None) => "unknown type".to_owned(),
    }
}
