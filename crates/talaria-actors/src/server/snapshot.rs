//! What everybody may know of a server without asking its actor.

use std::time::{Duration, Instant};

use talaria_mcp::PeerInfo;
use talaria_types::ErrorCode;

/// The closed set of state names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateName {
    /// Being started or reached.
    Starting,
    /// Takes calls.
    Ready,
    /// Waits before it is started again.
    Backoff,
    /// Given up but for slow probes, or not usable as configured.
    Failed,
    /// Not started, by configuration or by an operator.
    Disabled,
    /// Finishes what runs.
    Draining,
    /// Over.
    Stopped,
}

impl StateName {
    /// The word in JSON and labels.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Backoff => "backoff",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }
}

/// The published state of a server.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// State.
    pub(crate) state: StateName,
    /// Why, where the state needs a reason.
    pub(crate) reason: Option<String>,
    /// What the last handshake told.
    pub(crate) peer: Option<PeerInfo>,
    /// Tools offered.
    pub(crate) tools: usize,
    /// Whether the tool list has been read at least once.
    pub(crate) listed: bool,
    /// Attempts to connect that ended, either way.
    pub(crate) attempts_ended: u64,
    /// Times a connection was attempted.
    pub(crate) starts: u64,
    /// When the next attempt is due.
    pub(crate) next_attempt: Option<Instant>,
    /// What callers are told while it drains and after.
    pub(crate) refusal: Option<ErrorCode>,
}

impl Snapshot {
    /// A server of which nothing but its state is known.
    pub(crate) const fn new(state: StateName, reason: Option<String>) -> Self {
        Self {
            state,
            reason,
            peer: None,
            tools: 0,
            listed: false,
            attempts_ended: 0,
            starts: 0,
            next_attempt: None,
            refusal: None,
        }
    }

    /// How long until the next attempt.
    pub(crate) fn time_to_next_attempt(&self) -> Option<Duration> {
        let now = talaria_types::runtime::now().into_std();
        self.next_attempt
            .map(|at| at.saturating_duration_since(now))
    }

    /// Whether an attempt to connect has ended, or none will be made.
    pub(crate) const fn settled(&self) -> bool {
        match self.state {
            StateName::Ready | StateName::Failed | StateName::Disabled | StateName::Stopped => true,
            StateName::Starting | StateName::Backoff | StateName::Draining => {
                self.attempts_ended > 0
            }
        }
    }
}
