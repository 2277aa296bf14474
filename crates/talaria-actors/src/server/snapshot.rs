//! What everybody may know of a server without asking its actor.

use std::time::{Duration, Instant, SystemTime};

use talaria_mcp::PeerInfo;
use talaria_types::ErrorCode;

/// The closed set of state names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateName {
    /// Known, not connected: the next call connects it.
    Configured,
    /// Being started or reached.
    Connecting,
    /// Takes calls.
    Ready,
    /// Has a session that is not above suspicion.
    Degraded,
    /// Waits before it is started again.
    Backoff,
    /// Given up but for slow probes.
    Parked,
    /// Not usable as configured; not tried again.
    Failed,
    /// Not started, by configuration or by an operator.
    Disabled,
    /// Finishes what runs.
    Draining,
    /// Over.
    Stopped,
}

/// What is to be expected of a server in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// It has a session.
    Up,
    /// It has none and may have one soon.
    Soon,
    /// It has none and will not have one soon.
    Down,
}

impl StateName {
    /// The word in JSON and labels.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Backoff => "backoff",
            Self::Parked => "parked",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }

    /// What is to be expected of it.
    pub(crate) const fn outlook(self) -> Outlook {
        match self {
            Self::Ready | Self::Degraded => Outlook::Up,
            Self::Configured | Self::Connecting | Self::Backoff => Outlook::Soon,
            Self::Parked | Self::Failed | Self::Disabled | Self::Draining | Self::Stopped => {
                Outlook::Down
            }
        }
    }

    /// Whether it should have a session and has none.
    pub(crate) const fn is_outage(self) -> bool {
        match self {
            Self::Connecting | Self::Backoff | Self::Parked | Self::Failed => true,
            Self::Configured
            | Self::Ready
            | Self::Degraded
            | Self::Disabled
            | Self::Draining
            | Self::Stopped => false,
        }
    }
}

/// What a breaker lets through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BreakerState {
    /// Everything.
    #[default]
    Closed,
    /// Nothing until then.
    Open {
        /// When the next call may try.
        until: Instant,
    },
    /// One call, to see whether things are better.
    HalfOpen,
}

impl BreakerState {
    /// The word in JSON and labels.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// The published state of a server.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// State.
    pub(crate) state: StateName,
    /// Since when it is in this state; none until it changed for the first time.
    pub(crate) since: Option<SystemTime>,
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
    /// The tools offered may not be those it has now.
    pub(crate) stale: bool,
    /// Since when it should have a session and has none.
    pub(crate) down_since: Option<SystemTime>,
    /// Only other credentials bring it back.
    pub(crate) needs_reauth: bool,
    /// Whether calls are let through.
    pub(crate) breaker: BreakerState,
}

impl Snapshot {
    /// A server of which nothing but its state is known.
    pub(crate) const fn new(state: StateName, reason: Option<String>) -> Self {
        Self {
            state,
            since: None,
            reason,
            peer: None,
            tools: 0,
            listed: false,
            attempts_ended: 0,
            starts: 0,
            next_attempt: None,
            refusal: None,
            stale: false,
            down_since: None,
            needs_reauth: false,
            breaker: BreakerState::Closed,
        }
    }

    /// Takes a new state, and notes since when it is down.
    pub(crate) fn enter(&mut self, state: StateName) {
        self.state = state;
        if state.is_outage() {
            let now = talaria_types::runtime::wall_clock;
            self.down_since.get_or_insert_with(now);
        } else {
            self.down_since = None;
        }
        self.stale = self.is_outdated();
    }

    /// Whether it offers tools of a server that is down.
    pub(crate) const fn is_outdated(&self) -> bool {
        self.listed && self.state.is_outage()
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
            StateName::Ready
            | StateName::Degraded
            | StateName::Parked
            | StateName::Failed
            | StateName::Disabled
            | StateName::Stopped => true,
            StateName::Configured => self.listed,
            StateName::Connecting | StateName::Backoff | StateName::Draining => {
                self.attempts_ended > 0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_a_server_that_is_down_are_stale_until_it_is_back() {
        let mut shown = Snapshot::new(StateName::Connecting, None);
        shown.enter(StateName::Connecting);
        assert!(
            shown.down_since.is_some() && !shown.stale,
            "nothing is listed"
        );
        shown.listed = true;
        shown.enter(StateName::Ready);
        assert_eq!((shown.down_since, shown.stale), (None, false));
        shown.enter(StateName::Backoff);
        let since = shown.down_since;
        assert!(since.is_some() && shown.stale);
        shown.enter(StateName::Parked);
        assert_eq!((shown.down_since, shown.stale), (since, true), "one outage");
        shown.enter(StateName::Configured);
        assert_eq!((shown.down_since, shown.stale), (None, false));
    }
}
