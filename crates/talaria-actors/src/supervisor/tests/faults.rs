//! What breaks: processes that die, jobs and handlers that panic, loops that freeze.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use serde_json::json;
use talaria_types::ErrorCode;

use super::stage::{
    Block, Explode, Freeze, LONG, Quit, Stage, code, on_paused_clock, text, wait_until,
};
use crate::fake::{Behaviour, Connect, Fleet, Seen};
use crate::supervisor::Placement;
use crate::supervisor::plan::Timing;

#[test]
fn l16_a_child_that_dies_during_a_write_call_is_uncertain_and_back_within_a_second() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Die);
        let since = talaria_types::runtime::now();
        let failure = stage.call("echo").await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ConnectionLost);
        assert!(failure.is_outcome_uncertain() && !failure.retryable());
        assert!(
            since.elapsed() < Duration::from_millis(500),
            "{:?}",
            since.elapsed()
        );
        assert_eq!(server.calls("echo"), 1, "exactly one execution");
        server.behave("echo", Behaviour::Echo);
        stage.reaches("ready").await;
        assert!(
            since.elapsed() < Duration::from_secs(1),
            "{:?}",
            since.elapsed()
        );
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(server.most_sessions(), 1);
        assert_eq!(stage.status().restarts, 1);
    });
}

#[test]
fn a_child_found_dead_costs_nothing_because_nothing_was_sent() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::FoundDead);
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(
            (server.calls("echo"), server.count(&Seen::Connected)),
            (1, 2)
        );
    });
}

#[test]
fn a_call_after_the_death_of_an_idle_child_waits_for_the_new_one() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.kill();
        let since = talaria_types::runtime::now();
        assert!(stage.call("echo").await.is_ok());
        assert!(
            since.elapsed() < Duration::from_secs(1),
            "{:?}",
            since.elapsed()
        );
    });
}

#[test]
fn only_a_tool_that_says_so_is_replayed_and_only_once() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let server = fleet.server("s");
        server.offer_pages(vec![json!([
            { "name": "read", "annotations": { "readOnlyHint": true } },
            { "name": "maybe", "annotations": { "readOnlyHint": "true" } },
        ])]);
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        stage.settle().await;
        server.behave("read", Behaviour::Die);
        server.behave("maybe", Behaviour::Die);
        let lost = stage.call("read").await.unwrap_err();
        assert_eq!(lost.code(), ErrorCode::ConnectionLost);
        assert_eq!(server.calls("read"), 2, "replayed once");
        stage.reaches("ready").await;
        assert_eq!(code(stage.call("maybe").await), ErrorCode::ConnectionLost);
        assert_eq!(server.calls("maybe"), 1, "never replayed");
    });
}

#[test]
fn a_job_that_panics_costs_its_call_only() {
    on_paused_clock(async {
        let config = json!({ "command": "fake", "rpc_concurrency": 2 });
        let (stage, server) = Stage::one_with(&config).await;
        server.offer(&["echo", "bad"]);
        server.say_tools_changed();
        wait_until("both are there", || stage.supervisor.tools().len() == 2).await;
        server.behave("bad", Behaviour::Panic);
        let release = server.hold("echo");
        let beside = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let failure = stage.call("bad").await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::Internal);
        assert!(failure.is_outcome_uncertain());
        release.notify_one();
        assert!(beside.await.unwrap().is_ok());
        assert_eq!(server.count(&Seen::Connected), 1);
    });
}

#[test]
fn restarts_after_a_panic_and_answers_every_call() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(LONG));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let waiting = stage.start_call("echo", LONG);
        let handle = stage.supervisor.server_handle("s");
        wait_until("one waits", || handle.load() == (1, 1)).await;
        server.behave("echo", Behaviour::Echo);
        stage.meddle(Explode);
        // Handed in behind the panic, so it is lost in the mailbox of the dead actor.
        let behind = stage.start_call("echo", LONG);
        let lost = running.await.unwrap().unwrap_err();
        assert_eq!(lost.code(), ErrorCode::ConnectionLost);
        assert!(lost.is_outcome_uncertain());
        assert!(
            waiting.await.unwrap().is_ok(),
            "it was not sent, so the next actor takes it"
        );
        assert!(behind.await.unwrap().is_ok());
        assert_eq!(stage.status().state, "ready");
        assert_eq!((server.most_sessions(), server.open_sessions()), (1, 1));
    });
}

#[test]
fn restarts_after_a_freeze_and_answers_every_call() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(LONG));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        server.behave("echo", Behaviour::Echo);
        stage.meddle(Freeze);
        let since = talaria_types::runtime::now();
        let behind = stage.start_call("echo", LONG);
        let lost = running.await.unwrap().unwrap_err();
        assert_eq!(lost.code(), ErrorCode::ConnectionLost);
        assert!(lost.is_outcome_uncertain());
        assert!(
            since.elapsed() < Duration::from_secs(40),
            "{:?}",
            since.elapsed()
        );
        assert!(
            behind.await.unwrap().is_ok(),
            "a call that was not sent goes to the next actor"
        );
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(server.open_sessions(), 1, "the old session was closed");
    });
}

#[test]
fn a_thread_that_blocks_is_replaced_and_stands_down_when_it_comes_back() {
    actix::System::new().block_on(async {
        let fleet = Fleet::default();
        let config = json!({ "mcp_servers": { "s": { "command": "fake" } } });
        let timing = Timing {
            heartbeat: Duration::from_millis(20),
            frozen_after: Duration::from_secs(1),
            ..Timing::PRODUCTION
        };
        let stage = Stage::start_timed(&fleet, &config, Placement::OwnArbiters, &timing);
        stage.settle().await;
        let server = fleet.server("s");
        let barrier = Arc::new(Barrier::new(2));
        stage.meddle(Block(Arc::clone(&barrier)));
        // Handed in behind the block; the successor takes it.
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(server.count(&Seen::Connected), 2);
        barrier.wait();
        for _ in 0..20 {
            assert!(stage.call("echo").await.is_ok());
        }
        stage.supervisor.drain(Duration::from_secs(5)).await;
        assert_eq!(
            (server.open_sessions(), server.count(&Seen::Connected)),
            (0, 2)
        );
        assert_eq!(server.calls("echo"), 21);
    });
}

#[test]
fn a_frozen_server_leaves_the_others_alone() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let servers = json!({ "s": { "command": "fake" }, "t": { "command": "fake" } });
        let stage = Stage::start(&fleet, &servers);
        stage.settle().await;
        stage.meddle(Freeze);
        let since = talaria_types::runtime::now();
        assert!(
            stage
                .call_public("mcp__t__echo", json!({}), LONG)
                .await
                .is_ok()
        );
        assert!(since.elapsed() < Duration::from_millis(10));
    });
}

#[test]
fn an_actor_that_ends_without_being_asked_is_started_again() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        stage.meddle(Quit);
        wait_until("a new session", || server.count(&Seen::Connected) == 2).await;
        assert!(stage.call("echo").await.is_ok());
    });
}

#[test]
fn panics_in_a_row_use_the_budget_up_and_slow_probes_follow() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        for _ in 0..6 {
            stage.reaches("ready").await;
            stage.meddle(Explode);
            wait_until("it died", || {
                stage.supervisor.server_handle("s").address().is_none()
            })
            .await;
        }
        let status = stage.status();
        assert_eq!(status.state, "parked");
        assert!(
            status.next_attempt_ms.is_some_and(|wait| wait > 200_000),
            "{status:?}"
        );
        let refused = stage.call("echo").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ServerUnavailable);
        assert!(refused.detail().contains("parked"), "{refused}");
        let took = stage.reaches("ready").await;
        assert!((200..=400).contains(&took.as_secs()), "{took:?}");
        assert_eq!(server.open_sessions(), 1);
    });
}

#[test]
fn a_panic_while_connecting_is_a_failed_attempt() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet.server("s").next_connects([Connect::Panic]);
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        stage.reaches("ready").await;
        assert!(stage.call("echo").await.is_ok());
    });
}

#[test]
fn a_server_that_drops_every_session_is_given_up_and_probed() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        for sessions in 1..=6 {
            wait_until("a session", || server.count(&Seen::Connected) == sessions).await;
            server.kill();
        }
        stage.reaches("parked").await;
        let took = stage.reaches("ready").await;
        assert!((200..=400).contains(&took.as_secs()), "{took:?}");
    });
}

#[test]
fn answers_are_not_mixed_up_when_a_session_is_replaced() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        for round in 0..20 {
            if round % 3 == 0 {
                server.kill();
            }
            let arguments = json!({ "round": round });
            let answer = stage
                .call_public("mcp__s__echo", arguments.clone(), LONG)
                .await
                .unwrap();
            assert_eq!(text(&answer), arguments.to_string());
        }
        assert_eq!(server.most_sessions(), 1);
    });
}
