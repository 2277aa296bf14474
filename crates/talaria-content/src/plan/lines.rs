//! What the model text is made of before the files have their paths.

use talaria_types::ErrorCode;

use crate::delivery::Artifact;
use crate::repeats::Piece;
use crate::sanitise::field;

use super::spill::PREVIEW_CHARACTERS;
use super::{FileBody, FileOutcome, FileRequest, TextToRead};

/// A text of at most this many bytes per character of the budget is worth reading.
const BYTES_PER_CHARACTER: u64 = 4;

/// One line or one run of lines of the model text.
#[derive(Debug)]
pub(super) struct Part {
    /// The block it belongs to.
    pub(super) block: Option<usize>,
    pub(super) audience: Audience,
    pub(super) content: PartContent,
}

/// Which texts a part is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// All of them.
    Everybody,
    /// Every text but the one of format `hermes`, which has nothing in this place.
    NotHermes,
    /// Only the one of format `hermes`, which keeps blank parts.
    OnlyHermes,
}

impl Part {
    /// The text, where this is an uncut text block of the server.
    pub(super) fn text_block(&self) -> Option<&str> {
        match &self.content {
            PartContent::TextBlock(pieces) => match pieces.as_slice() {
                [Piece::Words(words)] => Some(words),
                _ => None,
            },
            PartContent::Words(_)
            | PartContent::Own(_)
            | PartContent::File(_)
            | PartContent::TextOf(_) => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum PartContent {
    /// A text block of the server.
    TextBlock(Vec<Piece>),
    /// Other words of the server.
    Words(Vec<Piece>),
    /// A line of ours.
    Own(String),
    /// The line that names a file.
    File(usize),
    /// The text inside a file.
    TextOf(usize),
}

/// A file this result wants, and how the model reads of it.
#[derive(Debug)]
pub(super) struct File {
    /// `None` once it has been taken.
    pub(super) request: Option<FileRequest>,
    pub(super) block: Option<usize>,
    pub(super) style: FileStyle,
    pub(super) text: Option<TextView>,
    /// What the server named it by, for a line about a failure.
    pub(super) label: String,
    pub(super) shape: FileShape,
}

/// What a line about a file says of it.
#[derive(Debug)]
pub(super) struct FileShape {
    pub(super) media_type: String,
    pub(super) declared: Option<String>,
    pub(super) bytes: u64,
    /// Whether it is text that a model reads inline.
    pub(super) is_readable: bool,
}

/// How the model reads of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileStyle {
    /// `MEDIA:` and the path.
    Media(&'static str),
    /// A marker that begins with these words, for a file of that part of the result.
    Marker {
        opening: &'static str,
        what: &'static str,
    },
}

/// What of a text file is shown inline.
#[derive(Debug)]
pub(super) struct TextView {
    pub(super) pieces: Vec<Piece>,
    pub(super) is_complete: bool,
}

impl TextView {
    /// Shows a text whole where it fits the budget, else its beginning.
    pub(super) fn new(text: &str, is_whole: bool, budget: usize) -> Self {
        let fits = text.len() <= budget || text.chars().count() <= budget;
        if is_whole && fits {
            return Self {
                pieces: vec![Piece::Words(text.to_owned())],
                is_complete: true,
            };
        }
        let beginning = text.chars().take(PREVIEW_CHARACTERS.min(budget)).collect();
        Self {
            pieces: vec![Piece::Words(beginning)],
            is_complete: false,
        }
    }
}

impl File {
    /// The staging file, where reading it would show more than its beginning.
    pub(super) fn to_read(&self, budget: usize) -> Option<TextToRead> {
        let FileBody::Staged(staged) = &self.request.as_ref()?.body else {
            return None;
        };
        let text = self.text.as_ref()?;
        let limit = u64::try_from(budget)
            .unwrap_or(u64::MAX)
            .saturating_mul(BYTES_PER_CHARACTER);
        (!text.is_complete && self.shape.is_readable && staged.bytes <= limit)
            .then(|| {
                Some(TextToRead {
                    path: staged.path()?.to_owned(),
                    bytes: staged.bytes,
                })
            })
            .flatten()
    }

    /// The line of a file that is stored.
    fn stored_line(&self, artifact: &Artifact) -> String {
        let path = artifact.path.display();
        match self.style {
            FileStyle::Media(_) => format!("MEDIA:{path}"),
            FileStyle::Marker { opening, .. } => {
                let shortened = match &self.text {
                    Some(text) if !text.is_complete => "; only its beginning is shown here",
                    Some(_) | None => "",
                };
                format!(
                    "[{opening} {path} ({}{shortened}) — read it with a file or terminal tool]",
                    self.described()
                )
            }
        }
    }

    /// The line of a file that could not be stored.
    fn failed_line(&self, detail: &str) -> String {
        let what = match self.style {
            FileStyle::Media(what) | FileStyle::Marker { what, .. } => what,
        };
        format!(
            "[MCP {what} could not be cached: {} ({}) — {} (not_stored)]",
            self.label,
            self.described(),
            field(detail)
        )
    }

    /// Type, size, and what the server called it where that differs.
    fn described(&self) -> String {
        let FileShape {
            media_type,
            declared,
            bytes,
            ..
        } = &self.shape;
        let is_unknown = media_type == "application/octet-stream";
        let declared = declared.as_deref().map(field);
        let (shown, aside) = match &declared {
            None if is_unknown => ("unknown type", String::new()),
            None => (media_type.as_str(), ", declared as unknown type".to_owned()),
            Some(declared) if is_unknown => (declared.as_str(), String::new()),
            Some(declared) if declared.eq_ignore_ascii_case(media_type) => {
                (media_type.as_str(), String::new())
            }
            Some(declared) => (media_type.as_str(), format!(", declared as {declared}")),
        };
        format!("{shown}, {bytes} bytes{aside}")
    }
}

/// What became of a file, with the line the model reads of it.
#[derive(Debug)]
pub(super) struct SettledFile {
    pub(super) line: String,
    pub(super) path: Option<String>,
    pub(super) text: Option<Vec<Piece>>,
    pub(super) failure: Option<(Option<usize>, ErrorCode, String)>,
}

impl SettledFile {
    /// Joins a file with its outcome; the artifact, where there is one, goes to the list.
    pub(super) fn new(
        mut file: File,
        outcome: Option<FileOutcome>,
        artifacts: &mut Vec<Artifact>,
    ) -> Self {
        let text = file
            .text
            .as_mut()
            .map(|text| std::mem::take(&mut text.pieces));
        match outcome {
            Some(FileOutcome::Stored(artifact)) => {
                let line = file.stored_line(&artifact);
                let path = Some(artifact.path.display().to_string());
                artifacts.push(artifact);
                Self {
                    line,
                    path,
                    text,
                    failure: None,
                }
            }
            Some(FileOutcome::Failed { code, detail }) => {
                let line = file.failed_line(&detail);
                Self {
                    line,
                    path: None,
                    text,
                    failure: Some((file.block, code, detail)),
                }
            }
            None => {
                let detail = "nobody stored it".to_owned();
                let line = file.failed_line(&detail);
                let failure = Some((file.block, ErrorCode::Internal, detail));
                Self {
                    line,
                    path: None,
                    text,
                    failure,
                }
            }
        }
    }
}
