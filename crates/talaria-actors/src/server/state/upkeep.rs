//! What a session needs besides calls: a fresh list, signs of life, an end in time.

use std::time::{Duration, Instant};

use super::connection::RETIRE_WITHIN;
use super::keepalive::Finding;
use super::{Effect, Epoch, Link, Phase, ProbeEnd, Reason, Retiring, ServerState, Then};

/// How long a session over its lifetime goes on where calls that run would not end for its sake.
const GO_ON: Duration = Duration::from_secs(60);

impl ServerState {
    pub(super) fn tools_changed(&mut self, epoch: Epoch, now: Instant) {
        if epoch == self.epoch && self.phase == Phase::Ready {
            self.refresh.announced(now);
        }
    }

    pub(super) fn refresh_ended(&mut self, epoch: Epoch, read: bool, now: Instant) {
        // What an earlier session was asked ended with that session.
        if !self.is_current(epoch) {
            return;
        }
        self.refresh.ended(read, now, &mut self.jitter);
        if read {
            self.prove(now);
        }
    }

    pub(super) fn probe_ended(
        &mut self,
        epoch: Epoch,
        end: ProbeEnd,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if !self.is_current(epoch) {
            return;
        }
        match self.keepalive.ended(end, now) {
            None => {}
            Some(Finding::Alive) => self.prove(now),
            Some(Finding::AskBy(by)) => effects.push(Effect::Probe(self.epoch, by)),
            Some(Finding::Suspect | Finding::Untold) => self.last_sign = now,
            Some(Finding::Unauthorized) => self.unauthorized(now, effects),
            Some(Finding::Dead) => {
                let words = "it no longer answers when it is asked for a sign of life";
                self.session_ended(epoch, Reason::new("keepalive", words), now, effects);
            }
        }
    }

    /// Does what is due on a live session.
    pub(super) fn upkeep(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.link != Link::Up {
            return;
        }
        if self.retiring.is_none()
            && let Some(cause) = self.outlived(now)
        {
            self.retiring = Some(Retiring {
                then: Then::Wait(cause),
                until: now + RETIRE_WITHIN,
            });
        }
        if let Some(Retiring { then, until }) = self.retiring {
            let late = until <= now;
            if self.in_flight() == 0 || (late && then == Then::Reconnect) {
                self.retire(then, now, effects);
                return;
            }
            if !late {
                return;
            }
            self.retiring = None;
            self.hold_back_after = Some(now + GO_ON);
        }
        if self.refresh.due().is_some_and(|due| due <= now) {
            self.refresh.queued();
            self.queue.want_refresh();
        }
        let idle = self.is_idle();
        let asked = self.keepalive.due(self.last_sign, self.policy.keepalive);
        if idle && asked.is_some_and(|due| due <= now) {
            let by = self.keepalive.start();
            effects.push(Effect::Probe(self.epoch, by));
        }
    }

    /// When [`Self::upkeep`] has something to do.
    pub(super) fn next_upkeep(&self) -> Option<Instant> {
        if let Some(retiring) = self.retiring {
            return Some(retiring.until);
        }
        let refresh = self.refresh.due();
        let mut due = refresh;
        let mut consider = |at: Option<Instant>| {
            due = due.into_iter().chain(at).min();
        };
        if self.is_idle() {
            consider(self.keepalive.due(self.last_sign, self.policy.keepalive));
            consider(self.policy.idle_timeout.map(|idle| self.last_use + idle));
        }
        let end_of_life = self.policy.max_lifetime.map(|life| self.up_since + life);
        consider(end_of_life.max(self.hold_back_after));
        due
    }

    /// Why the session is to be ended.
    fn outlived(&self, now: Instant) -> Option<&'static str> {
        let over = |limit: Option<Duration>, since: Instant| {
            limit.is_some_and(|limit| since + limit <= now)
        };
        // Between two calls at once; while calls run, others are held back from time to time.
        let may_hold_back = self.hold_back_after.is_none_or(|after| after <= now);
        let may_end = self.in_flight() == 0 || may_hold_back;
        if may_end && over(self.policy.max_lifetime, self.up_since) {
            return Some("lifetime");
        }
        let idle = self.is_idle() && over(self.policy.idle_timeout, self.last_use);
        idle.then_some("idle")
    }

    fn is_idle(&self) -> bool {
        self.in_flight() == 0 && self.queue.is_empty()
    }

    pub(super) fn is_current(&self, epoch: Epoch) -> bool {
        epoch == self.epoch && self.link == Link::Up
    }
}
