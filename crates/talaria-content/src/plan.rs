//! From a raw result to the files it wants, and from their outcomes to a delivery.

mod answer;
mod blocks;
mod draft;
mod kinds;
mod lines;
mod listing;
mod planner;
mod prompt;
mod reference;
mod resources;
mod shapes;
mod spill;
mod stray;

use std::path::PathBuf;

use serde_json::Value;
use talaria_types::{ErrorCode, RawResult, ServerName, StagedPayload};

use crate::delivery::{Artifact, ArtifactKind, BlockRecord, Gate, Link};
use crate::masking::Masker;
use crate::notices::Notices;
use crate::render::Format;
use crate::sniff::{Whole, decode_text};

pub use answer::{NoAnswer, tool_answer_text};
pub use draft::Draft;

use lines::{File, Part, TextView};
use planner::Planner;
use reference::Patch;
use shapes::Located;

/// Everything the rules need besides the result itself.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// What was asked of the server.
    pub kind: ResultKind,
    /// Raw server name, when known.
    pub server: Option<ServerName>,
    /// Raw tool name, when known.
    pub tool: Option<String>,
    /// The tool that reads this server's resources.
    pub reader: ReaderTool,
    /// The format asked for; `hermes` and `text` save nothing for failed results.
    pub format: Format,
    /// Characters of model text before it is spilled.
    pub result_size_chars: usize,
    /// The pixel gate's answer.
    pub gate: Gate,
    /// Takes configured secrets out of what the server says.
    pub masker: Masker,
}

/// What was asked of the server; decides how its result is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// `tools/call`: a `CallToolResult`.
    ToolCall,
    /// `resources/read`: `contents`.
    ReadResource,
    /// `resources/list`, all pages merged under `resources`.
    ListResources,
    /// `prompts/list`, all pages merged under `prompts`.
    ListPrompts,
    /// `prompts/get`: `messages`.
    GetPrompt,
}

/// The tool that reads a server's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReaderTool {
    /// Registered under this public name.
    Registered(String),
    /// The server offers none.
    Missing,
}

/// A file a result wants.
#[derive(Debug)]
pub struct FileRequest {
    /// What it is; decides the folder and the prefix.
    pub kind: ArtifactKind,
    /// Its final, safe name with the right extension.
    pub name: String,
    /// Whether the name came from the server and belongs on disk too.
    pub named: bool,
    /// Sniffed type.
    pub media_type: String,
    /// What the server said.
    pub declared_type: Option<String>,
    /// Where the server said it comes from.
    pub source_uri: Option<String>,
    /// The bytes.
    pub body: FileBody,
}

/// The bytes of a wanted file.
#[derive(Debug)]
pub enum FileBody {
    /// In memory.
    Bytes(Vec<u8>),
    /// Already in the staging area.
    Staged(StagedPayload),
}

/// What became of a wanted file.
#[derive(Debug)]
pub enum FileOutcome {
    /// Stored.
    Stored(Artifact),
    /// Not stored.
    Failed {
        /// Code of the store.
        code: ErrorCode,
        /// A sentence for the caller.
        detail: String,
    },
}

/// A staged text payload that the model would read inline if somebody reads the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextToRead {
    /// The staging file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// A result read, waiting for its files.
#[derive(Debug)]
pub struct Plan {
    request: PlanRequest,
    parts: Vec<Part>,
    files: Vec<File>,
    blocks: Vec<BlockRecord>,
    notices: Notices,
    links: Vec<Link>,
    structured: Option<Located>,
    meta: Option<Located>,
    patches: Vec<Patch>,
    is_error: bool,
    /// Whether any part is more than blanks and notices (specification 1.8).
    has_usable_text: bool,
    /// What `resources/list` and `prompts/list` answer in format `hermes`.
    listing: Option<Value>,
    /// What `prompts/get` answers besides its messages.
    prompt: Option<prompt::Frame>,
}

/// Reads a result by the rules of specification 1 and design decisions 1–13.
#[must_use]
pub fn plan(raw: RawResult, request: PlanRequest) -> Plan {
    Planner::new(request).read(raw)
}

impl Plan {
    /// The staged texts that are short enough to be shown inline. Reading them is optional: where
    /// [`Self::put_texts`] does not bring one, its beginning is shown.
    #[must_use]
    pub fn texts_to_read(&self) -> Vec<TextToRead> {
        let budget = self.request.result_size_chars;
        self.files
            .iter()
            .filter_map(|file| file.to_read(budget))
            .collect()
    }

    /// Brings the contents of [`Self::texts_to_read`], in that order. Call before
    /// [`Self::take_files`].
    pub fn put_texts(&mut self, texts: Vec<Option<Vec<u8>>>) {
        let budget = self.request.result_size_chars;
        let unread = self
            .files
            .iter_mut()
            .filter(|file| file.to_read(budget).is_some());
        for (file, text) in unread.zip(texts) {
            if let Some(bytes) = text {
                file.text = decode_text(&bytes, Whole::Yes)
                    .map(|text| TextView::new(&self.request.masker.mask(&text), true, budget));
            }
        }
    }

    /// Takes the files this result wants, in block order. Call once.
    pub fn take_files(&mut self) -> Vec<FileRequest> {
        self.files
            .iter_mut()
            .filter_map(|file| file.request.take())
            .collect()
    }

    /// Puts the outcomes, in the order of [`Self::take_files`], in place.
    #[must_use]
    pub fn finish(self, outcomes: Vec<FileOutcome>) -> Draft {
        Draft::new(self, outcomes)
    }
}
