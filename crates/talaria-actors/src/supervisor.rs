//! The supervisor: routes calls and owns every server's life.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use talaria_config::Config;
use talaria_content::{ReaderTool, ResultKind};
use talaria_types::{CallContext, Deadline, Failure, RawResult, ServerName};

use crate::directory::PublicTool;

/// Where actors run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each actor on its own thread and event loop.
    OwnArbiters,
    /// All on the current one, so that one paused clock reaches them.
    Current,
}

/// What a supervisor is made from.
#[derive(Clone, Debug)]
pub struct SupervisorOptions {
    /// The configuration.
    pub config: Arc<Config>,
    /// Where payloads and files go.
    pub store: talaria_media::MediaStore,
    /// Bounded blocking jobs.
    pub blocking: talaria_types::runtime::BlockingPool,
    /// Where actors run.
    pub placement: Placement,
    /// Program to start as the guard process, none to run without.
    pub guard_program: Option<PathBuf>,
    /// The process environment.
    pub environment: Arc<std::collections::BTreeMap<String, String>>,
}

/// Starts the supervisor.
#[derive(Debug)]
pub struct Supervisor {}

impl Supervisor {
    /// Starts the actor and, in parallel, every enabled server. Returns at once.
    ///
    /// # Errors
    /// The guard process cannot be started.
    pub fn start(options: SupervisorOptions) -> Result<SupervisorHandle, Failure> {
        let _ = options;
        todo!()
    }
}

/// A server's raw answer and what is needed to deliver it.
#[derive(Debug)]
pub struct ToolAnswer {
    /// The raw result.
    pub raw: RawResult,
    /// How to read it.
    pub kind: ResultKind,
    /// Server it came from.
    pub server: ServerName,
    /// Raw tool name.
    pub tool: String,
    /// The tool that reads this server's resources.
    pub reader: ReaderTool,
}

/// What is known of a server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServerStatus {
    /// Configured name.
    pub name: String,
    /// `starting`, `ready`, `backoff`, `failed`, `disabled`, `draining`, `stopped`.
    pub state: String,
    /// Why, where the state needs a reason.
    pub reason: Option<String>,
    /// `stdio` or `http`.
    pub transport: String,
    /// Negotiated revision.
    pub protocol_version: Option<String>,
    /// `serverInfo` as name and version.
    pub server_info: Option<String>,
    /// Process id of the child.
    pub pid: Option<u32>,
    /// Tools offered.
    pub tools: usize,
    /// RPCs that run.
    pub in_flight: usize,
    /// RPCs that wait.
    pub pending: usize,
    /// Times it was started again.
    pub restarts: u64,
    /// Milliseconds until the next attempt.
    pub next_attempt_ms: Option<u64>,
}

/// Handle to the supervisor; cheap to clone.
#[derive(Clone, Debug)]
pub struct SupervisorHandle {}

impl SupervisorHandle {
    /// Calls a tool by its public name.
    ///
    /// # Errors
    /// Any transport-level failure; a tool's own error is an answer.
    pub async fn call_tool(&self, ctx: CallContext, public_name: &str, arguments: Map<String, Value>) -> Result<ToolAnswer, Failure> {
        let _ = (ctx, public_name, arguments);
        todo!()
    }

    /// Finds the public name for a server and a raw tool name.
    ///
    /// # Errors
    /// `unknown_server`, `unknown_tool`.
    pub fn resolve(&self, server: &str, tool: &str) -> Result<PublicTool, Failure> {
        let _ = (server, tool);
        todo!()
    }

    /// Looks a public name up.
    #[must_use]
    pub fn find_tool(&self, public_name: &str) -> Option<PublicTool> {
        let _ = public_name;
        todo!()
    }

    /// Every tool, in a fixed order.
    #[must_use]
    pub fn tools(&self) -> Vec<PublicTool> {
        todo!()
    }

    /// The tool that reads a server's resources.
    #[must_use]
    pub fn reader_tool(&self, server: &str) -> ReaderTool {
        let _ = server;
        todo!()
    }

    /// Every server.
    ///
    /// # Errors
    /// The supervisor does not answer.
    pub async fn servers(&self, deadline: Deadline) -> Result<Vec<ServerStatus>, Failure> {
        let _ = deadline;
        todo!()
    }

    /// One server.
    ///
    /// # Errors
    /// `unknown_server`.
    pub async fn server(&self, name: &str, deadline: Deadline) -> Result<ServerStatus, Failure> {
        let _ = (name, deadline);
        todo!()
    }

    /// Ends the session and starts a new one now; answers with the status it reached.
    ///
    /// # Errors
    /// `unknown_server`, `server_disabled`, `server_misconfigured`.
    pub async fn reconnect(&self, name: &str, deadline: Deadline) -> Result<ServerStatus, Failure> {
        let _ = (name, deadline);
        todo!()
    }

    /// Starts a disabled server.
    ///
    /// # Errors
    /// `unknown_server`, `server_misconfigured`.
    pub async fn enable(&self, name: &str, deadline: Deadline) -> Result<ServerStatus, Failure> {
        let _ = (name, deadline);
        todo!()
    }

    /// Stops a server until it is enabled again.
    ///
    /// # Errors
    /// `unknown_server`.
    pub async fn disable(&self, name: &str, deadline: Deadline) -> Result<ServerStatus, Failure> {
        let _ = (name, deadline);
        todo!()
    }

    /// Waits until every enabled server is ready or has failed once.
    pub async fn settled(&self, deadline: Deadline) {
        let _ = deadline;
    }

    /// Takes no new calls, waits for those that run, stops every server.
    pub async fn drain(&self, calls: Duration) {
        let _ = calls;
    }
}
