//! The state machine against a model of its world: what holds whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::*;
use crate::supervisor::plan::Timing;

mod invariants;
mod sequences;
mod tables;

use invariants::{
    a_breaker_is_never_stuck, answered_exactly_once, budget_bounds_spawns,
    configured_means_no_session, expired_call_is_never_written, lanes_take_turns,
    never_asks_to_be_woken_in_the_past, never_more_in_flight_than_allowed, never_replays_a_write,
    nothing_begins_behind_an_open_breaker, nothing_is_accepted_after_drain, one_session_at_a_time,
    queue_is_bounded, ready_means_a_session_is_up, shares_are_kept, turns_are_kept,
    waits_are_bounded,
};

/// Longer than anything here waits.
const LONG: Duration = Duration::from_secs(100);

fn policy(rpc_concurrency: usize, pending: usize) -> Policy {
    let timing = Timing::PRODUCTION;
    Policy {
        rpc_concurrency,
        pending,
        share: pending,
        ready_wait: timing.ready_wait,
        first_wait: timing.ready_wait,
        respawn_wait: timing.respawn_wait,
        initial: timing.initial,
        initial_retries: timing.initial_retries,
        reconnect: timing.reconnect,
        reconnect_retries: timing.reconnect_retries,
        probe_every: timing.probe_every,
        loss_ends_session: true,
        keepalive: None,
        lazy: false,
        idle_timeout: None,
        max_lifetime: None,
    }
}

/// How calls reach an HTTP server: the loss of one leaves the session.
fn over_http() -> Policy {
    Policy {
        loss_ends_session: false,
        keepalive: Some(Duration::from_secs(180)),
        ..policy(1, 4)
    }
}

fn exited() -> Reason {
    Reason::new("exited", "gone")
}

/// A call that was handed in and has no answer yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    deadline: Instant,
    read_only: bool,
    lane: Lane,
}

/// A state machine, the world around it and what was promised so far.
struct World {
    state: ServerState,
    policy: Policy,
    now: Instant,
    next_id: u64,
    connecting: Option<Epoch>,
    up: Option<Epoch>,
    closing: Option<Epoch>,
    refreshing: Option<Epoch>,
    /// A list of a session that is over and has not been told of.
    late_list: Option<Epoch>,
    probing: Option<Epoch>,
    drained: bool,
    stops: u32,
    open: BTreeMap<CallId, Open>,
    /// By lane, in the order in which they may begin.
    waiting: BTreeMap<Lane, Vec<CallId>>,
    running: BTreeMap<CallId, Epoch>,
    settled: BTreeMap<CallId, Effect>,
    begun: Vec<CallId>,
    /// Calls that may have run although nobody answered.
    lost: BTreeSet<CallId>,
    /// Who began since a lane that waits had its turn.
    overtakers: BTreeMap<Lane, BTreeSet<Lane>>,
    /// Attempts to connect since a session was proven or somebody asked for one.
    connects: u32,
    last_connect: Option<Instant>,
    /// What is being handled.
    input: Option<Input>,
    state_before: StateName,
}

impl World {
    fn new(policy: Policy, seed: u64) -> Self {
        let now = talaria_types::runtime::now().into_std();
        Self::begin(policy, seed, now, false)
    }

    /// A server whose tools are known from an earlier time, or not.
    fn begin(policy: Policy, seed: u64, now: Instant, known: bool) -> Self {
        let mut world = Self {
            state: ServerState::new(policy, Jitter::seeded(seed), "added", now),
            policy,
            now,
            next_id: 1,
            connecting: None,
            up: None,
            closing: None,
            refreshing: None,
            late_list: None,
            probing: None,
            drained: false,
            stops: 0,
            open: BTreeMap::new(),
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            settled: BTreeMap::new(),
            begun: Vec::new(),
            lost: BTreeSet::new(),
            overtakers: BTreeMap::new(),
            connects: 0,
            last_connect: None,
            input: None,
            state_before: StateName::Configured,
        };
        world.feed(Input::Start { known });
        world
    }

    fn ready(policy: Policy) -> Self {
        let mut world = Self::new(policy, 1);
        world.connect();
        world
    }

    fn call(&mut self, within: Duration, read_only: bool) -> CallId {
        self.call_of(Lane::NOBODY, None, within, read_only)
    }

    fn call_of(
        &mut self,
        lane: Lane,
        fuse: Option<FuseKey>,
        within: Duration,
        read_only: bool,
    ) -> CallId {
        let id = CallId(self.next_id);
        self.next_id += 1;
        let deadline = self.now + within;
        let open = Open {
            deadline,
            read_only,
            lane,
        };
        self.open.insert(id, open);
        self.waiting.entry(lane).or_default().push(id);
        let drained = self.drained;
        self.feed(Input::Call {
            id,
            deadline,
            read_only,
            lane,
            fuse,
        });
        if drained {
            nothing_is_accepted_after_drain(self, id);
        }
        id
    }

    fn end(&mut self, id: CallId, end: CallEnd) {
        let Some(epoch) = self.running.remove(&id) else {
            return;
        };
        // Unless it is settled now, it went back to where its turn is.
        let lane = self.open[&id].lane;
        let waiting = self.waiting.entry(lane).or_default();
        let place = waiting.iter().position(|other| *other > id);
        waiting.insert(place.unwrap_or(waiting.len()), id);
        let current = self.up == Some(epoch);
        match end {
            CallEnd::Answered | CallEnd::ToolFailed if current => self.connects = 0,
            CallEnd::LostSent => {
                self.lost.insert(id);
            }
            CallEnd::Answered
            | CallEnd::ToolFailed
            | CallEnd::Failed
            | CallEnd::Silent
            | CallEnd::Unauthorized
            | CallEnd::LostUnsent => {}
        }
        let is_lost = matches!(end, CallEnd::LostUnsent | CallEnd::LostSent);
        if is_lost && self.policy.loss_ends_session && current {
            self.up = None;
        }
        self.feed(Input::CallEnded { id, epoch, end });
    }

    fn connect(&mut self) {
        if let Some(epoch) = self.connecting.take() {
            self.up = Some(epoch);
            let has_tools = epoch.0 % 3 != 0;
            self.feed(Input::Connected { epoch, has_tools });
        }
    }

    fn refuse_connect(&mut self, trouble: Trouble) {
        if let Some(epoch) = self.connecting.take() {
            let reason = Reason::new("connect_failed", "refused");
            self.feed(Input::ConnectFailed {
                epoch,
                trouble,
                reason,
            });
        }
    }

    fn lose_session(&mut self) {
        if let Some(epoch) = self.up.take() {
            let reason = exited();
            self.feed(Input::SessionEnded { epoch, reason });
        }
    }

    fn closed(&mut self) {
        if let Some(epoch) = self.closing.take() {
            self.feed(Input::SessionClosed(epoch));
        }
    }

    fn refreshed(&mut self, read: bool) {
        let late = self.late_list.take();
        if let Some(epoch) = late.or_else(|| self.refreshing.take()) {
            if read && self.up == Some(epoch) {
                self.connects = 0;
            }
            self.feed(Input::RefreshEnded { epoch, read });
        }
    }

    fn probed(&mut self, end: ProbeEnd) {
        if let Some(epoch) = self.probing.take() {
            let alive = matches!(end, ProbeEnd::Alive | ProbeEnd::Refused);
            if alive && self.up == Some(epoch) {
                self.connects = 0;
            }
            self.feed(Input::ProbeEnded { epoch, end });
        }
    }

    fn reconnect(&mut self) {
        self.connects = 0;
        self.feed(Input::Reconnect);
    }

    fn drain(&mut self, within: Duration) {
        self.drained = true;
        let until = self.now + within;
        self.feed(Input::Drain {
            until,
            refusal: ErrorCode::ShuttingDown,
        });
    }

    fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        while let Some(wake) = self.state.next_wake(self.now).filter(|wake| *wake <= until) {
            self.now = wake;
            self.feed(Input::Clock);
        }
        self.now = until;
        self.feed(Input::Clock);
    }

    fn feed(&mut self, input: Input) {
        self.state_before = self.state.name();
        let is_call = matches!(input, Input::Call { .. });
        if is_call && self.state_before == StateName::Configured {
            self.connects = 0;
        }
        self.input = Some(input.clone());
        let effects = self.state.handle(input, self.now);
        for effect in effects {
            self.carry_out(effect);
        }
        never_more_in_flight_than_allowed(self);
        queue_is_bounded(self);
        shares_are_kept(self);
        waits_are_bounded(self);
        never_asks_to_be_woken_in_the_past(self);
        ready_means_a_session_is_up(self);
        configured_means_no_session(self);
        a_breaker_is_never_stuck(self);
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Connect(epoch) => {
                one_session_at_a_time(self);
                budget_bounds_spawns(self);
                self.connecting = Some(epoch);
            }
            Effect::AbandonConnect => {
                assert!(self.connecting.take().is_some(), "nothing to abandon");
            }
            Effect::Close(epoch) => {
                let other = self.up.is_some_and(|up| up != epoch);
                assert!(!other, "closes a session that is not up");
                self.up = None;
                self.closing = Some(epoch);
                self.late_list = self.refreshing.take();
            }
            Effect::Begin(id) => {
                expired_call_is_never_written(self, id);
                turns_are_kept(self, id);
                lanes_take_turns(self, id);
                never_replays_a_write(self, id);
                nothing_begins_behind_an_open_breaker(self, id);
                self.no_longer_waits(id);
                self.running.insert(id, self.state.epoch());
                self.begun.push(id);
            }
            Effect::Answer(id) | Effect::Refuse(id, _) | Effect::Forget(id) => {
                answered_exactly_once(self, id);
                self.no_longer_waits(id);
                self.open.remove(&id);
                self.running.remove(&id);
                self.settled.insert(id, effect);
            }
            Effect::Abort(id) => {
                assert!(self.running.contains_key(&id), "aborts what does not run");
            }
            Effect::Refresh(epoch) => {
                assert_eq!(self.up, Some(epoch), "lists on a session that is not up");
                assert!(self.refreshing.is_none(), "lists twice at a time");
                self.refreshing = Some(epoch);
            }
            Effect::Probe(epoch, _) => {
                assert_eq!(self.up, Some(epoch), "asks a session that is not up");
                assert!(self.probing.is_none(), "asks twice at a time");
                self.probing = Some(epoch);
            }
            Effect::AbandonProbe => {
                assert!(self.probing.take().is_some(), "nothing was asked");
            }
            Effect::Stop => self.stops += 1,
        }
    }

    fn no_longer_waits(&mut self, id: CallId) {
        let Some(lane) = self.open.get(&id).map(|open| open.lane) else {
            return;
        };
        if let Some(waiting) = self.waiting.get_mut(&lane) {
            waiting.retain(|other| *other != id);
            if waiting.is_empty() {
                self.waiting.remove(&lane);
                self.overtakers.remove(&lane);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.waiting.values().map(Vec::len).sum()
    }
}
