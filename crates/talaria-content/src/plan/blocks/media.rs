//! Picture and sound blocks (specification 1.3 and 1.4, design decision 3).

use serde_json::Value;
use talaria_types::NoticeCode;

use crate::delivery::{ArtifactKind, BlockFate};
use crate::fields::Object;
use crate::media_types::{self, extension_of};
use crate::names::safe_name;
use crate::plan::FileRequest;
use crate::plan::lines::{Audience, File, FileShape, FileStyle, PartContent};
use crate::plan::planner::{Planner, Refusal};
use crate::sanitise::field;
use crate::sniff::{Class, Whole, container_extension, decode_text, sniff};
use crate::source::{self, Content, Refused, Source};

use super::declared;
use super::refusal::{message, refusal_code};

/// What such a block claims to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum MediaKind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
}

/// What the bytes of such a block are.
struct Verdict {
    kind: ArtifactKind,
    media_type: String,
    extension: String,
    style: FileStyle,
}

impl MediaKind {
    /// By the type of the block, else by its declared media type.
    pub(super) fn of(kind: &str, media_type: Option<&str>) -> Option<Self> {
        match kind {
            "image" => return Some(Self::Image),
            "audio" => return Some(Self::Audio),
            "text" | "resource" | "resource_link" => return None,
            _ => {}
        }
        let base = media_types::base(media_type?)?;
        if base.starts_with("image/") {
            return Some(Self::Image);
        }
        base.starts_with("audio/").then_some(Self::Audio)
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Image => "image block",
            Self::Audio => "audio block",
        }
    }

    /// The style of a file that is not what the block claims.
    const fn stranger(self) -> FileStyle {
        match self {
            Self::Image => FileStyle::Marker {
                opening: "MCP image block is unusable as a picture, not an image: saved to",
                what: "image block",
            },
            Self::Audio => FileStyle::Marker {
                opening: "MCP audio block holds no audio: saved to",
                what: "audio block",
            },
        }
    }

    fn judge(self, head: &[u8], declared: Option<&str>) -> Verdict {
        let sniffed = sniff(head);
        if let Some(sniffed) = sniffed {
            let is_claimed_film = self == Self::Audio && container_extension(head).is_some();
            if !is_claimed_film && (self == Self::Image || sniffed.class != Class::Audio) {
                return self.as_what_it_is(sniffed.class, sniffed.media_type);
            }
        }
        match self {
            Self::Image => unknown_picture(head, declared),
            Self::Audio => sound(head, declared),
        }
    }

    fn as_what_it_is(self, class: Class, media_type: &str) -> Verdict {
        let (kind, style) = match class {
            Class::Raster => (ArtifactKind::Image, FileStyle::Media("image block")),
            Class::Vector if self == Self::Image => {
                (ArtifactKind::Image, FileStyle::Media("image block"))
            }
            Class::Audio => (ArtifactKind::Audio, FileStyle::Media("audio block")),
            Class::Vector | Class::Document => (ArtifactKind::Document, self.stranger()),
        };
        Verdict {
            kind,
            media_type: media_type.to_owned(),
            extension: extension_of(media_type).unwrap_or("bin").to_owned(),
            style,
        }
    }
}

/// Bytes of no known picture. A declared type whose pictures are all recognised is refuted by
/// that; any other that our table has is believed.
fn unknown_picture(head: &[u8], declared: Option<&str>) -> Verdict {
    let believed = declared.filter(|declared| {
        declared.starts_with("image/") && !media_types::is_recognised_picture(declared)
    });
    if let Some((declared, extension)) = believed.zip(believed.and_then(extension_of)) {
        return Verdict {
            kind: ArtifactKind::Image,
            media_type: media_types::usual(declared).to_owned(),
            extension: extension.to_owned(),
            style: FileStyle::Media("image block"),
        };
    }
    let is_text = decode_text(head, Whole::No).is_some();
    let media_type = if is_text {
        "text/plain"
    } else {
        "application/octet-stream"
    };
    Verdict {
        kind: ArtifactKind::Document,
        media_type: media_type.to_owned(),
        extension: if is_text { "txt" } else { "bin" }.to_owned(),
        style: MediaKind::Image.stranger(),
    }
}

/// The container decides, then the declared type; what nobody knows ends in `.ogg`.
fn sound(head: &[u8], declared: Option<&str>) -> Verdict {
    let (extension, media_type) = match container_extension(head) {
        Some((extension, media_type)) => (extension.to_owned(), media_type.to_owned()),
        None => {
            let declared = declared.filter(|declared| declared.starts_with("audio/"));
            let known = declared
                .filter(|declared| *declared != "audio/webm")
                .and_then(extension_of);
            (
                known.unwrap_or("ogg").to_owned(),
                declared
                    .map_or("application/octet-stream", media_types::usual)
                    .to_owned(),
            )
        }
    };
    Verdict {
        kind: ArtifactKind::Audio,
        media_type,
        extension,
        style: FileStyle::Media("audio block"),
    }
}

impl Planner {
    /// The payload of a picture or sound block, wherever servers put it; `None` where there is
    /// no such field.
    pub(super) fn media_source(&mut self, object: &mut Object, at: &str) -> Option<Source> {
        for name in ["data", "blob"] {
            let pointer = format!("{at}/{name}");
            let source = source::take(&mut self.payloads, &pointer, object.get_mut(name));
            if let Some(source) = source.found() {
                return Some(source);
            }
        }
        if let Some(inner) = object.get_mut("source").and_then(Value::as_object_mut) {
            let pointer = format!("{at}/source/data");
            let source = source::take(&mut self.payloads, &pointer, inner.get_mut("data"));
            if let Some(source) = source.found() {
                return Some(source);
            }
        }
        let url = [
            object.get("url"),
            object.get("image_url"),
            object.get("source"),
        ]
        .into_iter()
        .flatten()
        .find_map(|value| value.as_str().or_else(|| value.get("url")?.as_str()))?;
        Some(source::of_text(url))
    }

    pub(super) fn read_media(
        &mut self,
        index: usize,
        media: MediaKind,
        object: &Object,
        source: Source,
    ) {
        match source {
            Source::Absent => self.refuse_media_without_data(index, media, object),
            Source::Refused(refused) => self.refuse_media(index, media, object, &refused),
            Source::Content(content) => self.save_media(index, media, object, content),
        }
    }

    fn save_media(&mut self, index: usize, media: MediaKind, object: &Object, content: Content) {
        let declared = declared(object).or_else(|| content.url_type.clone());
        let verdict = media.judge(content.head(), declared.as_deref());
        self.note_other_type(index, media, declared.as_deref(), &verdict);
        let label = label(declared.as_deref());
        let stem = match verdict.kind {
            ArtifactKind::Image => "image",
            ArtifactKind::Audio => "audio",
            ArtifactKind::Document | ArtifactKind::Text => "document",
        };
        let shape = FileShape {
            media_type: verdict.media_type.clone(),
            declared: declared.clone(),
            bytes: content.length(),
            is_readable: false,
        };
        let request = FileRequest {
            kind: verdict.kind,
            name: format!("{stem}.{}", verdict.extension),
            named: false,
            media_type: verdict.media_type,
            declared_type: declared,
            source_uri: None,
            body: content.body,
        };
        self.record(index, BlockFate::Saved);
        self.has_usable_text = true;
        self.files.push(File {
            request: Some(request),
            block: Some(index),
            style: verdict.style,
            text: None,
            label,
            shape,
        });
        self.push(
            Some(index),
            Audience::Everybody,
            PartContent::File(self.files.len() - 1),
        );
    }

    fn note_other_type(
        &mut self,
        index: usize,
        media: MediaKind,
        declared: Option<&str>,
        verdict: &Verdict,
    ) {
        let is = &verdict.media_type;
        if verdict.style == media.stranger() {
            let (code, what) = match media {
                MediaKind::Image => (NoticeCode::NotAnImage, "the image block holds no picture"),
                MediaKind::Audio => (NoticeCode::TypeMismatch, "the audio block holds no audio"),
            };
            self.notices.add(
                code,
                Some(index),
                format!("{what} but {is}; saved as what it is"),
            );
            return;
        }
        let Some(declared) = declared else { return };
        let usual = media_types::usual(declared);
        let is_same = usual == is
            || media_types::refines(usual, is)
            || media_types::is_generic(declared)
            || (media == MediaKind::Audio
                && is.starts_with("audio/")
                && usual.starts_with("audio/"));
        if !is_same {
            self.notices.add(
                NoticeCode::TypeMismatch,
                Some(index),
                format!("declared as {}, but the bytes are {is}", field(declared)),
            );
        }
    }

    fn refuse_media(&mut self, index: usize, media: MediaKind, object: &Object, refused: &Refused) {
        let label = label(declared(object).as_deref());
        let mut message = message(media.what(), &label, None, &refused.refusal);
        if let Some(words) = &refused.words {
            message.push_str(&format!("; it reads: {}", field(words)));
        }
        self.refuse(Refusal {
            index,
            code: refusal_code(&refused.refusal),
            message,
            is_usable: false,
            audience: Audience::Everybody,
        });
    }

    pub(super) fn refuse_media_without_data(
        &mut self,
        index: usize,
        media: MediaKind,
        object: &Object,
    ) {
        let label = label(declared(object).as_deref());
        self.refuse(Refusal {
            index,
            code: NoticeCode::MalformedBlock,
            message: format!("MCP {} is unusable, it has no data: {label}", media.what()),
            is_usable: false,
            audience: Audience::Everybody,
        });
    }

    /// A file that is none of the protocol's places, judged by its bytes alone.
    pub(in crate::plan) fn want_plain_file(
        &mut self,
        content: Content,
        declared: Option<String>,
        block: Option<usize>,
        style: FileStyle,
    ) -> usize {
        let judged = super::resource::judge(content.head(), declared.as_deref(), None);
        let what = match style {
            FileStyle::Media(what) | FileStyle::Marker { what, .. } => what,
        };
        let style = match judged.kind {
            ArtifactKind::Image | ArtifactKind::Audio => FileStyle::Media(what),
            ArtifactKind::Document | ArtifactKind::Text => style,
        };
        let name = safe_name("", Some(&judged.media_type)).replace("resource.", "payload.");
        self.has_usable_text = true;
        self.files.push(File {
            label: label(declared.as_deref()),
            shape: FileShape {
                media_type: judged.media_type.clone(),
                declared: declared.clone(),
                bytes: content.length(),
                is_readable: false,
            },
            request: Some(FileRequest {
                kind: judged.kind,
                name,
                named: false,
                media_type: judged.media_type,
                declared_type: declared,
                source_uri: None,
                body: content.body,
            }),
            block,
            style,
            text: None,
        });
        self.files.len() - 1
    }
}

fn label(declared: Option<&str>) -> String {
    declared.map_or_else(|| "unknown type".to_owned(), field)
}
