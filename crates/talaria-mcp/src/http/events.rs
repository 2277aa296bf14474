//! The body of an event stream, as the stream of events that rmcp reads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use rmcp::model::ServerJsonRpcMessage;
use sse_stream::{Error as SseError, Sse};
use talaria_types::{ErrorCode, Failure, runtime};
use tokio::time::Instant;

use super::streams::{LEAST_PAUSE, Stream, Streams};
use crate::intake::Intake;
use crate::sse::{Event, EventFramer, EventParts};

/// Whose events these are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The response to a request of ours.
    Response {
        /// Its id; `None` for what needs no answer.
        own: Option<i64>,
    },
    /// A stream that was asked for with `GET`.
    Get { stream: Stream, streams: Streams },
}

/// Reads a body event by event.
#[derive(Debug)]
pub(super) struct Events {
    response: reqwest::Response,
    intake: Arc<Intake>,
    source: Source,
    framer: EventFramer,
    ready: VecDeque<Sse>,
    opened: Instant,
    brought_events: bool,
    has_ended: bool,
}

impl Events {
    pub(super) fn new(response: reqwest::Response, intake: Arc<Intake>, source: Source) -> Self {
        let framer = EventFramer::new(intake.message_bytes);
        Self {
            response,
            intake,
            source,
            framer,
            ready: VecDeque::new(),
            opened: runtime::now(),
            brought_events: false,
            has_ended: false,
        }
    }

    /// The events for rmcp: their data is strict and small.
    pub(super) fn into_stream(self) -> BoxStream<'static, Result<Sse, SseError>> {
        unfold(self, |mut events| async move {
            let next = events.next_event().await?;
            Some((next, events))
        })
        .boxed()
    }

    /// Reads until a message comes; `None` at the end.
    pub(super) async fn first_message(mut self) -> Option<String> {
        loop {
            match self.next_event().await? {
                Ok(Sse {
                    data: Some(data), ..
                }) => return Some(data),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    async fn next_event(&mut self) -> Option<Result<Sse, SseError>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(Ok(ready));
            }
            if self.has_ended {
                return None;
            }
            let lost = match self.response.chunk().await {
                Ok(Some(chunk)) => {
                    self.framer.push(&chunk);
                    None
                }
                Ok(None) => {
                    self.framer.finish();
                    self.ended();
                    None
                }
                Err(error) => {
                    self.ended();
                    Some(error)
                }
            };
            while let Some(event) = self.framer.next_event() {
                self.take_in(event).await;
                if let Source::Get { stream, streams } = &self.source {
                    streams.brought(*stream);
                }
            }
            if let Some(error) = lost {
                return Some(Err(SseError::Body(Box::new(error))));
            }
        }
    }

    async fn take_in(&mut self, event: Event) {
        let own = self.own();
        match event {
            Event::Message(EventParts {
                data, id, retry, ..
            }) => {
                if let (Source::Get { stream, streams }, Some(id)) = (&self.source, &id) {
                    streams.saw_id(*stream, id);
                }
                self.brought_events |= !data.is_empty() || self.is_polling(retry);
                let messages = if data.is_empty() {
                    Vec::new()
                } else {
                    self.intake.accept(data, own).await
                };
                self.queue(
                    &messages,
                    Sse {
                        event: None,
                        data: None,
                        id,
                        retry,
                    },
                );
            }
            Event::OversizeBegan { head } => {
                let message = self.intake.oversize_began(&head, own);
                self.queue(message.as_slice(), Sse::default());
            }
            Event::OversizeEnded { head, tail, bytes } => {
                let message = self.intake.oversize_ended(&head, &tail, bytes);
                self.queue(message.as_slice(), Sse::default());
            }
        }
    }

    /// Whether a pause that the server asks for is polling, not a stream in vain. A response is
    /// waited for only as long as its call may take; the common stream goes on for ever.
    fn is_polling(&self, retry: Option<u64>) -> bool {
        let is_common = matches!(
            self.source,
            Source::Get {
                stream: Stream::Common,
                ..
            }
        );
        retry.is_some_and(|ms| !is_common || Duration::from_millis(ms) >= LEAST_PAUSE)
    }

    /// The event itself stands before its messages: rmcp stops reading at the answer.
    fn queue(&mut self, messages: &[ServerJsonRpcMessage], event: Sse) {
        if event != Sse::default() {
            self.ready.push_back(event);
        }
        for message in messages {
            match serde_json::to_string(message) {
                Ok(data) => self.ready.push_back(Sse::default().data(data)),
                Err(error) => tracing::error!(%error, "a message cannot be written"),
            }
        }
    }

    const fn own(&self) -> Option<i64> {
        match self.source {
            Source::Response { own } => own,
            Source::Get { .. } => None,
        }
    }

    fn ended(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        match &self.source {
            Source::Response { own: Some(own) } => {
                self.intake.calls.hint(*own, lost_in_response());
            }
            Source::Response { own: None } => {}
            Source::Get { stream, streams } => {
                let lived = runtime::now().duration_since(self.opened);
                streams.ended(*stream, self.brought_events, lived);
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Source::Get { stream, streams } = &self.source
            && !self.has_ended
        {
            streams.left(*stream);
        }
    }
}

pub(super) fn lost_in_response() -> Failure {
    Failure::new(
        ErrorCode::ConnectionLost,
        "its response ended without the answer",
    )
}
