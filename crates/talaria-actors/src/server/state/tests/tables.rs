//! One rule after the other, in the order of a server's life.

use super::*;

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
fn l02_four_attempts_with_growing_waits_then_parked() {
    let mut world = World::new(policy(1, 4), 3);
    for seconds in [1.0, 2.0, 4.0] {
        world.refuse_connect(Trouble::Passing);
        assert_eq!(world.state.name(), StateName::Backoff);
        let wait = world.state.next_attempt().unwrap() - world.now;
        assert!(
            (0.8 * seconds..=1.2 * seconds).contains(&wait.as_secs_f64()),
            "{wait:?}"
        );
        world.advance(wait);
        assert!(world.connecting.is_some(), "tries again");
    }
    world.refuse_connect(Trouble::Passing);
    assert_eq!(world.state.name(), StateName::Parked);
    world.advance(Duration::from_secs(361));
    assert!(world.connecting.is_some(), "probes slowly");
    assert_eq!(world.state.name(), StateName::Parked);
    world.connect();
    assert_eq!(world.state.name(), StateName::Ready);
}

#[test]
fn l07_an_operator_brings_the_next_attempt_forward() {
    let mut world = World::new(policy(1, 4), 3);
    world.refuse_connect(Trouble::Unauthorized);
    assert_eq!(world.state.name(), StateName::Parked);
    world.reconnect();
    assert!(world.connecting.is_some());
    assert_eq!(world.state.name(), StateName::Connecting);
}

#[test]
fn a_server_that_refuses_credentials_is_not_tried_again_soon() {
    let mut world = World::new(policy(1, 4), 3);
    world.refuse_connect(Trouble::Unauthorized);
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
fn a_server_that_drops_every_session_at_once_ends_as_parked() {
    let mut world = World::ready(policy(1, 4));
    for _ in 0..5 {
        world.lose_session();
        world.closed();
        world.advance(Duration::from_secs(80));
        world.connect();
    }
    world.lose_session();
    assert_eq!(world.state.name(), StateName::Parked);
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
fn over_http_a_call_that_was_not_sent_is_repeated_only_where_its_session_is_over() {
    let mut world = World::ready(over_http());
    let id = world.call(LONG, false);
    world.end(id, CallEnd::LostUnsent);
    assert_eq!(
        world.settled[&id],
        Effect::Answer(id),
        "the transport tried"
    );
    let id = world.call(LONG, false);
    world.lose_session();
    world.end(id, CallEnd::LostUnsent);
    assert!(!world.settled.contains_key(&id));
    world.closed();
    world.advance(Duration::from_secs(1));
    world.connect();
    assert!(world.running.contains_key(&id));
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
    world.advance(Duration::from_millis(60));
    let second = world.call(LONG, false);
    world.end(first, CallEnd::Answered);
    assert!(
        world.refreshing.is_some(),
        "the refresh came before the second call"
    );
    assert_eq!(world.begun, [first]);
    world.refreshed(true);
    assert_eq!(world.begun, [first, second]);
    world.end(second, CallEnd::Answered);
    world.advance(Duration::from_secs(10));
    assert!(world.refreshing.is_none(), "two changes made one refresh");
}

#[test]
fn l28_a_failed_refresh_leaves_a_mark_until_one_succeeds() {
    let mut world = World::ready(policy(1, 4));
    world.feed(Input::ToolsChanged(world.state.epoch()));
    world.advance(Duration::from_millis(60));
    world.refreshed(false);
    assert_eq!(world.state.name(), StateName::Degraded);
    assert!(world.state.is_stale());
    let id = world.call(LONG, false);
    world.end(id, CallEnd::Answered);
    world.advance(Duration::from_secs(7));
    assert!(world.refreshing.is_some(), "tried again after five seconds");
    world.refreshed(true);
    assert_eq!(world.state.name(), StateName::Ready);
    assert!(!world.state.is_stale());
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
    world.reconnect();
    assert!(world.closing.is_some() && world.connecting.is_none());
    world.closed();
    assert!(world.connecting.is_some());
}

/// A server whose session has answered a call.
fn proven(policy: Policy) -> World {
    let mut world = World::ready(policy);
    let id = world.call(LONG, false);
    world.end(id, CallEnd::Answered);
    world
}

#[test]
fn what_is_no_mcp_server_is_left_alone_until_somebody_asks() {
    let mut world = World::new(policy(1, 4), 3);
    world.refuse_connect(Trouble::Hopeless);
    assert_eq!(world.state.name(), StateName::Failed);
    assert_eq!(world.state.next_wake(world.now), None);
    let id = world.call(LONG, false);
    assert_eq!(world.settled[&id], Effect::Refuse(id, Refusal::NotReady));
    world.reconnect();
    assert!(world.connecting.is_some());
}

#[test]
fn what_was_an_mcp_server_once_is_probed() {
    let mut world = World::ready(policy(1, 4));
    world.lose_session();
    world.closed();
    world.advance(Duration::from_secs(1));
    world.refuse_connect(Trouble::Hopeless);
    assert_eq!(world.state.name(), StateName::Parked);
}

#[test]
fn a_program_that_is_not_there_is_parked_at_once() {
    let mut world = World::new(policy(1, 4), 3);
    world.refuse_connect(Trouble::Lasting);
    assert_eq!(world.state.name(), StateName::Parked);
    assert!(!world.state.needs_reauth());
}

#[test]
fn l08_refused_credentials_get_one_new_session_and_then_rest() {
    let mut world = proven(over_http());
    let id = world.call(LONG, false);
    world.end(id, CallEnd::Unauthorized);
    assert!(world.closing.is_some(), "the session is replaced");
    world.closed();
    world.connect();
    assert_eq!(world.begun.iter().filter(|begun| **begun == id).count(), 2);
    world.end(id, CallEnd::Unauthorized);
    assert_eq!(world.settled[&id], Effect::Answer(id));
    assert_eq!(world.state.name(), StateName::Parked);
    assert!(world.state.needs_reauth());
}

#[test]
fn a_session_that_was_never_good_gets_no_grace() {
    let mut world = World::ready(over_http());
    let id = world.call(LONG, false);
    world.end(id, CallEnd::Unauthorized);
    assert_eq!(world.state.name(), StateName::Parked);
    assert_eq!(world.settled[&id], Effect::Answer(id));
}

#[test]
fn calls_that_run_end_before_a_session_is_replaced_for_its_credentials() {
    let mut world = proven(Policy {
        rpc_concurrency: 2,
        ..over_http()
    });
    let slow = world.call(LONG, false);
    let refused = world.call(LONG, false);
    world.end(refused, CallEnd::Unauthorized);
    assert!(world.up.is_some(), "one still runs");
    world.end(slow, CallEnd::Answered);
    assert!(world.closing.is_some());
    let stuck = proven(Policy {
        rpc_concurrency: 2,
        ..over_http()
    });
    let mut world = stuck;
    world.call(LONG, false);
    let refused = world.call(LONG, false);
    world.end(refused, CallEnd::Unauthorized);
    world.advance(Duration::from_secs(10));
    assert!(world.closing.is_some(), "not for ever");
}

#[test]
fn three_calls_without_an_answer_open_the_breaker_and_one_closes_it() {
    let mut world = World::ready(over_http());
    for _ in 0..3 {
        let id = world.call(LONG, false);
        world.end(id, CallEnd::Silent);
    }
    assert_eq!(world.state.name(), StateName::Degraded);
    let refused = world.call(LONG, false);
    let circuit =
        |settled: &Effect| matches!(settled, Effect::Refuse(_, Refusal::ServerCircuit(_)));
    assert!(circuit(&world.settled[&refused]));
    world.probed(ProbeEnd::Alive);
    world.advance(Duration::from_secs(60));
    let trying = world.call(LONG, false);
    let beside = world.call(LONG, false);
    assert!(circuit(&world.settled[&beside]));
    world.end(trying, CallEnd::Answered);
    assert_eq!(world.state.name(), StateName::Ready);
}

#[test]
fn an_opening_breaker_refuses_those_that_wait() {
    let mut world = World::ready(over_http());
    for _ in 0..2 {
        let id = world.call(LONG, false);
        world.end(id, CallEnd::Silent);
    }
    let last = world.call(LONG, false);
    let waiting = world.call(LONG, false);
    world.end(last, CallEnd::Silent);
    assert!(matches!(
        world.settled[&waiting],
        Effect::Refuse(_, Refusal::ServerCircuit(_))
    ));
    assert!(world.probing.is_some(), "is it still there at all?");
}

#[test]
fn l23_a_call_that_tries_on_a_dead_session_asks_for_another() {
    let mut world = World::ready(policy(1, 4));
    for _ in 0..3 {
        let id = world.call(LONG, false);
        world.end(id, CallEnd::Silent);
    }
    world.probed(ProbeEnd::Alive);
    world.advance(Duration::from_secs(60));
    let trying = world.call(LONG, false);
    world.end(trying, CallEnd::LostSent);
    assert_eq!(world.settled[&trying], Effect::Answer(trying));
    world.closed();
    world.advance(Duration::from_secs(1));
    world.connect();
    assert_eq!(world.state.name(), StateName::Ready, "not stuck");
    let next = world.call(LONG, false);
    assert!(world.running.contains_key(&next));
}

#[test]
fn errors_of_a_tool_count_for_one_session_and_tool_alone() {
    let mut world = World::ready(over_http());
    let (mine, other) = (Some(FuseKey(1)), Some(FuseKey(2)));
    for _ in 0..3 {
        let id = world.call_of(Lane::NOBODY, mine, LONG, false);
        world.end(id, CallEnd::ToolFailed);
    }
    assert_eq!(world.state.name(), StateName::Ready);
    let refused = world.call_of(Lane::NOBODY, mine, LONG, false);
    assert!(matches!(
        world.settled[&refused],
        Effect::Refuse(_, Refusal::ToolCircuit(_))
    ));
    for fuse in [other, None, None, None, None] {
        let id = world.call_of(Lane::NOBODY, fuse, LONG, false);
        world.end(id, CallEnd::ToolFailed);
        assert_eq!(world.settled[&id], Effect::Answer(id));
    }
    world.advance(Duration::from_secs(60));
    let trying = world.call_of(Lane::NOBODY, mine, LONG, false);
    world.end(trying, CallEnd::Answered);
    let next = world.call_of(Lane::NOBODY, mine, LONG, false);
    assert!(world.running.contains_key(&next));
}

#[test]
fn an_idle_session_is_asked_for_a_sign_of_life() {
    let mut world = World::ready(over_http());
    world.advance(Duration::from_secs(100));
    let busy = world.call(LONG * 10, false);
    world.advance(Duration::from_secs(300));
    assert!(world.probing.is_none(), "never while a call runs");
    world.end(busy, CallEnd::Answered);
    world.advance(Duration::from_secs(179));
    assert!(world.probing.is_none());
    world.advance(Duration::from_secs(1));
    assert!(world.probing.is_some());
    world.probed(ProbeEnd::Alive);
    assert_eq!(world.state.name(), StateName::Ready);
}

#[test]
fn a_session_that_gives_no_sign_of_life_twice_is_replaced() {
    let mut world = World::ready(over_http());
    world.advance(Duration::from_secs(180));
    world.probed(ProbeEnd::Lost);
    assert_eq!(world.state.name(), StateName::Degraded);
    world.advance(Duration::from_secs(5));
    world.probed(ProbeEnd::Lost);
    assert!(world.closing.is_some());
    assert_eq!(world.state.name(), StateName::Backoff);
}

#[test]
fn a_call_does_not_wait_for_a_sign_of_life() {
    let mut world = World::ready(over_http());
    world.advance(Duration::from_secs(180));
    assert!(world.probing.is_some());
    let id = world.call(LONG, false);
    assert!(world.probing.is_none() && world.running.contains_key(&id));
}

#[test]
fn a_session_that_is_idle_for_long_is_ended_and_made_again_by_a_call() {
    let mut world = World::ready(Policy {
        idle_timeout: Some(Duration::from_secs(60)),
        ..policy(1, 4)
    });
    world.advance(Duration::from_secs(59));
    let id = world.call(LONG, false);
    world.end(id, CallEnd::Answered);
    world.advance(Duration::from_secs(59));
    assert_eq!(world.state.name(), StateName::Ready);
    world.advance(Duration::from_secs(1));
    assert_eq!(world.state.name(), StateName::Configured);
    let id = world.call(LONG, false);
    assert!(world.connecting.is_none(), "the old one ends first");
    world.closed();
    world.advance(Duration::from_secs(14));
    assert!(
        !world.settled.contains_key(&id),
        "waits for fifteen seconds"
    );
    world.connect();
    assert!(world.running.contains_key(&id));
}

#[test]
fn a_session_that_lived_for_long_begins_nothing_more_and_is_replaced() {
    let mut world = World::ready(Policy {
        max_lifetime: Some(Duration::from_secs(60)),
        ..policy(2, 4)
    });
    let slow = world.call(LONG * 10, false);
    world.advance(Duration::from_secs(65));
    let next = world.call(LONG, false);
    assert!(world.up.is_some() && !world.running.contains_key(&next));
    world.end(slow, CallEnd::Answered);
    assert!(world.closing.is_some());
    world.closed();
    world.connect();
    assert!(world.running.contains_key(&next));
}

#[test]
fn a_long_call_in_an_old_session_does_not_hold_the_others_back_for_long() {
    let mut world = World::ready(Policy {
        max_lifetime: Some(Duration::from_secs(60)),
        ..policy(2, 4)
    });
    let slow = world.call(LONG * 100, false);
    world.advance(Duration::from_secs(60));
    let next = world.call(LONG, false);
    assert!(!world.running.contains_key(&next));
    world.advance(Duration::from_secs(10));
    assert!(world.running.contains_key(&next), "ten seconds are enough");
    world.end(next, CallEnd::Answered);
    world.advance(Duration::from_secs(60));
    let held = world.call(LONG, false);
    assert!(!world.running.contains_key(&held), "another try");
    world.end(slow, CallEnd::Answered);
    assert!(world.closing.is_some());
}

#[test]
fn the_list_of_an_earlier_session_says_nothing_of_the_new_one() {
    let mut world = World::ready(policy(1, 4));
    world.feed(Input::ToolsChanged(world.state.epoch()));
    world.advance(Duration::from_millis(60));
    assert!(world.refreshing.is_some());
    world.lose_session();
    world.closed();
    world.advance(Duration::from_secs(1));
    world.connect();
    let id = world.call(LONG, false);
    assert!(world.running.contains_key(&id), "the lock is free");
    world.feed(Input::ToolsChanged(world.state.epoch()));
    world.refreshed(false);
    assert_eq!(world.state.name(), StateName::Ready);
    world.end(id, CallEnd::Answered);
    world.advance(Duration::from_millis(60));
    assert!(world.refreshing.is_some(), "the new announcement counts");
}

#[test]
fn l33_a_lazy_server_whose_tools_are_known_waits_for_its_first_call() {
    let lazy = Policy {
        lazy: true,
        ..policy(1, 4)
    };
    let now = talaria_types::runtime::now().into_std();
    let mut world = World::begin(lazy, 1, now, true);
    world.advance(LONG);
    assert_eq!(world.state.name(), StateName::Configured);
    assert!(world.connecting.is_none(), "nothing was started");
    let id = world.call(LONG, false);
    world.connect();
    assert!(world.running.contains_key(&id));
    let world = World::begin(lazy, 1, now, false);
    assert!(
        world.connecting.is_some(),
        "its tools have to be known first"
    );
}

#[test]
fn one_token_has_its_share_of_the_waiting_places() {
    let mut world = World::ready(Policy {
        share: 2,
        ..policy(1, 4)
    });
    let (greedy, other) = (Lane(7), Lane(8));
    let running = world.call_of(greedy, None, LONG, false);
    let waiting = [1, 2].map(|_| world.call_of(greedy, None, LONG, false));
    let refused = world.call_of(greedy, None, LONG, false);
    assert_eq!(
        world.settled[&refused],
        Effect::Refuse(refused, Refusal::Share)
    );
    let fair = world.call_of(other, None, LONG, false);
    world.end(running, CallEnd::Answered);
    world.end(waiting[0], CallEnd::Answered);
    assert_eq!(world.begun, [running, waiting[0], fair]);
}
