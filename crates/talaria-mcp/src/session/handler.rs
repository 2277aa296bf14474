//! What we answer to a server's own requests, and how we introduce ourselves.

use std::future::{Future, ready};

use rmcp::ClientHandler;
#[expect(
    deprecated,
    reason = "old servers ask for roots; the answer has to be typed"
)]
use rmcp::model::ListRootsResult;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ErrorCode, ErrorData, Implementation, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient};

/// Declares no capability: roots would replace the folders a server was configured with, and
/// nobody here can be asked anything. Pings are answered, everything else is refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handler;

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("talaria", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    #[expect(
        deprecated,
        reason = "old servers ask for roots; the answer has to be typed"
    )]
    fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ListRootsResult, ErrorData>> + Send + '_ {
        ready(Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "roots/list is not offered",
            None,
        )))
    }
}
