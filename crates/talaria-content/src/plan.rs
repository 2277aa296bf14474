//! From a raw result to the files it wants, and from their outcomes to a delivery.

use talaria_types::{ErrorCode, RawResult, ServerName, StagedPayload};

use crate::delivery::{Artifact, ArtifactKind, Delivery, Gate};
use crate::render::Format;

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

/// A result read, waiting for its files.
#[derive(Debug)]
pub struct Plan {}

/// Reads a result by the rules of specification 1 and design decisions 1–13.
#[must_use]
pub fn plan(raw: RawResult, request: PlanRequest) -> Plan {
    let _ = (raw, request);
    todo!()
}

impl Plan {
    /// Takes the files this result wants, in block order. Call once.
    pub fn take_files(&mut self) -> Vec<FileRequest> {
        todo!()
    }

    /// Puts the outcomes, in the order of [`Self::take_files`], in place.
    #[must_use]
    pub fn finish(self, outcomes: Vec<FileOutcome>) -> Draft {
        let _ = outcomes;
        todo!()
    }
}

/// A delivery whose text is not bounded yet.
#[derive(Debug)]
pub struct Draft {}

impl Draft {
    /// The files that take what is over the model's budget. Call once.
    pub fn take_spills(&mut self) -> Vec<FileRequest> {
        todo!()
    }

    /// Bounds the text, naming the spill files, in the order of [`Self::take_spills`].
    #[must_use]
    pub fn settle(self, spills: Vec<FileOutcome>) -> Delivery {
        let _ = spills;
        todo!()
    }
}
