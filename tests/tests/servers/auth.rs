//! Servers that want other credentials than they were given.

use std::time::Duration;

use serde_json::json;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{HttpServer, Script};

use crate::stage::{builder, call, timed};

#[tokio::test]
async fn l08_a_proven_session_is_tried_once_more_and_then_parked() {
    let script = Script::new("s").text_tool("t", "ok");
    let server = HttpServer::start(script).unwrap();
    let service = builder().http("s", &server).start().await.unwrap();
    assert_eq!(call(&service).await.status, 200);
    server.refuse(401, "expired");
    let before = server.records().all().len();
    let (refused, took) = timed(call(&service)).await;
    let problem = refused.problem().unwrap();
    assert_eq!(problem["code"], "server_unauthorized", "{problem}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    let status = service.wait_state("s", "parked", PATIENCE).await.unwrap();
    assert_eq!(status["needs_reauth"], true, "{status}");
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.contains("sign in again"), "{status}");
    assert!(
        status["next_attempt_ms"].as_u64().unwrap() > 60_000,
        "{status}"
    );
    let asked = server.records().all().len() - before;
    assert!(asked <= 8, "{asked} requests");
    let calls = server.records().calls_of("t");
    assert!(
        calls <= 3,
        "{calls} calls: one answered, at most two refused"
    );

    server.relent();
    let again = service
        .post("/v1/servers/s/reconnect", &json!({}))
        .await
        .unwrap();
    assert_eq!(again.ok().unwrap()["state"], "ready");
    assert_eq!(call(&service).await.status, 200);
}
