//! The state machine against a model of its world: tables, then generated sequences.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::supervisor::plan::Timing;

fn policy(rpc_concurrency: usize, pending: usize) -> Policy {
    let timing = Timing::PRODUCTION;
    Policy {
        rpc_concurrency,
        pending,
        ready_wait: timing.ready_wait,
        initial: timing.initial,
        initial_retries: timing.initial_retries,
        reconnect: timing.reconnect,
        reconnect_retries: timing.reconnect_retries,
        probe_every: timing.probe_every,
        loss_ends_session: true,
    }
}

fn exited() -> Reason {
    Reason::new("exited", "gone")
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
    refreshing: bool,
    drained: bool,
    stops: u32,
    /// Calls handed in and not settled: deadline and order of acceptance.
    open: BTreeMap<CallId, Instant>,
    waiting: Vec<CallId>,
    running: BTreeSet<CallId>,
    settled: BTreeMap<CallId, Effect>,
    begun: Vec<CallId>,
}

impl World {
    fn new(policy: Policy, seed: u64) -> Self {
        let mut world = Self {
            state: ServerState::new(policy, Jitter::seeded(seed), "added"),
            policy,
            now: talaria_types::runtime::now().into_std(),
            next_id: 1,
            connecting: None,
            up: None,
            closing: None,
            refreshing: false,
            drained: false,
            stops: 0,
            open: BTreeMap::new(),
            waiting: Vec::new(),
            running: BTreeSet::new(),
            settled: BTreeMap::new(),
            begun: Vec::new(),
        };
        world.feed(Input::Start);
        world
    }

    fn ready(policy: Policy) -> Self {
        let mut world = Self::new(policy, 1);
        world.connect();
        world
    }

    fn call(&mut self, within: Duration, read_only: bool) -> CallId {
        let id = CallId(self.next_id);
        self.next_id += 1;
        let deadline = self.now + within;
        self.open.insert(id, deadline);
        self.waiting.push(id);
        let drained = self.drained;
        self.feed(Input::Call {
            id,
            deadline,
            read_only,
        });
        if drained {
            nothing_is_accepted_after_drain(self, id);
        }
        id
    }

    fn end(&mut self, id: CallId, end: CallEnd) {
        if !self.running.remove(&id) {
            return;
        }
        // Unless it is settled now, it went back to where its turn is.
        let place = self.waiting.iter().position(|other| *other > id);
        self.waiting.insert(place.unwrap_or(self.waiting.len()), id);
        let epoch = self.state.epoch();
        let lost = matches!(end, CallEnd::LostUnsent | CallEnd::LostSent);
        if lost && self.policy.loss_ends_session {
            self.up = None;
        }
        self.feed(Input::CallEnded { id, epoch, end });
    }

    fn connect(&mut self) {
        if let Some(epoch) = self.connecting.take() {
            self.up = Some(epoch);
            self.feed(Input::Connected(epoch));
        }
    }

    fn refuse_connect(&mut self, permanent: bool) {
        if let Some(epoch) = self.connecting.take() {
            let reason = Reason::new("connect_failed", "refused");
            self.feed(Input::ConnectFailed {
                epoch,
                permanent,
                reason,
            });
        }
    }

    fn lose_session(&mut self) {
        if let Some(epoch) = self.up.take() {
            self.feed(Input::SessionEnded {
                epoch,
                reason: exited(),
            });
        }
    }

    fn closed(&mut self) {
        if let Some(epoch) = self.closing.take() {
            self.feed(Input::SessionClosed(epoch));
        }
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
        while let Some(wake) = self.state.next_wake().filter(|wake| *wake <= until) {
            self.now = wake;
            self.feed(Input::Clock);
        }
        self.now = until;
        self.feed(Input::Clock);
    }

    fn feed(&mut self, input: Input) {
        let effects = self.state.handle(input, self.now);
        for effect in effects {
            self.carry_out(effect);
        }
        never_more_in_flight_than_allowed(self);
        queue_is_bounded(self);
        waits_are_bounded(self);
        never_asks_to_be_woken_in_the_past(self);
        ready_means_a_session_is_up(self);
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Connect(epoch) => {
                only_one_session_at_a_time(self);
                self.connecting = Some(epoch);
            }
            Effect::AbandonConnect => {
                assert!(self.connecting.take().is_some(), "nothing to abandon");
            }
            Effect::Close(epoch) => {
                assert!(
                    self.up.is_none_or(|up| up == epoch),
                    "closes a session that is not up"
                );
                self.up = None;
                self.closing = Some(epoch);
            }
            Effect::Begin(id) => {
                expired_call_is_never_written(self, id);
                turns_are_kept(self, id);
                self.waiting.retain(|other| *other != id);
                self.running.insert(id);
                self.begun.push(id);
            }
            Effect::Answer(id) | Effect::Refuse(id, _) | Effect::Forget(id) => {
                answered_exactly_once(self, id);
                self.open.remove(&id);
                self.waiting.retain(|other| *other != id);
                self.running.remove(&id);
                self.settled.insert(id, effect);
            }
            Effect::Abort(id) => assert!(self.running.contains(&id), "aborts what does not run"),
            Effect::Refresh(epoch) => {
                assert_eq!(
                    self.up,
                    Some(epoch),
                    "refreshes on a session that is not up"
                );
                self.refreshing = true;
            }
            Effect::Stop => self.stops += 1,
        }
    }
}

fn never_more_in_flight_than_allowed(world: &World) {
    let in_flight = world.running.len() + usize::from(world.refreshing);
    assert!(
        in_flight <= world.policy.rpc_concurrency,
        "{in_flight} in flight"
    );
    assert_eq!(world.state.in_flight(), in_flight);
}

fn queue_is_bounded(world: &World) {
    // Lost calls may come back to a full queue; there are never more of them than ran.
    let bound = world.policy.pending + world.policy.rpc_concurrency;
    assert!(world.waiting.len() <= bound, "{} wait", world.waiting.len());
    assert_eq!(world.state.pending(), world.waiting.len());
}

fn waits_are_bounded(world: &World) {
    let Some(at) = world.state.next_attempt() else {
        return;
    };
    let wait = at.saturating_duration_since(world.now);
    let backoff = world.state.name() == StateName::Backoff;
    let bound = Duration::from_secs(if backoff { 72 } else { 360 });
    assert!(wait <= bound, "waits {wait:?}");
}

fn never_asks_to_be_woken_in_the_past(world: &World) {
    if let Some(wake) = world.state.next_wake() {
        assert!(wake > world.now, "a timer in the past would spin");
    }
}

fn ready_means_a_session_is_up(world: &World) {
    if world.state.name() == StateName::Ready {
        assert!(world.up.is_some(), "ready without a session");
    }
}

fn only_one_session_at_a_time(world: &World) {
    assert!(world.connecting.is_none() && world.up.is_none() && world.closing.is_none());
}

fn expired_call_is_never_written(world: &World, id: CallId) {
    assert!(
        world.open[&id] > world.now,
        "{id:?} began after its deadline"
    );
}

fn turns_are_kept(world: &World, id: CallId) {
    assert_eq!(world.waiting.first(), Some(&id), "{id:?} overtook somebody");
}

fn answered_exactly_once(world: &World, id: CallId) {
    assert!(
        world.open.contains_key(&id),
        "{id:?} was answered twice or never accepted"
    );
}

fn nothing_is_accepted_after_drain(world: &World, id: CallId) {
    let refused = Effect::Refuse(id, Refusal::Draining(ErrorCode::ShuttingDown));
    assert_eq!(world.settled.get(&id), Some(&refused));
}

const LONG: Duration = Duration::from_secs(100);

#[test]
fn a_call_on_a_ready_server_begins_at_once() {
    let mut world = World::ready(policy(1, 4));
    let id = world.call(LONG, false);
    assert_eq!(world.begun, [id]);
    world.end(id, CallEnd::Answered);
    assert_eq!(world.settled[&id], Effect::Answer(id));
}

#[test]
fn one_call_at_a_time_in_order() {
    let mut world = World::ready(policy(1, 4));
    let ids = [
        world.call(LONG, false),
        world.call(LONG, false),
        world.call(LONG, false),
    ];
    assert_eq!(world.begun, ids[..1]);
    world.end(ids[0], CallEnd::Failed);
    world.end(ids[1], CallEnd::Answered);
    assert_eq!(world.begun, ids);
}

#[test]
fn a_full_queue_refuses_at_once() {
    let mut world = World::ready(policy(1, 2));
    let _running = world.call(LONG, false);
    let _waiting = [world.call(LONG, false), world.call(LONG, false)];
    let refused = world.call(LONG, false);
    assert_eq!(
        world.settled[&refused],
        Effect::Refuse(refused, Refusal::Busy)
    );
}

#[test]
fn drops_expired_call_before_writing() {
    let mut world = World::ready(policy(1, 4));
    let slow = world.call(LONG, false);
    let short = world.call(Duration::from_secs(1), false);
    world.advance(Duration::from_secs(2));
    assert_eq!(
        world.settled[&short],
        Effect::Refuse(short, Refusal::ExpiredInQueue)
    );
    world.end(slow, CallEnd::Answered);
    assert_eq!(world.begun, [slow]);
}

#[test]
fn a_call_waits_five_seconds_for_a_starting_server() {
    let mut world = World::new(policy(1, 4), 1);
    let id = world.call(LONG, false);
    world.advance(Duration::from_millis(4_999));
    assert!(world.settled.is_empty());
    world.advance(Duration::from_millis(1));
    assert_eq!(world.settled[&id], Effect::Refuse(id, Refusal::NotReady));
}

#[test]
fn a_waiting_call_begins_once_the_server_is_ready() {
    let mut world = World::new(policy(1, 4), 1);
    let id = world.call(LONG, false);
    world.advance(Duration::from_secs(4));
    world.connect();
    assert_eq!(world.begun, [id]);
}

#[test]
fn l02_four_attempts_with_growing_waits_then_failed() {
    let mut world = World::new(policy(1, 4), 3);
    for seconds in [1.0, 2.0, 4.0] {
        world.refuse_connect(false);
        assert_eq!(world.state.name(), StateName::Backoff);
        let wait = world.state.next_attempt().unwrap() - world.now;
        assert!(
            (0.8 * seconds..=1.2 * seconds).contains(&wait.as_secs_f64()),
            "{wait:?}"
        );
        world.advance(wait);
        assert!(world.connecting.is_some(), "tries again");
    }
    world.refuse_connect(false);
    assert_eq!(world.state.name(), StateName::Failed);
    world.advance(Duration::from_secs(361));
    assert!(world.connecting.is_some(), "probes slowly");
    assert_eq!(world.state.name(), StateName::Failed);
    world.connect();
    assert_eq!(world.state.name(), StateName::Ready);
}

#[test]
fn l07_an_operator_brings_the_next_attempt_forward() {
    let mut world = World::new(policy(1, 4), 3);
    world.refuse_connect(true);
    assert_eq!(world.state.name(), StateName::Failed);
    world.feed(Input::Reconnect);
    assert!(world.connecting.is_some());
    assert_eq!(world.state.name(), StateName::Starting);
}

#[test]
fn a_server_that_refuses_credentials_is_not_tried_again_soon() {
    let mut world = World::new(policy(1, 4), 3);
    world.refuse_connect(true);
    let wait = world.state.next_attempt().unwrap() - world.now;
    assert!(wait >= Duration::from_secs(240), "{wait:?}");
    let id = world.call(LONG, false);
    assert_eq!(world.settled[&id], Effect::Refuse(id, Refusal::NotReady));
}

#[test]
fn a_lost_session_is_back_within_a_second() {
    let mut world = World::ready(policy(1, 4));
    world.lose_session();
    world.closed();
    assert_eq!(world.state.name(), StateName::Backoff);
    world.advance(Duration::from_millis(120));
    assert!(world.connecting.is_some());
}

#[test]
fn a_server_that_drops_every_session_at_once_ends_as_failed() {
    let mut world = World::ready(policy(1, 4));
    for _ in 0..5 {
        world.lose_session();
        world.closed();
        world.advance(Duration::from_secs(80));
        world.connect();
    }
    world.lose_session();
    assert_eq!(world.state.name(), StateName::Failed);
}

#[test]
fn an_answered_call_restores_the_budget() {
    let mut world = World::ready(policy(1, 4));
    for _ in 0..20 {
        let id = world.call(LONG, false);
        world.end(id, CallEnd::Answered);
        world.lose_session();
        world.closed();
        world.advance(Duration::from_secs(1));
        world.connect();
    }
    assert_eq!(world.state.name(), StateName::Ready);
}

#[test]
fn a_call_that_was_not_sent_waits_for_the_new_session() {
    let mut world = World::ready(policy(1, 4));
    let id = world.call(LONG, false);
    world.end(id, CallEnd::LostUnsent);
    assert!(world.settled.is_empty());
    world.closed();
    world.advance(Duration::from_secs(1));
    world.connect();
    assert_eq!(world.begun, [id, id]);
}

#[test]
fn l16_a_write_call_that_may_have_run_is_not_replayed() {
    let mut world = World::ready(policy(1, 4));
    let id = world.call(LONG, false);
    world.end(id, CallEnd::LostSent);
    assert_eq!(world.settled[&id], Effect::Answer(id));
    assert_eq!(world.begun, [id]);
}

#[test]
fn a_read_only_call_is_replayed_once() {
    let mut world = World::ready(policy(1, 4));
    let id = world.call(LONG, true);
    world.end(id, CallEnd::LostSent);
    assert!(world.settled.is_empty());
    world.closed();
    world.advance(Duration::from_secs(1));
    world.connect();
    world.end(id, CallEnd::LostSent);
    assert_eq!(world.settled[&id], Effect::Answer(id));
    assert_eq!(world.begun, [id, id]);
}

#[test]
fn a_replayed_call_goes_before_those_that_came_later() {
    let mut world = World::ready(policy(1, 4));
    let first = world.call(LONG, true);
    let second = world.call(LONG, false);
    world.end(first, CallEnd::LostSent);
    world.closed();
    world.advance(Duration::from_secs(1));
    world.connect();
    world.end(first, CallEnd::Answered);
    assert_eq!(world.begun, [first, first, second]);
}

#[test]
fn over_http_the_loss_of_one_call_leaves_the_session() {
    let mut world = World::ready(Policy {
        loss_ends_session: false,
        ..policy(1, 4)
    });
    let id = world.call(LONG, false);
    world.end(id, CallEnd::LostSent);
    assert_eq!(world.state.name(), StateName::Ready);
    assert_eq!(world.settled[&id], Effect::Answer(id));
}

#[test]
fn a_timeout_of_one_call_does_not_condemn_the_server() {
    let mut world = World::ready(policy(1, 4));
    let id = world.call(LONG, false);
    world.end(id, CallEnd::Failed);
    assert_eq!(world.state.name(), StateName::Ready);
    let next = world.call(LONG, false);
    assert_eq!(world.begun, [id, next]);
}

#[test]
fn list_changes_are_coalesced_and_take_their_turn() {
    let mut world = World::ready(policy(1, 4));
    let epoch = world.state.epoch();
    let first = world.call(LONG, false);
    world.feed(Input::ToolsChanged(epoch));
    world.feed(Input::ToolsChanged(epoch));
    let second = world.call(LONG, false);
    world.end(first, CallEnd::Answered);
    assert!(world.refreshing, "the refresh came before the second call");
    assert_eq!(world.begun, [first]);
    world.refreshing = false;
    world.feed(Input::RefreshEnded);
    assert_eq!(world.begun, [first, second]);
    world.end(second, CallEnd::Answered);
    assert!(!world.refreshing, "two changes made one refresh");
}

#[test]
fn drain_finishes_in_flight_and_waiting_calls_then_closes() {
    let mut world = World::ready(policy(1, 4));
    let running = world.call(LONG, false);
    let waiting = world.call(LONG, false);
    world.drain(LONG);
    assert_eq!(world.state.name(), StateName::Draining);
    let late = world.call(LONG, false);
    assert!(world.settled.contains_key(&late));
    world.end(running, CallEnd::Answered);
    world.end(waiting, CallEnd::Answered);
    assert!(world.closing.is_some());
    world.closed();
    assert_eq!((world.state.name(), world.stops), (StateName::Stopped, 1));
    assert_eq!(world.settled[&waiting], Effect::Answer(waiting));
}

#[test]
fn drain_ends_at_its_deadline_whatever_runs() {
    let mut world = World::ready(policy(1, 4));
    let running = world.call(LONG, false);
    let waiting = world.call(LONG, false);
    world.drain(Duration::from_secs(3));
    world.advance(Duration::from_secs(3));
    let refused = Effect::Refuse(waiting, Refusal::Draining(ErrorCode::ShuttingDown));
    assert_eq!(world.settled[&waiting], refused);
    assert!(world.closing.is_some());
    world.end(running, CallEnd::Failed);
    world.closed();
    assert_eq!((world.state.name(), world.stops), (StateName::Stopped, 1));
}

#[test]
fn drain_refuses_what_waits_once_the_session_is_lost() {
    let mut world = World::ready(policy(1, 4));
    let running = world.call(LONG, true);
    let waiting = world.call(LONG, true);
    world.drain(LONG);
    world.lose_session();
    let refused = Effect::Refuse(waiting, Refusal::Draining(ErrorCode::ShuttingDown));
    assert_eq!(world.settled.get(&waiting), Some(&refused));
    world.end(running, CallEnd::LostSent);
    assert_eq!(
        world.settled[&running],
        Effect::Answer(running),
        "no replay while draining"
    );
    world.closed();
    assert_eq!((world.state.name(), world.stops), (StateName::Stopped, 1));
}

#[test]
fn drain_gives_an_attempt_to_connect_up() {
    let mut world = World::new(policy(1, 4), 1);
    let waiting = world.call(LONG, false);
    world.drain(LONG);
    assert!(world.connecting.is_none());
    assert!(world.settled.contains_key(&waiting));
    assert_eq!((world.state.name(), world.stops), (StateName::Stopped, 1));
}

#[test]
fn a_caller_that_left_is_dropped_before_the_wire() {
    let mut world = World::ready(policy(1, 4));
    let running = world.call(LONG, false);
    let gone = world.call(LONG, false);
    world.feed(Input::CallerGone(gone));
    assert_eq!(world.settled[&gone], Effect::Forget(gone));
    world.end(running, CallEnd::Answered);
    assert_eq!(world.begun, [running]);
}

#[test]
fn a_reconnect_waits_until_the_old_session_is_closed() {
    let mut world = World::ready(policy(1, 4));
    world.feed(Input::Reconnect);
    assert!(world.closing.is_some() && world.connecting.is_none());
    world.closed();
    assert!(world.connecting.is_some());
}

#[derive(Clone, Debug)]
enum Action {
    Call {
        within_ms: u64,
        read_only: bool,
    },
    Leave(usize),
    End(usize, CallEnd),
    Connect,
    RefuseConnect(bool),
    LoseSession,
    Closed,
    ToolsChanged,
    RefreshEnded,
    Reconnect,
    Drain(u64),
    Advance(u64),
    /// Time passes and the timer is late.
    Oversleep(u64),
    Stale,
}

fn action() -> impl Strategy<Value = Action> {
    let end = prop_oneof![
        4 => Just(CallEnd::Answered),
        2 => Just(CallEnd::Failed),
        1 => Just(CallEnd::LostUnsent),
        1 => Just(CallEnd::LostSent),
    ];
    prop_oneof![
        8 => (0..20_000_u64, any::<bool>())
            .prop_map(|(within_ms, read_only)| Action::Call { within_ms, read_only }),
        2 => (0..8_usize).prop_map(Action::Leave),
        6 => ((0..4_usize), end).prop_map(|(which, end)| Action::End(which, end)),
        5 => Just(Action::Connect),
        2 => any::<bool>().prop_map(Action::RefuseConnect),
        2 => Just(Action::LoseSession),
        4 => Just(Action::Closed),
        2 => Just(Action::ToolsChanged),
        2 => Just(Action::RefreshEnded),
        1 => Just(Action::Reconnect),
        1 => (0..10_000_u64).prop_map(Action::Drain),
        5 => (0..8_000_u64).prop_map(Action::Advance),
        1 => (60_000..400_000_u64).prop_map(Action::Advance),
        2 => (0..8_000_u64).prop_map(Action::Oversleep),
        1 => Just(Action::Stale),
    ]
}

impl World {
    fn act(&mut self, action: &Action) {
        match action {
            Action::Call {
                within_ms,
                read_only,
            } => {
                self.call(Duration::from_millis(*within_ms), *read_only);
            }
            Action::Leave(which) => {
                if let Some(id) = self.open.keys().nth(*which).copied() {
                    self.feed(Input::CallerGone(id));
                }
            }
            Action::End(which, end) => {
                if let Some(id) = self.running.iter().nth(*which).copied() {
                    self.end(id, *end);
                }
            }
            Action::Connect => self.connect(),
            Action::RefuseConnect(permanent) => self.refuse_connect(*permanent),
            Action::LoseSession => self.lose_session(),
            Action::Closed => self.closed(),
            Action::ToolsChanged => self.feed(Input::ToolsChanged(self.state.epoch())),
            Action::RefreshEnded => {
                if std::mem::take(&mut self.refreshing) {
                    self.feed(Input::RefreshEnded);
                }
            }
            Action::Reconnect => self.feed(Input::Reconnect),
            Action::Drain(within) => self.drain(Duration::from_millis(*within)),
            Action::Advance(by) => self.advance(Duration::from_millis(*by)),
            Action::Oversleep(by) => self.now += Duration::from_millis(*by),
            Action::Stale => {
                let epoch = Epoch(self.state.epoch().0.wrapping_sub(1));
                self.feed(Input::SessionEnded {
                    epoch,
                    reason: exited(),
                });
                self.feed(Input::SessionClosed(epoch));
                self.feed(Input::ToolsChanged(epoch));
            }
        }
    }

    /// Lets everything that is under way end, in a friendly world.
    fn wind_up(&mut self) {
        self.drain(Duration::from_secs(1));
        self.advance(Duration::from_secs(2));
        for id in self.running.clone() {
            self.end(id, CallEnd::Failed);
        }
        self.closed();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_accepted_call_is_answered_once_whatever_happens(
        concurrency in 1..4_usize,
        pending in 1..5_usize,
        loss_ends_session in any::<bool>(),
        seed in any::<u64>(),
        actions in prop::collection::vec(action(), 1..120),
    ) {
        let policy = Policy { loss_ends_session, ..policy(concurrency, pending) };
        let mut world = World::new(policy, seed);
        for action in &actions {
            world.act(action);
        }
        world.wind_up();
        prop_assert!(world.open.is_empty(), "never answered: {:?}", world.open);
        prop_assert_eq!(world.state.name(), StateName::Stopped);
        prop_assert_eq!(world.stops, 1);
        prop_assert_eq!(world.settled.len() as u64, world.next_id - 1);
    }
}
