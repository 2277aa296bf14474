//! The requests that wait for an answer, and the answers that wait for their request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta, JsonRpcMessage,
    NumberOrString, RequestId,
};
use talaria_types::{ErrorCode, Failure, RawResult, runtime};
use tokio::time::Instant;

/// How the answer to a request is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `initialize`: typed, by rmcp.
    Initialize,
    /// `server/discover`: typed, by rmcp.
    Discover,
    /// `subscriptions/listen`: answered when the subscription ends.
    Listen,
    /// `tools/list`: raw, but rmcp has to see the header annotations.
    ListTools,
    /// `tools/call`: raw, and it may have had effects.
    CallTool,
    /// Everything else: raw.
    Raw,
}

impl Kind {
    /// Marks a failure after which a tool call may have run (design decision 21).
    pub(crate) const fn marked(self, failure: Failure) -> Failure {
        let leaves_open = matches!(
            failure.code(),
            ErrorCode::ConnectionLost
                | ErrorCode::MalformedMessage
                | ErrorCode::MessageTooLarge
                | ErrorCode::Timeout
                | ErrorCode::Cancelled
                | ErrorCode::Busy
        );
        if leaves_open && matches!(self, Self::CallTool) {
            failure.outcome_uncertain()
        } else {
            failure
        }
    }
}

/// The table of one session. Ids are rmcp's, which are always numbers.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    table: Mutex<HashMap<i64, Call>>,
    discover_in_vain: AtomicBool,
    /// Whether a request was given up unanswered: its answer may still come.
    gave_up: AtomicBool,
}

#[derive(Debug)]
struct Call {
    kind: Kind,
    progress_token: Option<NumberOrString>,
    last_sign: Instant,
    /// What to say should the transport end this call without a word of its own.
    hint: Option<Failure>,
    outcome: Option<Result<RawResult, Failure>>,
}

impl Calls {
    /// Notes what goes out: requests enter the table, cancelled ones leave it. Returns the id of
    /// a request.
    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage) -> Option<i64> {
        match message {
            JsonRpcMessage::Request(request) => {
                let id = number(&request.id)?;
                let kind = kind(&request.request);
                let token = request.request.get_meta().get_progress_token();
                let mut table = self.table.lock();
                if kind == Kind::Initialize {
                    // What was asked before the handshake counts no more: a late answer to
                    // `server/discover` would end the handshake that replaced it.
                    let is_owed =
                        |call: &Call| call.kind == Kind::Discover && call.outcome.is_none();
                    if table.values().any(is_owed) {
                        self.gave_up.store(true, Ordering::Relaxed);
                    }
                    table.retain(|_, call| call.kind != Kind::Discover);
                }
                table.insert(
                    id,
                    Call {
                        kind,
                        progress_token: token.map(|token| token.0),
                        last_sign: runtime::now(),
                        hint: None,
                        outcome: None,
                    },
                );
                Some(id)
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = cancelled.params.request_id.as_ref().and_then(number)
                {
                    self.give_up(id);
                }
                None
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        }
    }

    /// The kind of a request that still waits.
    pub(crate) fn kind(&self, id: i64) -> Option<Kind> {
        let table = self.table.lock();
        table
            .get(&id)
            .filter(|call| call.outcome.is_none())
            .map(|call| call.kind)
    }

    /// The id itself, if its request still waits.
    pub(crate) fn waiting(&self, id: i64) -> Option<i64> {
        self.kind(id).map(|_| id)
    }

    /// The request that a message without an id can only be about: the one that waits, on a
    /// session that owes us no other answer. Subscriptions wait for ever and do not count.
    pub(crate) fn only_waiting(&self) -> Option<i64> {
        if self.gave_up.load(Ordering::Relaxed) {
            return None;
        }
        let table = self.table.lock();
        let mut waiting = table
            .iter()
            .filter(|(_, call)| call.outcome.is_none() && call.kind != Kind::Listen)
            .map(|(id, _)| *id);
        let only = waiting.next()?;
        waiting.next().is_none().then_some(only)
    }

    /// Puts the outcome of a request that still waits in the table; says whether one did.
    pub(crate) fn settle(&self, id: i64, outcome: Result<RawResult, Failure>) -> bool {
        match self
            .table
            .lock()
            .get_mut(&id)
            .filter(|call| call.outcome.is_none())
        {
            Some(call) => {
                call.outcome = Some(outcome.map_err(|failure| call.kind.marked(failure)));
                true
            }
            None => false,
        }
    }

    /// The request never reached the server.
    pub(crate) fn unsent(&self, id: i64, failure: Failure) {
        if let Some(call) = self.table.lock().get_mut(&id) {
            call.outcome = Some(Err(failure));
        }
    }

    /// Says why a request will fail, should nothing better come.
    pub(crate) fn hint(&self, id: i64, failure: Failure) {
        if let Some(call) = self.table.lock().get_mut(&id) {
            call.hint = Some(call.kind.marked(failure));
        }
    }

    /// The same of a request that was not executed.
    pub(crate) fn hint_unsent(&self, id: i64, failure: Failure) {
        if let Some(call) = self.table.lock().get_mut(&id) {
            call.hint = Some(failure);
        }
    }

    /// Why the handshake failed, as far as the transport knows.
    pub(crate) fn handshake_failure(&self) -> Option<Failure> {
        let table = self.table.lock();
        let failed = |kind: Kind| {
            let call = table.values().find(|call| call.kind == kind)?;
            match &call.outcome {
                Some(Err(failure)) => Some(failure.clone()),
                Some(Ok(_)) | None => call.hint.clone(),
            }
        };
        failed(Kind::Initialize).or_else(|| failed(Kind::Discover))
    }

    /// Takes a request with its outcome out of the table, if it has one.
    pub(crate) fn take_outcome(&self, id: i64) -> Option<Result<RawResult, Failure>> {
        let mut table = self.table.lock();
        let outcome = table.get_mut(&id)?.outcome.take()?;
        table.remove(&id);
        Some(outcome)
    }

    /// What the transport knows of a request that ended without an outcome.
    pub(crate) fn take_hint(&self, id: i64) -> Option<Failure> {
        self.table.lock().get_mut(&id)?.hint.take()
    }

    /// Whether a request of this kind is in the table.
    pub(crate) fn is_asked(&self, kind: Kind) -> bool {
        self.table.lock().values().any(|call| call.kind == kind)
    }

    /// This request is over: it was answered.
    pub(crate) fn forget(&self, id: i64) {
        let forgotten = self.table.lock().remove(&id);
        drop(forgotten);
    }

    /// Nobody waits for this request any more; a late answer is dropped, its payloads with it,
    /// and must not be taken for that of another request.
    pub(crate) fn give_up(&self, id: i64) {
        let left = self.table.lock().remove(&id);
        if left.is_some_and(|call| call.outcome.is_none()) {
            self.gave_up.store(true, Ordering::Relaxed);
        }
    }

    /// `server/discover` was not answered in time; it is no use to ask this server again.
    pub(crate) fn discovered_in_vain(&self, id: i64) {
        self.give_up(id);
        self.discover_in_vain.store(true, Ordering::Relaxed);
    }

    /// Whether that happened.
    pub(crate) fn was_discover_in_vain(&self) -> bool {
        self.discover_in_vain.load(Ordering::Relaxed)
    }

    /// The server reported progress.
    pub(crate) fn progress(&self, token: &NumberOrString) {
        let now = runtime::now();
        for call in self.table.lock().values_mut() {
            if call
                .progress_token
                .as_ref()
                .is_some_and(|known| same(known, token))
            {
                call.last_sign = now;
            }
        }
    }

    /// The whole answer is there and is about to be read.
    pub(crate) fn answer_arrived(&self, id: i64) {
        if let Some(call) = self.table.lock().get_mut(&id) {
            call.last_sign = runtime::now();
        }
    }

    /// When a request last gave a sign of life.
    pub(crate) fn last_sign(&self, id: i64) -> Option<Instant> {
        self.table.lock().get(&id).map(|call| call.last_sign)
    }

    /// How many requests are in the table.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.lock().len()
    }
}

/// The numeric form of an id; rmcp makes no others.
pub(crate) fn number(id: &RequestId) -> Option<i64> {
    match id {
        NumberOrString::Number(number) => Some(*number),
        NumberOrString::String(_) => None,
    }
}

/// Servers echo numeric tokens as strings at times.
fn same(known: &NumberOrString, token: &NumberOrString) -> bool {
    known == token || known.to_string() == token.to_string()
}

fn kind(request: &ClientRequest) -> Kind {
    match request.method() {
        "initialize" => Kind::Initialize,
        "server/discover" => Kind::Discover,
        "subscriptions/listen" => Kind::Listen,
        "tools/list" => Kind::ListTools,
        "tools/call" => Kind::CallTool,
        _ => Kind::Raw,
    }
}
