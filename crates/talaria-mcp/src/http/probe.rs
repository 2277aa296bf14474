//! What answers at an address that does not take part in the handshake (specification 4.3).
//!
//! Asked after a handshake that failed, not before every one: a server that does speak MCP may
//! answer a `GET` with whatever it likes, and is not made to wait.

use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method};

use super::agent::Agent;
use super::response::media_type;

const PATIENCE: Duration = Duration::from_secs(5);

/// The media type of what everybody is shown there, if it is nothing an MCP server sends.
pub(crate) async fn look_at(agent: &Agent) -> Option<String> {
    tokio::time::timeout(PATIENCE, ask(agent)).await.ok()?
}

async fn ask(agent: &Agent) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    for method in [Method::HEAD, Method::GET] {
        let url = agent.endpoint();
        let response = agent.send(method, url, headers.clone(), None).await.ok()?;
        let status = response.status();
        if status.is_success() {
            let media_type = media_type(response.headers());
            let is_ours = matches!(
                media_type.as_str(),
                "" | "application/json" | "text/event-stream"
            );
            return (!is_ours).then_some(media_type);
        }
        if !matches!(status.as_u16(), 405 | 501) {
            return None;
        }
    }
    None
}
