//! The delivery pipeline: pure rules, then files on the blocking pool, then the bounded text.

use talaria_content::{Delivery, Format, ReaderTool, ResultKind};
use talaria_media::MediaStore;
use talaria_types::runtime::BlockingPool;
use talaria_types::{CallContext, Failure, RawResult, ServerName};

/// Turns raw results into deliveries; cheap to clone.
#[derive(Clone, Debug)]
pub struct DeliveryService {
    _store: MediaStore,
    _blocking: BlockingPool,
}

/// What one delivery needs besides the result.
#[derive(Clone, Debug)]
pub struct DeliverOptions {
    /// What was asked of the server.
    pub kind: ResultKind,
    /// Raw server name.
    pub server: Option<ServerName>,
    /// Raw tool name.
    pub tool: Option<String>,
    /// The tool that reads this server's resources.
    pub reader: ReaderTool,
    /// Format asked for.
    pub format: Format,
}

impl DeliveryService {
    /// A service over a store.
    #[must_use]
    pub fn new(config: &talaria_config::Config, store: MediaStore, blocking: BlockingPool) -> Self {
        let _ = config;
        Self { _store: store, _blocking: blocking }
    }

    /// Delivers a raw result. A file that cannot be stored costs its block, never the call.
    ///
    /// # Errors
    /// `busy` when no worker came free before the deadline.
    pub async fn deliver(&self, ctx: &CallContext, raw: RawResult, options: DeliverOptions) -> Result<Delivery, Failure> {
        let _ = (ctx, raw, options);
        todo!()
    }

    /// Reads a JSON body that holds a result (`/v1/results/deliver`), staging its payloads.
    ///
    /// # Errors
    /// `malformed_message` when it is not JSON.
    pub async fn read_body(&self, ctx: &CallContext, body: Vec<u8>, result_at: &'static str) -> Result<talaria_mcp::wire::Scrubbed, Failure> {
        let _ = (ctx, body, result_at);
        todo!()
    }
}
