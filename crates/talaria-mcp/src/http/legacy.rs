//! The transport of revision 2024-11-05: one event stream brings everything the server says, and
//! what we say is posted to the address that its first event names.
//!
//! The stream is the session. When it ends, the session has ended.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::{Response, Url};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use talaria_telemetry::events;
use talaria_types::{ErrorCode, Failure, runtime};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::agent::Agent;
use super::response::{
    is_expired, lost, media_type, not_mcp, prefix, status_failure, text_header, unauthorized,
    unreachable,
};
use crate::intake::Intake;
use crate::intake::calls::Kind;
use crate::sse::{Event, EventFramer};

/// Messages read ahead of rmcp.
const INCOMING_MESSAGES: usize = 16;

/// Requests on their way at a time; the RPC lock is far below.
const MAX_POSTS: usize = 64;

/// Notifications and answers on their way at a time.
const MAX_ASIDES: usize = 16;

/// How soon it is noticed that nobody waits for a request any more.
const GIVEN_UP_CHECK: Duration = Duration::from_secs(1);

/// How long a message may be on its way that no deadline of a call bounds.
const POST_PATIENCE: Duration = Duration::from_secs(30);

/// The event that names the address for our messages.
const ENDPOINT: &str = "endpoint";

/// One session, as rmcp sees it.
#[derive(Debug)]
pub(crate) struct LegacyTransport {
    poster: Poster,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
}

/// Why there is no event stream.
#[derive(Debug)]
pub(crate) struct NotOpened {
    pub(crate) failure: Failure,
    /// Somebody answered who does not know this transport.
    pub(crate) is_foreign: bool,
}

impl From<Failure> for NotOpened {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            is_foreign: false,
        }
    }
}

/// Opens the event stream and waits for the address.
///
/// Cancelling `closing` ends the session.
///
/// # Errors
/// `connect_failed`, `server_unauthorized`; `server_misconfigured` where something else than an
/// event stream answers.
pub(crate) async fn open(
    agent: Agent,
    intake: &Arc<Intake>,
    closing: CancellationToken,
) -> Result<LegacyTransport, NotOpened> {
    let mut stream = EventStream {
        response: begin(&agent).await?,
        framer: EventFramer::new(intake.message_bytes),
        has_ended: false,
    };
    let endpoint = stream.endpoint(&agent).await?;
    let (incoming_tx, incoming) = mpsc::channel(INCOMING_MESSAGES);
    let reading = read_all(stream, Arc::clone(intake), incoming_tx);
    let until = closing.clone();
    drop(runtime::spawn("mcp_sse_reader", async move {
        until.run_until_cancelled(reading).await;
    }));
    let poster = Poster {
        agent,
        endpoint,
        intake: Arc::clone(intake),
        closing,
        places: Arc::new(Semaphore::new(MAX_POSTS)),
        asides: Arc::new(Semaphore::new(MAX_ASIDES)),
    };
    Ok(LegacyTransport { poster, incoming })
}

async fn begin(agent: &Agent) -> Result<Response, NotOpened> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let response = agent
        .send(Method::GET, agent.endpoint(), headers, None)
        .await
        .map_err(|error| {
            let detail = format!("its event stream: {}", unreachable(&error));
            Failure::new(ErrorCode::ConnectFailed, detail).caused_by(error.without_url())
        })?;
    let status = response.status();
    if matches!(status.as_u16(), 401 | 403) {
        return Err(unauthorized(status).into());
    }
    if !status.is_success() {
        let detail = format!(
            "it answered HTTP {} when asked for its event stream",
            status.as_u16()
        );
        return Err(NotOpened {
            failure: Failure::new(ErrorCode::ConnectFailed, detail),
            is_foreign: status.is_client_error(),
        });
    }
    let media_type = media_type(response.headers());
    if media_type == "text/event-stream" {
        Ok(response)
    } else {
        Err(NotOpened {
            failure: not_mcp(&media_type),
            is_foreign: true,
        })
    }
}

/// A body, event by event.
struct EventStream {
    response: Response,
    framer: EventFramer,
    has_ended: bool,
}

impl EventStream {
    /// The next event; `None` at the end, however it came.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.framer.next_event() {
                return Some(event);
            }
            if self.has_ended {
                return None;
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.framer.push(&chunk),
                Ok(None) | Err(_) => {
                    self.has_ended = true;
                    self.framer.finish();
                }
            }
        }
    }

    async fn endpoint(&mut self, agent: &Agent) -> Result<Url, Failure> {
        while let Some(event) = self.next().await {
            if let Event::Message(parts) = event
                && parts.name.as_deref() == Some(ENDPOINT)
            {
                let named = String::from_utf8_lossy(&parts.data);
                return resolve(self.response.url(), agent.endpoint(), named.trim());
            }
        }
        let detail = "its event stream ended before it named an address for messages";
        Err(Failure::new(ErrorCode::ConnectFailed, detail))
    }
}

/// The address for messages. It has to be the server's own: whoever can put an event into the
/// stream could have our messages sent anywhere otherwise.
fn resolve(stream: &Url, configured: &Url, named: &str) -> Result<Url, Failure> {
    let refused = |detail: &str| Err(Failure::new(ErrorCode::ConnectFailed, detail));
    match stream.join(named) {
        Ok(url) if url.origin() == stream.origin() || url.origin() == configured.origin() => {
            Ok(url)
        }
        Ok(_) => refused("it wants our messages at another origin than its own"),
        Err(_) => refused("the address it names for messages is none"),
    }
}

async fn read_all(
    mut stream: EventStream,
    intake: Arc<Intake>,
    incoming: mpsc::Sender<ServerJsonRpcMessage>,
) {
    loop {
        let event = tokio::select! {
            event = stream.next() => event,
            () = incoming.closed() => return,
        };
        let Some(event) = event else { return };
        for message in take_in(&intake, event).await {
            if incoming.send(message).await.is_err() {
                return;
            }
        }
    }
}

async fn take_in(intake: &Intake, event: Event) -> Vec<ServerJsonRpcMessage> {
    match event {
        Event::Message(parts) => match parts.name.as_deref() {
            None | Some("" | "message") if !parts.data.is_empty() => {
                intake.accept(parts.data, None).await
            }
            other => {
                tracing::debug!(server = %intake.server, event = other, "event ignored");
                Vec::new()
            }
        },
        Event::OversizeBegan { head } => intake.oversize_began(&head, None).into_iter().collect(),
        Event::OversizeEnded { head, tail, bytes } => intake
            .oversize_ended(&head, &tail, bytes)
            .into_iter()
            .collect(),
    }
}

/// What becomes of a message that was not taken; the call table has it too.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct NotTaken(Failure);

impl Transport<RoleClient> for LegacyTransport {
    type Error = NotTaken;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), NotTaken>> + Send + 'static {
        let own = self.poster.intake.calls.sent(&item);
        let poster = self.poster.clone();
        async move {
            let closing = poster.closing.clone();
            let posting = Box::pin(poster.post(item, own));
            closing
                .run_until_cancelled(posting)
                .await
                .unwrap_or_else(|| Err(NotTaken(lost())))
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), NotTaken> {
        self.poster.closing.cancel();
        Ok(())
    }
}

/// Sends our messages.
#[derive(Clone, Debug)]
struct Poster {
    agent: Agent,
    endpoint: Url,
    intake: Arc<Intake>,
    closing: CancellationToken,
    places: Arc<Semaphore>,
    asides: Arc<Semaphore>,
}

impl Poster {
    async fn post(self, item: ClientJsonRpcMessage, own: Option<i64>) -> Result<(), NotTaken> {
        let body = serde_json::to_vec(&item).map_err(|error| {
            let detail = "the message cannot be written";
            NotTaken(Failure::new(ErrorCode::Internal, detail).caused_by(error))
        })?;
        let posting = async {
            let place = match item {
                ClientJsonRpcMessage::Request(_) => self.places.acquire().await.ok(),
                ClientJsonRpcMessage::Notification(_) => self.asides.acquire().await.ok(),
                // As many as the server asks for: one that asks without reading must cost nothing.
                ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {
                    self.asides.try_acquire().ok()
                }
            };
            if place.is_none() {
                events::queue_refused("sse_outgoing");
                return Ok(());
            }
            self.send(body, own).await
        };
        let Some(own) = own else {
            return tokio::time::timeout(POST_PATIENCE, posting)
                .await
                .unwrap_or_else(|_| Err(NotTaken(lost())));
        };
        // Some servers take a request only when they have dealt with it, so it may be on its way
        // as long as somebody waits for it.
        tokio::pin!(posting);
        loop {
            match tokio::time::timeout(GIVEN_UP_CHECK, &mut posting).await {
                Ok(outcome) => return outcome,
                Err(_) if self.intake.calls.waiting(own).is_none() => return Ok(()),
                Err(_) => {}
            }
        }
    }

    async fn send(&self, body: Vec<u8>, own: Option<i64>) -> Result<(), NotTaken> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        let sent = self
            .agent
            .send(Method::POST, &self.endpoint, headers, Some(body))
            .await;
        let response = match sent {
            Ok(response) if response.status().is_success() => {
                // Read, so that the connection can be used again; what it says is of no interest.
                drop(tokio::time::timeout(POST_PATIENCE, prefix(response)).await);
                return Ok(());
            }
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                let detail = unreachable(&error);
                let failure = Failure::new(ErrorCode::ConnectionLost, detail);
                return Err(self.unsent(own, failure.caused_by(error.without_url())));
            }
            Err(error) => return Err(self.fail(own, lost().caused_by(error.without_url()))),
        };
        let status = response.status();
        // A tool that is forbidden says nothing of the credentials as such.
        let kind = own.and_then(|own| self.intake.calls.kind(own));
        let is_one_tool = status.as_u16() == 403 && kind == Some(Kind::CallTool);
        if matches!(status.as_u16(), 401 | 403) && !is_one_tool {
            return Err(self.fail(own, unauthorized(status)));
        }
        let retry_after = text_header(response.headers(), "retry-after");
        let location = text_header(response.headers(), "location");
        let words = String::from_utf8_lossy(&prefix(response).await)
            .trim()
            .to_owned();
        if status.as_u16() == 410 || is_expired(status, &words) {
            let detail = "it has ended the session";
            let not_taken = self.unsent(own, Failure::new(ErrorCode::ConnectionLost, detail));
            self.closing.cancel();
            return Err(not_taken);
        }
        let failure = status_failure(status, words, location, retry_after);
        Err(self.fail(own, failure))
    }

    /// The message was not taken, so that nothing can have run.
    fn unsent(&self, own: Option<i64>, failure: Failure) -> NotTaken {
        if let Some(own) = own {
            self.intake.calls.unsent(own, failure.clone());
        }
        NotTaken(failure)
    }

    fn fail(&self, own: Option<i64>, failure: Failure) -> NotTaken {
        if let Some(own) = own {
            drop(self.intake.fail(own, failure.clone()));
        }
        NotTaken(failure)
    }
}

#[cfg(test)]
mod tests;
