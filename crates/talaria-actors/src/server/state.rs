//! The life of one server and its RPC lock, as a pure state machine.
//!
//! Takes an input and "now", returns effects; the actor carries them out. No actix, no tokio,
//! no clock of its own. The invariants are named functions in the tests of this module.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use talaria_types::ErrorCode;

use crate::backoff::{Backoff, Jitter};
use crate::server::snapshot::{BreakerState, StateName};

mod breaker;
mod calls;
mod connection;
mod drain;
mod effects;
mod inputs;
mod keepalive;
mod queue;
mod refresh;
#[cfg(test)]
mod tests;
mod upkeep;

pub(crate) use breaker::FuseKey;
pub(crate) use effects::{Effect, Refusal};
pub(crate) use inputs::{CallEnd, CallId, Epoch, Input, Lane, Reason, Trouble};
pub(crate) use keepalive::{ProbeBy, ProbeEnd};

use breaker::{Breaker, Fuses};
use keepalive::Keepalive;
use queue::{Accepted, FairQueue};
use refresh::Refresh;

/// What an operator or the specification sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// RPCs at a time.
    pub(crate) rpc_concurrency: usize,
    /// Calls that may wait.
    pub(crate) pending: usize,
    /// Of these, calls of one caller's token.
    pub(crate) share: usize,
    /// How long a call waits for a session.
    pub(crate) ready_wait: Duration,
    /// How long a call waits for the first session.
    pub(crate) first_wait: Duration,
    /// How long a call waits for a session that is made because of it.
    pub(crate) respawn_wait: Duration,
    /// Waits before a server that was never reached is tried again.
    pub(crate) initial: Backoff,
    /// Attempts after the first before it is parked.
    pub(crate) initial_retries: u32,
    /// Waits before a server that was reached once is tried again.
    pub(crate) reconnect: Backoff,
    /// Attempts before it is parked.
    pub(crate) reconnect_retries: u32,
    /// Pause between attempts once it is parked.
    pub(crate) probe_every: Duration,
    /// Whether a lost connection of one call means that the session is over.
    pub(crate) loss_ends_session: bool,
    /// How long a session may be idle before it is asked for a sign of life.
    pub(crate) keepalive: Option<Duration>,
    /// Whether it waits for the first call, where its tools are known.
    pub(crate) lazy: bool,
    /// How long a session may be idle before it is ended.
    pub(crate) idle_timeout: Option<Duration>,
    /// How long a session may live.
    pub(crate) max_lifetime: Option<Duration>,
}

/// The state of one server.
#[derive(Clone, Debug)]
pub(crate) struct ServerState {
    policy: Policy,
    phase: Phase,
    link: Link,
    epoch: Epoch,
    /// The current session has answered a call or a keepalive.
    proven: bool,
    /// A new session was asked for because of the credentials, and none has been proven since.
    graced: bool,
    /// There was a session once.
    met: bool,
    /// Attempts charged since the last proof.
    charged: u32,
    /// How long a call waits for the session that is being made.
    patience: Duration,
    /// When the session came up, and when it was used last.
    up_since: Instant,
    last_use: Instant,
    last_sign: Instant,
    retiring: Option<Retiring>,
    /// When a session over its lifetime may hold calls back again.
    hold_back_after: Option<Instant>,
    running: BTreeMap<CallId, Accepted>,
    queue: FairQueue,
    next_turn: u64,
    breaker: Breaker,
    fuses: Fuses,
    refresh: Refresh,
    keepalive: Keepalive,
    drain: Option<(Instant, ErrorCode)>,
    reason: Reason,
    needs_reauth: bool,
    jitter: Jitter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Configured,
    Connecting,
    Ready,
    Backoff { until: Instant },
    Parked { probe_at: Instant },
    Failed,
    Draining,
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Absent,
    Connecting,
    Up,
    Closing,
}

/// A session that begins no more calls and is ended when those that run are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Retiring {
    then: Then,
    /// When calls have been held back for long enough.
    until: Instant,
}

/// What follows a session that was retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The next call makes another; why it was ended.
    Wait(&'static str),
    /// Another one, because of the credentials.
    Reconnect,
}

/// Why a session is not above suspicion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    Breaker,
    Keepalive,
    List,
}

impl ServerState {
    /// A server that has not been started.
    /// `cause` is why it is started.
    pub(crate) fn new(policy: Policy, jitter: Jitter, cause: &'static str, now: Instant) -> Self {
        let phase = if policy.lazy {
            Phase::Configured
        } else {
            Phase::Connecting
        };
        Self {
            policy,
            phase,
            link: Link::Absent,
            epoch: Epoch(0),
            proven: false,
            graced: false,
            met: false,
            charged: 0,
            patience: policy.first_wait,
            up_since: now,
            last_use: now,
            last_sign: now,
            retiring: None,
            hold_back_after: None,
            running: BTreeMap::new(),
            queue: FairQueue::default(),
            next_turn: 0,
            breaker: Breaker::default(),
            fuses: Fuses::default(),
            refresh: Refresh::default(),
            keepalive: Keepalive::default(),
            drain: None,
            reason: Reason::bare(cause),
            needs_reauth: false,
            jitter,
        }
    }

    /// Takes one input.
    pub(crate) fn handle(&mut self, input: Input, now: Instant) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Start { known } => self.start(known, &mut effects),
            Input::Call {
                id,
                deadline,
                read_only,
                lane,
                fuse,
            } => {
                let call = Accepted {
                    turn: self.next_turn,
                    deadline,
                    ready_by: None,
                    read_only,
                    losses: 0,
                    lane,
                    fuse,
                };
                self.accept(id, call, now, &mut effects);
            }
            Input::CallerGone(id) => self.forget(id, now, &mut effects),
            Input::CallEnded { id, epoch, end } => {
                self.call_ended(id, epoch, end, now, &mut effects);
            }
            Input::Connected { epoch, has_tools } => {
                self.connected(epoch, has_tools, now, &mut effects);
            }
            Input::ConnectFailed {
                epoch,
                trouble,
                reason,
            } => {
                self.connect_failed(epoch, trouble, reason, now, &mut effects);
            }
            Input::SessionEnded { epoch, reason } => {
                self.session_ended(epoch, reason, now, &mut effects);
            }
            Input::SessionClosed(epoch) => self.session_closed(epoch, &mut effects),
            Input::ToolsChanged(epoch) => self.tools_changed(epoch, now),
            Input::RefreshEnded { epoch, read } => self.refresh_ended(epoch, read, now),
            Input::ProbeEnded { epoch, end } => self.probe_ended(epoch, end, now, &mut effects),
            Input::Reconnect => self.reconnect(now, &mut effects),
            Input::Drain { until, refusal } => self.begin_drain(until, refusal, now, &mut effects),
            Input::Clock => {}
        }
        self.clock(now, &mut effects);
        self.pump(now, &mut effects);
        self.finish_drain(&mut effects);
        effects
    }

    /// When [`Input::Clock`] is due at the latest.
    pub(crate) fn next_wake(&self, now: Instant) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Backoff { until } => Some(until),
            Phase::Parked { probe_at } if self.link == Link::Absent => Some(probe_at),
            Phase::Draining => self.drain.map(|(until, _)| until),
            Phase::Ready => self.next_upkeep(),
            Phase::Configured
            | Phase::Connecting
            | Phase::Parked { .. }
            | Phase::Failed
            | Phase::Stopped => None,
        };
        let calls = self.queue.each().map(Accepted::give_up_at);
        let breaker = self.breaker.changes_at(now);
        phase.into_iter().chain(calls).chain(breaker).min()
    }

    /// The state as others see it.
    pub(crate) const fn name(&self) -> StateName {
        match self.phase {
            Phase::Configured => StateName::Configured,
            Phase::Connecting => StateName::Connecting,
            Phase::Ready if self.doubt().is_some() => StateName::Degraded,
            Phase::Ready => StateName::Ready,
            Phase::Backoff { .. } => StateName::Backoff,
            Phase::Parked { .. } => StateName::Parked,
            Phase::Failed => StateName::Failed,
            Phase::Draining => StateName::Draining,
            Phase::Stopped => StateName::Stopped,
        }
    }

    /// Why the server is in this state: an error code's text or a known word.
    pub(crate) const fn cause(&self) -> &'static str {
        match (self.phase, self.doubt()) {
            (Phase::Ready, Some(doubt)) => doubt.cause(),
            _ => self.reason.cause,
        }
    }

    /// The same in words, where the state does not say it all.
    pub(crate) fn words(&self) -> Option<&str> {
        match (self.phase, self.doubt()) {
            (Phase::Ready, Some(doubt)) => Some(doubt.words()),
            _ => self.reason.words(),
        }
    }

    const fn doubt(&self) -> Option<Doubt> {
        if !matches!(self.breaker, Breaker::Closed(_)) {
            Some(Doubt::Breaker)
        } else if self.keepalive.is_suspect() {
            Some(Doubt::Keepalive)
        } else if self.refresh.is_stale() {
            Some(Doubt::List)
        } else {
            None
        }
    }

    /// Whether the tools may not be those it has now.
    pub(crate) const fn is_stale(&self) -> bool {
        self.refresh.is_stale()
    }

    /// Whether only other credentials bring it back.
    pub(crate) const fn needs_reauth(&self) -> bool {
        self.needs_reauth
    }

    /// What the breaker lets through.
    pub(crate) fn breaker(&self, now: Instant) -> BreakerState {
        self.breaker.shown(now)
    }

    /// When the next attempt to connect is due.
    pub(crate) const fn next_attempt(&self) -> Option<Instant> {
        match self.phase {
            Phase::Backoff { until } => Some(until),
            Phase::Parked { probe_at } => Some(probe_at),
            Phase::Configured
            | Phase::Connecting
            | Phase::Ready
            | Phase::Failed
            | Phase::Draining
            | Phase::Stopped => None,
        }
    }

    /// The session or the attempt that counts.
    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What callers are told while it drains and after.
    pub(crate) fn refusal(&self) -> Option<ErrorCode> {
        self.drain.map(|(_, code)| code)
    }

    /// RPCs that run.
    pub(crate) fn in_flight(&self) -> usize {
        self.running.len()
            + usize::from(self.refresh.is_running())
            + usize::from(self.keepalive.is_running())
    }

    /// Calls that wait.
    pub(crate) const fn pending(&self) -> usize {
        self.queue.calls()
    }

    fn clock(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.expire(now, effects);
        match self.phase {
            Phase::Backoff { until } if until <= now => {
                self.phase = Phase::Connecting;
                self.connect(effects);
            }
            // A probe leaves the state as it is until it succeeds.
            Phase::Parked { probe_at } if probe_at <= now => self.connect(effects),
            Phase::Ready => self.upkeep(now, effects),
            Phase::Draining => self.drain_is_due(now, effects),
            Phase::Configured
            | Phase::Connecting
            | Phase::Backoff { .. }
            | Phase::Parked { .. }
            | Phase::Failed
            | Phase::Stopped => {}
        }
    }
}

impl Doubt {
    const fn cause(self) -> &'static str {
        match self {
            Self::Breaker => ErrorCode::CircuitOpen.as_str(),
            Self::Keepalive => "keepalive",
            Self::List => "stale_list",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Breaker => "its last calls failed; for a while none is sent",
            Self::Keepalive => "it did not answer when it was asked for a sign of life",
            Self::List => "its tool list could not be read again; the old one stays",
        }
    }
}
