//! What changes, told over a connection that stays open; and lists that a caller has already.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_config::{Scope, ServerConfig};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::client::Connection;
use super::*;
use crate::fixtures::token;

const PATIENCE: Duration = Duration::from_secs(10);
const NO_ARGUMENTS: [&str; 0] = [];

/// A connection that is being told.
struct Told {
    connection: Connection,
    text: String,
}

impl Told {
    async fn by(service: &Fixture, headers: &[&str]) -> Self {
        let mut connection = Connection::open(service.address()).await;
        connection.send("GET", "/v1/events", headers, b"").await;
        let mut told = Self {
            connection,
            text: String::new(),
        };
        told.until("id: ").await;
        assert!(
            told.text.contains("content-type: text/event-stream"),
            "{}",
            told.text
        );
        told
    }

    /// Reads until a text was told.
    async fn until(&mut self, text: &str) {
        while !self.text.contains(text) {
            assert!(self.more().await, "it ended before {text:?}: {}", self.text);
        }
    }

    /// Reads on; false at the end.
    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let read = timeout(PATIENCE, self.connection.stream.read(&mut bytes)).await;
        let read = read.unwrap_or_else(|_| panic!("nothing more was told: {}", self.text));
        let read = read.unwrap();
        self.text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        read > 0
    }

    /// The data of every event of a kind so far.
    fn events(&self, kind: &str) -> Vec<Value> {
        let after = format!("event: {kind}");
        let lines: Vec<_> = self.text.lines().collect();
        let pairs = lines.windows(2).filter(|pair| pair[0] == after);
        pairs
            .map(|pair| serde_json::from_str(pair[1].strip_prefix("data: ").unwrap()).unwrap())
            .collect()
    }

    fn last_id(&self) -> String {
        let mut ids = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("id: "));
        ids.next_back().unwrap().to_owned()
    }
}

fn off(name: &str) -> ServerConfig {
    ServerConfig {
        enabled: false,
        ..ServerConfig::stdio(name, "/nonexistent/server", NO_ARGUMENTS)
    }
}

#[actix_web::test]
async fn changes_of_servers_are_told_as_they_happen() {
    let service = with_servers(vec![], vec![off("a")]);
    let mut told = Told::by(&service, &[]).await;
    service.post("/v1/servers/a/enable", &json!({})).await;
    told.until("event: server_state").await;
    told.until("\n\n").await;
    let events = told.events("server_state");
    assert_eq!(events[0]["server"], "a");
    assert_eq!(
        (&events[0]["from"], &events[0]["to"]),
        (&json!("disabled"), &json!("connecting"))
    );
}

#[actix_web::test]
async fn one_that_comes_back_hears_what_it_missed_or_that_it_missed_too_much() {
    let service = with_servers(vec![], vec![off("a")]);
    let told = Told::by(&service, &[]).await;
    let last = told.last_id();
    drop(told);
    service.post("/v1/servers/a/enable", &json!({})).await;
    let mut again = Told::by(&service, &[&format!("Last-Event-ID: {last}")]).await;
    again.until("event: server_state").await;
    let mut lost = Told::by(&service, &["Last-Event-ID: 1-1"]).await;
    lost.until("event: resync").await;
    lost.until("version").await;
    assert!(again.events("resync").is_empty(), "{}", again.text);
}

#[actix_web::test]
async fn nobody_hears_of_servers_that_are_not_theirs() {
    let tokens = vec![
        token("mine", &[Scope::Call], &["a"]),
        token("operator", &[Scope::Admin], &["*"]),
    ];
    let service = with_servers(tokens, vec![off("a"), off("b")]);
    let mut told = Told::by(&service, &["Authorization: Bearer mine-secret"]).await;
    let operator = ["Authorization: Bearer operator-secret"];
    for server in ["b", "a"] {
        let path = format!("/v1/servers/{server}/enable");
        service.post_as(&path, &json!({}), &operator).await;
    }
    told.until("\"server\":\"a\"").await;
    assert!(!told.text.contains("\"server\":\"b\""), "{}", told.text);
    service
        .send("GET", "/v1/events", &[], b"")
        .await
        .refused(401, "unauthorized");
}

#[actix_web::test]
async fn listeners_end_when_the_service_drains() {
    let service = fixture();
    let mut told = Told::by(&service, &[]).await;
    service.server.drain();
    // The last chunk of a body is empty.
    told.until("\r\n0\r\n\r\n").await;
    service
        .send("GET", "/v1/events", &[], b"")
        .await
        .refused(503, "shutting_down");
}

#[actix_web::test]
async fn a_head_request_is_answered_without_waiting() {
    let service = fixture();
    let head = service.send("HEAD", "/v1/events", &[], b"").await;
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("text/event-stream"))
    );
}

#[actix_web::test]
async fn a_list_that_the_caller_has_is_not_sent_again() {
    let service = with_servers(vec![], vec![off("a")]);
    for path in ["/v1/tools", "/v1/servers"] {
        let first = service.get(path).await;
        assert!(first.json()["version"].as_u64().unwrap() > 1_000_000_000_000);
        let tag = first.header("etag").unwrap().to_owned();
        let known = format!("If-None-Match: {tag}");
        let again = service.send("GET", path, &[&known], b"").await;
        assert_eq!(
            (again.status, again.header("etag")),
            (304, Some(tag.as_str())),
            "{path}"
        );
        assert!(again.body.is_empty());
    }
}
