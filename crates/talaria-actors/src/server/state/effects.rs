//! What the state machine asks for.

use talaria_types::ErrorCode;

use super::inputs::{CallId, Epoch};

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
    /// The actor's work is over.
    Stop,
}

/// Why a call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many wait already.
    Busy,
    /// Its deadline passed while it waited for its turn.
    ExpiredInQueue,
    /// Its deadline passed while it waited for a session.
    ExpiredConnecting,
    /// There is no session and none came in time.
    NotReady,
    /// New calls are not taken any more.
    Draining(ErrorCode),
}
