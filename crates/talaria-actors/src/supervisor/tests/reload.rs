//! Reading the configuration again: what changes, what stays, and who notices.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_types::{Deadline, ErrorCode};

use super::stage::{LONG, Stage, code, config_of, on_paused_clock, wait_until};
use crate::fake::{Behaviour, Connect, Fleet, Seen};

/// A stdio server whose entry differs from others by `timeout`.
fn entry(timeout: u64) -> Value {
    json!({ "command": "fake", "timeout": timeout })
}

fn names(stage: &Stage) -> Vec<String> {
    let tools = stage.supervisor.tools();
    tools.into_iter().map(|tool| tool.name).collect()
}

#[test]
fn only_what_changed_starts_again() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let mut servers: serde_json::Map<String, Value> =
            (0..300).map(|n| (format!("s{n}"), entry(100))).collect();
        let stage = Stage::start(&fleet, &Value::Object(servers.clone()));
        stage.settle().await;
        servers.insert("s7".to_owned(), entry(101));
        let report = stage.reload(&Value::Object(servers)).await;
        assert_eq!(
            (report.changed.as_slice(), report.unchanged),
            (["s7".to_owned()].as_slice(), 299)
        );
        assert!(report.added.is_empty() && report.removed.is_empty() && report.broken.is_empty());
        wait_until("s7 is back", || {
            stage.supervisor.server("s7").unwrap().state == "ready"
                && fleet.server("s7").count(&Seen::Connected) == 2
        })
        .await;
        for n in (0..300).filter(|n| *n != 7) {
            let server = fleet.server(&format!("s{n}"));
            let seen = (server.count(&Seen::Connected), server.count(&Seen::Closed));
            assert_eq!(seen, (1, 0), "s{n}");
        }
        assert_eq!(fleet.server("s7").most_sessions(), 1);
        assert_eq!(names(&stage).len(), 300);
    });
}

#[test]
fn a_reload_is_not_noticed_by_callers() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(3)));
        let running = stage.start_call("echo", LONG);
        let waiting = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        stage.reload(&json!({ "s": entry(100) })).await;
        let later = stage.start_call("echo", LONG);
        assert!(running.await.unwrap().is_ok());
        assert!(waiting.await.unwrap().is_ok());
        assert!(later.await.unwrap().is_ok(), "it waited for the new one");
        assert_eq!((server.calls("echo"), server.most_sessions()), (3, 1));
        assert_eq!(server.count(&Seen::Connected), 2);
    });
}

#[test]
fn a_call_waits_for_the_old_process_and_the_new_session_as_long_as_it_may() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(25)));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        server.behave("echo", Behaviour::Echo);
        server.next_connects([Connect::Take(Duration::from_secs(20))]);
        stage.reload(&json!({ "s": entry(100) })).await;
        let hasty = stage.start_call("echo", Duration::from_secs(40));
        let later = stage.start_call("echo", LONG);
        assert!(running.await.unwrap().is_ok());
        assert_eq!(code(hasty.await.unwrap()), ErrorCode::ServerUnavailable);
        assert!(later.await.unwrap().is_ok(), "its own limit is another");
        assert_eq!((server.calls("echo"), server.most_sessions()), (2, 1));
    });
}

#[test]
fn a_storm_of_reloads_refuses_no_call() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_millis(50)));
        let mut calls = Vec::new();
        for round in 0..60 {
            // Now and then the next one comes before its predecessor has a session.
            server.next_connects([Connect::Take(Duration::from_millis(round * 173 % 900))]);
            stage.reload(&json!({ "s": entry(100 + round % 2) })).await;
            for pause in [0, 7, round * 31 % 300] {
                calls.push(stage.start_call("echo", LONG));
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
        let made = calls.len();
        for call in calls {
            let answer = call.await.unwrap();
            assert!(answer.is_ok(), "{answer:?}");
        }
        assert_eq!(server.calls("echo"), made, "each ran once");
        assert_eq!(server.most_sessions(), 1);
    });
}

#[test]
fn a_call_to_what_is_not_listed_yet_goes_with_it_through_a_reload() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let slow = Connect::Take(Duration::from_secs(4));
        server.next_connects([slow, slow]);
        stage.reload(&json!({})).await;
        stage.reload(&json!({ "s": entry(100) })).await;
        wait_until("its old session is closed", || server.open_sessions() == 0).await;
        let by_name = stage.start_call("echo", LONG);
        let supervisor = stage.supervisor.clone();
        let by_server = talaria_types::runtime::spawn_local("resolve", async move {
            let deadline = Deadline::after(LONG);
            supervisor.resolve_when_listed("s", "echo", deadline).await
        });
        tokio::time::sleep(Duration::from_secs(2)).await;
        stage.reload(&json!({ "s": entry(101) })).await;
        let called = by_name.await.unwrap();
        assert!(called.is_ok(), "{called:?}");
        assert_eq!(by_server.await.unwrap().unwrap().name, "mcp__s__echo");
    });
}

#[test]
fn who_waits_for_a_server_that_is_removed_is_told_at_once() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(20)));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        stage.reload(&json!({ "s": entry(100) })).await;
        let waiting = stage.start_call("echo", LONG);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let since = talaria_types::runtime::now();
        stage.reload(&json!({})).await;
        assert_eq!(code(waiting.await.unwrap()), ErrorCode::UnknownServer);
        assert!(since.elapsed() < Duration::from_secs(1));
        assert!(running.await.unwrap().is_ok());
    });
}

#[test]
fn what_does_not_end_in_time_is_cut() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(LONG));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let since = talaria_types::runtime::now();
        stage.reload(&json!({ "s": entry(100) })).await;
        let failure = running.await.unwrap().unwrap_err();
        assert!(failure.is_outcome_uncertain());
        let waited = since.elapsed().as_secs();
        assert!((30..33).contains(&waited), "drain_timeout: {waited}");
        server.behave("echo", Behaviour::Echo);
        stage.reaches("ready").await;
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(server.most_sessions(), 1);
    });
}

#[test]
fn a_server_over_http_does_not_wait_for_the_calls_of_the_old_session() {
    on_paused_clock(async {
        let (stage, server) = Stage::one_with(&json!({ "url": "http://127.0.0.1:1/mcp" })).await;
        let release = server.hold("echo");
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        server.behave("echo", Behaviour::Echo);
        stage
            .reload(&json!({ "s": { "url": "http://127.0.0.1:1/mcp", "timeout": 100 } }))
            .await;
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(stage.status().state, "ready");
        release.notify_one();
        assert!(running.await.unwrap().is_ok());
        wait_until("the old session is over", || {
            server.count(&Seen::Closed) == 1
        })
        .await;
        assert_eq!(stage.status().state, "ready");
        assert!(stage.call("echo").await.is_ok());
    });
}

#[test]
fn k09_a_removed_server_finishes_its_calls_and_is_gone() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(2)));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let report = stage.reload(&json!({})).await;
        assert_eq!(report.removed, ["s"]);
        assert!(names(&stage).is_empty());
        assert_eq!(code(stage.call("echo").await), ErrorCode::UnknownTool);
        let gone = stage.supervisor.server("s").unwrap_err();
        assert_eq!(gone.code(), ErrorCode::UnknownServer);
        assert!(running.await.unwrap().is_ok());
        wait_until("its session is closed", || server.open_sessions() == 0).await;
    });
}

#[test]
fn a_server_that_comes_back_at_once_waits_for_its_old_process() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(2)));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        stage.reload(&json!({})).await;
        stage.reload(&json!({ "s": entry(100) })).await;
        stage.reload(&json!({ "s": entry(101) })).await;
        assert!(running.await.unwrap().is_ok());
        stage.reaches("ready").await;
        assert!(stage.call("echo").await.is_ok());
        let connected = server.count(&Seen::Connected);
        assert_eq!((connected, server.most_sessions()), (2, 1));
    });
}

#[test]
fn a_new_server_is_started_and_renames_no_tool() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let stage = Stage::start(&fleet, &json!({ "a.b": entry(100) }));
        stage.settle().await;
        assert_eq!(names(&stage), ["mcp__a_b__echo"]);
        let report = stage
            .reload(&json!({ "a.b": entry(100), "a_b": entry(100) }))
            .await;
        assert_eq!(
            (report.added, report.unchanged),
            (vec!["a_b".to_owned()], 1)
        );
        stage.settle().await;
        let before = fleet.server("a.b").count(&Seen::Listed);
        fleet.server("a.b").say_tools_changed();
        wait_until("it is listed again", || {
            fleet.server("a.b").count(&Seen::Listed) > before
        })
        .await;
        let name = |server: &str| stage.supervisor.resolve(server, "echo").unwrap().name;
        assert_eq!(name("a.b"), "mcp__a_b__echo");
        assert!(
            name("a_b").starts_with("mcp__a_b__echo_"),
            "{}",
            name("a_b")
        );
    });
}

#[test]
fn l38_of_two_reloads_at_once_one_does_the_work() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let wanted = json!({ "s": entry(100) });
        let (one, other) = tokio::join!(stage.reload(&wanted), stage.reload(&wanted));
        assert_eq!([one.is_quiet(), other.is_quiet()], [false, true]);
        assert_eq!(other.unchanged, 1);
        stage.reaches("ready").await;
        assert!(stage.call("echo").await.is_ok());
        let connected = server.count(&Seen::Connected);
        assert_eq!((connected, server.most_sessions()), (2, 1));
    });
}

#[test]
fn an_entry_that_breaks_is_told_and_its_server_goes_on() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let wanted = json!({ "s": { "args": ["no command"] }, "t": { "args": ["none either"] } });
        let report = stage.reload(&wanted).await;
        let told: Vec<_> = report
            .broken
            .iter()
            .map(|broken| (broken.server.as_str(), broken.kept))
            .collect();
        assert_eq!(told, [("s", true), ("t", false)]);
        assert!(
            report
                .broken
                .iter()
                .all(|broken| broken.problem.contains("mcp_servers."))
        );
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(server.count(&Seen::Connected), 1);
        assert_eq!(stage.supervisor.server("t").unwrap().state, "failed");
        let report = stage
            .reload(&json!({ "s": { "command": "fake" }, "t": entry(100) }))
            .await;
        assert_eq!(
            (report.changed, report.unchanged),
            (vec!["t".to_owned()], 1)
        );
        stage.settle().await;
        assert_eq!(stage.supervisor.server("t").unwrap().state, "ready");
        assert_eq!(server.count(&Seen::Connected), 1);
    });
}

#[test]
fn what_an_operator_switched_off_stays_off_until_its_entry_changes() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let off = stage.supervisor.disable("s", Deadline::after(LONG)).await;
        assert_eq!(off.unwrap().state, "disabled");
        let report = stage
            .reload(&json!({ "s": { "command": "fake" }, "t": entry(100) }))
            .await;
        assert_eq!((report.added.len(), report.unchanged), (1, 1));
        stage.settle().await;
        assert_eq!(stage.status().state, "disabled");
        stage
            .reload(&json!({ "s": entry(100), "t": entry(100) }))
            .await;
        stage.settle().await;
        assert_eq!(stage.status().state, "ready");
        assert_eq!(server.most_sessions(), 1);
    });
}

#[test]
fn a_server_that_the_file_disables_loses_its_tools() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        stage
            .reload(&json!({ "s": { "command": "fake", "enabled": false } }))
            .await;
        assert_eq!(
            (stage.status().state.as_str(), names(&stage)),
            ("disabled", vec![])
        );
        assert_eq!(code(stage.call("echo").await), ErrorCode::ServerDisabled);
        wait_until("its session is closed", || server.open_sessions() == 0).await;
        stage.reload(&json!({ "s": { "command": "fake" } })).await;
        stage.settle().await;
        assert!(stage.call("echo").await.is_ok());
    });
}

#[test]
fn tools_stay_listed_while_their_server_is_replaced_unless_a_filter_hides_them() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let server = fleet.server("s");
        server.offer(&["get", "put"]);
        server.with_resources_and_prompts();
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        stage.settle().await;
        assert_eq!(names(&stage).len(), 6);
        let filter = json!({ "include": ["get"], "prompts": false });
        stage
            .reload(&json!({ "s": { "command": "fake", "tools": filter } }))
            .await;
        let kept = ["get", "list_resources", "read_resource"].map(|name| format!("mcp__s__{name}"));
        assert_eq!(names(&stage), kept);
        assert_eq!(stage.status().tools, 3);
        stage.reaches("ready").await;
        assert_eq!(names(&stage), kept);
    });
}

#[test]
fn stopping_waits_for_servers_that_a_reload_sent_away() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.behave("echo", Behaviour::Take(Duration::from_secs(3)));
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        stage.reload(&json!({ "s": entry(100) })).await;
        stage.supervisor.drain(Duration::from_secs(10)).await;
        assert!(running.await.unwrap().is_ok());
        assert_eq!(
            (server.open_sessions(), server.count(&Seen::Connected)),
            (0, 1)
        );
        let late = stage
            .supervisor
            .reload(Arc::new(config_of(&json!({}))))
            .await;
        assert_eq!(late.unwrap_err().code(), ErrorCode::ShuttingDown);
    });
}

#[test]
fn keys_that_count_after_a_restart_are_named() {
    on_paused_clock(async {
        let (stage, _server) = Stage::one().await;
        let wanted = json!({
            "mcp_servers": { "s": { "command": "fake" } },
            "talaria": { "limits": { "pending_per_server": 7 } },
        });
        let report = stage.reload_whole(&wanted).await;
        assert_eq!(
            report.restart_required,
            ["talaria.limits.pending_per_server"]
        );
        assert!(report.is_quiet());
    });
}
