//! One session with one MCP server.

mod connect;
mod diagnosis;
mod handler;
mod listen;
mod reach;
mod request;
mod shared;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use talaria_config::{ProtocolWish, TransportConfig};
use talaria_types::{Deadline, Failure, PayloadSink, RawResult, ServerName};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{Guard, Habits, PackageCheck};
use shared::Shared;

pub use connect::connect;
pub use diagnosis::ForeignModule;

/// What a session is made from.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Configured name, for logs and metrics.
    pub server: ServerName,
    /// How it is reached.
    pub transport: TransportConfig,
    /// Which revisions of the protocol are spoken with it.
    pub protocol: ProtocolWish,
    /// Connect and initialise until then.
    pub deadline: Deadline,
    /// One message of the server.
    pub message_bytes: usize,
    /// Where payloads go.
    pub sink: Arc<dyn PayloadSink>,
    /// Where big messages are read; keeps the disk off the server's loop.
    pub blocking: talaria_types::runtime::BlockingPool,
    /// Kills the process group should Talaria die.
    pub guard: Option<Guard>,
    /// Where the child's stderr goes.
    pub stderr_log: PathBuf,
    /// Size at which that log starts over.
    pub stderr_log_bytes: u64,
    /// Environment the allow-list draws from.
    pub environment: Arc<std::collections::BTreeMap<String, String>>,
    /// What earlier sessions taught, shared by all servers.
    pub habits: Habits,
    /// Asked before a launcher runs a package; shared by all servers.
    pub packages: Option<PackageCheck>,
    /// Bounded; a full channel drops the event and counts it.
    pub events: mpsc::Sender<SessionEvent>,
}

/// What a server says on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// `notifications/tools/list_changed`.
    ToolsChanged,
}

/// What the handshake told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// `serverInfo.name`.
    pub name: String,
    /// `serverInfo.version`.
    pub version: String,
    /// Negotiated protocol revision.
    pub protocol_version: String,
    /// `capabilities.tools` is there.
    pub tools: bool,
    /// `capabilities.resources` is there.
    pub resources: bool,
    /// `capabilities.prompts` is there.
    pub prompts: bool,
    /// Server instructions.
    pub instructions: Option<String>,
    /// Process id of the child, for stdio.
    pub pid: Option<u32>,
}

/// One request to the server.
#[derive(Clone, Debug)]
pub enum Rpc {
    /// `tools/list`.
    ListTools {
        /// Page.
        cursor: Option<String>,
    },
    /// `tools/call`.
    CallTool {
        /// Raw tool name.
        name: String,
        /// Arguments.
        arguments: Map<String, Value>,
    },
    /// `resources/list`.
    ListResources {
        /// Page.
        cursor: Option<String>,
    },
    /// `resources/read`.
    ReadResource {
        /// Address.
        uri: String,
    },
    /// `prompts/list`.
    ListPrompts {
        /// Page.
        cursor: Option<String>,
    },
    /// `prompts/get`.
    GetPrompt {
        /// Prompt name.
        name: String,
        /// Arguments; the protocol takes strings.
        arguments: Map<String, Value>,
    },
    /// `ping`.
    Ping,
}

impl Rpc {
    /// The JSON-RPC method.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self {
            Self::ListTools { .. } => "tools/list",
            Self::CallTool { .. } => "tools/call",
            Self::ListResources { .. } => "resources/list",
            Self::ReadResource { .. } => "resources/read",
            Self::ListPrompts { .. } => "prompts/list",
            Self::GetPrompt { .. } => "prompts/get",
            Self::Ping => "ping",
        }
    }
}

/// How long a request may take (design decision 19).
#[derive(Clone, Debug)]
pub struct RpcLimits {
    /// Time without an answer or progress.
    pub idle: Duration,
    /// Hard end.
    pub deadline: Deadline,
    /// The caller's cancellation.
    pub cancel: CancellationToken,
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    /// We closed it.
    Us,
    /// The child exited; its exit status in words.
    ChildExit(String),
    /// The transport ended.
    Transport(String),
}

/// A live session; cheap to clone. The server is stopped when the last clone goes.
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Shared>,
}

impl Session {
    /// What the handshake told.
    #[must_use]
    pub fn peer(&self) -> &PeerInfo {
        &self.shared.info
    }

    /// Sends a request and waits for its raw result. Timeout, deadline and cancellation send
    /// `notifications/cancelled`, and so does dropping the future.
    ///
    /// A `ping` that the server refuses counts as answered: it proves that the server lives.
    ///
    /// # Errors
    /// `timeout`, `cancelled`, `connection_lost`, `server_error`, `server_unauthorized`,
    /// `message_too_large`, `malformed_message`; `outcome_uncertain` is set where a `tools/call`
    /// may have run.
    pub async fn request(&self, rpc: Rpc, limits: RpcLimits) -> Result<RawResult, Failure> {
        request::perform(&self.shared, rpc, limits).await
    }

    /// Resolves when the session has ended, at once if it already has.
    pub async fn closed(&self) -> ClosedBy {
        self.shared.closed().await
    }

    /// Ends the session: close stdin, wait, terminate, kill the process group. Never longer than
    /// the deadline.
    pub async fn close(&self, deadline: Deadline) {
        self.shared.close(deadline).await;
    }
}

#[cfg(test)]
mod tests;
