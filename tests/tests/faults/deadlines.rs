//! Time limits and cancellation: what the caller learns, and what reaches the server.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::{HttpScript, Pace, document_answer, parts, text_result};
use talaria_testkit::service::{PATIENCE, http_client};
use talaria_testkit::{
    Action, HttpServer, PayloadSpec, Record, Script, Service, programs, wait_for,
};

use crate::stage::{AT_ONCE, assert_alive, call, pid, start, text_of_call, timed, with};

/// The id under which the server was asked to call a tool.
fn id_of(call: &Record) -> &Value {
    &call.message["id"]
}

/// Waits for the cancellation of a call the server has received.
async fn assert_cancelled(service: &Service) {
    let asked = service
        .wait_record("s", "the call", AT_ONCE, |record| record.calls("t"))
        .await
        .unwrap();
    service
        .wait_record("s", "the cancellation", AT_ONCE, |record| {
            record.method() == Some("notifications/cancelled")
                && record.message["params"]["requestId"] == *id_of(&asked)
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn l12_an_idle_call_ends_at_the_timeout_and_the_next_one_works() {
    let script = Script::new("s")
        .on_call("t", [Action::Hang])
        .text_tool("t", "ok");
    let service = with(script)
        .set(&["mcp_servers", "s", "timeout"], 2)
        .start()
        .await
        .unwrap();
    let (answer, took) = timed(call(&service)).await;
    let problem = answer.problem().unwrap();
    assert_eq!(problem["code"], "timeout", "{problem}");
    assert_eq!(problem["status"], 504);
    assert_eq!(
        problem["outcome_uncertain"], true,
        "the server has the call"
    );
    assert!(
        took >= Duration::from_secs(2) && took < Duration::from_secs(4),
        "{took:?}"
    );
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains('2'),
        "the configured value is named: {detail}"
    );
    assert_cancelled(&service).await;
    assert_eq!(text_of_call(&service).await, "ok");
}

#[tokio::test]
async fn a_requests_own_limit_is_hard() {
    let progress = (0..40).flat_map(|step| {
        [
            Action::Progress { progress: step },
            Action::Delay { ms: 50 },
        ]
    });
    let service = start(Script::new("s").on_call("t", progress.chain([Action::Hang]))).await;
    let pid = pid(&service).await;
    let body = json!({"server": "s", "name": "t", "timeout_ms": 400});
    let (answer, took) = timed(service.post("/v1/tools/call", &body)).await;
    assert_eq!(answer.unwrap().code().unwrap(), "timeout");
    assert!(
        took >= Duration::from_millis(400) && took < AT_ONCE,
        "{took:?}"
    );
    assert_cancelled(&service).await;
    assert_alive(&service, &pid).await;
}

#[tokio::test]
async fn fr_155_progress_renews_the_idle_timer() {
    let steps = (1..=6).flat_map(|step| {
        [
            Action::Delay { ms: 500 },
            Action::Progress { progress: step },
        ]
    });
    let script = Script::new("s").on_call(
        "t",
        steps.chain([Action::Answer {
            result: text_result("patient"),
        }]),
    );
    let service = with(script)
        .set(&["mcp_servers", "s", "timeout"], 1)
        .start()
        .await
        .unwrap();
    let (said, took) = timed(text_of_call(&service)).await;
    assert_eq!(said, "patient");
    assert!(took >= Duration::from_secs(3), "{took:?}");
    let asked = service
        .wait_record("s", "the call", AT_ONCE, |record| record.calls("t"))
        .await
        .unwrap();
    let token = asked.message.pointer("/params/_meta/progressToken");
    assert!(
        token.is_some_and(|token| !token.is_null()),
        "{}",
        asked.message
    );
}

#[tokio::test]
async fn fr_155_an_answer_that_drips_ends_at_the_servers_timeout() {
    let result = text_result(&"drop after drop ".repeat(1_000));
    let drip = Action::Send {
        parts: parts(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{result}}}"
        )),
        pace: Pace::Drip,
    };
    let script = Script::new("s").on_call("t", [drip]);
    let over_http = |script: Script, sse: bool| {
        let http = HttpScript {
            sse,
            ..script.http.clone()
        };
        HttpServer::start(script.with_http(http)).unwrap()
    };
    let servers = [
        None,
        Some(over_http(script.clone(), false)),
        Some(over_http(script.clone(), true)),
        Some(over_http(script.clone().legacy(), false)),
    ];
    for server in servers {
        let builder = match &server {
            None => with(script.clone()),
            Some(server) => Service::builder(programs!()).unwrap().http("s", server),
        };
        let builder = builder.set(&["mcp_servers", "s", "timeout"], 2);
        let service = builder.start().await.unwrap();
        let (answer, took) = timed(call(&service)).await;
        let problem = answer.problem().unwrap();
        assert_eq!(problem["code"], "timeout", "{problem}");
        assert_eq!(problem["outcome_uncertain"], true);
        assert!(
            took >= Duration::from_secs(2) && took < Duration::from_secs(5),
            "{took:?}"
        );
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_its_call() {
    let service = start(Script::new("s").on_call("t", [Action::Hang])).await;
    let pid = pid(&service).await;
    let body = json!({"server": "s", "name": "t"});
    let request = http_client()
        .unwrap()
        .post(service.url("/v1/tools/call"))
        .json(&body)
        .send();
    // Polled until the server has the call, then dropped: the connection closes.
    tokio::select! {
        answer = request => panic!("{answer:?}"),
        asked = service.wait_record("s", "the call", AT_ONCE, |record| record.calls("t")) => {
            asked.unwrap();
        }
    }
    assert_cancelled(&service).await;
    assert_alive(&service, &pid).await;
    wait_for("nothing in flight", AT_ONCE, || async {
        let status = service.server("s").await.unwrap();
        if status["in_flight"] == 0 {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_answer_after_the_cancellation_is_ignored() {
    let late = [
        Action::AwaitCancel,
        Action::Answer {
            result: text_result("late"),
        },
    ];
    let script = Script::new("s")
        .on_call("t", late)
        .text_tool("t", "in time");
    let service = start(script).await;
    let pid = pid(&service).await;
    let body = json!({"server": "s", "name": "t", "timeout_ms": 300});
    let answer = service.post("/v1/tools/call", &body).await.unwrap();
    assert_eq!(answer.code().unwrap(), "timeout");
    assert_eq!(text_of_call(&service).await, "in time");
    assert_alive(&service, &pid).await;
}

#[tokio::test]
async fn a_call_that_expires_at_the_lock_never_reaches_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let script = Script::new("s")
        .on_call(
            "slow",
            [
                Action::AwaitFile { path: gate.clone() },
                Action::Answer {
                    result: text_result("slow"),
                },
            ],
        )
        .text_tool("t", "never");
    let service = start(script).await;
    let slow = service.call("s", "slow", json!({}));
    let waiting = async {
        service
            .wait_record("s", "the slow call", AT_ONCE, |record| record.calls("slow"))
            .await
            .unwrap();
        let body = json!({"server": "s", "name": "t", "timeout_ms": 300});
        let answer = service.post("/v1/tools/call", &body).await.unwrap();
        std::fs::write(&gate, "").unwrap();
        answer
    };
    let (slow, expired) = tokio::join!(slow, waiting);
    assert_eq!(slow.unwrap().ok().unwrap()["text"], "slow");
    let problem = expired.problem().unwrap();
    assert_eq!(problem["code"], "timeout");
    assert_eq!(
        problem["outcome_uncertain"], false,
        "it never left: {problem}"
    );
    // The lock hands calls out in order, so the next answer proves that nothing came before it.
    assert_eq!(
        service.call("s", "echo", json!({})).await.unwrap().status,
        200
    );
    assert!(
        !service
            .records("s")
            .unwrap()
            .iter()
            .any(|record| record.calls("t"))
    );
}

#[tokio::test]
async fn a_full_queue_is_told_at_once() {
    let service = with(Script::new("s").on_call("t", [Action::Hang]))
        .set(&["talaria", "limits", "pending_per_server"], 1)
        .start()
        .await
        .unwrap();
    let hanging = [call(&service), call(&service)];
    let third = async {
        wait_for("one call in flight and one waiting", AT_ONCE, || async {
            let status = service.server("s").await.unwrap();
            let full = status["in_flight"] == 1 && status["pending"] == 1;
            if full { Ok(()) } else { Err(status) }
        })
        .await
        .unwrap();
        timed(call(&service)).await
    };
    let [first, second] = hanging;
    tokio::select! {
        (answer, took) = third => {
            let problem = answer.problem().unwrap();
            assert_eq!(problem["code"], "server_busy", "{problem}");
            assert_eq!(problem["status"], 429);
            assert_eq!(problem["retryable"], true);
            assert!(took < AT_ONCE, "{took:?}");
        }
        answer = async { tokio::join!(first, second) } => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn fr_162_a_wedged_server_disturbs_nobody() {
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("wedged", Script::new("wedged").on_call("t", [Action::Hang]))
        .unwrap()
        .stdio(
            "silent",
            Script::new("silent").on_method("initialize", [Action::Hang]),
        )
        .unwrap()
        .stdio(
            "big",
            Script::new("big").on_call(
                "t",
                [document_answer("x://h/big", PayloadSpec::of(20_000_000))],
            ),
        )
        .unwrap()
        .stdio("fast", Script::new("fast").text_tool("t", "ok"))
        .unwrap()
        .start_unsettled()
        .await
        .unwrap();
    for name in ["wedged", "big", "fast"] {
        service.wait_state(name, "ready", PATIENCE).await.unwrap();
    }
    let wedged = service.call("wedged", "t", json!({}));
    let big = service.call("big", "t", json!({}));
    let fast = async {
        service
            .wait_record("wedged", "the call", AT_ONCE, |record| record.calls("t"))
            .await
            .unwrap();
        for _ in 0..20 {
            let (answer, took) = timed(service.call("fast", "t", json!({}))).await;
            assert_eq!(answer.unwrap().ok().unwrap()["text"], "ok");
            assert!(took < Duration::from_secs(1), "a small call took {took:?}");
        }
        let listed = service.get("/v1/tools").await.unwrap();
        assert_eq!(listed.status, 200);
    };
    tokio::select! {
        answer = wedged => panic!("{answer:?}"),
        (big, ()) = async { tokio::join!(big, fast) } => {
            assert_eq!(big.unwrap().status, 200);
        }
    }
}

#[tokio::test]
async fn fr_163_calls_to_a_server_that_takes_one_at_a_time_queue() {
    let script = Script::new("s").on_call(
        "t",
        [
            Action::HangIfBusy,
            Action::Delay { ms: 300 },
            Action::Answer {
                result: text_result("one at a time"),
            },
        ],
    );
    let service = with(script)
        .set(&["mcp_servers", "s", "timeout"], 3)
        .start()
        .await
        .unwrap();
    let (one, two, three) = tokio::join!(
        text_of_call(&service),
        text_of_call(&service),
        text_of_call(&service)
    );
    assert_eq!([one, two, three], ["one at a time"; 3]);
}

#[tokio::test]
async fn fr_163_calls_side_by_side_end_at_the_timeout_when_the_server_cannot() {
    let script = Script::new("s").on_call(
        "t",
        [
            Action::HangIfBusy,
            Action::Delay { ms: 500 },
            Action::Answer {
                result: text_result("ok"),
            },
        ],
    );
    let service = with(script)
        .set(&["mcp_servers", "s", "timeout"], 2)
        .set(&["mcp_servers", "s", "rpc_concurrency"], 3)
        .start()
        .await
        .unwrap();
    let together = async { tokio::join!(call(&service), call(&service), call(&service)) };
    let ((one, two, three), took) = timed(together).await;
    let mut statuses = [one.status, two.status, three.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 504, 504]);
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[tokio::test]
async fn l03_a_server_that_never_answers_initialize_is_given_up_and_killed() {
    let service = with(Script::new("s"))
        .stdio(
            "mute",
            Script::new("mute").on_method("initialize", [Action::Hang]),
        )
        .unwrap()
        .set(&["mcp_servers", "mute", "connect_timeout"], 1)
        .start_unsettled()
        .await
        .unwrap();
    let started = service
        .wait_record("mute", "its start", AT_ONCE, |record| {
            record.method() == Some("initialize")
        })
        .await
        .unwrap();
    wait_for("the end of the mute server", PATIENCE, || async {
        let alive = talaria_testkit::process::is_alive(started.pid);
        if alive {
            Err(service.server("mute").await.ok())
        } else {
            Ok(())
        }
    })
    .await
    .unwrap();
    let status = service.server("mute").await.unwrap();
    assert_ne!(status["state"], "ready");
}
