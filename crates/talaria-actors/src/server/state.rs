//! The life of one server and its RPC lock, as a pure state machine.
//!
//! Takes an input and "now", returns effects; the actor carries them out. No actix, no tokio,
//! no clock of its own. The invariants are named functions in the tests of this module.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use talaria_types::ErrorCode;

use crate::backoff::{Backoff, Jitter};
use crate::server::snapshot::StateName;

mod effects;
mod inputs;
#[cfg(test)]
mod tests;

pub(crate) use effects::{Effect, Refusal};
pub(crate) use inputs::{CallEnd, CallId, Epoch, Input, Reason};

/// How often one call may go back to the queue because its connection was lost.
const REPLAYS: u8 = 2;
/// Further than any drain waits.
const FAR: Duration = Duration::from_secs(24 * 3600);

/// What an operator or the specification sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// RPCs at a time.
    pub(crate) rpc_concurrency: usize,
    /// Calls that may wait.
    pub(crate) pending: usize,
    /// How long a call waits for a session.
    pub(crate) ready_wait: Duration,
    /// Waits before a server that was never reached is tried again.
    pub(crate) initial: Backoff,
    /// Attempts after the first before it counts as failed.
    pub(crate) initial_retries: u32,
    /// Waits before a server that was reached once is tried again.
    pub(crate) reconnect: Backoff,
    /// Attempts before it counts as failed.
    pub(crate) reconnect_retries: u32,
    /// Pause between attempts once it has failed.
    pub(crate) probe_every: Duration,
    /// Whether a lost connection of one call means that the session is over.
    pub(crate) loss_ends_session: bool,
}

/// The state of one server.
#[derive(Clone, Debug)]
pub(crate) struct ServerState {
    policy: Policy,
    phase: Phase,
    link: Link,
    epoch: Epoch,
    /// The current session has answered a call.
    proven: bool,
    /// There was a session once.
    met: bool,
    /// Attempts charged since the last proven session.
    charged: u32,
    running: BTreeMap<CallId, Accepted>,
    refreshing: bool,
    queue: VecDeque<Work>,
    waiting: usize,
    next_turn: u64,
    drain: Option<(Instant, ErrorCode)>,
    reason: Reason,
    jitter: Jitter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Ready,
    Backoff { until: Instant },
    Failed { probe_at: Instant },
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Call(CallId, Accepted),
    Refresh,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Accepted {
    /// Order of acceptance, kept when a lost call goes back to the queue.
    turn: u64,
    deadline: Instant,
    /// When it stops waiting for a session; none while there is one.
    ready_by: Option<Instant>,
    read_only: bool,
    losses: u8,
}

impl ServerState {
    /// A server that has not been started.
    /// `cause` is why it is started.
    pub(crate) const fn new(policy: Policy, jitter: Jitter, cause: &'static str) -> Self {
        Self {
            policy,
            phase: Phase::Starting,
            link: Link::Absent,
            epoch: Epoch(0),
            proven: false,
            met: false,
            charged: 0,
            running: BTreeMap::new(),
            refreshing: false,
            queue: VecDeque::new(),
            waiting: 0,
            next_turn: 0,
            drain: None,
            reason: Reason::bare(cause),
            jitter,
        }
    }

    /// Takes one input.
    pub(crate) fn handle(&mut self, input: Input, now: Instant) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Start => self.connect(&mut effects),
            Input::Call {
                id,
                deadline,
                read_only,
            } => {
                self.accept(id, deadline, read_only, now, &mut effects);
            }
            Input::CallerGone(id) => self.forget(id, &mut effects),
            Input::CallEnded { id, epoch, end } => {
                self.call_ended(id, epoch, end, now, &mut effects);
            }
            Input::Connected(epoch) => self.connected(epoch, &mut effects),
            Input::ConnectFailed {
                epoch,
                permanent,
                reason,
            } => {
                self.connect_failed(epoch, permanent, reason, now, &mut effects);
            }
            Input::SessionEnded { epoch, reason } => {
                self.session_ended(epoch, reason, now, &mut effects);
            }
            Input::SessionClosed(epoch) => self.session_closed(epoch, &mut effects),
            Input::ToolsChanged(epoch) => self.want_refresh(epoch),
            Input::RefreshEnded => self.refreshing = false,
            Input::Reconnect => self.reconnect(now, &mut effects),
            Input::Drain { until, refusal } => self.begin_drain(until, refusal, &mut effects),
            Input::Clock => {}
        }
        self.clock(now, &mut effects);
        self.pump(now, &mut effects);
        self.finish_drain(&mut effects);
        effects
    }

    /// When [`Input::Clock`] is due at the latest.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Backoff { until } => Some(until),
            Phase::Failed { probe_at } if self.link == Link::Absent => Some(probe_at),
            Phase::Draining => self.drain.map(|(until, _)| until),
            Phase::Starting | Phase::Ready | Phase::Failed { .. } | Phase::Stopped => None,
        };
        let calls = self.queue.iter().filter_map(|work| match work {
            Work::Call(_, call) => Some(call.give_up_at()),
            Work::Refresh => None,
        });
        phase.into_iter().chain(calls).min()
    }

    /// The state as others see it.
    pub(crate) const fn name(&self) -> StateName {
        match self.phase {
            Phase::Starting => StateName::Starting,
            Phase::Ready => StateName::Ready,
            Phase::Backoff { .. } => StateName::Backoff,
            Phase::Failed { .. } => StateName::Failed,
            Phase::Draining => StateName::Draining,
            Phase::Stopped => StateName::Stopped,
        }
    }

    /// Why the server is in this state.
    pub(crate) const fn reason(&self) -> &Reason {
        &self.reason
    }

    /// When the next attempt to connect is due.
    pub(crate) const fn next_attempt(&self) -> Option<Instant> {
        match self.phase {
            Phase::Backoff { until } => Some(until),
            Phase::Failed { probe_at } => Some(probe_at),
            Phase::Starting | Phase::Ready | Phase::Draining | Phase::Stopped => None,
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
        self.running.len() + usize::from(self.refreshing)
    }

    /// Calls that wait.
    pub(crate) const fn pending(&self) -> usize {
        self.waiting
    }

    fn accept(
        &mut self,
        id: CallId,
        deadline: Instant,
        read_only: bool,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(refusal) = self.refusal_for_new(deadline, now) {
            effects.push(Effect::Refuse(id, refusal));
            return;
        }
        let ready_by = (self.phase != Phase::Ready).then(|| now + self.policy.ready_wait);
        let turn = self.next_turn;
        self.next_turn += 1;
        let call = Accepted {
            turn,
            deadline,
            ready_by,
            read_only,
            losses: 0,
        };
        self.queue.push_back(Work::Call(id, call));
        self.waiting += 1;
    }

    fn refusal_for_new(&self, deadline: Instant, now: Instant) -> Option<Refusal> {
        let ready = match self.phase {
            Phase::Draining | Phase::Stopped => {
                let code = self.drain.map_or(ErrorCode::ShuttingDown, |(_, code)| code);
                return Some(Refusal::Draining(code));
            }
            Phase::Failed { .. } => return Some(Refusal::NotReady),
            // Nothing can change before the next attempt, so waiting would only cost time.
            Phase::Backoff { until } if until > now + self.policy.ready_wait => {
                return Some(Refusal::NotReady);
            }
            Phase::Starting | Phase::Backoff { .. } => false,
            Phase::Ready => true,
        };
        if deadline <= now {
            let expired = if ready {
                Refusal::ExpiredInQueue
            } else {
                Refusal::ExpiredConnecting
            };
            return Some(expired);
        }
        let free = ready && self.queue.is_empty() && self.has_free_place();
        (!free && self.waiting >= self.policy.pending).then_some(Refusal::Busy)
    }

    fn has_free_place(&self) -> bool {
        self.in_flight() < self.policy.rpc_concurrency
    }

    fn forget(&mut self, id: CallId, effects: &mut Vec<Effect>) {
        let before = self.queue.len();
        self.queue
            .retain(|work| !matches!(work, Work::Call(other, _) if *other == id));
        if self.queue.len() < before {
            self.waiting -= 1;
            effects.push(Effect::Forget(id));
        }
    }

    fn call_ended(
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
        let lost = match end {
            CallEnd::Answered => {
                self.proven |= epoch == self.epoch && self.link == Link::Up;
                false
            }
            CallEnd::Failed => false,
            CallEnd::LostUnsent | CallEnd::LostSent => true,
        };
        if lost && self.policy.loss_ends_session {
            let reason = Reason::new("connection_lost", "the connection was lost during a call");
            self.session_ended(epoch, reason, now, effects);
        }
        let may_replay = match end {
            CallEnd::Answered | CallEnd::Failed => false,
            CallEnd::LostUnsent => call.losses < REPLAYS,
            // A call that may have run is replayed once, and only if it changes nothing.
            CallEnd::LostSent => call.read_only && call.losses == 0,
        };
        if may_replay && self.takes_work() && call.deadline > now {
            self.put_back(id, call, now);
        } else {
            effects.push(Effect::Answer(id));
        }
    }

    const fn takes_work(&self) -> bool {
        match self.phase {
            Phase::Starting | Phase::Ready | Phase::Backoff { .. } => true,
            Phase::Failed { .. } | Phase::Draining | Phase::Stopped => false,
        }
    }

    /// Puts a lost call back where its turn says, before everything accepted later.
    fn put_back(&mut self, id: CallId, call: Accepted, now: Instant) {
        let ready_by = (self.phase != Phase::Ready).then(|| now + self.policy.ready_wait);
        let call = Accepted {
            ready_by,
            losses: call.losses.saturating_add(1),
            ..call
        };
        let place = self.queue.iter().position(|work| match work {
            Work::Call(_, other) => other.turn > call.turn,
            Work::Refresh => true,
        });
        self.queue
            .insert(place.unwrap_or(self.queue.len()), Work::Call(id, call));
        self.waiting += 1;
    }

    fn connect(&mut self, effects: &mut Vec<Effect>) {
        // A session that is still closing may hold a port or a lock file; its end comes first.
        if self.link != Link::Absent {
            return;
        }
        self.epoch = Epoch(self.epoch.0 + 1);
        self.link = Link::Connecting;
        effects.push(Effect::Connect(self.epoch));
    }

    fn connected(&mut self, epoch: Epoch, effects: &mut Vec<Effect>) {
        if epoch != self.epoch || self.link != Link::Connecting {
            effects.push(Effect::Close(epoch));
            return;
        }
        self.link = Link::Up;
        self.met = true;
        self.proven = false;
        match self.phase {
            Phase::Draining | Phase::Stopped => {}
            Phase::Starting | Phase::Ready | Phase::Backoff { .. } | Phase::Failed { .. } => {
                self.phase = Phase::Ready;
                self.reason = Reason::bare("connected");
            }
        }
        // The list is fresh.
        self.queue.retain(|work| *work != Work::Refresh);
        for work in &mut self.queue {
            if let Work::Call(_, call) = work {
                call.ready_by = None;
            }
        }
    }

    fn connect_failed(
        &mut self,
        epoch: Epoch,
        permanent: bool,
        reason: Reason,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if epoch != self.epoch || self.link != Link::Connecting {
            return;
        }
        self.link = Link::Absent;
        self.reason = reason;
        match self.phase {
            Phase::Draining | Phase::Stopped => {}
            Phase::Failed { .. } => self.fail(now, effects),
            Phase::Starting | Phase::Ready | Phase::Backoff { .. } => {
                if permanent {
                    self.fail(now, effects);
                } else {
                    self.schedule(now, effects);
                }
            }
        }
    }

    fn session_ended(
        &mut self,
        epoch: Epoch,
        reason: Reason,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if epoch != self.epoch || self.link != Link::Up {
            return;
        }
        self.close_link(effects);
        self.reason = reason;
        match self.phase {
            Phase::Draining | Phase::Stopped => self.refuse_queue(effects),
            Phase::Starting | Phase::Ready | Phase::Backoff { .. } | Phase::Failed { .. } => {
                if self.proven {
                    self.charged = 0;
                }
                self.schedule(now, effects);
            }
        }
    }

    fn session_closed(&mut self, epoch: Epoch, effects: &mut Vec<Effect>) {
        if epoch != self.epoch || self.link != Link::Closing {
            return;
        }
        self.link = Link::Absent;
        if self.phase == Phase::Starting {
            self.connect(effects);
        }
    }

    fn close_link(&mut self, effects: &mut Vec<Effect>) {
        self.link = Link::Closing;
        effects.push(Effect::Close(self.epoch));
    }

    /// Charges an attempt and says when the next one is, or gives up.
    fn schedule(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.charged = self.charged.saturating_add(1);
        let (retries, backoff) = if self.met {
            (self.policy.reconnect_retries, self.policy.reconnect)
        } else {
            (self.policy.initial_retries, self.policy.initial)
        };
        if self.charged > retries {
            self.fail(now, effects);
            return;
        }
        let delay = backoff.delay(self.charged, &mut self.jitter);
        self.phase = Phase::Backoff { until: now + delay };
        self.wait_for_session(now);
    }

    fn fail(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let pause = self.jitter.spread(self.policy.probe_every);
        self.phase = Phase::Failed {
            probe_at: now + pause,
        };
        self.queue.retain(|work| *work != Work::Refresh);
        self.refuse_all(Refusal::NotReady, effects);
    }

    fn wait_for_session(&mut self, now: Instant) {
        for work in &mut self.queue {
            if let Work::Call(_, call) = work {
                call.ready_by.get_or_insert(now + self.policy.ready_wait);
            }
        }
    }

    fn want_refresh(&mut self, epoch: Epoch) {
        let wanted = epoch == self.epoch && self.phase == Phase::Ready;
        if wanted && !self.queue.contains(&Work::Refresh) {
            self.queue.push_back(Work::Refresh);
        }
    }

    fn reconnect(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::Ready => {
                self.close_link(effects);
                self.wait_for_session(now);
            }
            Phase::Backoff { .. } | Phase::Failed { .. } => {}
            Phase::Starting | Phase::Draining | Phase::Stopped => return,
        }
        self.charged = 0;
        self.phase = Phase::Starting;
        self.reason = Reason::new("operator", "an operator asked for a new session");
        self.connect(effects);
    }

    fn begin_drain(&mut self, until: Instant, refusal: ErrorCode, effects: &mut Vec<Effect>) {
        let until = self.drain.map_or(until, |(earlier, _)| earlier.min(until));
        self.drain = Some((until, refusal));
        if self.phase == Phase::Stopped {
            return;
        }
        self.phase = Phase::Draining;
        self.reason = Reason::new("drain", "takes no new calls and finishes those that run");
        self.queue.retain(|work| *work != Work::Refresh);
        match self.link {
            Link::Up => {}
            Link::Absent | Link::Closing => self.refuse_queue(effects),
            Link::Connecting => {
                self.link = Link::Absent;
                effects.push(Effect::AbandonConnect);
                self.refuse_queue(effects);
            }
        }
    }

    fn refuse_queue(&mut self, effects: &mut Vec<Effect>) {
        let code = self.drain.map_or(ErrorCode::ShuttingDown, |(_, code)| code);
        self.refuse_all(Refusal::Draining(code), effects);
    }

    fn refuse_all(&mut self, why: Refusal, effects: &mut Vec<Effect>) {
        for work in self.queue.drain(..) {
            if let Work::Call(id, _) = work {
                effects.push(Effect::Refuse(id, why));
            }
        }
        self.waiting = 0;
    }

    fn clock(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::Backoff { until } if until <= now => {
                self.phase = Phase::Starting;
                self.connect(effects);
            }
            // A probe leaves the state as it is until it succeeds.
            Phase::Failed { probe_at } if probe_at <= now => self.connect(effects),
            Phase::Draining => self.drain_is_due(now, effects),
            Phase::Starting
            | Phase::Ready
            | Phase::Backoff { .. }
            | Phase::Failed { .. }
            | Phase::Stopped => {}
        }
        self.expire(now, effects);
    }

    fn drain_is_due(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.drain.is_none_or(|(until, _)| until > now) {
            return;
        }
        self.refuse_queue(effects);
        effects.extend(self.running.keys().map(|id| Effect::Abort(*id)));
        // Ending the session ends whatever does not heed the cancellation.
        if self.link == Link::Up {
            self.close_link(effects);
        }
        self.drain = self.drain.map(|(_, code)| (now + FAR, code));
    }

    fn expire(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let ready = self.link == Link::Up;
        let mut given_up = 0;
        self.queue.retain(|work| {
            let Work::Call(id, call) = work else {
                return true;
            };
            if call.give_up_at() > now {
                return true;
            }
            let refusal = if call.deadline > now {
                Refusal::NotReady
            } else if ready {
                Refusal::ExpiredInQueue
            } else {
                Refusal::ExpiredConnecting
            };
            effects.push(Effect::Refuse(*id, refusal));
            given_up += 1;
            false
        });
        self.waiting -= given_up;
    }

    fn pump(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let open = match self.phase {
            Phase::Ready | Phase::Draining => self.link == Link::Up,
            Phase::Starting | Phase::Backoff { .. } | Phase::Failed { .. } | Phase::Stopped => {
                false
            }
        };
        while open && self.has_free_place() {
            match self.queue.pop_front() {
                None => return,
                Some(Work::Refresh) if self.refreshing => {
                    // The running one may have read the list before this change.
                    self.queue.push_back(Work::Refresh);
                    if self.queue.len() == 1 {
                        return;
                    }
                }
                Some(Work::Refresh) => {
                    self.refreshing = true;
                    effects.push(Effect::Refresh(self.epoch));
                }
                Some(Work::Call(id, call)) => {
                    debug_assert!(call.deadline > now, "expired calls were dropped before");
                    self.waiting -= 1;
                    self.running.insert(id, call);
                    effects.push(Effect::Begin(id));
                }
            }
        }
    }

    fn finish_drain(&mut self, effects: &mut Vec<Effect>) {
        let idle = self.running.is_empty() && self.queue.is_empty();
        if self.phase != Phase::Draining || !idle {
            return;
        }
        match self.link {
            Link::Up => self.close_link(effects),
            Link::Absent => {
                self.phase = Phase::Stopped;
                self.reason = Reason::bare("drain");
                effects.push(Effect::Stop);
            }
            Link::Connecting | Link::Closing => {}
        }
    }
}

impl Accepted {
    fn give_up_at(&self) -> Instant {
        self.ready_by
            .map_or(self.deadline, |ready_by| ready_by.min(self.deadline))
    }
}
