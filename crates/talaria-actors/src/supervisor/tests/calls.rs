//! The path of a call: the RPC lock, deadlines, cancellation, limits.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use talaria_content::{ReaderTool, ResultKind};
use talaria_types::{CallContext, Deadline, ErrorCode, TokenName};

use super::stage::{LONG, Stage, code, on_paused_clock, text, wait_until};
use crate::fake::{Behaviour, Fleet, Seen};
use crate::supervisor::Placement;

#[test]
fn a_call_reaches_its_server_and_comes_back() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let answer = stage
            .call_public("mcp__s__echo", json!({ "a": 1 }), LONG)
            .await
            .unwrap();
        assert_eq!(text(&answer), r#"{"a":1}"#);
        assert_eq!(answer.kind, ResultKind::ToolCall);
        assert_eq!(
            (answer.server.as_str(), answer.tool.as_str()),
            ("s", "echo")
        );
        assert_eq!(answer.reader, ReaderTool::Missing);
        assert_eq!(server.calls("echo"), 1);
    });
}

#[test]
fn one_rpc_at_a_time_unless_configured() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let release = server.hold("echo");
        let calls = [
            stage.start_call("echo", LONG),
            stage.start_call("echo", LONG),
        ];
        wait_until("one runs, one waits", || {
            stage.supervisor.server_handle("s").load() == (1, 1)
        })
        .await;
        assert_eq!(server.calls("echo"), 1);
        release.notify_one();
        wait_until("the second runs", || server.calls("echo") == 2).await;
        release.notify_one();
        for call in calls {
            assert!(call.await.unwrap().is_ok());
        }
    });
}

#[test]
fn rpc_concurrency_is_a_number() {
    on_paused_clock(async {
        let config = json!({ "command": "fake", "rpc_concurrency": 3 });
        let (stage, server) = Stage::one_with(&config).await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(10)));
        let since = talaria_types::runtime::now();
        let calls = join_all((0..3).map(|_| stage.call("echo"))).await;
        assert!(calls.iter().all(Result::is_ok));
        assert!(
            since.elapsed() < Duration::from_secs(11),
            "{:?}",
            since.elapsed()
        );
    });
}

#[test]
fn a_full_queue_answers_busy_at_once() {
    on_paused_clock(async {
        let config = json!({
            "talaria": { "limits": { "pending_per_server": 2 } },
            "mcp_servers": { "s": { "command": "fake" } },
        });
        let fleet = Fleet::default();
        let stage = Stage::start_with(&fleet, &config, Placement::Current);
        stage.settle().await;
        let release = fleet.server("s").hold("echo");
        let accepted: Vec<_> = (0..3).map(|_| stage.start_call("echo", LONG)).collect();
        let server = stage.supervisor.server_handle("s");
        wait_until("one runs, two wait", || server.load() == (1, 2)).await;
        let since = talaria_types::runtime::now();
        let refused = stage.call("echo").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ServerBusy);
        assert!(refused.retryable() && refused.retry_hint().is_some());
        assert!(since.elapsed() < Duration::from_millis(10));
        for call in accepted {
            release.notify_one();
            assert!(call.await.unwrap().is_ok());
        }
    });
}

#[test]
fn a_full_mailbox_answers_busy_and_loses_nothing() {
    on_paused_clock(async {
        let config = json!({
            "talaria": { "limits": { "pending_per_server": 1 } },
            "mcp_servers": { "s": { "command": "fake" } },
        });
        let fleet = Fleet::default();
        let stage = Stage::start_with(&fleet, &config, Placement::Current);
        stage.settle().await;
        // All handed in before the actor reads the first of them.
        let results = join_all((0..200).map(|_| stage.call("echo"))).await;
        let answered = results.iter().filter(|result| result.is_ok()).count();
        let busy = results
            .iter()
            .filter(|result| {
                result
                    .as_ref()
                    .is_err_and(|failure| failure.code() == ErrorCode::ServerBusy)
            })
            .count();
        assert_eq!(answered + busy, 200);
        assert!(
            busy > 150 && answered >= 2,
            "{answered} answered, {busy} busy"
        );
        assert_eq!(fleet.server("s").calls("echo"), answered);
    });
}

#[test]
fn callers_that_left_make_room_in_a_full_queue() {
    on_paused_clock(async {
        let config = json!({
            "talaria": { "limits": { "pending_per_server": 2 } },
            "mcp_servers": { "s": { "command": "fake" } },
        });
        let fleet = Fleet::default();
        let stage = Stage::start_with(&fleet, &config, Placement::Current);
        stage.settle().await;
        let release = fleet.server("s").hold("echo");
        let _running = stage.start_call("echo", LONG);
        let leaving = [
            stage.start_call("echo", LONG),
            stage.start_call("echo", LONG),
        ];
        let server = stage.supervisor.server_handle("s");
        wait_until("two wait", || server.load() == (1, 2)).await;
        for caller in leaving {
            caller.abort();
        }
        wait_until("they are gone", || server.load() == (1, 0)).await;
        let next = stage.start_call("echo", LONG);
        wait_until("it waits", || server.load() == (1, 1)).await;
        release.notify_one();
        wait_until("it runs", || fleet.server("s").calls("echo") == 2).await;
        release.notify_one();
        assert!(next.await.unwrap().is_ok());
    });
}

#[test]
fn drops_expired_call_before_writing() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.offer(&["echo", "slow"]);
        let release = server.hold("echo");
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let since = talaria_types::runtime::now();
        let expired = stage
            .call_within("echo", Duration::from_secs(2))
            .await
            .unwrap_err();
        assert_eq!(expired.code(), ErrorCode::Timeout);
        assert!(!expired.is_outcome_uncertain(), "it was never sent");
        assert!(
            since.elapsed() < Duration::from_millis(2_100),
            "{:?}",
            since.elapsed()
        );
        release.notify_one();
        assert!(running.await.unwrap().is_ok());
        assert_eq!(server.calls("echo"), 1);
    });
}

#[test]
fn l12_a_timeout_names_both_limits_and_the_next_call_works() {
    on_paused_clock(async {
        let (stage, server) = Stage::one_with(&json!({ "command": "fake", "timeout": 2 })).await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(10)));
        let since = talaria_types::runtime::now();
        let failure = stage.call("echo").await.unwrap_err();
        let took = since.elapsed().as_secs_f64();
        assert!((1.9..2.2).contains(&took), "{took}");
        assert_eq!(failure.code(), ErrorCode::Timeout);
        assert!(failure.detail().contains("after 2.0 s"), "{failure}");
        assert!(failure.detail().contains("timeout is 2 s"), "{failure}");
        assert!(failure.is_outcome_uncertain());
        assert_eq!(server.count(&Seen::Cancelled("echo".to_owned())), 1);
        server.behave("echo", Behaviour::Echo);
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(
            server.count(&Seen::Connected),
            1,
            "the server is not condemned"
        );
    });
}

#[test]
fn the_callers_deadline_is_a_hard_limit() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(100)));
        let since = talaria_types::runtime::now();
        let failure = stage
            .call_within("echo", Duration::from_secs(3))
            .await
            .unwrap_err();
        assert_eq!(failure.code(), ErrorCode::Timeout);
        assert!(failure.is_outcome_uncertain());
        assert!(
            since.elapsed() < Duration::from_millis(3_100),
            "{:?}",
            since.elapsed()
        );
    });
}

#[test]
fn max_call_duration_bounds_every_call() {
    on_paused_clock(async {
        let config = json!({
            "talaria": { "calls": { "max_call_duration": "7s" } },
            "mcp_servers": { "s": { "command": "fake" } },
        });
        let fleet = Fleet::default();
        let stage = Stage::start_with(&fleet, &config, Placement::Current);
        stage.settle().await;
        fleet
            .server("s")
            .behave("echo", Behaviour::Take(Duration::from_secs(100)));
        let since = talaria_types::runtime::now();
        assert_eq!(code(stage.call("echo").await), ErrorCode::Timeout);
        assert!(
            since.elapsed() < Duration::from_millis(7_100),
            "{:?}",
            since.elapsed()
        );
    });
}

#[test]
fn a_session_that_heeds_no_deadline_frees_the_lock_all_the_same() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Deaf);
        let since = talaria_types::runtime::now();
        let failure = stage
            .call_within("echo", Duration::from_secs(3))
            .await
            .unwrap_err();
        assert_eq!(failure.code(), ErrorCode::Timeout);
        assert!(
            since.elapsed() <= Duration::from_secs(6),
            "{:?}",
            since.elapsed()
        );
        server.behave("echo", Behaviour::Echo);
        assert!(stage.call("echo").await.is_ok());
    });
}

#[test]
fn a_caller_that_leaves_cancels_its_call_on_the_wire() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(LONG));
        let call = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let since = talaria_types::runtime::now();
        call.abort();
        let cancelled = Seen::Cancelled("echo".to_owned());
        wait_until("the server hears of it", || server.count(&cancelled) == 1).await;
        assert!(
            since.elapsed() < Duration::from_millis(50),
            "{:?}",
            since.elapsed()
        );
        server.behave("echo", Behaviour::Echo);
        assert!(stage.call("echo").await.is_ok(), "the lock is free");
    });
}

#[test]
fn a_caller_that_leaves_the_queue_is_never_sent() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let release = server.hold("echo");
        let running = stage.start_call("echo", LONG);
        let waiting = stage.start_call("echo", LONG);
        let handle = stage.supervisor.server_handle("s");
        wait_until("one waits", || handle.load() == (1, 1)).await;
        waiting.abort();
        wait_until("it left", || handle.load() == (1, 0)).await;
        release.notify_one();
        assert!(running.await.unwrap().is_ok());
        assert_eq!(server.calls("echo"), 1);
        assert_eq!(server.count(&Seen::Cancelled("echo".to_owned())), 0);
    });
}

#[test]
fn a_cancelled_context_answers_at_once() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(LONG));
        let ctx = CallContext::new(Deadline::after(LONG));
        let cancel = ctx.cancel.clone();
        let supervisor = stage.supervisor.clone();
        let call = talaria_types::runtime::spawn_local("test call", async move {
            supervisor
                .call_tool(ctx, "mcp__s__echo", serde_json::Map::new())
                .await
        });
        wait_until("it runs", || server.calls("echo") == 1).await;
        cancel.cancel();
        let failure = call.await.unwrap().unwrap_err();
        assert_eq!(failure.code(), ErrorCode::Cancelled);
        assert!(failure.is_outcome_uncertain());
        let cancelled = Seen::Cancelled("echo".to_owned());
        wait_until("the server hears of it", || server.count(&cancelled) == 1).await;
    });
}

#[test]
fn status_is_answered_during_a_call() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(LONG));
        let _call = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let since = talaria_types::runtime::now();
        let status = stage.status();
        assert_eq!((status.state.as_str(), status.in_flight), ("ready", 1));
        assert_eq!(status.transport, "stdio");
        assert_eq!(status.server_info.as_deref(), Some("fake 1"));
        assert_eq!(status.protocol_version.as_deref(), Some("2025-11-25"));
        assert_eq!(status.pid, Some(4711));
        assert_eq!(since.elapsed(), Duration::ZERO);
    });
}

#[test]
fn a_wedged_server_costs_nobody_else() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let servers = json!({ "s": { "command": "fake" }, "wedged": { "command": "fake" } });
        let stage = Stage::start(&fleet, &servers);
        stage.settle().await;
        fleet.server("wedged").behave("echo", Behaviour::Deaf);
        let ten_seconds = Duration::from_secs(10);
        let wedged = join_all(
            (0..50).map(|_| stage.call_public("mcp__wedged__echo", json!({}), ten_seconds)),
        );
        let free = async {
            let since = talaria_types::runtime::now();
            let calls = join_all((0..50).map(|_| stage.call("echo"))).await;
            assert!(calls.iter().all(Result::is_ok));
            since.elapsed()
        };
        let (wedged, took) = tokio::join!(wedged, free);
        assert!(took < Duration::from_millis(100), "{took:?}");
        assert!(wedged.iter().all(Result::is_err));
    });
}

#[test]
fn a_token_has_a_limit_of_its_own() {
    on_paused_clock(async {
        let config = json!({
            "talaria": { "limits": { "pending_per_token": 1 } },
            "mcp_servers": { "s": { "command": "fake", "rpc_concurrency": 4 } },
        });
        let fleet = Fleet::default();
        let stage = Stage::start_with(&fleet, &config, Placement::Current);
        stage.settle().await;
        let server = fleet.server("s");
        let release = server.hold("echo");
        let call = |token: &str| {
            let mut ctx = CallContext::new(Deadline::after(LONG));
            ctx.token = Some(TokenName::from(token));
            let supervisor = stage.supervisor.clone();
            talaria_types::runtime::spawn_local("test call", async move {
                supervisor
                    .call_tool(ctx, "mcp__s__echo", serde_json::Map::new())
                    .await
            })
        };
        let first = call("ci");
        wait_until("it runs", || server.calls("echo") == 1).await;
        assert_eq!(code(call("ci").await.unwrap()), ErrorCode::Busy);
        let other = call("other");
        wait_until("another token runs", || server.calls("echo") == 2).await;
        release.notify_waiters();
        assert!(first.await.unwrap().is_ok() && other.await.unwrap().is_ok());
        server.behave("echo", Behaviour::Echo);
        assert!(call("ci").await.unwrap().is_ok());
    });
}

#[test]
fn unknown_names_are_told_apart() {
    on_paused_clock(async {
        let (stage, _) = Stage::one().await;
        let unknown = stage.call("nothing").await.unwrap_err();
        assert_eq!(unknown.code(), ErrorCode::UnknownTool);
        let since = talaria_types::runtime::now();
        assert_eq!(
            code(stage.call_public("mcp__other__x", json!({}), LONG).await),
            ErrorCode::UnknownTool
        );
        assert_eq!(since.elapsed(), Duration::ZERO, "nothing to wait for");
        let resolve = |server, tool| stage.supervisor.resolve(server, tool).map(|tool| tool.name);
        assert_eq!(resolve("s", "echo").unwrap(), "mcp__s__echo");
        assert_eq!(
            resolve("s", "nothing").unwrap_err().code(),
            ErrorCode::UnknownTool
        );
        assert_eq!(
            resolve("other", "echo").unwrap_err().code(),
            ErrorCode::UnknownServer
        );
    });
}

#[test]
fn an_untrusted_server_gets_writing_calls_only_when_they_are_approved() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let server = fleet.server("s");
        server.offer_pages(vec![json!([
            { "name": "echo", "annotations": { "readOnlyHint": "true" } },
            { "name": "look", "annotations": { "readOnlyHint": true } },
        ])]);
        let stage = Stage::start(
            &fleet,
            &json!({ "s": { "command": "fake", "trust": "untrusted" } }),
        );
        stage.settle().await;
        let refused = stage.call("echo").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Forbidden);
        assert!(refused.detail().contains("`approve: true`"), "{refused}");
        assert!(!refused.retryable() && !refused.is_outcome_uncertain());
        assert_eq!(server.calls("echo"), 0);
        assert!(stage.call("look").await.is_ok());
        let mut approved = CallContext::new(Deadline::after(LONG));
        approved.approved = true;
        let answer = stage
            .supervisor
            .call_tool(approved, "mcp__s__echo", serde_json::Map::new());
        assert!(answer.await.is_ok());
        assert_eq!(server.calls("echo"), 1);
    });
}
