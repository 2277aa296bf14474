//! The seam between a server actor and the MCP client: what a session can do, and who makes one.
//!
//! Production uses `talaria_mcp`; the actor tests plug in scripted sessions.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use talaria_config::ServerConfig;
use talaria_mcp::{
    ClosedBy, ConnectOptions, Guard, Habits, PackageCheck, PeerInfo, Rpc, RpcLimits, Session,
    SessionEvent,
};
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, Failure, PayloadSink, RawResult};
use tokio::sync::mpsc;

use crate::directory::naming;

/// A boxed future that may move between threads.
pub(crate) type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A live session with one MCP server.
pub(crate) trait Upstream: fmt::Debug + Send + Sync {
    /// What the handshake told.
    fn peer(&self) -> &PeerInfo;

    /// Sends a request and waits for its raw result.
    fn request(&self, rpc: Rpc, limits: RpcLimits) -> Job<Result<RawResult, Failure>>;

    /// Resolves when the session has ended.
    fn closed(&self) -> Job<ClosedBy>;

    /// Ends the session within the deadline.
    fn close(&self, deadline: Deadline) -> Job<()>;
}

/// Makes sessions.
pub(crate) trait Connector: fmt::Debug + Send + Sync {
    /// Starts or reaches the server and performs the handshake.
    fn connect(&self, request: ConnectRequest) -> Job<Result<Arc<dyn Upstream>, Failure>>;
}

/// What one connection is made from.
#[derive(Debug)]
pub(crate) struct ConnectRequest {
    /// The server's configuration.
    pub(crate) config: Arc<ServerConfig>,
    /// Connect and initialise until then.
    pub(crate) deadline: Deadline,
    /// Takes what the server says on its own.
    pub(crate) events: mpsc::Sender<SessionEvent>,
}

impl Upstream for Session {
    fn peer(&self) -> &PeerInfo {
        Self::peer(self)
    }

    fn request(&self, rpc: Rpc, limits: RpcLimits) -> Job<Result<RawResult, Failure>> {
        let session = self.clone();
        Box::pin(async move { Self::request(&session, rpc, limits).await })
    }

    fn closed(&self) -> Job<ClosedBy> {
        let session = self.clone();
        Box::pin(async move { Self::closed(&session).await })
    }

    fn close(&self, deadline: Deadline) -> Job<()> {
        let session = self.clone();
        Box::pin(async move { Self::close(&session, deadline).await })
    }
}

/// Makes real sessions through `talaria_mcp`.
#[derive(Debug)]
pub(crate) struct McpConnector {
    /// Where payloads go.
    pub(crate) sink: Arc<dyn PayloadSink>,
    /// Where big messages are read.
    pub(crate) blocking: BlockingPool,
    /// Kills process groups should Talaria die.
    pub(crate) guard: Option<Guard>,
    /// One message of a server.
    pub(crate) message_bytes: usize,
    /// Folder of the servers' stderr logs.
    pub(crate) logs: PathBuf,
    /// Size at which such a log starts over.
    pub(crate) stderr_log_bytes: u64,
    /// Environment the allow-list draws from.
    pub(crate) environment: Arc<BTreeMap<String, String>>,
    /// What earlier sessions taught.
    pub(crate) habits: Habits,
    /// Asked before a launcher runs a package.
    pub(crate) packages: Option<PackageCheck>,
}

impl Connector for McpConnector {
    fn connect(&self, request: ConnectRequest) -> Job<Result<Arc<dyn Upstream>, Failure>> {
        let file = format!("mcp-{}.stderr.log", naming::file_stem(&request.config.name));
        let options = ConnectOptions {
            server: request.config.name.clone(),
            transport: request.config.transport.clone(),
            protocol: request.config.protocol,
            deadline: request.deadline,
            message_bytes: self.message_bytes,
            sink: Arc::clone(&self.sink),
            blocking: self.blocking.clone(),
            guard: self.guard.clone(),
            stderr_log: self.logs.join(file),
            stderr_log_bytes: self.stderr_log_bytes,
            environment: Arc::clone(&self.environment),
            habits: self.habits.clone(),
            packages: self.packages.clone(),
            events: request.events,
        };
        Box::pin(async move {
            let session = talaria_mcp::connect(options).await?;
            Ok(Arc::new(session) as Arc<dyn Upstream>)
        })
    }
}
