//! What a server actor accepts and emits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::Message;
use serde_json::{Map, Value};
use talaria_content::ResultKind;
use talaria_types::{CallContext, ErrorCode, Failure, RawResult, ServerName};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::directory::ToolTarget;
use crate::server::state::CallId;

/// A raw result and how to read it, or why there is none.
pub(crate) type Reply = Result<(RawResult, ResultKind), Failure>;

/// Make this call. Sent by a [`crate::server::ServerHandle`] on behalf of a caller; the reply
/// comes through `reply`, which is dropped unanswered only when the actor dies.
#[derive(Debug)]
pub(crate) struct CallTool {
    /// Its id at this server.
    pub(crate) id: CallId,
    /// What is wanted; shared with the waiting caller.
    pub(crate) ticket: Arc<Ticket>,
    /// Where the answer goes.
    pub(crate) reply: oneshot::Sender<Reply>,
}

impl Message for CallTool {
    type Result = ();
}

/// One call as caller and actor share it.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// Request id, deadline (already bounded), cancellation and span.
    pub(crate) ctx: CallContext,
    /// What is called.
    pub(crate) target: ToolTarget,
    /// With what.
    pub(crate) arguments: Map<String, Value>,
    /// Whether it may run twice.
    pub(crate) read_only: bool,
    /// When it was handed in.
    pub(crate) since: Instant,
    sent: AtomicBool,
}

impl Ticket {
    /// A call that has not been sent.
    pub(crate) fn new(
        ctx: CallContext,
        target: ToolTarget,
        arguments: Map<String, Value>,
        read_only: bool,
    ) -> Self {
        let since = talaria_types::runtime::now();
        Self {
            ctx,
            target,
            arguments,
            read_only,
            since,
            sent: AtomicBool::new(false),
        }
    }

    /// Says whether the request may be on the wire.
    pub(crate) fn mark_sent(&self, sent: bool) {
        self.sent.store(sent, Ordering::Release);
    }

    /// Whether the request may be on the wire.
    pub(crate) fn may_be_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.ctx.cancel.is_cancelled() || self.ctx.deadline.expired()
    }

    /// Marks a failure whose call may have run. What only reads has nothing to be uncertain of.
    pub(crate) fn judge(&self, failure: Failure) -> Failure {
        match self.target {
            ToolTarget::Tool(_) if self.may_be_sent() => failure.outcome_uncertain(),
            ToolTarget::Tool(_) | ToolTarget::Utility(_) => failure,
        }
    }
}

/// The caller has gone. Sent by the handle; no reply.
#[derive(Debug)]
pub(crate) struct CancelCall(pub(crate) CallId);

impl Message for CancelCall {
    type Result = ();
}

/// End the session and start a new one now. Sent by the supervisor's handle; the outcome shows
/// in the snapshot.
#[derive(Debug)]
pub(crate) struct Reconnect;

impl Message for Reconnect {
    type Result = ();
}

/// Take no new calls, finish those that run, close the session, stop. Sent by the supervisor;
/// the outcome shows in the snapshot and as [`ServerStopped`].
#[derive(Debug)]
pub(crate) struct Drain {
    /// When to stop waiting for calls.
    pub(crate) until: Instant,
    /// What new callers are told.
    pub(crate) refusal: ErrorCode,
}

impl Message for Drain {
    type Result = ();
}

/// Answer if the loop still turns. Sent by the supervisor's heartbeat to a server actor, and by a
/// readiness probe to the supervisor.
#[derive(Debug)]
pub(crate) struct Probe;

impl Message for Probe {
    type Result = ();
}

/// The death notice of a server actor, to the supervisor.
#[derive(Clone, Debug)]
pub(crate) struct ServerStopped {
    /// Whose.
    pub(crate) server: ServerName,
    /// Which incarnation.
    pub(crate) generation: u64,
    /// Whether it died of a panic.
    pub(crate) panicked: bool,
}

impl Message for ServerStopped {
    type Result = ();
}
