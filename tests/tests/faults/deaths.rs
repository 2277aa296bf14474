//! Servers that die: the call in flight has its answer in less than a second, the server is
//! back, and nothing is run twice.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use talaria_testkit::script::{ProcessAction, raw_unfinished, text_result};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, Script, Service, process, programs, wait_for};

use crate::stage::{AT_ONCE, call, pid, start, text_of_call, timed, with};

fn exits(code: u8) -> Action {
    ProcessAction::Exit { code }.into()
}

#[tokio::test]
async fn l16_a_server_killed_after_it_took_the_call_leaves_the_outcome_uncertain() {
    let script = Script::new("s").on_call("t", [Action::Hang]);
    let service = start(script).await;
    let first = pid(&service).await.as_u64().unwrap() as u32;
    let kill = async {
        service
            .wait_record("s", "the call", AT_ONCE, |record| record.calls("t"))
            .await
            .unwrap();
        process::signal(first, Signal::SIGKILL).unwrap();
        talaria_types::runtime::now()
    };
    let (answer, killed) = tokio::join!(call(&service), kill);
    let took = killed.elapsed();
    let problem = answer.problem().unwrap();
    assert_eq!(problem["code"], "connection_lost", "{problem}");
    assert_eq!(problem["outcome_uncertain"], true);
    assert_eq!(problem["retryable"], false);
    assert!(took < Duration::from_secs(1), "it took {took:?}");

    let status = service.wait_state("s", "ready", PATIENCE).await.unwrap();
    assert_ne!(status["pid"], first);
    let echoed = service
        .call("s", "echo", json!({}))
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(echoed["text"], "echoed");
    let calls = service
        .records("s")
        .unwrap()
        .iter()
        .filter(|record| record.calls("t"))
        .count();
    assert_eq!(calls, 1, "the call ran twice");
    assert!(!process::is_alive(first));
}

#[tokio::test]
async fn a_killed_server_leaves_no_orphan() {
    let script = Script::new("s")
        .at_start([ProcessAction::Grandchild.into()])
        .on_call("t", [Action::Hang]);
    let service = start(script).await;
    let first = pid(&service).await.as_u64().unwrap() as u32;
    let grandchild = wait_for("the grandchild", AT_ONCE, || async {
        let below = process::descendants(first);
        below.first().map(|process| process.pid).ok_or(below)
    })
    .await
    .unwrap();
    process::signal(first, Signal::SIGKILL).unwrap();
    wait_for("the end of the grandchild", PATIENCE, || async {
        if process::is_alive(grandchild) {
            Err(process::view(grandchild))
        } else {
            Ok(())
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn fr_137_a_server_that_exits_is_named_with_its_status_and_started_again() {
    let script = Script::new("brittle")
        .on_call("t", [Action::Delay { ms: 200 }, exits(41)])
        .text_tool("t", "second life");
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("brittle", script)
        .unwrap();
    let service = service.start().await.unwrap();
    let (answer, took) = timed(service.call("brittle", "t", json!({}))).await;
    let problem = answer.unwrap().problem().unwrap();
    assert!(took < AT_ONCE, "it took {took:?}");
    assert_eq!(problem["code"], "connection_lost", "{problem}");
    assert_eq!(problem["server"], "brittle");
    let told = problem["model_text"].as_str().unwrap();
    assert!(told.contains("41"), "{told}");
    service
        .wait_state("brittle", "ready", PATIENCE)
        .await
        .unwrap();
    let again = service
        .call("brittle", "t", json!({}))
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(again["text"], "second life");
    let metrics = service.metrics().await.unwrap();
    assert!(metrics.sum("talaria_server_reconnects_total", &[("server", "brittle")]) >= 1.0);
}

#[tokio::test]
async fn half_a_line_and_an_exit_fail_the_call() {
    let script = Script::new("s").on_call(
        "t",
        [
            raw_unfinished("{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[{\"ty"),
            exits(0),
        ],
    );
    let service = start(script).await;
    let (answer, took) = timed(call(&service)).await;
    let problem = answer.problem().unwrap();
    let code = problem["code"].as_str().unwrap();
    assert!(
        ["connection_lost", "malformed_message"].contains(&code),
        "{problem}"
    );
    assert_eq!(problem["outcome_uncertain"], true);
    assert!(took < AT_ONCE, "it took {took:?}");
}

#[tokio::test]
async fn an_answer_without_a_line_end_before_the_exit_still_counts() {
    let answer = json!({"content": [{"type": "text", "text": "last words"}]});
    let script = Script::new("s").on_call(
        "t",
        [
            raw_unfinished(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{answer}}}"
            )),
            exits(0),
        ],
    );
    assert_eq!(text_of_call(&start(script).await).await, "last words");
}

#[tokio::test]
async fn a_server_that_closes_its_stdout_is_replaced() {
    let script = Script::new("s").on_call("t", [ProcessAction::CloseStdout.into(), Action::Hang]);
    let service = start(script).await;
    let first = pid(&service).await.as_u64().unwrap() as u32;
    let (answer, took) = timed(call(&service)).await;
    assert_eq!(answer.code().unwrap(), "connection_lost");
    assert!(took < AT_ONCE, "it took {took:?}");
    wait_for("the end of the old process", PATIENCE, || async {
        if process::is_alive(first) {
            Err(process::view(first))
        } else {
            Ok(())
        }
    })
    .await
    .unwrap();
    service.wait_state("s", "ready", PATIENCE).await.unwrap();
    let echoed = service.call("s", "echo", json!({})).await.unwrap();
    assert_eq!(echoed.status, 200);
}

#[tokio::test]
async fn a_program_that_does_not_exist_fails_its_server_only() {
    let service = with(Script::new("s").text_tool("t", "ok"))
        .server("ghost", json!({"command": "/nonexistent/program"}))
        .start_unsettled()
        .await
        .unwrap();
    service.wait_state("s", "ready", PATIENCE).await.unwrap();
    assert_eq!(text_of_call(&service).await, "ok");
    let status = wait_for("the ghost to be given up", PATIENCE, || async {
        let status = service.server("ghost").await.unwrap();
        if status["state"] == "connecting" {
            Err(status)
        } else {
            Ok(status)
        }
    })
    .await
    .unwrap();
    assert!(
        ["parked", "backoff"].contains(&status["state"].as_str().unwrap()),
        "{status}"
    );
    assert!(
        status["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty()),
        "{status}"
    );
}

#[tokio::test]
async fn a_server_that_dies_at_every_start_is_retried_ever_more_slowly() {
    let service = with(Script::new("s").text_tool("t", "ok"))
        .stdio("brief", Script::new("brief").at_start([exits(3)]))
        .unwrap()
        .start_unsettled()
        .await
        .unwrap();
    service.wait_state("s", "ready", PATIENCE).await.unwrap();
    let starts = || {
        let records = service.records("brief").unwrap();
        let mut times: Vec<u64> = records.iter().map(|record| record.at_ms).collect();
        // One attempt may start a server twice: once more without the question it may have
        // died of.
        times.dedup_by(|later, earlier| *later - *earlier < 200);
        times
    };
    let times = wait_for("three starts", PATIENCE, || async {
        let times = starts();
        if times.len() >= 3 {
            Ok(times)
        } else {
            Err(times)
        }
    })
    .await
    .unwrap();
    let (first, second) = (times[1] - times[0], times[2] - times[1]);
    assert!(first >= 500, "the first pause was {first} ms");
    assert!(second >= first, "pauses of {first} and {second} ms");
    assert_eq!(text_of_call(&service).await, "ok");
}

#[tokio::test]
async fn a_call_to_a_server_that_is_down_is_refused_soon_and_was_not_run() {
    let service = with(Script::new("s").text_tool("t", "ok"))
        .stdio(
            "brief",
            Script::new("brief")
                .at_start([exits(3)])
                .text_tool("t", "never"),
        )
        .unwrap()
        .start_unsettled()
        .await
        .unwrap();
    service.wait_state("s", "ready", PATIENCE).await.unwrap();
    let call = json!({"server": "brief", "name": "t", "arguments": {}, "timeout_ms": 20_000});
    let (answer, took) = timed(service.post("/v1/tools/call", &call)).await;
    let problem = answer.unwrap().problem().unwrap();
    let code = problem["code"].as_str().unwrap();
    let refused = ["server_unavailable", "connect_failed", "unknown_tool"];
    assert!(refused.contains(&code), "{problem}");
    assert_eq!(problem["outcome_uncertain"], false, "{problem}");
    assert!(took < Duration::from_secs(15), "it took {took:?}");
}

#[tokio::test]
async fn a_server_that_answers_again_and_again_after_a_death_keeps_its_tools() {
    let script = Script::new("s")
        .on_call("t", [exits(0)])
        .tool("t", text_result("back"));
    let service = start(script).await;
    assert_eq!(call(&service).await.code().unwrap(), "connection_lost");
    service.wait_state("s", "ready", PATIENCE).await.unwrap();
    let listed = service
        .get("/v1/tools?server=s")
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(text_of_call(&service).await, "back");
}

#[tokio::test]
async fn l02_failed_starts_are_spaced_and_the_fourth_connects() {
    let dies = || [exits(1)];
    let script = Script::new("late")
        .on_method("initialize", dies())
        .on_method("initialize", dies())
        .on_method("initialize", dies())
        .on_method(
            "initialize",
            [Action::Answer {
                result: json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "late", "version": "1.0.0"},
                }),
            }],
        )
        .text_tool("t", "at last");
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("late", script)
        .unwrap();
    let service = service.start().await.unwrap();
    let records = service.records("late").unwrap();
    let asked = records
        .iter()
        .filter(|record| record.method() == Some("initialize"));
    let times: Vec<u64> = asked.map(|record| record.at_ms).collect();
    let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 3, "{pauses:?}");
    for (pause, wanted) in pauses.iter().zip([1_000, 2_000, 4_000]) {
        // The pause itself varies by a fifth; starting a process adds to it.
        let range = wanted * 8 / 10..=wanted * 12 / 10 + 1_000;
        assert!(range.contains(pause), "{pauses:?}");
    }
    let delivery = service
        .call("late", "t", json!({}))
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(delivery["text"], "at last");
}

#[tokio::test]
async fn a_native_module_for_another_node_parks_the_server_at_once() {
    let mark = tempfile::tempdir().unwrap();
    let starts = mark.path().join("starts");
    let words = "Error: The module '/x/better_sqlite3.node' was compiled against a different \
                 Node.js version using NODE_MODULE_VERSION 108.";
    let run = format!(
        "echo x >> {}; echo \"{words}\" >&2; exit 1",
        starts.display()
    );
    let service = Service::builder(programs!())
        .unwrap()
        .server("s", json!({"command": "sh", "args": ["-c", run]}))
        .start_unsettled()
        .await
        .unwrap();
    let status = service.wait_state("s", "parked", PATIENCE).await.unwrap();
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.contains("npm rebuild"), "{reason}");
    assert!(reason.contains("NODE_MODULE_VERSION 108"), "{reason}");
    let started = std::fs::read_to_string(&starts).unwrap();
    assert_eq!(started.lines().count(), 1, "it was tried again");
    let refused = call(&service).await;
    assert_eq!(refused.code().unwrap(), "server_unavailable");
}
