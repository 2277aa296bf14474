//! Servers of the revision without a handshake (2026-07-28), over both transports.

use serde_json::json;
use talaria_testkit::script::HttpScript;
use talaria_testkit::{Action, HttpServer, RecordKind, Script, Service, programs, wait_for};

use crate::stage::{AT_ONCE, start, text_of_call};

const REVISION: &str = "2026-07-28";

#[tokio::test]
async fn a_modern_server_over_stdio_is_called_without_a_handshake() {
    let service = start(Script::new("s").modern().text_tool("t", "modern")).await;
    assert_eq!(text_of_call(&service).await, "modern");
    assert_eq!(
        service.server("s").await.unwrap()["protocol_version"],
        REVISION
    );
    let records = service.records("s").unwrap();
    assert!(
        !records
            .iter()
            .any(|record| record.method() == Some("initialize"))
    );
}

#[tokio::test]
async fn a_modern_server_over_http_is_called_without_a_session() {
    for sse in [false, true] {
        let http = HttpScript {
            sse,
            sessions: false,
            ..HttpScript::default()
        };
        let script = Script::new("s")
            .with_http(http)
            .modern()
            .text_tool("t", "modern");
        let server = HttpServer::start(script).unwrap();
        let service = Service::builder(programs!()).unwrap().http("s", &server);
        let service = service.start().await.unwrap();
        assert_eq!(text_of_call(&service).await, "modern");
        assert_eq!(
            service.server("s").await.unwrap()["protocol_version"],
            REVISION
        );
        let records = server.records().all();
        let called = records.iter().find(|record| record.calls("t")).unwrap();
        assert!(!called.headers.contains_key("mcp-session-id"));
        assert_eq!(called.headers["mcp-protocol-version"], REVISION);
    }
}

#[tokio::test]
async fn a_cancelled_call_reaches_a_modern_server() {
    let script = Script::new("s").modern().on_call("t", [Action::Hang]);
    let service = start(script.clone()).await;
    let body = json!({"server": "s", "name": "t", "timeout_ms": 300});
    let answer = service.post("/v1/tools/call", &body).await.unwrap();
    assert_eq!(answer.code().unwrap(), "timeout");
    service
        .wait_record("s", "the cancellation", AT_ONCE, |record| {
            record.method() == Some("notifications/cancelled")
        })
        .await
        .unwrap();

    let server = HttpServer::start(script).unwrap();
    let service = Service::builder(programs!()).unwrap().http("s", &server);
    let service = service.start().await.unwrap();
    let answer = service.post("/v1/tools/call", &body).await.unwrap();
    assert_eq!(answer.code().unwrap(), "timeout");
    wait_for("the end of the request", AT_ONCE, || async {
        let records = server.records().all();
        let ended = records.iter().any(|record| {
            record.kind == RecordKind::Disconnected && record.calls("t")
                || record.method() == Some("notifications/cancelled")
        });
        if ended { Ok(()) } else { Err(records) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn older_revisions_are_spoken_too() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let script = Script::new("s")
            .with_protocol(revision)
            .text_tool("t", revision);
        let service = start(script).await;
        assert_eq!(text_of_call(&service).await, revision);
        assert_eq!(
            service.server("s").await.unwrap()["protocol_version"],
            revision
        );
    }
}
