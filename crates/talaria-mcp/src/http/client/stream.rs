//! Event streams that are asked for: the common one of a session, and the rest of a response that
//! broke off.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use http::header::ACCEPT;
use http::{HeaderName, HeaderValue, Method};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use sse_stream::{Error as SseError, Sse};

use super::{HttpClient, HttpError, header_map};
use crate::http::events::{Events, Source};
use crate::http::response::media_type;
use crate::http::streams::Stream;

/// Attempts to open the common stream again after it broke.
const COMMON_ATTEMPTS: u32 = 8;
const FIRST_RETRY: Duration = Duration::from_secs(1);

impl HttpClient {
    pub(super) async fn get(
        &self,
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
            let url = self.agent.endpoint();
            match self
                .agent
                .send(Method::GET, url, headers.clone(), None)
                .await
            {
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
}
