//! The breaker: three strikes of the transport close a server's door for a minute; a tool's own
//! errors close it for one conversation only.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::{HttpAction, text_result};
use talaria_testkit::{Action, HttpServer, Script, Service};

use crate::stage::{builder, timed};

/// A server whose tool `t` breaks the connection, and whose `echo` works.
fn breaking() -> HttpServer {
    let script = Script::new("s")
        .on_call("t", [Action::Http(HttpAction::Reset)])
        .text_tool("echo", "echoed");
    HttpServer::start(script).unwrap()
}

async fn call_in(service: &Service, session: Option<&str>, tool: &str) -> talaria_testkit::Answer {
    let mut body = json!({"server": "s", "name": tool, "arguments": {}});
    if let Some(session) = session {
        body["session"] = json!(session);
    }
    service.post("/v1/tools/call", &body).await.unwrap()
}

#[tokio::test]
async fn l22_three_lost_connections_open_the_breaker_and_a_new_session_closes_it() {
    let server = breaking();
    let service = builder().http("s", &server).start().await.unwrap();
    for _ in 0..3 {
        let lost = call_in(&service, None, "t").await;
        assert_eq!(lost.code().unwrap(), "connection_lost");
    }
    let asked = server.records().count_of("tools/call");
    let (refused, took) = timed(call_in(&service, None, "echo")).await;
    let problem = refused.problem().unwrap();
    assert_eq!(problem["code"], "circuit_open", "{problem}");
    assert_eq!(problem["outcome_uncertain"], false, "{problem}");
    let wait = problem["retry_after_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&wait), "{problem}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(
        server.records().count_of("tools/call"),
        asked,
        "nothing was sent"
    );
    let status = service.server("s").await.unwrap();
    assert_eq!(status["state"], "degraded", "{status}");

    let again = service
        .post("/v1/servers/s/reconnect", &json!({}))
        .await
        .unwrap();
    assert_eq!(again.ok().unwrap()["state"], "ready");
    let echoed = call_in(&service, None, "echo").await;
    assert_eq!(echoed.ok().unwrap()["text"], "echoed");
}

/// A tool that always says that it failed.
fn failing() -> Script {
    let mut failed = text_result("no such row");
    failed["isError"] = Value::Bool(true);
    Script::new("s")
        .tool("t", failed)
        .text_tool("echo", "echoed")
}

#[tokio::test]
async fn errors_of_a_tool_close_it_for_their_conversation_only() {
    let service = builder()
        .stdio("s", failing())
        .unwrap()
        .start()
        .await
        .unwrap();
    for _ in 0..3 {
        let failed = call_in(&service, Some("mine"), "t").await;
        assert_eq!(failed.ok().unwrap()["is_error"], true);
    }
    let refused = call_in(&service, Some("mine"), "t").await;
    assert_eq!(refused.code().unwrap(), "circuit_open");
    let echoed = call_in(&service, Some("mine"), "echo").await;
    assert_eq!(echoed.status, 200, "another tool is open");
    let others = call_in(&service, Some("yours"), "t").await;
    assert_eq!(
        others.ok().unwrap()["is_error"],
        true,
        "another conversation"
    );
    for _ in 0..5 {
        let nobodys = call_in(&service, None, "t").await;
        assert_eq!(nobodys.ok().unwrap()["is_error"], true, "no conversation");
    }
}
