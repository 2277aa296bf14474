//! What holds whatever happens, as named functions.

use super::*;

/// How far apart the probes of a parked server are at least.
const PROBES_APART: Duration = Duration::from_secs(240);

pub(super) fn never_more_in_flight_than_allowed(world: &World) {
    let in_flight = world.running.len()
        + usize::from(world.refreshing.is_some())
        + usize::from(world.probing.is_some());
    assert!(
        in_flight <= world.policy.rpc_concurrency,
        "{in_flight} in flight"
    );
    assert_eq!(world.state.in_flight(), in_flight);
}

pub(super) fn queue_is_bounded(world: &World) {
    // Lost calls may come back to a full queue; there are never more of them than ran.
    let bound = world.policy.pending + world.policy.rpc_concurrency;
    assert!(world.waiting() <= bound, "{} wait", world.waiting());
    assert_eq!(world.state.pending(), world.waiting());
}

pub(super) fn shares_are_kept(world: &World) {
    let bound = world.policy.share + world.policy.rpc_concurrency;
    for (lane, waiting) in &world.waiting {
        let is_bound = *lane == Lane::NOBODY || waiting.len() <= bound;
        assert!(is_bound, "{lane:?} has {} places", waiting.len());
    }
}

pub(super) fn waits_are_bounded(world: &World) {
    let Some(at) = world.state.next_attempt() else {
        return;
    };
    let wait = at.saturating_duration_since(world.now);
    let backoff = world.state.name() == StateName::Backoff;
    let bound = Duration::from_secs(if backoff { 72 } else { 360 });
    assert!(wait <= bound, "waits {wait:?}");
}

pub(super) fn never_asks_to_be_woken_in_the_past(world: &World) {
    if let Some(wake) = world.state.next_wake(world.now) {
        assert!(wake > world.now, "a timer in the past would spin");
    }
}

pub(super) fn ready_means_a_session_is_up(world: &World) {
    if matches!(world.state.name(), StateName::Ready | StateName::Degraded) {
        assert!(world.up.is_some(), "ready without a session");
    }
}

pub(super) fn configured_means_no_session(world: &World) {
    if world.state.name() == StateName::Configured {
        assert!(world.up.is_none() && world.connecting.is_none());
    }
}

/// Who tries is on its way, so that it will say how things are.
pub(super) fn a_breaker_is_never_stuck(world: &World) {
    let tries = world.state.breaker.trying();
    for id in tries.into_iter().chain(world.state.fuses.trying()) {
        assert!(world.open.contains_key(&id), "{id:?} tries for ever");
    }
}

pub(super) fn nothing_begins_behind_an_open_breaker(world: &World, id: CallId) {
    match world.state.breaker {
        Breaker::Closed(_) => {}
        Breaker::Trying(trying, _) => assert_eq!(trying, id, "only one tries"),
        Breaker::Open(_) => panic!("{id:?} began behind an open breaker"),
    }
}

pub(super) fn one_session_at_a_time(world: &World) {
    assert!(world.connecting.is_none() && world.up.is_none() && world.closing.is_none());
}

/// Without a proof, or somebody who asks, attempts are few and then far between.
pub(super) fn budget_bounds_spawns(world: &mut World) {
    if world.state_before == StateName::Failed {
        assert_eq!(world.input, Some(Input::Reconnect), "failed is left alone");
    }
    if world.state.cause() == "called" {
        world.connects = 0;
    }
    world.connects += 1;
    let retries = world
        .policy
        .reconnect_retries
        .max(world.policy.initial_retries);
    if world.connects > retries + 1 {
        let pause = world.last_connect.map(|last| world.now - last);
        assert!(
            pause.is_some_and(|pause| pause >= PROBES_APART),
            "attempt {} after {pause:?}",
            world.connects
        );
    }
    world.last_connect = Some(world.now);
}

pub(super) fn expired_call_is_never_written(world: &World, id: CallId) {
    assert!(
        world.open[&id].deadline > world.now,
        "{id:?} began after its deadline"
    );
}

pub(super) fn turns_are_kept(world: &World, id: CallId) {
    let waiting = &world.waiting[&world.open[&id].lane];
    assert_eq!(waiting.first(), Some(&id), "{id:?} overtook somebody");
}

/// Nobody has a second turn while somebody else waits for a first one.
pub(super) fn lanes_take_turns(world: &mut World, id: CallId) {
    let lane = world.open[&id].lane;
    world.overtakers.remove(&lane);
    if world.begun.contains(&id) {
        return;
    }
    for other in world.waiting.keys().filter(|other| **other != lane) {
        let overtakers = world.overtakers.entry(*other).or_default();
        assert!(overtakers.insert(lane), "{lane:?} before {other:?} again");
    }
}

pub(super) fn never_replays_a_write(world: &World, id: CallId) {
    let before = world.begun.iter().filter(|begun| **begun == id).count();
    assert!(before <= 1, "{id:?} began {before} times already");
    if world.lost.contains(&id) {
        assert!(world.open[&id].read_only, "{id:?} may have run already");
    }
}

pub(super) fn answered_exactly_once(world: &World, id: CallId) {
    assert!(
        world.open.contains_key(&id),
        "{id:?} was answered twice or never accepted"
    );
}

pub(super) fn nothing_is_accepted_after_drain(world: &World, id: CallId) {
    let refused = Effect::Refuse(id, Refusal::Draining(ErrorCode::ShuttingDown));
    assert_eq!(world.settled.get(&id), Some(&refused));
}
