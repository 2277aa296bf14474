//! What the service says about itself, and what it says to requests that miss.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::fixtures::token;
use crate::operation::Operation;
use crate::server::{ServeError, StopMode};

#[actix_web::test]
async fn answers_probes_and_metrics() {
    let service = fixture();
    let alive = service.get("/healthz").await;
    assert_eq!(
        (alive.status, alive.json()),
        (200, json!({ "status": "alive" }))
    );
    let ready = service.get("/readyz").await;
    let expected = json!({ "status": "ready", "servers": 0, "servers_ready": 0 });
    assert_eq!((ready.status, ready.json()), (200, expected));
    let metrics = service.get("/metrics").await;
    assert_eq!(
        metrics.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = String::from_utf8(metrics.body).unwrap();
    let counted = "http_server_request_duration_seconds_count{http_request_method=\"GET\",\
                   http_route=\"/healthz\",http_response_status_code=\"200\"";
    assert!(text.contains(counted), "{text}");
}

#[actix_web::test]
async fn probes_fail_once_the_supervisor_has_ended() {
    let service = fixture();
    service.supervisor.drain(Duration::ZERO).await;
    service.supervisor.ended().await;
    for probe in ["/healthz", "/readyz"] {
        service.get(probe).await.refused(503, "internal");
    }
}

#[actix_web::test]
async fn serves_its_contract() {
    let service = fixture();
    let contract = service.get("/openapi.json").await;
    assert_eq!(contract.header("content-type"), Some("application/json"));
    assert_eq!(contract.json(), crate::openapi::document());
}

#[actix_web::test]
async fn routes_every_operation_of_the_table() {
    let service = fixture();
    for operation in Operation::ALL {
        let mut path = operation.path().replace("{name}", "x").replace("{id}", "x");
        if *operation == Operation::ListenToEvents {
            // It would not end.
            path.push_str("?unknown=1");
        }
        let reply = service
            .send(operation.method().as_str(), &path, &[], b"")
            .await;
        let code = if reply.status < 400 {
            String::new()
        } else {
            reply.problem()["code"].to_string()
        };
        assert!(
            code != "\"not_found\"" && code != "\"method_not_allowed\"" && code != "\"internal\"",
            "{operation:?}: {code}"
        );
    }
}

#[actix_web::test]
async fn tells_wrong_paths_and_methods_apart() {
    let service = fixture();
    for path in [
        "/",
        "/v1",
        "/v1/tools/",
        "/v2/tools",
        "/healthz/x",
        "/v1/artifacts/a/b",
    ] {
        service.get(path).await.refused(404, "not_found");
    }
    let reply = service.send("DELETE", "/v1/tools", &[], b"").await;
    assert_eq!(reply.header("allow"), Some("GET, HEAD"));
    reply.refused(405, "method_not_allowed");
    let reply = service.send("BREW", "/v1/artifacts/x", &[], b"").await;
    assert_eq!(reply.header("allow"), Some("GET, HEAD, DELETE"));
    reply.refused(405, "method_not_allowed");
}

#[actix_web::test]
async fn answers_head_like_get_without_the_body() {
    let service = fixture();
    let (get, head) = (
        service.get("/healthz").await,
        service.send("HEAD", "/healthz", &[], b"").await,
    );
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), get.header("content-length"));
    assert_eq!(head.body, b"");
}

#[actix_web::test]
async fn names_requests_in_answers() {
    let service = fixture();
    let made = service.get("/healthz").await;
    assert!(made.header("x-request-id").unwrap().starts_with("req_"));
    let given = service
        .send("GET", "/nowhere", &["X-Request-Id: my-id.7"], b"")
        .await;
    assert_eq!(given.problem()["request_id"], "my-id.7");
    let insane = service
        .send("GET", "/healthz", &["X-Request-Id: <b>"], b"")
        .await;
    assert!(insane.header("x-request-id").unwrap().starts_with("req_"));
}

#[actix_web::test]
async fn refuses_foreign_hosts_and_origins_on_every_route() {
    let service = fixture();
    for operation in Operation::ALL {
        let path = operation.path().replace("{name}", "x").replace("{id}", "x");
        let method = operation.method().to_string();
        let host = service
            .send(&method, &path, &["Host: evil.example"], b"")
            .await;
        host.refused(403, "origin_refused");
        let origin = service
            .send(&method, &path, &["Origin: http://evil.example"], b"")
            .await;
        origin.refused(403, "origin_refused");
    }
    service
        .send("GET", "/nowhere", &["Host: evil.example"], b"")
        .await
        .refused(403, "origin_refused");
    let own = format!("Origin: http://{}", service.address());
    assert_eq!(
        service.send("GET", "/healthz", &[&own], b"").await.status,
        200
    );
}

#[actix_web::test]
async fn takes_no_new_work_while_draining_and_answers_the_rest() {
    let service = fixture();
    service.server.drain();
    let ready = service.get("/readyz").await;
    ready.refused(503, "shutting_down");
    let call = service
        .post("/v1/tools/call", &json!({ "tool": "x" }))
        .await;
    call.refused(503, "shutting_down");
    let deliver = service
        .post("/v1/results/deliver", &json!({ "result": {} }))
        .await;
    deliver.refused(503, "shutting_down");
    assert_eq!(service.get("/healthz").await.status, 200);
    assert_eq!(service.get("/metrics").await.status, 200);
    assert_eq!(service.get("/v1/servers").await.status, 200);
}

#[actix_web::test]
async fn stops_listening_when_it_is_stopped() {
    for mode in [StopMode::Graceful, StopMode::Now] {
        let Fixture { server, _home, .. } = fixture();
        let address = server.address();
        timeout(Duration::from_secs(10), server.stop(mode))
            .await
            .unwrap()
            .unwrap();
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    }
}

#[actix_web::test]
async fn refuses_to_serve_the_network_without_tokens() {
    let open = || TcpListener::bind("0.0.0.0:0").unwrap();
    let (unguarded, _home) = options(open(), Vec::new(), Vec::new(), VisionConfig::default());
    assert!(matches!(
        HttpServer::serve(unguarded),
        Err(ServeError::Unprotected(_))
    ));
    let (guarded, _home) = options(
        open(),
        vec![token("a", &[], &[])],
        Vec::new(),
        VisionConfig::default(),
    );
    assert!(HttpServer::serve(guarded).is_ok());
}
