//! What the state machine takes.

use std::time::Instant;

use talaria_types::ErrorCode;

use super::breaker::FuseKey;
use super::keepalive::ProbeEnd;

/// One accepted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallId(pub(crate) u64);

/// Whose calls they are, as a hash of the caller's token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lane(pub(crate) u64);

impl Lane {
    /// Callers without a token.
    pub(crate) const NOBODY: Self = Self(0);
}

/// One attempt to connect and the session that came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Epoch(pub(crate) u64);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The actor started.
    Start {
        /// The tools are known from an earlier time.
        known: bool,
    },
    /// A caller wants a call made.
    Call {
        /// Its id.
        id: CallId,
        /// When its caller stops waiting.
        deadline: Instant,
        /// Whether it may run twice.
        read_only: bool,
        /// Whose it is.
        lane: Lane,
        /// What remembers its tool's errors; none without a session of the caller.
        fuse: Option<FuseKey>,
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
    Connected {
        /// The attempt.
        epoch: Epoch,
        /// The server has tools to list.
        has_tools: bool,
    },
    /// They failed.
    ConnectFailed {
        /// The attempt.
        epoch: Epoch,
        /// What is to be expected of the next one.
        trouble: Trouble,
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
    /// A refresh of the tool list ended.
    RefreshEnded {
        /// The session it ran on.
        epoch: Epoch,
        /// Whether there is a new list.
        read: bool,
    },
    /// Asking the session for a sign of life ended.
    ProbeEnded {
        /// The session.
        epoch: Epoch,
        /// How.
        end: ProbeEnd,
    },
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

/// What is to be expected after an attempt to connect that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The next one may succeed.
    Passing,
    /// The next one will hardly succeed: the program is not there.
    Lasting,
    /// Other credentials are wanted.
    Unauthorized,
    /// There is no MCP server at all.
    Hopeless,
}

/// How a running call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The server answered.
    Answered,
    /// The server answered with an error.
    ToolFailed,
    /// It failed, and the session is not to blame.
    Failed,
    /// The server was silent for as long as it may.
    Silent,
    /// The server refused the credentials; nothing was run.
    Unauthorized,
    /// The connection went away before the request was written.
    LostUnsent,
    /// The connection went away after it.
    LostSent,
}
