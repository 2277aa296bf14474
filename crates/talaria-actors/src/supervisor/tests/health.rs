//! Breakers, signs of life, lists read again, shares: what keeps one bad thing from spreading.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, SessionKey, TokenName};

use super::stage::{LONG, Stage, code, object, on_paused_clock, wait_until};
use crate::fake::{Behaviour, FakeServer, Fleet, Pings, Seen};
use crate::supervisor::{Placement, ToolAnswer};

async fn over_http() -> (Stage, FakeServer) {
    Stage::one_with(&json!({ "url": "http://127.0.0.1:1/mcp", "timeout": 2 })).await
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Calls `echo` of server `s` as somebody.
async fn call_as(
    stage: &Stage,
    token: Option<&str>,
    session: Option<&str>,
) -> Result<ToolAnswer, Failure> {
    let ctx = CallContext {
        token: token.map(TokenName::from),
        session: session.map(SessionKey::from),
        ..CallContext::new(Deadline::after(LONG))
    };
    stage
        .supervisor
        .call_tool(ctx, "mcp__s__echo", object(json!({})))
        .await
}

fn tool_error() -> Behaviour {
    Behaviour::Say(json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }))
}

#[test]
fn l22_three_lost_calls_open_the_breaker_and_a_good_one_closes_it() {
    on_paused_clock(async {
        let (stage, server) = over_http().await;
        server.behave("echo", Behaviour::Fail(ErrorCode::ConnectionLost));
        for _ in 0..3 {
            assert_eq!(code(stage.call("echo").await), ErrorCode::ConnectionLost);
        }
        let since = talaria_types::runtime::now();
        let refused = stage.call("echo").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::CircuitOpen);
        assert!(refused.detail().contains("unreachable"), "{refused}");
        assert!(refused.retryable() && !refused.is_outcome_uncertain());
        let wait = refused.retry_hint().unwrap().as_secs_f64();
        assert!((59.0..=60.0).contains(&wait), "{wait}");
        assert!(since.elapsed() < Duration::from_millis(10));
        assert_eq!(server.calls("echo"), 3, "the fourth was not sent");
        stage.reaches("degraded").await;
        server.behave("echo", Behaviour::Echo);
        pass(Duration::from_secs(60)).await;
        assert!(stage.call("echo").await.is_ok());
        stage.reaches("ready").await;
        assert_eq!(server.count(&Seen::Connected), 1);
    });
}

#[test]
fn three_silent_calls_open_the_breaker_and_hasty_callers_do_not() {
    on_paused_clock(async {
        let (stage, server) = over_http().await;
        server.behave("echo", Behaviour::Take(LONG));
        for _ in 0..5 {
            let hasty = stage.call_within("echo", Duration::from_secs(1)).await;
            assert_eq!(code(hasty), ErrorCode::Timeout);
        }
        assert_eq!(stage.status().state, "ready");
        for _ in 0..3 {
            assert_eq!(code(stage.call("echo").await), ErrorCode::Timeout);
        }
        assert_eq!(code(stage.call("echo").await), ErrorCode::CircuitOpen);
    });
}

#[test]
fn l23_a_trial_on_a_dead_session_ends_cleanly_and_the_server_comes_back() {
    on_paused_clock(async {
        let (stage, server) = Stage::one_with(&json!({ "command": "fake", "timeout": 2 })).await;
        server.behave("echo", Behaviour::Take(LONG));
        for _ in 0..3 {
            assert_eq!(code(stage.call("echo").await), ErrorCode::Timeout);
        }
        pass(Duration::from_secs(60)).await;
        server.behave("echo", Behaviour::Die);
        let tried = stage.call("echo").await.unwrap_err();
        assert_eq!(tried.code(), ErrorCode::ConnectionLost);
        server.behave("echo", Behaviour::Echo);
        let took = stage.reaches("ready").await;
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(stage.call("echo").await.is_ok(), "not stuck");
    });
}

#[test]
fn a_sessions_own_errors_close_a_tool_to_that_session_alone() {
    on_paused_clock(async {
        let (stage, server) = over_http().await;
        server.behave("echo", tool_error());
        for _ in 0..3 {
            assert!(
                call_as(&stage, None, Some("mine")).await.is_ok(),
                "an answer"
            );
        }
        let refused = call_as(&stage, None, Some("mine")).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::CircuitOpen);
        assert!(refused.detail().contains("is reachable"), "{refused}");
        assert!(refused.detail().contains("keeps rejecting"), "{refused}");
        for (token, session) in [
            (None, Some("other")),
            (Some("t"), Some("mine")),
            (None, None),
        ] {
            for _ in 0..2 {
                assert!(call_as(&stage, token, session).await.is_ok(), "{session:?}");
            }
        }
        for _ in 0..4 {
            assert!(
                stage.call("echo").await.is_ok(),
                "without a session nobody counts"
            );
        }
        assert_eq!(stage.status().state, "ready");
        pass(Duration::from_secs(60)).await;
        server.behave("echo", Behaviour::Echo);
        assert!(call_as(&stage, None, Some("mine")).await.is_ok());
    });
}

#[test]
fn l08_refused_credentials_get_one_new_session_and_then_rest() {
    on_paused_clock(async {
        let (stage, server) = over_http().await;
        assert!(stage.call("echo").await.is_ok());
        server.behave("echo", Behaviour::Fail(ErrorCode::ServerUnauthorized));
        let refused = stage.call("echo").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ServerUnauthorized);
        assert_eq!(server.count(&Seen::Connected), 2, "one grace");
        assert_eq!(server.calls("echo"), 3, "and one repetition");
        stage.reaches("parked").await;
        let snapshot = stage.supervisor.server_handle("s").snapshot();
        assert!(snapshot.needs_reauth && snapshot.stale);
        assert!(snapshot.down_since.is_some());
        let wait = snapshot.time_to_next_attempt().unwrap().as_secs();
        assert!((240..=360).contains(&wait), "{wait}");
        let told = stage.call("echo").await.unwrap_err();
        assert_eq!(told.code(), ErrorCode::ServerUnauthorized);
        assert_eq!(server.calls("echo"), 3, "not sent");
        server.behave("echo", Behaviour::Echo);
        let deadline = Deadline::after(LONG);
        let status = stage.supervisor.reconnect("s", deadline).await.unwrap();
        assert_eq!(status.state, "ready");
        let snapshot = stage.supervisor.server_handle("s").snapshot();
        assert!(!snapshot.needs_reauth && !snapshot.stale);
    });
}

#[test]
fn l10_a_server_that_swallows_pings_is_asked_for_its_list_from_then_on() {
    on_paused_clock(async {
        let (stage, server) = over_http().await;
        server.treat_pings(Pings::Swallow);
        pass(Duration::from_secs(240)).await;
        assert_eq!(server.count(&Seen::Pinged), 1);
        let listed = server.count(&Seen::Listed);
        assert_eq!(stage.status().state, "ready");
        pass(Duration::from_secs(400)).await;
        assert_eq!(server.count(&Seen::Pinged), 1, "switched for good");
        assert!(server.count(&Seen::Listed) > listed);
        assert_eq!(server.count(&Seen::Connected), 1);
    });
}

#[test]
fn a_server_without_ping_keeps_its_session() {
    on_paused_clock(async {
        let (stage, server) = over_http().await;
        server.treat_pings(Pings::Refuse);
        pass(Duration::from_secs(1_000)).await;
        assert_eq!(server.count(&Seen::Pinged), 1);
        assert_eq!(server.count(&Seen::Connected), 1);
        assert_eq!(stage.status().state, "ready");
    });
}

#[test]
fn a_session_that_gives_no_sign_of_life_is_replaced() {
    on_paused_clock(async {
        let (stage, server) = over_http().await;
        server.treat_pings(Pings::Lose);
        wait_until("another session", || server.count(&Seen::Connected) == 2).await;
        assert_eq!(server.count(&Seen::Pinged), 2, "a second chance came first");
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(server.most_sessions(), 1);
    });
}

#[test]
fn stdio_servers_are_asked_only_where_the_interval_is_set() {
    on_paused_clock(async {
        let (_stage, server) = Stage::one().await;
        pass(Duration::from_secs(1_000)).await;
        assert_eq!(server.count(&Seen::Pinged), 0);
        let config = json!({ "command": "fake", "keepalive_interval": 10 });
        let (_stage, server) = Stage::one_with(&config).await;
        pass(Duration::from_secs(25)).await;
        assert_eq!(server.count(&Seen::Pinged), 2);
    });
}

#[test]
fn a_storm_of_changes_makes_few_lists() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let before = server.count(&Seen::Listed);
        for _ in 0..2_000 {
            server.say_tools_changed();
            pass(Duration::from_millis(5)).await;
        }
        let lists = server.count(&Seen::Listed) - before;
        assert!((8..=12).contains(&lists), "{lists} lists in ten seconds");
        assert!(stage.call("echo").await.is_ok());
    });
}

#[test]
fn fr_159_a_list_that_fails_is_read_again_later() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.fail_lists(Some(ErrorCode::ServerError));
        server.offer(&["other"]);
        server.say_tools_changed();
        stage.reaches("degraded").await;
        let snapshot = stage.supervisor.server_handle("s").snapshot();
        assert!(snapshot.stale && snapshot.down_since.is_none());
        assert!(stage.call("echo").await.is_ok(), "the old tools stay");
        server.fail_lists(None);
        let took = stage.reaches("ready").await;
        assert!(took < Duration::from_secs(7), "{took:?}");
        assert_eq!(stage.supervisor.tools().len(), 1);
        assert!(stage.call("other").await.is_ok());
        assert!(!stage.supervisor.server_handle("s").snapshot().stale);
    });
}

#[test]
fn fr_159_a_list_that_is_not_answered_costs_the_calls_behind_it_a_while() {
    on_paused_clock(async {
        let config = json!({ "command": "fake", "connect_timeout": 10 });
        let (stage, server) = Stage::one_with(&config).await;
        server.swallow_lists(true);
        let before = server.count(&Seen::Listed);
        server.say_tools_changed();
        wait_until("it is asked", || server.count(&Seen::Listed) > before).await;
        assert!(
            stage.call("echo").await.is_ok(),
            "after the list's own timeout"
        );
        assert_eq!(stage.status().state, "degraded");
        assert_eq!(server.count(&Seen::Connected), 1, "the session stays");
        server.swallow_lists(false);
        stage.reaches("ready").await;
    });
}

fn with_tokens(tokens: &[&str], pending: usize) -> Value {
    let tokens: Vec<_> = tokens
        .iter()
        .map(|name| json!({ "name": name, "token": format!("secret-of-{name}"), "scopes": ["call"], "servers": ["*"] }))
        .collect();
    json!({
        "talaria": {
            "auth": { "tokens": tokens },
            "limits": { "pending_per_server": pending },
        },
        "mcp_servers": { "s": { "command": "fake" } },
    })
}

#[test]
fn one_token_fills_half_of_a_servers_queue_at_most_and_the_others_take_turns() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let config = with_tokens(&["greedy", "modest"], 6);
        let stage = Stage::start_with(&fleet, &config, Placement::Current);
        stage.settle().await;
        let server = fleet.server("s");
        server.behave("echo", Behaviour::Take(Duration::from_secs(1)));
        let start = |token: &'static str| {
            let stage = stage.clone();
            talaria_types::runtime::spawn_local("test call", async move {
                let answer = call_as(&stage, Some(token), None).await;
                (answer.map(|_| talaria_types::runtime::now()), token)
            })
        };
        let mut greedy: Vec<_> = (0..4).map(|_| start("greedy")).collect();
        let handle = stage.supervisor.server_handle("s");
        wait_until("they wait", || handle.load() == (1, 3)).await;
        let (refused, _) = start("greedy").await.unwrap();
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Busy);
        assert!(refused.detail().contains("one token"), "{refused}");
        let modest = start("modest").await.unwrap().0.expect("has its place");
        let last = greedy.pop().unwrap().await.unwrap().0.expect("in the end");
        assert!(modest < last, "a later call of another token came first");
    });
}
