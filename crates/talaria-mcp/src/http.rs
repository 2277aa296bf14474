//! HTTP: rmcp's Streamable HTTP transport over a client of our own, which bounds every body and
//! hands every message to the intake, and the older HTTP+SSE, which rmcp has not.

mod agent;
mod client;
mod events;
mod legacy;
mod probe;
mod proxy;
mod reception;
mod redirect;
mod resolver;
mod response;
mod streams;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::intake::Intake;
use client::HttpClient;

pub(crate) use agent::Agent;
pub(crate) use legacy::{NotOpened, open as open_legacy};
pub(crate) use probe::look_at;
pub(crate) use reception::{Received, Reception};
pub(crate) use response::not_mcp;
pub(crate) use {
    proxy::apply as with_proxies, tls::set_up as set_up_tls, tls::shared as shared_tls,
};

/// Requests in progress per session; the RPC lock is far below.
const MAX_REQUESTS: usize = 64;

/// Makes the transport for an endpoint of Streamable HTTP.
pub(crate) fn open(
    agent: Agent,
    intake: &Arc<Intake>,
    discover_silence: Duration,
    reception: &Reception,
) -> StreamableHttpClientTransport<HttpClient> {
    let uri = agent.endpoint().as_str().to_owned();
    let client = HttpClient::new(
        agent,
        Arc::clone(intake),
        discover_silence,
        reception.clone(),
    );
    let mut retry = ExponentialBackoff::default();
    // One attempt to resume a response; a server that is gone fails its calls at once.
    retry.max_times = Some(1);
    retry.base_duration = Duration::from_millis(200);
    retry.max_delay = Some(Duration::from_secs(5));
    let mut config = StreamableHttpClientTransportConfig::with_uri(uri)
        .max_concurrent_requests(MAX_REQUESTS)
        .reinit_on_expired_session(true);
    config.retry_config = Arc::new(retry);
    config.allow_stateless = true;
    StreamableHttpClientTransport::with_client(client, config)
}

#[cfg(test)]
mod tests;
