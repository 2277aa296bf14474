//! Signs of life of idle servers.

use std::time::Duration;

use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, RecordKind, Script, Service, wait_for};

use crate::stage::{builder, call};

/// A service whose server is asked for a sign of life as often as may be.
async fn watched(script: Script) -> Service {
    builder()
        .stdio("s", script.text_tool("t", "ok"))
        .unwrap()
        .set(&["mcp_servers", "s", "keepalive_interval"], 1)
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn k06_a_keepalive_below_the_floor_is_raised_to_it() {
    let service = watched(Script::new("s")).await;
    let records = service.records("s").unwrap();
    let ready_at = records.last().unwrap().at_ms;
    let ping = service
        .wait_record("s", "a ping", PATIENCE, |record| {
            record.method() == Some("ping")
        })
        .await
        .unwrap();
    let waited = ping.at_ms - ready_at;
    assert!((4_500..9_000).contains(&waited), "after {waited} ms");
}

#[tokio::test]
async fn l10_a_server_that_knows_no_ping_is_asked_for_its_list() {
    let unknown = Action::Fail {
        code: -32601,
        message: "Method not found".to_owned(),
    };
    let service = watched(Script::new("s").on_method("ping", [unknown])).await;
    let count = |method: &'static str| {
        let records = service.records("s").unwrap();
        let asked = records
            .iter()
            .filter(|record| record.kind == RecordKind::Message && record.method() == Some(method));
        asked.count()
    };
    wait_for("the list in place of a ping", PATIENCE, || async {
        let now = (count("ping"), count("tools/list"));
        if now.1 >= 2 { Ok(()) } else { Err(now) }
    })
    .await
    .unwrap();
    assert_eq!(count("ping"), 1, "it is not asked again");
    let status = service.server("s").await.unwrap();
    assert_eq!(status["state"], "ready", "{status}");
    assert_eq!(status["restarts"], 0, "{status}");
    assert_eq!(call(&service).await.status, 200);
}

#[tokio::test]
async fn a_server_over_stdio_is_left_alone_unless_its_keepalive_is_set() {
    let service = builder()
        .stdio("s", Script::new("s").text_tool("t", "ok"))
        .unwrap()
        .start()
        .await
        .unwrap();
    let ping = service.wait_record("s", "a ping", Duration::from_secs(7), |record| {
        record.method() == Some("ping")
    });
    assert!(ping.await.is_err(), "it was asked");
}
