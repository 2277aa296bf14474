//! What the state machine takes.

use std::time::Instant;

use talaria_types::ErrorCode;

/// One accepted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallId(pub(crate) u64);

/// One attempt to connect and the session that came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Epoch(pub(crate) u64);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The actor started.
    Start,
    /// A caller wants a call made.
    Call {
        /// Its id.
        id: CallId,
        /// When its caller stops waiting.
        deadline: Instant,
        /// Whether it may run twice.
        read_only: bool,
    },
    /// The caller of a call has gone.
    CallerGone(CallId),
    /// A running call's job ended.
    CallEnded {
        /// The call.
        id: CallId,
        /// The session it ran on.
        epoch: Epoch,
        /// How.
        end: CallEnd,
    },
    /// The handshake and the first listing are done.
    Connected(Epoch),
    /// They failed.
    ConnectFailed {
        /// The attempt.
        epoch: Epoch,
        /// Trying again soon is pointless.
        permanent: bool,
        /// Why.
        reason: Reason,
    },
    /// The session ended by itself.
    SessionEnded {
        /// The session.
        epoch: Epoch,
        /// Why.
        reason: Reason,
    },
    /// Closing the session is done.
    SessionClosed(Epoch),
    /// The server says that its tools changed.
    ToolsChanged(Epoch),
    /// A refresh of the tool list ended, either way.
    RefreshEnded,
    /// An operator wants a new session now.
    Reconnect,
    /// No new calls; finish, then stop.
    Drain {
        /// When to stop waiting.
        until: Instant,
        /// What new callers are told.
        refusal: ErrorCode,
    },
    /// The time asked for by [`ServerState::next_wake`] has come.
    Clock,
}

/// Why a server is in its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    /// An error code's text or one of `talaria_telemetry::metrics::STATE_REASONS`.
    pub(crate) cause: &'static str,
    /// In words; empty where the state says it all.
    words: String,
}

impl Reason {
    /// A reason in a label and in words.
    pub(crate) fn new(cause: &'static str, words: impl Into<String>) -> Self {
        Self {
            cause,
            words: words.into(),
        }
    }

    /// A reason that needs no words.
    pub(crate) const fn bare(cause: &'static str) -> Self {
        Self {
            cause,
            words: String::new(),
        }
    }

    /// In words, where the state does not say it all.
    pub(crate) fn words(&self) -> Option<&str> {
        (!self.words.is_empty()).then_some(self.words.as_str())
    }
}

/// How a running call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The server answered.
    Answered,
    /// It failed, and the session is not to blame.
    Failed,
    /// The connection went away before the request was written.
    LostUnsent,
    /// The connection went away after it.
    LostSent,
}
