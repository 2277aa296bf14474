//! Streamable HTTP: rmcp's transport over a client of our own, which bounds every body and hands
//! every message to the intake.

mod client;
mod events;
mod response;
mod streams;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::Url;
use reqwest::redirect::{Attempt, Policy};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use talaria_types::{ErrorCode, Failure};

use crate::intake::Intake;
use client::HttpClient;

/// A connection that is not there after this long is not coming.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an unused connection is kept.
const POOL_IDLE: Duration = Duration::from_secs(60);

/// A peer that vanished without a word is noticed within about three of these.
const KEEPALIVE: Duration = Duration::from_secs(30);

const MAX_REDIRECTS: usize = 5;

/// Requests in progress per session; the RPC lock is far below.
const MAX_REQUESTS: usize = 64;

/// Headers that the protocol sets; a configuration that names them is ignored there.
const OURS: [&str; 6] = [
    "accept",
    "content-type",
    "content-length",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
];

/// Makes the transport for an endpoint.
pub(crate) fn open(
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
    intake: &Arc<Intake>,
    discover_silence: Duration,
) -> Result<StreamableHttpClientTransport<HttpClient>, Failure> {
    let url =
        Url::parse(url).map_err(|error| unusable("the url is not an address").caused_by(error))?;
    let http = build(&url)
        .map_err(|error| unusable("the HTTP client cannot be set up").caused_by(error))?;
    let client = HttpClient::new(http, Arc::clone(intake), discover_silence);
    let mut retry = ExponentialBackoff::default();
    // One attempt to resume a response; a server that is gone fails its calls at once.
    retry.max_times = Some(1);
    retry.base_duration = Duration::from_millis(200);
    retry.max_delay = Some(Duration::from_secs(5));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(parse_headers(headers)?)
        .max_concurrent_requests(MAX_REQUESTS)
        .reinit_on_expired_session(true);
    config.retry_config = Arc::new(retry);
    config.allow_stateless = true;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

fn build(url: &Url) -> reqwest::Result<reqwest::Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing a race here means that somebody else has just done it.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .tcp_keepalive(KEEPALIVE)
        .tcp_nodelay(true)
        .redirect(Policy::custom(follow_within_origin));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Follows redirects that keep method and origin, so that no header of ours leaves the server it
/// was configured for. Any other redirect is the answer itself.
fn follow_within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
    let same_origin = attempt
        .previous()
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_method && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<std::net::IpAddr>();
    host == "localhost"
        || host.ends_with(".localhost")
        || address.is_ok_and(|address| address.is_loopback())
}

fn parse_headers(
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<HashMap<HeaderName, HeaderValue>, Failure> {
    let mut parsed = HashMap::new();
    for (name, value) in headers {
        let invalid = || unusable(format!("the header {name} is not a valid HTTP header"));
        let name =
            HeaderName::try_from(name.as_str()).map_err(|error| invalid().caused_by(error))?;
        let mut value = HeaderValue::from_str(value).map_err(|_secret| invalid())?;
        value.set_sensitive(true);
        if OURS.contains(&name.as_str()) {
            tracing::warn!(%name, "a configured header was ignored: the protocol sets it");
        } else {
            parsed.insert(name, value);
        }
    }
    Ok(parsed)
}

fn unusable(detail: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::ConnectFailed, detail)
}

#[cfg(test)]
mod tests;
