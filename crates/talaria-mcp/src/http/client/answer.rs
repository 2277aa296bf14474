//! What the response to a message of ours comes to.

use std::sync::Arc;

use http::StatusCode;
use http::header::RETRY_AFTER;
use rmcp::model::{ErrorCode as RpcErrorCode, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::Value;
use talaria_types::{ErrorCode, Failure};

use super::{HttpClient, HttpError, Reply};
use crate::http::events::{Events, Source};
use crate::http::reception::Received;
use crate::http::response::{is_expired, media_type, prefix, status_failure, text_header};
use crate::intake::calls::Kind;

/// JSON-RPC code by which servers say that they do not know a session.
const UNKNOWN_SESSION: i64 = -32001;

enum Body {
    Whole(Vec<u8>),
    TooLarge(Vec<ServerJsonRpcMessage>),
}

impl HttpClient {
    pub(super) async fn success(
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
        let is_json = media_type == "application/json";
        let is_initialize = self.is_kind(own, Kind::Initialize);
        if !is_json && self.is_kind(own, Kind::Discover) {
            // A page that is shown to everybody; the old handshake will tell.
            return Ok(Reply::Accepted);
        }
        let body = self.bounded_body(response, own).await?;
        let messages = match body {
            Body::Whole(body) if body.is_empty() => Vec::new(),
            Body::Whole(body) => self.intake.accept(body, own).await,
            Body::TooLarge(messages) => messages,
        };
        if is_initialize && messages.iter().any(is_internal_error) {
            self.reception.note(Received::Opaque);
        }
        match own.and_then(|own| self.intake.calls.waiting(own)) {
            Some(own) => {
                if is_initialize && !is_json {
                    self.reception.note(Received::Foreign(media_type.clone()));
                }
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
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Body::Whole(body)),
                Err(error) => return Err(self.lost(own, error)),
            }
        }
    }

    pub(super) async fn refusal(
        &self,
        response: reqwest::Response,
        has_session: bool,
        own: Option<i64>,
    ) -> Result<Reply, HttpError> {
        let status = response.status();
        // A tool that is forbidden says nothing of the credentials as such.
        let is_one_tool = status == StatusCode::FORBIDDEN && self.is_kind(own, Kind::CallTool);
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) && !is_one_tool {
            return Err(self.unauthorized(status, own));
        }
        if self.is_kind(own, Kind::Initialize) {
            self.reception.note(Received::Refused(status));
        }
        let retry_after = text_header(response.headers(), RETRY_AFTER.as_str());
        let location = text_header(response.headers(), "location");
        let body = prefix(response).await;
        let words = String::from_utf8_lossy(&body).trim().to_owned();
        if has_session && is_expired(status, &words) && !is_answer(own, status, &body) {
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
        let failure = status_failure(status, words, location, retry_after);
        Err(self.fail(own, failure))
    }
}

fn refused(status: StatusCode) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(format!("HTTP {}", status.as_u16()).into())
}

/// Whether the body answers this very request, so that it was executed whatever the words say.
/// Only the code that servers have for an unknown session says otherwise.
fn is_answer(own: Option<i64>, status: StatusCode, body: &[u8]) -> bool {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    let code = message.pointer("/error/code").and_then(Value::as_i64);
    let is_session_unknown = status == StatusCode::NOT_FOUND && code == Some(UNKNOWN_SESSION);
    let id = message
        .get("id")
        .and_then(|id| id.as_i64().or_else(|| id.as_str()?.trim().parse().ok()));
    id.is_some() && id == own && !is_session_unknown
}

/// The code by which servers say that something broke, without saying what.
fn is_internal_error(message: &ServerJsonRpcMessage) -> bool {
    match message {
        ServerJsonRpcMessage::Error(error) => error.error.code == RpcErrorCode::INTERNAL_ERROR,
        ServerJsonRpcMessage::Request(_)
        | ServerJsonRpcMessage::Response(_)
        | ServerJsonRpcMessage::Notification(_) => false,
    }
}
