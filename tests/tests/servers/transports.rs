//! The older HTTP+SSE transport: by name and as a fallback.

use serde_json::json;
use talaria_testkit::script::HttpScript;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{HttpServer, RecordKind, Script, Service, wait_for};

use crate::stage::{builder, call};

fn older() -> HttpServer {
    let script = Script::new("s").text_tool("t", "over the stream").legacy();
    HttpServer::start(script).unwrap()
}

async fn says(service: &Service) -> String {
    let delivery = call(service).await.ok().unwrap();
    delivery["text"].as_str().unwrap().to_owned()
}

fn refused_posts(server: &HttpServer) -> usize {
    let records = server.records().all();
    let posts = records.iter().filter(|record| {
        record.kind == RecordKind::Message
            && record
                .headers
                .get(":target")
                .is_some_and(|target| target == "/mcp")
    });
    posts.count()
}

#[tokio::test]
async fn l34_a_server_that_refuses_the_newer_transport_is_spoken_to_in_the_older() {
    let server = older();
    let service = builder().http("s", &server).start().await.unwrap();
    assert_eq!(says(&service).await, "over the stream");
    let asked = refused_posts(&server);
    assert!(asked >= 1, "the newer transport was tried first");
    // What was found out is remembered.
    let again = service
        .post("/v1/servers/s/reconnect", &json!({}))
        .await
        .unwrap();
    assert_eq!(again.ok().unwrap()["state"], "ready");
    assert_eq!(says(&service).await, "over the stream");
    assert_eq!(refused_posts(&server), asked, "it was asked again");
}

#[tokio::test]
async fn the_older_transport_is_spoken_by_name() {
    let server = older();
    let entry = json!({"url": server.url(), "transport": "sse"});
    let service = builder().server("s", entry).start().await.unwrap();
    assert_eq!(says(&service).await, "over the stream");
    assert_eq!(refused_posts(&server), 0);
}

#[tokio::test]
async fn a_server_named_for_the_newer_transport_is_not_asked_in_the_older() {
    let server = older();
    let entry = json!({"url": server.url(), "transport": "http"});
    let service = builder()
        .server("s", entry)
        .start_unsettled()
        .await
        .unwrap();
    wait_for("a reason", PATIENCE, || async {
        let status = service.server("s").await.unwrap();
        if status["reason"].is_string() && status["state"] != "connecting" {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await
    .unwrap();
    let streams = server.records().all();
    let asked = streams.iter().any(|record| {
        record.kind == RecordKind::Message && record.method() == Some("notifications/initialized")
    });
    assert!(!asked, "{streams:?}");
    assert_ne!(service.server("s").await.unwrap()["state"], "ready");
}

#[tokio::test]
async fn messages_go_to_no_place_of_another_origin() {
    let thief = HttpServer::start(Script::new("thief")).unwrap();
    let place = format!("http://{}/messages?session={{session}}", thief.address());
    let script = Script::new("s")
        .text_tool("t", "never")
        .with_http(HttpScript {
            legacy: Some(place),
            ..HttpScript::default()
        });
    let server = HttpServer::start(script).unwrap();
    let entry = json!({
        "url": server.url(), "transport": "sse",
        "headers": {"Authorization": "Bearer precious-secret"},
    });
    let service = builder()
        .server("s", entry)
        .start_unsettled()
        .await
        .unwrap();
    wait_for("a reason", PATIENCE, || async {
        let status = service.server("s").await.unwrap();
        if status["reason"].is_string() && status["state"] != "connecting" {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await
    .unwrap();
    let sent = thief.records().all();
    assert!(sent.is_empty(), "{sent:?}");
}
