//! SIGTERM: what runs is answered, what is new is refused, what was started is gone.

use std::time::Duration;

use serde_json::json;
use talaria_testkit::script::text_result;
use talaria_testkit::service::{PATIENCE, http_client};
use talaria_testkit::{Action, Script, Service, programs, wait_for};

/// What a signal sets in motion shows within this.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_running_call_is_answered_new_ones_are_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let script = Script::new("s")
        .on_call(
            "slow",
            [
                Action::AwaitFile { path: gate.clone() },
                Action::Answer {
                    result: text_result("finished"),
                },
            ],
        )
        .text_tool("echo", "echoed");
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
        .start()
        .await
        .unwrap();
    let running = service.call("s", "slow", json!({}));
    let meanwhile = async {
        service
            .wait_record("s", "the call", SOON, |record| record.calls("slow"))
            .await
            .unwrap();
        service.terminate().unwrap();
        // A connection of its own each time, as a new caller would have.
        wait_for("new calls to be refused", SOON, || async {
            let body = json!({"server": "s", "name": "echo"});
            let request = http_client()
                .unwrap()
                .post(service.url("/v1/tools/call"))
                .json(&body);
            match request.send().await {
                Err(refused) if refused.is_connect() => Ok(()),
                Err(other) => Err(other.to_string()),
                Ok(answer) if answer.status() == 503 => {
                    let problem: serde_json::Value = answer.json().await.unwrap();
                    assert_eq!(problem["code"], "shutting_down");
                    Ok(())
                }
                Ok(answer) => Err(answer.status().to_string()),
            }
        })
        .await
        .unwrap();
        std::fs::write(&gate, "").unwrap();
    };
    let (answer, ()) = tokio::join!(running, meanwhile);
    assert_eq!(answer.unwrap().ok().unwrap()["text"], "finished");
    let status = service.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    service
        .wait_no_processes(Duration::from_secs(2))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_call_that_does_not_end_is_given_up_at_the_drain_limit() {
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", Script::new("s").on_call("t", [Action::Hang]))
        .unwrap()
        .set(&["talaria", "calls", "drain_timeout"], "1s")
        .start()
        .await
        .unwrap();
    let running = service.call("s", "t", json!({}));
    let meanwhile = async {
        service
            .wait_record("s", "the call", SOON, |record| record.calls("t"))
            .await
            .unwrap();
        service.terminate().unwrap();
        talaria_types::runtime::now()
    };
    let (answer, told) = tokio::join!(running, meanwhile);
    let problem = answer.unwrap().problem().unwrap();
    assert_eq!(problem["outcome_uncertain"], true, "{problem}");
    assert!(
        told.elapsed() < Duration::from_secs(5),
        "{:?}",
        told.elapsed()
    );
    let status = service.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    service
        .wait_no_processes(Duration::from_secs(2))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_idle_service_ends_at_once() {
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", Script::new("s").text_tool("t", "t"))
        .unwrap()
        .start()
        .await
        .unwrap();
    service.terminate().unwrap();
    let status = service.wait_exit(SOON).await.unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    service
        .wait_no_processes(Duration::from_secs(2))
        .await
        .unwrap();
}

#[tokio::test]
async fn readiness_ends_before_liveness() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let script = Script::new("s").on_call(
        "slow",
        [
            Action::AwaitFile { path: gate.clone() },
            Action::Answer {
                result: text_result("finished"),
            },
        ],
    );
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
        .start()
        .await
        .unwrap();
    // A kept connection, as a balancer's probe has: it is served until the end.
    assert_eq!(service.get("/readyz").await.unwrap().status, 200);
    let running = service.call("s", "slow", json!({}));
    let meanwhile = async {
        service
            .wait_record("s", "the call", SOON, |record| record.calls("slow"))
            .await
            .unwrap();
        service.terminate().unwrap();
        wait_for("readiness to end", SOON, || async {
            match service.get("/readyz").await {
                Ok(answer) if answer.status == 503 => Ok(()),
                Ok(answer) => Err(answer.status.to_string()),
                // The listener is closed and this connection was too: nobody is ready here.
                Err(_) => Ok(()),
            }
        })
        .await
        .unwrap();
        std::fs::write(&gate, "").unwrap();
    };
    let (answer, ()) = tokio::join!(running, meanwhile);
    assert_eq!(answer.unwrap().status, 200);
}
