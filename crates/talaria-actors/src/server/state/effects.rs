//! What the state machine asks for.

use std::time::Duration;

use talaria_types::ErrorCode;

use super::inputs::{CallId, Epoch};
use super::keepalive::ProbeBy;

/// What the actor has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Connect, shake hands, list.
    Connect(Epoch),
    /// Give a running attempt to connect up.
    AbandonConnect,
    /// End the session.
    Close(Epoch),
    /// Run the call.
    Begin(CallId),
    /// Hand the call's outcome to its caller.
    Answer(CallId),
    /// Cancel the running call.
    Abort(CallId),
    /// Tell the caller why there is no call.
    Refuse(CallId, Refusal),
    /// Nobody waits for it any more.
    Forget(CallId),
    /// List the tools again.
    Refresh(Epoch),
    /// Ask the session for a sign of life.
    Probe(Epoch, ProbeBy),
    /// Stop asking.
    AbandonProbe,
    /// The actor's work is over.
    Stop,
}

/// Why a call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many wait already.
    Busy,
    /// Its caller has its share of the waiting places.
    Share,
    /// The server's breaker is open.
    ServerCircuit(Duration),
    /// This tool keeps failing for this caller's session.
    ToolCircuit(Duration),
    /// Its deadline passed while it waited for its turn.
    ExpiredInQueue,
    /// Its deadline passed while it waited for a session.
    ExpiredConnecting,
    /// There is no session and none came in time.
    NotReady,
    /// New calls are not taken any more.
    Draining(ErrorCode),
}
