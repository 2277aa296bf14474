//! The HTTP client behind rmcp's transport.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt, iter};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode as RpcErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse};
use talaria_types::{ErrorCode, Failure};

use super::events::{Events, Source, lost_in_response};
use super::response::{is_expired, media_type, prefix, status_failure, text_header};
use super::streams::{Stream, Streams};
use crate::intake::Intake;
use crate::intake::calls::Kind;

/// Attempts to open the common stream again after it broke.
const COMMON_ATTEMPTS: u32 = 8;
const FIRST_RETRY: Duration = Duration::from_secs(1);

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
    http: reqwest::Client,
    intake: Arc<Intake>,
    streams: Streams,
    discover_silence: Duration,
}

/// What a response to a `POST` came to.
enum Reply {
    Accepted,
    Messages(Vec<ServerJsonRpcMessage>),
    Events(Box<Events>),
}

impl HttpClient {
    pub(super) fn new(
        http: reqwest::Client,
        intake: Arc<Intake>,
        discover_silence: Duration,
    ) -> Self {
        Self {
            http,
            intake,
            streams: Streams::default(),
            discover_silence,
        }
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let own = self.intake.calls.sent(message);
        let kind = own.and_then(|own| self.intake.calls.kind(own));
        let exchange = self.exchange(uri, message, session, headers, own);
        if kind != Some(Kind::Discover) {
            let (reply, session) = exchange.await?;
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
            Ok(_) | Err(_) => Ok(StreamableHttpPostResponse::Json(unknown_method(own), None)),
        }
    }

    async fn exchange(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
        own: Option<i64>,
    ) -> Result<(Reply, Option<String>), HttpError> {
        let body = serde_json::to_vec(message)?;
        let mut headers = header_map(headers, session);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = self.http.post(uri).headers(headers).body(body);
        let response = request
            .send()
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

    async fn success(
        &self,
        response: reqwest::Response,
        own: Option<i64>,
    ) -> Result<Reply, HttpError> {
        if media_type(response.headers()) == "text/event-stream" {
            let source = Source::Response { own };
            let events = Events::new(response, Arc::clone(&self.intake), source);
            return Ok(Reply::Events(Box::new(events)));
        }
        let media_type = media_type(response.headers());
        let body = self.bounded_body(response, own).await?;
        let messages = match body {
            Body::Whole(body) if body.is_empty() => Vec::new(),
            Body::Whole(body) => self.intake.accept(body, own).await,
            Body::TooLarge(messages) => messages,
        };
        match own.and_then(|own| self.intake.calls.waiting(own)) {
            Some(own) => {
                let detail = format!("its response ({media_type}) holds no answer");
                Err(self.fail(own, Failure::new(ErrorCode::MalformedMessage, detail)))
            }
            None => Ok(Reply::Messages(messages)),
        }
    }

    async fn bounded_body(
        &self,
        mut response: reqwest::Response,
        own: Option<i64>,
    ) -> Result<Body, HttpError> {
        let limit = self.intake.message_bytes;
        let announced = response.content_length().map_or(Ok(0), usize::try_from);
        let announced = announced.unwrap_or(usize::MAX);
        if announced > limit {
            return Ok(Body::TooLarge(
                self.intake.oversize_began(b"", own).into_iter().collect(),
            ));
        }
        let mut body = Vec::with_capacity(announced);
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if chunk.len() > limit - body.len() => {
                    return Ok(Body::TooLarge(
                        self.intake.oversize_began(b"", own).into_iter().collect(),
                    ));
                }
                Ok(Some(chunk)) => {
                    body.extend_from_slice(&chunk);
                    if let Some(own) = own {
                        self.intake.calls.touch(own);
                    }
                }
                Ok(None) => return Ok(Body::Whole(body)),
                Err(error) => return Err(self.lost(own, error)),
            }
        }
    }

    async fn refusal(
        &self,
        response: reqwest::Response,
        has_session: bool,
        own: Option<i64>,
    ) -> Result<Reply, HttpError> {
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.unauthorized(status, own));
        }
        let retry_after = text_header(response.headers(), RETRY_AFTER.as_str());
        let location = text_header(response.headers(), "location");
        let body = prefix(response).await;
        let words = String::from_utf8_lossy(&body).trim().to_owned();
        if has_session && is_expired(status, &words) {
            if let Some(own) = own {
                let detail = "it has ended the session and does not open a new one";
                self.intake
                    .calls
                    .hint_unsent(own, Failure::new(ErrorCode::ConnectionLost, detail));
            }
            return Err(StreamableHttpError::SessionExpired);
        }
        let messages = if words.starts_with('{') || words.starts_with('[') {
            self.intake.accept(body, own).await
        } else {
            Vec::new()
        };
        let Some(own) = own else {
            return Err(refused(status));
        };
        if self.intake.calls.waiting(own).is_none() {
            return Ok(Reply::Messages(messages));
        }
        Err(self.fail(own, status_failure(status, words, location, retry_after)))
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

    async fn get(
        &self,
        uri: &str,
        session: Option<&str>,
        last_event_id: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let stream = self.streams.which(last_event_id);
        let Some(pause) = self.streams.pause(stream) else {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        };
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let mut headers = header_map(headers, session);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(HeaderName::from_static("last-event-id"), id);
        }
        let attempts = match stream {
            Stream::Common if self.streams.was_open() => COMMON_ATTEMPTS,
            Stream::Common | Stream::Resumed => 1,
        };
        let mut wait = FIRST_RETRY;
        for attempt in 1..=attempts {
            match self.http.get(uri).headers(headers.clone()).send().await {
                Ok(response) => return self.opened(response, stream),
                Err(error) => tracing::debug!(%error, attempt, "event stream not opened"),
            }
            if attempt < attempts {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        }
        // rmcp asks no further then.
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }

    fn opened(
        &self,
        response: reqwest::Response,
        stream: Stream,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let is_stream = media_type(response.headers()) == "text/event-stream";
        if !response.status().is_success() || !is_stream {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        self.streams.opened(stream);
        let source = Source::Get {
            stream,
            streams: self.streams.clone(),
        };
        Ok(Events::new(response, Arc::clone(&self.intake), source).into_stream())
    }

    fn fail(&self, own: i64, failure: Failure) -> HttpError {
        drop(self.intake.fail(own, failure.clone()));
        StreamableHttpError::Client(ClientError::Failed(failure))
    }

    fn unauthorized(&self, status: StatusCode, own: Option<i64>) -> HttpError {
        if let Some(own) = own {
            let detail = format!(
                "it refuses the credentials it was given (HTTP {}); check its \
                 authorization headers or sign in again",
                status.as_u16()
            );
            drop(
                self.intake
                    .fail(own, Failure::new(ErrorCode::ServerUnauthorized, detail)),
            );
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
            let detail = format!("it cannot be reached ({})", innermost(&error));
            self.intake
                .calls
                .unsent(own, Failure::new(ErrorCode::ConnectionLost, detail));
        }
        StreamableHttpError::Client(ClientError::Unreachable(error))
    }

    fn lost(&self, own: Option<i64>, error: reqwest::Error) -> HttpError {
        let failure = Failure::new(
            ErrorCode::ConnectionLost,
            "the connection broke during the call",
        )
        .caused_by(error.without_url());
        match own {
            Some(own) => self.fail(own, failure),
            None => StreamableHttpError::Client(ClientError::Failed(failure)),
        }
    }
}

enum Body {
    Whole(Vec<u8>),
    TooLarge(Vec<ServerJsonRpcMessage>),
}

impl StreamableHttpClient for HttpClient {
    type Error = ClientError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        Box::pin(self.post(&uri, &message, session_id.as_deref(), custom_headers)).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let headers = header_map(custom_headers, Some(&session_id));
        match self.http.delete(uri.as_ref()).headers(headers).send().await {
            Ok(response) => {
                tracing::debug!(status = response.status().as_u16(), "session deleted");
            }
            Err(error) => tracing::debug!(%error, "the session could not be deleted"),
        }
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.get(
            &uri,
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

fn refused(status: StatusCode) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(format!("HTTP {}", status.as_u16()).into())
}

/// Whether the server was there and did not like the request, as against a connection that
/// failed or credentials that were refused.
const fn is_refusal(error: &HttpError) -> bool {
    matches!(error, StreamableHttpError::Client(ClientError::Failed(_)))
}

/// What lies at the bottom of an error, for example `Connection refused (os error 111)`.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

fn unknown_method(own: Option<i64>) -> ServerJsonRpcMessage {
    let error = ErrorData::new(
        RpcErrorCode::METHOD_NOT_FOUND,
        "the server does not know server/discover",
        None,
    );
    ServerJsonRpcMessage::error(error, own.map(RequestId::Number))
}
