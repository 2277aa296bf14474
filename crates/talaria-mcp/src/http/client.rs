//! The HTTP client behind rmcp's transport.

mod answer;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt, iter};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode as RpcErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse};
use talaria_types::{ErrorCode, Failure};

use super::agent::Agent;
use super::events::{Events, lost_in_response};
use super::reception::Reception;
use super::response::{lost, text_header, unauthorized, unreachable};
use super::streams::Streams;
use crate::intake::Intake;
use crate::intake::calls::Kind;

/// How long a common stream may be absent on which an answer is to come.
const COMMON_WAIT: Duration = Duration::from_secs(2);

type HttpError = StreamableHttpError<ClientError>;

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// It never reached the server.
    #[error("the server cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// It failed; the call table holds the same failure.
    #[error(transparent)]
    Failed(Failure),
}

/// One session's client.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    agent: Agent,
    intake: Arc<Intake>,
    streams: Streams,
    discover_silence: Duration,
    reception: Reception,
}

/// What a response to a `POST` came to.
enum Reply {
    Accepted,
    Messages(Vec<ServerJsonRpcMessage>),
    Events(Box<Events>),
}

impl HttpClient {
    pub(super) fn new(
        agent: Agent,
        intake: Arc<Intake>,
        discover_silence: Duration,
        reception: Reception,
    ) -> Self {
        Self {
            agent,
            intake,
            streams: Streams::default(),
            discover_silence,
            reception,
        }
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let own = self.intake.calls.sent(message);
        let kind = own.and_then(|own| self.intake.calls.kind(own));
        let exchange = self.exchange(message, session, headers, own);
        if kind != Some(Kind::Discover) {
            let (reply, session) = exchange.await?;
            if let (Reply::Accepted, Some(own)) = (&reply, own) {
                self.await_elsewhere(own).await?;
            }
            return self.respond(reply, session, own);
        }
        let discover = async {
            let (reply, session) = exchange.await?;
            match reply {
                Reply::Events(events) => {
                    let first = events.first_message().await;
                    let message = first.and_then(|data| serde_json::from_str(&data).ok());
                    Ok((Reply::Messages(message.into_iter().collect()), session))
                }
                reply @ (Reply::Accepted | Reply::Messages(_)) => Ok((reply, session)),
            }
        };
        match tokio::time::timeout(self.discover_silence, discover).await {
            Ok(Ok((Reply::Messages(messages), session))) if !messages.is_empty() => {
                self.respond(Reply::Messages(messages), session, own)
            }
            Ok(Err(error)) if !is_refusal(&error) => Err(error),
            // Whatever else came, the server does not know the method: it is an old one.
            Ok(_) => Ok(StreamableHttpPostResponse::Json(unknown_method(own), None)),
            Err(_) => {
                if let Some(own) = own {
                    self.intake.calls.discovered_in_vain(own);
                }
                Ok(StreamableHttpPostResponse::Json(unknown_method(own), None))
            }
        }
    }

    /// A request was accepted without an answer. That may come on the common stream, as old
    /// servers do it; where there is none, it cannot come at all.
    async fn await_elsewhere(&self, own: i64) -> Result<(), HttpError> {
        let mut stream = self.streams.watch_common();
        loop {
            match self.intake.calls.kind(own) {
                // The handshake has no common stream yet, and rmcp knows what to make of that.
                None | Some(Kind::Initialize | Kind::Discover | Kind::Listen) => return Ok(()),
                Some(Kind::ListTools | Kind::CallTool | Kind::Raw) => {}
            }
            if stream.is_open() {
                stream.changed().await;
            } else if tokio::time::timeout(COMMON_WAIT, stream.changed())
                .await
                .is_err()
            {
                let detail = "it accepted the request, but sends no answer and has no stream on \
                              which one could come";
                return Err(self.fail(own, Failure::new(ErrorCode::MalformedMessage, detail)));
            }
        }
    }

    async fn exchange(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
        own: Option<i64>,
    ) -> Result<(Reply, Option<String>), HttpError> {
        let body = serde_json::to_vec(message)?;
        let mut headers = header_map(headers, session);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = self
            .agent
            .send(Method::POST, self.agent.endpoint(), headers, Some(body))
            .await
            .map_err(|error| self.unreachable(own, error))?;
        let status = response.status();
        let new_session = text_header(response.headers(), HEADER_SESSION_ID);
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok((Reply::Accepted, new_session));
        }
        let reply = if status.is_success() {
            self.success(response, own).await?
        } else {
            self.refusal(response, session.is_some(), own).await?
        };
        Ok((reply, new_session))
    }

    fn respond(
        &self,
        reply: Reply,
        session: Option<String>,
        own: Option<i64>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        match reply {
            Reply::Accepted => Ok(StreamableHttpPostResponse::Accepted),
            Reply::Events(events) => Ok(StreamableHttpPostResponse::Sse(
                events.into_stream(),
                session,
            )),
            Reply::Messages(mut messages) => match (messages.pop(), messages.is_empty()) {
                (Some(only), true) => Ok(StreamableHttpPostResponse::Json(only, session)),
                (Some(last), false) => {
                    messages.push(last);
                    let events = messages.into_iter().map(|message| {
                        let data = serde_json::to_string(&message).unwrap_or_default();
                        Ok(Sse::default().data(data))
                    });
                    let events: Vec<Result<Sse, SseError>> = events.collect();
                    if let Some(own) = own {
                        self.intake.calls.hint(own, lost_in_response());
                    }
                    Ok(StreamableHttpPostResponse::Sse(
                        iter(events).boxed(),
                        session,
                    ))
                }
                (None, _) => Ok(StreamableHttpPostResponse::Accepted),
            },
        }
    }

    fn is_kind(&self, own: Option<i64>, kind: Kind) -> bool {
        own.and_then(|own| self.intake.calls.kind(own)) == Some(kind)
    }

    fn fail(&self, own: i64, failure: Failure) -> HttpError {
        if self.is_kind(Some(own), Kind::Discover) {
            // Most servers do not know it yet; that is nothing to warn of.
            self.intake.calls.settle(own, Err(failure.clone()));
        } else {
            drop(self.intake.fail(own, failure.clone()));
        }
        StreamableHttpError::Client(ClientError::Failed(failure))
    }

    fn unauthorized(&self, status: StatusCode, own: Option<i64>) -> HttpError {
        if let Some(own) = own {
            drop(self.intake.fail(own, unauthorized(status)));
        }
        StreamableHttpError::AuthRequired(AuthRequiredError::new(String::new()))
    }

    /// The request failed before there was a response.
    fn unreachable(&self, own: Option<i64>, error: reqwest::Error) -> HttpError {
        if !error.is_connect() {
            return self.lost(own, error);
        }
        let error = error.without_url();
        if let Some(own) = own {
            let detail = unreachable(&error);
            self.intake
                .calls
                .unsent(own, Failure::new(ErrorCode::ConnectionLost, detail));
        }
        StreamableHttpError::Client(ClientError::Unreachable(error))
    }

    fn lost(&self, own: Option<i64>, error: reqwest::Error) -> HttpError {
        let failure = lost().caused_by(error.without_url());
        match own {
            Some(own) => self.fail(own, failure),
            None => StreamableHttpError::Client(ClientError::Failed(failure)),
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = ClientError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        Box::pin(self.post(&message, session_id.as_deref(), custom_headers)).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let headers = header_map(custom_headers, Some(&session_id));
        let url = self.agent.endpoint();
        match self.agent.send(Method::DELETE, url, headers, None).await {
            Ok(response) => {
                tracing::debug!(status = response.status().as_u16(), "session deleted");
            }
            Err(error) => tracing::debug!(%error, "the session could not be deleted"),
        }
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.get(
            session_id.as_deref(),
            last_event_id.as_deref(),
            custom_headers,
        )
        .await
    }
}

fn header_map(headers: HashMap<HeaderName, HeaderValue>, session: Option<&str>) -> HeaderMap {
    let mut map: HeaderMap = headers.into_iter().collect();
    map.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    let session = session.and_then(|session| HeaderValue::from_str(session).ok());
    if let (Some(session), Ok(name)) = (session, HeaderName::try_from(HEADER_SESSION_ID)) {
        map.insert(name, session);
    }
    map
}

/// Whether the server was there and did not like the request, as against a connection that
/// failed or credentials that were refused.
const fn is_refusal(error: &HttpError) -> bool {
    matches!(error, StreamableHttpError::Client(ClientError::Failed(_)))
}

fn unknown_method(own: Option<i64>) -> ServerJsonRpcMessage {
    let error = ErrorData::new(
        RpcErrorCode::METHOD_NOT_FOUND,
        "the server does not know server/discover",
        None,
    );
    ServerJsonRpcMessage::error(error, own.map(RequestId::Number))
}
