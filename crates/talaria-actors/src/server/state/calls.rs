//! Calls: who is accepted, whose turn it is, what an end means for the caller and the session.

use std::time::Instant;

use talaria_types::ErrorCode;

use super::breaker::Verdict;
use super::queue::{Accepted, Work};
use super::{CallEnd, CallId, Effect, Epoch, Lane, Link, Phase, Reason, Refusal, ServerState};

/// How often one call may go back to the queue because its connection was lost.
const REPLAYS: u8 = 1;

impl ServerState {
    pub(super) fn accept(
        &mut self,
        id: CallId,
        mut call: Accepted,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(refusal) = self.refusal_for_new(&call, now) {
            effects.push(Effect::Refuse(id, refusal));
            return;
        }
        self.next_turn += 1;
        self.breaker.pass(id, now);
        if let Some(fuse) = call.fuse {
            self.fuses.pass(fuse, id, now);
        }
        if self.phase == Phase::Configured {
            self.wake(effects);
        }
        call.ready_by = (self.phase != Phase::Ready).then(|| now + self.patience);
        self.queue.push(id, call);
    }

    fn refusal_for_new(&self, call: &Accepted, now: Instant) -> Option<Refusal> {
        let ready = match self.phase {
            Phase::Draining | Phase::Stopped => {
                let code = self.drain.map_or(ErrorCode::ShuttingDown, |(_, code)| code);
                return Some(Refusal::Draining(code));
            }
            Phase::Parked { .. } | Phase::Failed => return Some(Refusal::NotReady),
            // Nothing can change before the next attempt, so waiting would only cost time.
            Phase::Backoff { until } if until > now + self.policy.ready_wait => {
                return Some(Refusal::NotReady);
            }
            Phase::Configured | Phase::Connecting | Phase::Backoff { .. } => false,
            Phase::Ready => true,
        };
        if call.deadline <= now {
            let expired = if ready {
                Refusal::ExpiredInQueue
            } else {
                Refusal::ExpiredConnecting
            };
            return Some(expired);
        }
        if let Some(wait) = self.breaker.closed_for(now) {
            return Some(Refusal::ServerCircuit(wait));
        }
        let blown = call.fuse.and_then(|fuse| self.fuses.closed_for(fuse, now));
        if let Some(wait) = blown {
            return Some(Refusal::ToolCircuit(wait));
        }
        let free = ready && self.queue.is_empty() && self.has_free_place();
        if free {
            return None;
        }
        if self.queue.calls() >= self.policy.pending {
            return Some(Refusal::Busy);
        }
        let has_share =
            call.lane != Lane::NOBODY && self.queue.calls_of(call.lane) >= self.policy.share;
        has_share.then_some(Refusal::Share)
    }

    fn has_free_place(&self) -> bool {
        self.retiring.is_none() && self.in_flight() < self.policy.rpc_concurrency
    }

    pub(super) fn forget(&mut self, id: CallId, now: Instant, effects: &mut Vec<Effect>) {
        if let Some(call) = self.queue.remove(id) {
            self.settle(id, &call, (Verdict::Nothing, Verdict::Nothing), now);
            effects.push(Effect::Forget(id));
        }
    }

    pub(super) fn call_ended(
        &mut self,
        id: CallId,
        epoch: Epoch,
        end: CallEnd,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let Some(call) = self.running.remove(&id) else {
            return;
        };
        let current = self.is_current(epoch);
        if current {
            self.last_use = now;
            if matches!(end, CallEnd::Answered | CallEnd::ToolFailed) {
                self.prove(now);
            }
        }
        let opened = self.settle(id, &call, verdicts(end, current), now);
        if opened {
            let trips = self.queue.take(|_, _| true);
            self.refuse_each(
                trips,
                Refusal::ServerCircuit(super::breaker::COOLDOWN),
                now,
                effects,
            );
            self.keepalive.hurry(now);
        }
        if end == CallEnd::Unauthorized && current {
            self.unauthorized(now, effects);
        }
        let lost = matches!(end, CallEnd::LostUnsent | CallEnd::LostSent);
        if lost && self.policy.loss_ends_session {
            let reason = Reason::new("connection_lost", "the connection was lost during a call");
            self.session_ended(epoch, reason, now, effects);
        }
        let has_prospect = self.may_begin_soon(now) && call.deadline > now;
        if self.may_repeat(&call, end, current) && has_prospect {
            self.put_back(id, call, now);
        } else {
            effects.push(Effect::Answer(id));
        }
    }

    /// A call that may have run is repeated only if it changes nothing, and once.
    fn may_repeat(&self, call: &Accepted, end: CallEnd, current: bool) -> bool {
        let allowed = match end {
            CallEnd::Answered | CallEnd::ToolFailed | CallEnd::Failed | CallEnd::Silent => false,
            // In a session that lives on the transport has tried what helps.
            CallEnd::LostUnsent => self.policy.loss_ends_session || !current,
            CallEnd::LostSent => call.read_only,
            CallEnd::Unauthorized => true,
        };
        allowed && call.losses < REPLAYS
    }

    /// Whether a call that goes back to the queue has a prospect.
    fn may_begin_soon(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Ready => self.breaker.closed_for(now).is_none(),
            Phase::Configured | Phase::Connecting => true,
            Phase::Backoff { until } => until <= now + self.policy.respawn_wait,
            Phase::Parked { .. } | Phase::Failed | Phase::Draining | Phase::Stopped => false,
        }
    }

    fn put_back(&mut self, id: CallId, call: Accepted, now: Instant) {
        let ready_by = (self.phase != Phase::Ready).then(|| now + self.policy.respawn_wait);
        let call = Accepted {
            ready_by,
            losses: call.losses.saturating_add(1),
            ..call
        };
        self.breaker.pass(id, now);
        if let Some(fuse) = call.fuse {
            self.fuses.pass(fuse, id, now);
        }
        self.queue.put_back(id, call);
    }

    /// Tells the breakers how a call ended; true when the server's opened.
    fn settle(
        &mut self,
        id: CallId,
        call: &Accepted,
        (server, tool): (Verdict, Verdict),
        now: Instant,
    ) -> bool {
        if let Some(fuse) = call.fuse {
            self.fuses.settle(fuse, id, tool, now);
        }
        self.breaker.settle(id, server, now)
    }

    pub(super) fn refuse_all(&mut self, why: Refusal, now: Instant, effects: &mut Vec<Effect>) {
        self.queue.forget_refresh();
        let calls = self.queue.take(|_, _| true);
        self.refuse_each(calls, why, now, effects);
    }

    fn refuse_each(
        &mut self,
        calls: Vec<(CallId, Accepted)>,
        why: Refusal,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        for (id, call) in calls {
            self.settle(id, &call, (Verdict::Nothing, Verdict::Nothing), now);
            effects.push(Effect::Refuse(id, why));
        }
    }

    pub(super) fn expire(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.queue.calls() == 0 {
            return;
        }
        let ready = self.link == Link::Up;
        for (id, call) in self.queue.take(|_, call| call.give_up_at() <= now) {
            let refusal = if call.deadline > now {
                Refusal::NotReady
            } else if ready {
                Refusal::ExpiredInQueue
            } else {
                Refusal::ExpiredConnecting
            };
            self.refuse_each(vec![(id, call)], refusal, now, effects);
        }
    }

    pub(super) fn pump(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let open = match self.phase {
            Phase::Ready | Phase::Draining => self.link == Link::Up && self.retiring.is_none(),
            Phase::Configured
            | Phase::Connecting
            | Phase::Backoff { .. }
            | Phase::Parked { .. }
            | Phase::Failed
            | Phase::Stopped => false,
        };
        if !open || self.queue.is_empty() {
            return;
        }
        // Asking for a sign of life is for idle hours.
        if self.keepalive.is_running() && !self.has_free_place() {
            self.keepalive.give_up();
            effects.push(Effect::AbandonProbe);
        }
        while self.has_free_place() {
            match self.queue.pop() {
                None => return,
                Some(Work::Refresh) => {
                    self.refresh.started();
                    effects.push(Effect::Refresh(self.epoch));
                }
                Some(Work::Call(id, call)) => {
                    debug_assert!(call.deadline > now, "expired calls were dropped before");
                    self.running.insert(id, call);
                    effects.push(Effect::Begin(id));
                }
            }
        }
    }
}

/// What the end of a call says of the server and of the tool. Only the session that is up counts.
const fn verdicts(end: CallEnd, current: bool) -> (Verdict, Verdict) {
    let (server, tool) = match end {
        CallEnd::Answered => (Verdict::Good, Verdict::Good),
        CallEnd::ToolFailed => (Verdict::Good, Verdict::Bad),
        CallEnd::Silent | CallEnd::LostUnsent | CallEnd::LostSent => {
            (Verdict::Bad, Verdict::Nothing)
        }
        CallEnd::Failed | CallEnd::Unauthorized => (Verdict::Nothing, Verdict::Nothing),
    };
    if current {
        (server, tool)
    } else {
        (Verdict::Nothing, tool)
    }
}
