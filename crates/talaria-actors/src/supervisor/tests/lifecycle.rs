//! Starting, failing, reconnecting, switching, draining.

use std::time::Duration;

use serde_json::json;
use talaria_types::{Deadline, ErrorCode};

use super::stage::{LONG, Stage, code, on_paused_clock, wait_until};
use crate::fake::{Behaviour, Connect, Fleet, Seen};
use crate::supervisor::Placement;
use crate::supervisor::messages::DrainAll;

#[test]
fn start_returns_at_once_and_servers_start_in_parallel() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet.server("stuck").next_connects([Connect::Hang]);
        let servers = json!({ "s": { "command": "fake" }, "stuck": { "command": "fake" } });
        let since = talaria_types::runtime::now();
        let stage = Stage::start(&fleet, &servers);
        assert_eq!(stage.status().state, "connecting");
        stage.reaches("ready").await;
        assert!(
            since.elapsed() < Duration::from_secs(1),
            "{:?}",
            since.elapsed()
        );
        stage.settle().await;
        let waited = since.elapsed();
        assert!(
            (59..=63).contains(&waited.as_secs()),
            "one connect_timeout: {waited:?}"
        );
    });
}

#[test]
fn a_call_waits_for_a_server_that_is_starting() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let refused = Connect::Fail(ErrorCode::ConnectFailed);
        fleet.server("s").next_connects([refused, refused]);
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        assert!(
            stage.call("echo").await.is_ok(),
            "ready after about three seconds"
        );
    });
}

#[test]
fn a_call_gives_up_on_a_starting_server_after_five_seconds_naming_the_state() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet.server("s").next_connects([Connect::Hang]);
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        let since = talaria_types::runtime::now();
        let failure = stage.call("echo").await.unwrap_err();
        let took = since.elapsed().as_secs_f64();
        assert!((4.9..5.2).contains(&took), "{took}");
        assert_eq!(failure.code(), ErrorCode::ServerUnavailable);
        assert!(failure.detail().contains("state: connecting"), "{failure}");
        assert!(!failure.is_outcome_uncertain());
        let since = talaria_types::runtime::now();
        let impatient = stage.call_within("echo", Duration::from_secs(1)).await;
        assert_eq!(code(impatient), ErrorCode::ServerUnavailable);
        assert!(
            since.elapsed() < Duration::from_millis(1_100),
            "{:?}",
            since.elapsed()
        );
    });
}

#[test]
fn a_server_that_never_comes_up_ends_as_parked_with_its_reason() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet
            .server("s")
            .next_connects([Connect::Fail(ErrorCode::ConnectFailed); 4]);
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        let took = stage.reaches("parked").await;
        assert!(
            (5.5..8.6).contains(&took.as_secs_f64()),
            "waits of 1, 2 and 4 s: {took:?}"
        );
        let status = stage.status();
        assert_eq!(
            status.reason.as_deref(),
            Some("scripted refusal; the server says: module not found [REDACTED]")
        );
        assert!(status.next_attempt_ms.is_some());
        assert_eq!(code(stage.call("echo").await), ErrorCode::ServerUnavailable);
    });
}

#[test]
fn a_server_that_wants_credentials_fails_at_once() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet
            .server("s")
            .next_connects([Connect::Fail(ErrorCode::ServerUnauthorized)]);
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        stage.settle().await;
        assert_eq!(stage.status().state, "parked");
    });
}

#[test]
fn l07_a_failed_server_is_tried_at_once_when_an_operator_asks() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet
            .server("s")
            .next_connects([Connect::Fail(ErrorCode::ServerUnauthorized)]);
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        stage.settle().await;
        let since = talaria_types::runtime::now();
        let status = stage
            .supervisor
            .reconnect("s", Deadline::after(LONG))
            .await
            .unwrap();
        assert_eq!(status.state, "ready");
        assert!(
            since.elapsed() < Duration::from_millis(100),
            "{:?}",
            since.elapsed()
        );
    });
}

#[test]
fn reconnect_replaces_a_healthy_session() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let status = stage
            .supervisor
            .reconnect("s", Deadline::after(LONG))
            .await
            .unwrap();
        assert_eq!((status.state.as_str(), status.restarts), ("ready", 1));
        assert_eq!(
            server
                .seen()
                .iter()
                .filter(|seen| **seen != Seen::Listed)
                .count(),
            3
        );
        assert_eq!(server.most_sessions(), 1, "the old one ends first");
        let unknown = stage
            .supervisor
            .reconnect("other", Deadline::after(LONG))
            .await;
        assert_eq!(unknown.unwrap_err().code(), ErrorCode::UnknownServer);
    });
}

#[test]
fn a_disabled_server_is_not_started_until_it_is_enabled() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let servers = json!({ "s": { "command": "fake", "enabled": false } });
        let stage = Stage::start(&fleet, &servers);
        stage.settle().await;
        assert_eq!(stage.status().state, "disabled");
        assert_eq!(code(stage.call("echo").await), ErrorCode::ServerDisabled);
        let reconnect = stage.supervisor.reconnect("s", Deadline::after(LONG)).await;
        assert_eq!(reconnect.unwrap_err().code(), ErrorCode::ServerDisabled);
        let status = stage
            .supervisor
            .enable("s", Deadline::after(LONG))
            .await
            .unwrap();
        assert_eq!(status.state, "ready");
        assert!(stage.call("echo").await.is_ok());
    });
}

#[test]
fn disabling_finishes_running_calls_and_takes_the_tools_away() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(2)));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let status = stage
            .supervisor
            .disable("s", Deadline::after(LONG))
            .await
            .unwrap();
        assert_eq!((status.state.as_str(), status.tools), ("disabled", 0));
        assert!(running.await.unwrap().is_ok());
        assert!(stage.supervisor.tools().is_empty());
        assert_eq!(server.open_sessions(), 0);
        assert_eq!(code(stage.call("echo").await), ErrorCode::ServerDisabled);
        let status = stage
            .supervisor
            .enable("s", Deadline::after(LONG))
            .await
            .unwrap();
        assert_eq!((status.state.as_str(), status.tools), ("ready", 1));
    });
}

#[test]
fn a_broken_entry_is_shown_and_the_others_start() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let servers = json!({ "s": { "command": "fake" }, "broken": { "args": ["no command"] } });
        let stage = Stage::start(&fleet, &servers);
        stage.settle().await;
        assert!(stage.call("echo").await.is_ok());
        let broken = stage.supervisor.server("broken").unwrap();
        assert_eq!(broken.state, "failed");
        assert!(broken.reason.is_some());
        for result in [
            stage
                .supervisor
                .reconnect("broken", Deadline::after(LONG))
                .await,
            stage
                .supervisor
                .enable("broken", Deadline::after(LONG))
                .await,
        ] {
            assert_eq!(result.unwrap_err().code(), ErrorCode::ServerMisconfigured);
        }
        let resolved = stage.supervisor.resolve("broken", "x");
        assert_eq!(resolved.unwrap_err().code(), ErrorCode::ServerMisconfigured);
    });
}

#[test]
fn drain_finishes_in_flight_calls_and_refuses_new_ones() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(3)));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let waiting = stage.start_call("echo", LONG);
        wait_until("one waits", || {
            stage.supervisor.server_handle("s").load() == (1, 1)
        })
        .await;
        let supervisor = stage.supervisor.clone();
        let drain = talaria_types::runtime::spawn_local("test drain", async move {
            supervisor.drain(Duration::from_secs(20)).await;
        });
        stage.reaches("draining").await;
        assert_eq!(code(stage.call("echo").await), ErrorCode::ShuttingDown);
        drain.await.unwrap();
        assert!(running.await.unwrap().is_ok());
        assert!(waiting.await.unwrap().is_ok(), "it had been accepted");
        assert_eq!(server.calls("echo"), 2);
        assert_eq!(stage.status().state, "stopped");
        assert_eq!(
            (server.open_sessions(), server.count(&Seen::Closed)),
            (0, 1)
        );
        stage.supervisor.drain(Duration::from_secs(1)).await;
    });
}

#[test]
fn drain_cancels_what_does_not_end_in_time() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(LONG));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let since = talaria_types::runtime::now();
        stage.supervisor.drain(Duration::from_secs(2)).await;
        assert!(
            since.elapsed() < Duration::from_secs(3),
            "{:?}",
            since.elapsed()
        );
        let failure = running.await.unwrap().unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ShuttingDown);
        assert!(failure.is_outcome_uncertain());
        assert_eq!(server.count(&Seen::Cancelled("echo".to_owned())), 1);
        assert_eq!(server.open_sessions(), 0);
    });
}

#[test]
fn drain_does_not_wait_for_a_server_that_is_starting() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet.server("s").next_connects([Connect::Hang]);
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        let waiting = stage.start_call("echo", LONG);
        let since = talaria_types::runtime::now();
        stage.supervisor.drain(Duration::from_secs(20)).await;
        assert!(
            since.elapsed() < Duration::from_secs(1),
            "{:?}",
            since.elapsed()
        );
        assert_eq!(code(waiting.await.unwrap()), ErrorCode::ShuttingDown);
    });
}

#[test]
fn on_own_arbiters_calls_run_on_threads_of_their_own_and_drain_joins_them() {
    actix::System::new().block_on(async {
        let fleet = Fleet::default();
        let names: Vec<_> = (0..8).map(|n| format!("s{n}")).collect();
        let servers: serde_json::Map<_, _> = names
            .iter()
            .map(|name| (name.clone(), json!({ "command": "fake" })))
            .collect();
        let config = json!({ "mcp_servers": servers });
        let stage = Stage::start_with(&fleet, &config, Placement::OwnArbiters);
        stage.settle().await;
        let calls = names.iter().flat_map(|name| {
            (0..20).map(|n| stage.call_public(leak(name), json!({ "n": n }), LONG))
        });
        let answers = futures_util::future::join_all(calls).await;
        assert!(answers.iter().all(Result::is_ok));
        stage.supervisor.drain(Duration::from_secs(5)).await;
        for name in &names {
            assert_eq!(fleet.server(name).open_sessions(), 0);
            let status = stage.supervisor.server(name).unwrap();
            assert_eq!(status.state, "stopped");
        }
        assert!(!stage.supervisor.is_alive());
    });
}

#[test]
fn the_thread_of_every_server_is_handed_back_for_joining() {
    actix::System::new().block_on(async {
        let fleet = Fleet::default();
        let servers: serde_json::Map<_, _> = (0..6)
            .map(|n| (format!("s{n}"), json!({ "command": "fake" })))
            .collect();
        let config = json!({ "mcp_servers": servers });
        for _ in 0..10 {
            let stage = Stage::start_with(&fleet, &config, Placement::OwnArbiters);
            stage.settle().await;
            let until = Deadline::after(Duration::from_secs(5)).instant();
            let arbiters = stage
                .supervisor
                .address()
                .send(DrainAll { until })
                .await
                .unwrap();
            assert_eq!(arbiters.len(), 6);
            for arbiter in arbiters {
                arbiter.stop();
                assert!(arbiter.join().is_ok());
            }
            stage.supervisor.drain(Duration::from_secs(5)).await;
        }
    });
}

/// The public name of a server's `echo`, for futures that outlive the loop that makes them.
fn leak(server: &str) -> &'static str {
    String::leak(format!("mcp__{server}__echo"))
}

#[test]
fn the_end_of_the_supervisor_is_noticed() {
    on_paused_clock(async {
        let (stage, _server) = Stage::one().await;
        let soon = || Deadline::after(Duration::from_secs(1));
        assert!(stage.supervisor.is_alive());
        assert!(stage.supervisor.probe(soon()).await.is_ok());
        stage.supervisor.drain(Duration::ZERO).await;
        stage.supervisor.ended().await;
        assert!(!stage.supervisor.is_alive());
        let dead = stage.supervisor.probe(soon()).await.unwrap_err();
        assert_eq!(dead.code(), ErrorCode::Internal);
    });
}
