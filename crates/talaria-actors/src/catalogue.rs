//! What a server offers: connects, reads its tool list, makes the drafts of the directory.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use talaria_config::ServerConfig;
use talaria_mcp::RpcLimits;
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, ErrorCode, Failure};
use tokio_util::sync::CancellationToken;

use crate::directory::{ToolDraft, definition};
use crate::paging::{self, Listing};
use crate::upstream::{ConnectRequest, Connector, Upstream};
use crate::utility;

/// How long an unfinished attempt to connect may overrun its deadline.
const CONNECT_OVERRUN: Duration = Duration::from_secs(2);
/// How long closing a session that turned out useless may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// What a server offers.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    /// Its tools and utilities.
    pub(crate) tools: Vec<ToolDraft>,
    /// Whether it advertises resources.
    pub(crate) resources: bool,
    /// Why there are more than were read.
    pub(crate) cut: Option<&'static str>,
}

/// Connects and lists. Either both work or nothing is left.
///
/// # Errors
/// Those of the connector and of `tools/list`.
pub(crate) async fn open(
    connector: Arc<dyn Connector>,
    request: ConnectRequest,
    blocking: BlockingPool,
) -> Result<(Arc<dyn Upstream>, Catalogue), Failure> {
    let config = Arc::clone(&request.config);
    let give_up = request.deadline.instant() + CONNECT_OVERRUN;
    let connecting = AssertUnwindSafe(async { connector.connect(request).await }).catch_unwind();
    let session = match tokio::time::timeout_at(give_up, connecting).await {
        Ok(Ok(session)) => session?,
        Ok(Err(_)) => {
            return Err(Failure::new(
                ErrorCode::Internal,
                "something broke inside Talaria while it connected",
            ));
        }
        Err(_) => {
            return Err(Failure::new(
                ErrorCode::ConnectTimeout,
                format!(
                    "no connection within {} s",
                    config.connect_timeout.as_secs_f64()
                ),
            ));
        }
    };
    let instructions = session.peer().instructions.as_deref();
    definition::tell_of_instructions(&config.name, instructions);
    let within = config.connect_timeout;
    match read(Arc::clone(&session), config, within, blocking).await {
        Ok(catalogue) => Ok((session, catalogue)),
        Err(failure) => {
            session.close(Deadline::after(CLOSE_WITHIN)).await;
            Err(failure)
        }
    }
}

/// Reads the tool list of a live session, within that time.
///
/// # Errors
/// Those of `tools/list`.
pub(crate) async fn read(
    session: Arc<dyn Upstream>,
    config: Arc<ServerConfig>,
    within: Duration,
    blocking: BlockingPool,
) -> Result<Catalogue, Failure> {
    let reading = AssertUnwindSafe(list(session, config, within, blocking)).catch_unwind();
    reading.await.unwrap_or_else(|_| {
        Err(Failure::new(
            ErrorCode::Internal,
            "something broke inside Talaria while it read the tool list",
        ))
    })
}

async fn list(
    session: Arc<dyn Upstream>,
    config: Arc<ServerConfig>,
    within: Duration,
    blocking: BlockingPool,
) -> Result<Catalogue, Failure> {
    let peer = session.peer().clone();
    let deadline = Deadline::after(within);
    let (listed, cut) = if peer.tools {
        let cancel = CancellationToken::new();
        let limits = RpcLimits {
            idle: within,
            deadline,
            cancel,
        };
        let pages = tokio::time::timeout_at(
            deadline.instant() + CONNECT_OVERRUN,
            paging::collect(&*session, Listing::Tools, &limits),
        );
        let pages = pages.await.map_err(|elapsed| {
            Failure::new(
                ErrorCode::Timeout,
                format!("no tool list within {} s", within.as_secs_f64()),
            )
            .caused_by(elapsed)
        })??;
        (pages.merged.json, pages.cut)
    } else {
        (Value::Null, None)
    };
    // A list of thousands of tools takes its time; the server's loop has none.
    let filter = config.tools.clone();
    let mut tools = blocking
        .run(Deadline::after(config.connect_timeout), move || {
            definition::drafts(listed, &filter)
        })
        .await?;
    tools.extend(utility::offered(&peer, &config.tools));
    Ok(Catalogue {
        tools,
        resources: peer.resources,
        cut,
    })
}
