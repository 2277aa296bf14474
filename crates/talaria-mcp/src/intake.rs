//! Turns what a server sends into what the session needs, whatever the transport.
//!
//! The results of raw requests never reach rmcp: they are kept in the call table and rmcp gets a
//! tiny stand-in under the same id, so that nothing types or copies payloads. Notifications are
//! dealt with here. rmcp itself sees handshakes, errors and pings, all of them in strict form.

pub(crate) mod calls;
mod handshake;
mod message;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{ErrorCode as RpcErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use talaria_telemetry::events;
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, ErrorCode, Failure, PayloadSink, ServerName};
use tokio::sync::mpsc;

use crate::session::SessionEvent;
use crate::wire::{Anchor, MIN_PAYLOAD_BYTES, Malformed, Messages, Scrubbed, anchor};
use calls::Calls;

/// How long a large message waits for a worker before its call fails as busy.
const WORKER_WAIT: Duration = Duration::from_secs(60);

/// How much of either end of an unreadable message is looked at.
const ANCHOR_BYTES: usize = 1024;

/// JSON-RPC code of the errors we hand to rmcp ourselves; the specification reserves the codes
/// below -32000.
const OWN_ERROR: RpcErrorCode = RpcErrorCode(1);

/// One session's intake.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) server: ServerName,
    pub(crate) message_bytes: usize,
    pub(crate) calls: Calls,
    sink: Arc<dyn PayloadSink>,
    blocking: BlockingPool,
    events: mpsc::Sender<SessionEvent>,
    was_noisy: AtomicBool,
}

impl Intake {
    pub(crate) fn new(
        server: ServerName,
        message_bytes: usize,
        sink: Arc<dyn PayloadSink>,
        blocking: BlockingPool,
        events: mpsc::Sender<SessionEvent>,
    ) -> Self {
        Self {
            server,
            message_bytes,
            calls: Calls::default(),
            sink,
            blocking,
            events,
            was_noisy: AtomicBool::new(false),
        }
    }

    /// Reads one frame. `own` is the request whose response it came as, where the transport
    /// knows that.
    pub(crate) async fn accept(
        &self,
        text: Vec<u8>,
        own: Option<i64>,
    ) -> Vec<ServerJsonRpcMessage> {
        let bytes = text.len();
        events::wire_received(&self.server, u64::try_from(bytes).unwrap_or(u64::MAX));
        // A message that may hold a payload would hold up the loop with its decoding and its file.
        if bytes < MIN_PAYLOAD_BYTES {
            return self.settle(read(&text, self.sink.as_ref()), own);
        }
        let sink = Arc::clone(&self.sink);
        let ends = Ends::of(&text);
        self.arrived(&ends, own);
        let read = move || read(&text, sink.as_ref());
        match self.blocking.run(Deadline::after(WORKER_WAIT), read).await {
            Ok(frame) => self.settle(frame, own),
            Err(failure) => self
                .fail_anchored(&ends, own, failure)
                .into_iter()
                .collect(),
        }
    }

    /// A message has grown over the limit. Its call fails now if its beginning names it.
    pub(crate) fn oversize_began(
        &self,
        head: &[u8],
        own: Option<i64>,
    ) -> Option<ServerJsonRpcMessage> {
        match (anchor(head, None), own) {
            (Anchor::Answer(id), _) => self.fail(self.calls.waiting(id)?, self.too_large()),
            (Anchor::SomeAnswer | Anchor::Noise, Some(own)) => self.fail(own, self.too_large()),
            (Anchor::SomeAnswer | Anchor::ServerMessage | Anchor::Noise, _) => None,
        }
    }

    /// A message over the limit has ended.
    pub(crate) fn oversize_ended(
        &self,
        head: &[u8],
        tail: &[u8],
        bytes: u64,
    ) -> Option<ServerJsonRpcMessage> {
        events::wire_received(&self.server, bytes);
        match anchor(head, Some(tail)) {
            Anchor::Answer(id) => self.fail(self.calls.waiting(id)?, self.too_large()),
            Anchor::SomeAnswer => self.fail(self.calls.only_waiting()?, self.too_large()),
            Anchor::ServerMessage | Anchor::Noise => {
                self.fault(&self.too_large());
                None
            }
        }
    }

    /// The stream ended inside a message: whole after all, or cut.
    pub(crate) async fn cut(&self, text: Vec<u8>) -> Vec<ServerJsonRpcMessage> {
        let head = text
            .get(..ANCHOR_BYTES.min(text.len()))
            .unwrap_or_default()
            .to_vec();
        let is_whole =
            text.trim_ascii_end().ends_with(b"}") || text.trim_ascii_end().ends_with(b"]");
        if is_whole {
            return self.accept(text, None).await;
        }
        let ends = Ends { head, tail: None };
        let failure = Failure::new(
            ErrorCode::MalformedMessage,
            "its output ended in the middle of the answer",
        );
        self.fail_anchored(&ends, None, failure)
            .into_iter()
            .collect()
    }

    /// Fails one call: the failure waits in the table, rmcp gets an error under the same id.
    pub(crate) fn fail(&self, id: i64, failure: Failure) -> Option<ServerJsonRpcMessage> {
        self.fault(&failure);
        self.calls.settle(id, Err(failure)).then(|| own_error(id))
    }

    fn too_large(&self) -> Failure {
        let limit = self.message_bytes;
        Failure::new(
            ErrorCode::MessageTooLarge,
            format!("its answer is larger than {limit} bytes (talaria.limits.message_bytes)"),
        )
    }

    fn settle(&self, frame: ReadFrame, own: Option<i64>) -> Vec<ServerJsonRpcMessage> {
        let mut messages = Vec::new();
        for scrubbed in frame.messages {
            for note in &scrubbed.notes {
                events::wire_mended(&self.server, *note);
            }
            messages.extend(message::dispatch(self, scrubbed, own));
        }
        if let Some((malformed, ends)) = frame.malformed {
            messages.extend(self.fail_anchored(&ends, own, malformed.failure("its answer")));
        }
        messages
    }

    /// A whole message is there: if it is an answer, reading it must not cost its call the time.
    /// The bytes of one that is not whole yet say nothing, or a drip would keep a call for ever.
    fn arrived(&self, ends: &Ends, own: Option<i64>) {
        let answered = match anchor(&ends.head, ends.tail.as_deref()) {
            Anchor::Answer(id) => Some(id),
            Anchor::SomeAnswer => own.or_else(|| self.calls.only_waiting()),
            Anchor::ServerMessage | Anchor::Noise => None,
        };
        if let Some(id) = answered {
            self.calls.answer_arrived(id);
        }
    }

    /// Fails the call that an unreadable message was meant for, if it was meant for one.
    fn fail_anchored(
        &self,
        ends: &Ends,
        own: Option<i64>,
        failure: Failure,
    ) -> Option<ServerJsonRpcMessage> {
        let call = match anchor(&ends.head, ends.tail.as_deref()) {
            Anchor::Answer(id) => self.calls.waiting(id),
            Anchor::SomeAnswer => own.or_else(|| self.calls.only_waiting()),
            Anchor::ServerMessage => None,
            Anchor::Noise => {
                self.noise();
                return None;
            }
        };
        match call {
            Some(id) => self.fail(id, failure),
            None => {
                self.fault(&failure);
                None
            }
        }
    }

    fn fault(&self, failure: &Failure) {
        events::wire_fault(&self.server, failure.code(), failure.detail());
    }

    /// Told loudly once in a session: some servers write their log there.
    fn noise(&self) {
        if self.was_noisy.swap(true, Ordering::Relaxed) {
            events::wire_noise(&self.server);
        } else {
            let detail = "a line that is no message was ignored; further ones are only counted";
            events::wire_fault(&self.server, ErrorCode::MalformedMessage, detail);
        }
    }

    fn tell(&self, event: SessionEvent) {
        if self.events.try_send(event).is_err() {
            events::queue_refused("session_events");
        }
    }
}

/// What one frame held.
struct ReadFrame {
    messages: Vec<Scrubbed>,
    malformed: Option<(Malformed, Ends)>,
}

/// Both ends of a message that could not be read.
struct Ends {
    head: Vec<u8>,
    tail: Option<Vec<u8>>,
}

impl Ends {
    fn of(text: &[u8]) -> Self {
        let head = text
            .get(..ANCHOR_BYTES.min(text.len()))
            .unwrap_or_default()
            .to_vec();
        let tail = text
            .get(text.len().saturating_sub(ANCHOR_BYTES)..)
            .map(<[u8]>::to_vec);
        Self { head, tail }
    }
}

fn read(text: &[u8], sink: &dyn PayloadSink) -> ReadFrame {
    let mut values = Messages::new(text, "/result", sink);
    let mut frame = ReadFrame {
        messages: Vec::new(),
        malformed: None,
    };
    let is_batch = values.enter_batch();
    loop {
        let next = if is_batch {
            values.next_of_batch()
        } else {
            values.next()
        };
        match next {
            Some(Ok(scrubbed)) => frame.messages.push(scrubbed),
            Some(Err(malformed)) => {
                frame.malformed = Some((malformed, Ends::of(values.rest())));
                return frame;
            }
            None => return frame,
        }
    }
}

/// The error rmcp gets for a call that failed here; the session finds the real one in the table.
fn own_error(id: i64) -> ServerJsonRpcMessage {
    let error = ErrorData::new(OWN_ERROR, "failed by the transport", None);
    ServerJsonRpcMessage::error(error, Some(RequestId::Number(id)))
}
