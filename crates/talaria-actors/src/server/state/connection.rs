//! Sessions: when one is made, what its end means, how often it is tried again.

use std::time::{Duration, Instant};

use super::breaker::Breaker;
use super::{Effect, Epoch, Link, Phase, Reason, Refusal, Retiring, ServerState, Then, Trouble};

/// How long calls may run on in a session that is to end while others are held back for it.
pub(super) const RETIRE_WITHIN: Duration = Duration::from_secs(10);

impl ServerState {
    pub(super) fn start(&mut self, known: bool, effects: &mut Vec<Effect>) {
        let is_waiting = matches!(self.phase, Phase::Configured | Phase::Connecting);
        // A call may have come first.
        if !is_waiting || self.link != Link::Absent {
            return;
        }
        if self.policy.lazy && known {
            self.phase = Phase::Configured;
            let words = "lazy: the first call connects it";
            self.reason = Reason::new("lazy", words);
        } else {
            self.phase = Phase::Connecting;
            self.connect(effects);
        }
    }

    /// A call wants a session where there is none and none is being made.
    pub(super) fn wake(&mut self, effects: &mut Vec<Effect>) {
        self.phase = Phase::Connecting;
        self.patience = self.patience.max(self.policy.respawn_wait);
        self.reason = Reason::bare("called");
        self.connect(effects);
    }

    pub(super) fn connect(&mut self, effects: &mut Vec<Effect>) {
        // A session that is still closing may hold a port or a lock file; its end comes first.
        if self.link != Link::Absent {
            return;
        }
        self.epoch = Epoch(self.epoch.0 + 1);
        self.link = Link::Connecting;
        effects.push(Effect::Connect(self.epoch));
    }

    pub(super) fn connected(
        &mut self,
        epoch: Epoch,
        has_tools: bool,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if epoch != self.epoch || self.link != Link::Connecting {
            effects.push(Effect::Close(epoch));
            return;
        }
        self.link = Link::Up;
        self.met = true;
        self.proven = false;
        self.patience = self.policy.ready_wait;
        (self.up_since, self.last_use, self.last_sign) = (now, now, now);
        self.hold_back_after = None;
        self.keepalive.connected(has_tools);
        // The list is fresh.
        self.refresh.reset();
        self.queue.forget_refresh();
        self.fuses.clear();
        if !self.is_ending() {
            self.phase = Phase::Ready;
            self.reason = Reason::bare("connected");
            self.needs_reauth = false;
        }
        for call in self.queue.each_mut() {
            call.ready_by = None;
        }
    }

    pub(super) fn connect_failed(
        &mut self,
        epoch: Epoch,
        trouble: Trouble,
        reason: Reason,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if epoch != self.epoch || self.link != Link::Connecting {
            return;
        }
        self.link = Link::Absent;
        if self.is_ending() {
            return;
        }
        self.reason = reason;
        let is_probe = matches!(self.phase, Phase::Parked { .. });
        match trouble {
            // What was an MCP server once may be one again.
            Trouble::Hopeless if !self.met => {
                self.phase = Phase::Failed;
                self.refuse_all(Refusal::NotReady, now, effects);
            }
            Trouble::Passing if !is_probe => self.schedule(now, effects),
            Trouble::Passing | Trouble::Lasting | Trouble::Hopeless => {
                self.needs_reauth = false;
                self.park(now, effects);
            }
            Trouble::Unauthorized => {
                self.needs_reauth = true;
                self.park(now, effects);
            }
        }
    }

    /// The session ended by itself.
    pub(super) fn session_ended(
        &mut self,
        epoch: Epoch,
        reason: Reason,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if epoch != self.epoch || self.link != Link::Up {
            return;
        }
        let retiring = self.retiring;
        self.close_link(effects);
        match (self.phase, retiring) {
            (Phase::Draining | Phase::Stopped, _) => self.refuse_queue(now, effects),
            // It was to end anyway.
            (_, Some(retiring)) => self.after_retirement(retiring.then, now, effects),
            (_, None) => {
                self.reason = reason;
                self.schedule(now, effects);
            }
        }
    }

    pub(super) fn session_closed(&mut self, epoch: Epoch, effects: &mut Vec<Effect>) {
        if epoch != self.epoch || self.link != Link::Closing {
            return;
        }
        self.link = Link::Absent;
        if self.phase == Phase::Connecting {
            self.connect(effects);
        }
    }

    pub(super) fn close_link(&mut self, effects: &mut Vec<Effect>) {
        self.link = Link::Closing;
        self.retiring = None;
        // What is known of the session ends with it.
        self.breaker = Breaker::default();
        self.refresh.reset();
        self.queue.forget_refresh();
        if self.keepalive.is_running() {
            self.keepalive.give_up();
            effects.push(Effect::AbandonProbe);
        }
        self.keepalive.sign_of_life();
        effects.push(Effect::Close(self.epoch));
    }

    /// Something was answered: the session is good, and so is the next attempt.
    pub(super) const fn prove(&mut self, now: Instant) {
        self.proven = true;
        self.graced = false;
        self.charged = 0;
        self.last_sign = now;
        self.keepalive.sign_of_life();
    }

    /// The credentials were refused: one new session where this one was good, then rest.
    pub(super) fn unauthorized(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Ready || self.link != Link::Up {
            return;
        }
        if matches!(
            self.retiring,
            Some(Retiring {
                then: Then::Reconnect,
                ..
            })
        ) {
            return;
        }
        let words = "the server refuses the credentials it was given";
        if self.proven && !self.graced {
            self.graced = true;
            self.retiring = Some(Retiring {
                then: Then::Reconnect,
                until: now + RETIRE_WITHIN,
            });
            return;
        }
        self.reason = Reason::new(talaria_types::ErrorCode::ServerUnauthorized.as_str(), words);
        self.needs_reauth = true;
        self.close_link(effects);
        self.park(now, effects);
    }

    /// Ends a session that was retired.
    pub(super) fn retire(&mut self, then: Then, now: Instant, effects: &mut Vec<Effect>) {
        self.close_link(effects);
        self.after_retirement(then, now, effects);
    }

    fn after_retirement(&mut self, then: Then, now: Instant, effects: &mut Vec<Effect>) {
        match then {
            Then::Reconnect => {
                let words = "a new session is asked for with the same credentials";
                self.reason =
                    Reason::new(talaria_types::ErrorCode::ServerUnauthorized.as_str(), words);
                self.phase = Phase::Connecting;
                self.patience = self.policy.respawn_wait;
                self.wait_for_session(now);
                self.connect(effects);
            }
            Then::Wait(cause) => {
                self.phase = Phase::Configured;
                let words = "its session was ended on purpose; the next call makes another";
                self.reason = Reason::new(cause, words);
                if self.queue.calls() > 0 {
                    self.wake(effects);
                    self.wait_for_session(now);
                }
            }
        }
    }

    /// Charges an attempt and says when the next one is, or gives up.
    pub(super) fn schedule(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.charged = self.charged.saturating_add(1);
        self.patience = self.policy.ready_wait;
        let (retries, backoff) = if self.met {
            (self.policy.reconnect_retries, self.policy.reconnect)
        } else {
            (self.policy.initial_retries, self.policy.initial)
        };
        if self.charged > retries {
            self.park(now, effects);
            return;
        }
        let delay = backoff.delay(self.charged, &mut self.jitter);
        self.phase = Phase::Backoff { until: now + delay };
        self.wait_for_session(now);
    }

    fn park(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let pause = self.jitter.spread(self.policy.probe_every);
        self.phase = Phase::Parked {
            probe_at: now + pause,
        };
        self.patience = self.policy.ready_wait;
        self.refuse_all(Refusal::NotReady, now, effects);
    }

    pub(super) fn wait_for_session(&mut self, now: Instant) {
        let ready_by = now + self.patience;
        for call in self.queue.each_mut() {
            call.ready_by.get_or_insert(ready_by);
        }
    }

    /// An operator wants a new session.
    pub(super) fn reconnect(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.patience = self.policy.ready_wait;
        match self.phase {
            Phase::Ready => {
                self.close_link(effects);
                self.wait_for_session(now);
            }
            Phase::Configured | Phase::Backoff { .. } | Phase::Parked { .. } | Phase::Failed => {}
            Phase::Connecting | Phase::Draining | Phase::Stopped => return,
        }
        self.charged = 0;
        self.graced = false;
        self.phase = Phase::Connecting;
        self.reason = Reason::new("operator", "an operator asked for a new session");
        self.connect(effects);
    }

    pub(super) const fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Stopped)
    }
}
