//! The supervisor: owns every server's life; its handle routes calls without passing through it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use talaria_config::Config;
use talaria_content::injection::Finding;
use talaria_content::{ReaderTool, ResultKind};
use talaria_mcp::{Guard, Habits, PackageCheck};
use talaria_types::runtime::BlockingPool;
use talaria_types::{ErrorCode, Failure, PayloadSink, RawResult, ServerName};

pub(crate) mod actor;
mod difference;
mod governed;
pub(crate) mod handle;
mod handlers;
mod lifeline;
mod messages;
pub(crate) mod plan;
mod reload;
mod report;
mod status;
#[cfg(test)]
mod tests;

pub use handle::{SupervisorHandle, ToolListing};
pub use report::{BrokenServer, ReloadReport};

use crate::masking::{MaskingConnector, SharedMasker};
use crate::upstream::{Connector, McpConnector};
use plan::Timing;

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
    pub blocking: BlockingPool,
    /// Where actors run.
    pub placement: Placement,
    /// Program to start as the guard process, none to run without.
    pub guard_program: Option<PathBuf>,
    /// The process environment.
    pub environment: Arc<BTreeMap<String, String>>,
    /// Takes configured secrets out of failures and tool lists.
    pub masker: SharedMasker,
}

/// Starts the supervisor.
#[derive(Debug)]
pub struct Supervisor {}

impl Supervisor {
    /// Starts the actor and, in parallel, every enabled server. Returns at once. Needs a running
    /// `actix::System`.
    ///
    /// # Errors
    /// The guard process cannot be started.
    pub fn start(options: SupervisorOptions) -> Result<SupervisorHandle, Failure> {
        let guard = options
            .guard_program
            .as_deref()
            .map(Guard::start)
            .transpose();
        let guard = guard.map_err(|error| {
            Failure::new(ErrorCode::Internal, "the guard process cannot be started")
                .caused_by(error)
        })?;
        let config = &options.config.talaria;
        let security = &options.config.security;
        let connector = McpConnector {
            sink: Arc::new(options.store) as Arc<dyn PayloadSink>,
            blocking: options.blocking.clone(),
            guard,
            message_bytes: config.limits.message_bytes,
            logs: config.home.join("logs"),
            stderr_log_bytes: config.limits.stderr_log_bytes,
            habits: Habits::default(),
            packages: security
                .osv_check
                .then(|| PackageCheck::new(&security.osv_url, &options.environment)),
            environment: options.environment,
        };
        Ok(Self::start_with(&Parts {
            config: options.config,
            blocking: options.blocking.clone(),
            placement: options.placement,
            connector: Arc::new(MaskingConnector {
                inner: Arc::new(connector),
                masker: options.masker,
                blocking: options.blocking,
            }),
            timing: Timing::PRODUCTION,
        }))
    }

    /// Starts over any connector.
    pub(crate) fn start_with(parts: &Parts) -> SupervisorHandle {
        actor::start(parts)
    }
}

/// What a supervisor needs, whatever makes the sessions.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// The configuration.
    pub(crate) config: Arc<Config>,
    /// Bounded blocking jobs.
    pub(crate) blocking: BlockingPool,
    /// Where actors run.
    pub(crate) placement: Placement,
    /// Makes sessions.
    pub(crate) connector: Arc<dyn Connector>,
    /// Intervals and limits.
    pub(crate) timing: Timing,
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
    /// `configured`, `connecting`, `ready`, `degraded`, `backoff`, `parked`, `failed`,
    /// `disabled`, `draining`, `stopped`.
    pub state: String,
    /// Since when it is in this state, as in RFC 3339; none for the state it began with.
    pub since: Option<String>,
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
    /// Whether the tools it is listed with may not be those it has now.
    pub stale: bool,
    /// Since when it should have a session and has none, as in RFC 3339.
    pub down_since: Option<String>,
    /// Whether only other credentials bring it back.
    pub needs_reauth: bool,
    /// What its breaker lets through.
    pub breaker: BreakerStatus,
    /// Words in its instructions and tools that are meant to steer a model; the first few.
    pub findings: Vec<Finding>,
}

/// What the breaker of a server lets through.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BreakerStatus {
    /// `closed` lets everything through, `open` nothing, `half_open` one call.
    pub state: String,
    /// Milliseconds until an open breaker lets a call through.
    pub retry_after_ms: Option<u64>,
}

/// A server that is down while its tools stay listed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Outage {
    /// Its name.
    pub server: String,
    /// The state it is in.
    pub state: String,
    /// Since when it is down, as in RFC 3339.
    pub down_since: Option<String>,
}

impl ServerStatus {
    /// Whether it has a session.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.state.as_str(), "ready" | "degraded")
    }

    /// Whether it takes calls: it has a session, or gets one with the next call.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.is_up() || self.state == "configured"
    }
}
