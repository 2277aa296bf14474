//! A scripted server that speaks Streamable HTTP on a port of its own, inside the test.
//!
//! HTTP/1.1 is written by hand, because a web framework would not split, cut, reset or half
//! close an answer where the script says so.

mod connection;
mod head;
mod legacy;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

pub(crate) use connection::watch_for_end;
pub(crate) use head::read as read_request;

use crate::loopback::Loopback;
use crate::records::Records;
use crate::script::Script;
use crate::server::engine::Engine;

/// A running server; dropping it ends it and every connection.
#[derive(Debug)]
pub struct HttpServer {
    loopback: Loopback,
    records: Records,
    sessions: Arc<Sessions>,
}

/// The sessions a server knows.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    opened: AtomicUsize,
    known: Mutex<BTreeSet<String>>,
    /// The event streams of the older transport.
    streams: Mutex<BTreeMap<String, mpsc::Sender<legacy::Piece>>>,
    /// What every request is answered with, while there is something.
    refusal: Mutex<Option<(u16, String)>>,
    /// The last announcement and how many there were.
    announced: watch::Sender<(usize, String)>,
    /// How often the event streams of a GET were broken off.
    cuts: watch::Sender<usize>,
}

impl Sessions {
    pub(crate) fn open(&self) -> String {
        let id = format!("s{}", self.opened.fetch_add(1, Ordering::SeqCst) + 1);
        self.known.lock().insert(id.clone());
        id
    }

    pub(crate) fn knows(&self, id: &str) -> bool {
        self.known.lock().contains(id)
    }

    pub(crate) fn close(&self, id: &str) {
        self.known.lock().remove(id);
    }

    pub(crate) fn forget_all(&self) {
        self.known.lock().clear();
        self.streams.lock().clear();
    }

    /// Opens the stream of a session of the older transport.
    pub(crate) fn attach(&self) -> (String, mpsc::Receiver<legacy::Piece>) {
        let id = self.open();
        let (sender, pieces) = mpsc::channel(legacy::PIECES);
        self.streams.lock().insert(id.clone(), sender);
        (id, pieces)
    }

    pub(crate) fn detach(&self, id: &str) {
        self.close(id);
        self.streams.lock().remove(id);
    }

    pub(crate) fn stream(&self, id: &str) -> Option<mpsc::Sender<legacy::Piece>> {
        self.streams.lock().get(id).cloned()
    }

    pub(crate) fn refusal(&self) -> Option<(u16, String)> {
        self.refusal.lock().clone()
    }

    pub(crate) fn announce(&self, method: &str) {
        self.announced.send_modify(|(count, last)| {
            *count += 1;
            method.clone_into(last);
        });
    }

    pub(crate) fn cuts(&self) -> watch::Receiver<usize> {
        self.cuts.subscribe()
    }

    pub(crate) fn announcements(&self) -> watch::Receiver<(usize, String)> {
        self.announced.subscribe()
    }
}

impl HttpServer {
    /// Starts a server on a free port of the loopback address.
    ///
    /// # Errors
    /// There is no free port, or the script cannot be run.
    pub fn start(script: Script) -> anyhow::Result<Self> {
        Self::start_at(script, SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Starts a server at an address, for example the one another server had.
    ///
    /// # Errors
    /// The address is taken, or the script cannot be run.
    pub fn start_at(script: Script, address: SocketAddr) -> anyhow::Result<Self> {
        let engine = Engine::new(script)?;
        let records = engine.records.clone();
        let sessions = Arc::new(Sessions::default());
        let shared = Arc::clone(&sessions);
        let loopback = Loopback::start("scripted-http", address, move |stream| {
            let (engine, sessions) = (Arc::clone(&engine), Arc::clone(&shared));
            async move { drop(connection::serve(stream, engine, sessions).await) }
        })?;
        Ok(Self {
            loopback,
            records,
            sessions,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.loopback.address()
    }

    /// The URL of its MCP endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address())
    }

    /// What it received.
    #[must_use]
    pub const fn records(&self) -> &Records {
        &self.records
    }

    /// Forgets every session, as a restarted server would.
    pub fn forget_sessions(&self) {
        self.sessions.forget_all();
    }

    /// Breaks off every event stream that a GET opened.
    pub fn cut_streams(&self) {
        self.sessions.cuts.send_modify(|count| *count += 1);
    }

    /// Tells every event stream that a GET opened.
    pub fn announce(&self, method: &str) {
        self.sessions.announce(method);
    }

    /// Answers every request with this status and body from now on.
    pub fn refuse(&self, status: u16, body: &str) {
        *self.sessions.refusal.lock() = Some((status, body.to_owned()));
    }

    /// Serves again after [`Self::refuse`].
    pub fn relent(&self) {
        *self.sessions.refusal.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::records::RecordKind;
    use crate::script::{Action, HttpAction, HttpScript, text_result};
    use crate::service::http_client;
    use crate::wait_for;

    async fn call(server: &HttpServer, session: Option<&str>, tool: &str) -> reqwest::Response {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
                             "params": {"name": tool}});
        let mut request = http_client().unwrap().post(server.url()).json(&message);
        if let Some(id) = session {
            request = request.header("Mcp-Session-Id", id);
        }
        request.send().await.unwrap()
    }

    fn without_sessions(sse: bool) -> HttpScript {
        HttpScript {
            sse,
            sessions: false,
            ..HttpScript::default()
        }
    }

    #[tokio::test]
    async fn answers_json_with_its_exact_length() {
        for split_writes in [false, true] {
            let http = HttpScript {
                split_writes,
                ..without_sessions(false)
            };
            let script = Script::new("s").text_tool("echo", "hi").with_http(http);
            let server = HttpServer::start(script).unwrap();
            let answer = call(&server, None, "echo").await;
            let body: Value = answer.json().await.unwrap();
            assert_eq!(
                body,
                json!({"jsonrpc": "2.0", "id": 7, "result": text_result("hi")})
            );
            assert_eq!(server.records().calls_of("echo"), 1);
        }
    }

    #[tokio::test]
    async fn answers_an_event_stream_that_ends() {
        let script = Script::new("s")
            .on_call(
                "echo",
                [
                    Action::Progress { progress: 1 },
                    Action::Answer {
                        result: text_result("hi"),
                    },
                ],
            )
            .with_http(without_sessions(true));
        let server = HttpServer::start(script).unwrap();
        let answer = call(&server, None, "echo").await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let text = answer.text().await.unwrap();
        assert_eq!(text.matches("data: ").count(), 2, "{text}");
        assert!(text.ends_with("\n\n"), "{text}");
    }

    #[tokio::test]
    async fn a_session_must_be_opened_and_known() {
        let server = HttpServer::start(Script::new("s").text_tool("echo", "hi")).unwrap();
        assert_eq!(call(&server, None, "echo").await.status(), 400);
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                           "params": {"protocolVersion": "2025-11-25"}});
        let opened = http_client()
            .unwrap()
            .post(server.url())
            .json(&hello)
            .send()
            .await
            .unwrap();
        let id = opened.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(call(&server, Some(&id), "echo").await.status(), 200);
        server.forget_sessions();
        assert_eq!(call(&server, Some(&id), "echo").await.status(), 404);
    }

    #[tokio::test]
    async fn a_cut_answer_fails_at_the_client() {
        for cut in [HttpAction::Reset, HttpAction::HalfClose] {
            let script = Script::new("s")
                .on_call("cut", [Action::Http(cut.clone())])
                .with_http(without_sessions(false));
            let server = HttpServer::start(script).unwrap();
            let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
                                 "params": {"name": "cut"}});
            let sent = http_client()
                .unwrap()
                .post(server.url())
                .json(&message)
                .send()
                .await;
            let failed = match sent {
                Ok(answer) => answer.bytes().await.is_err(),
                Err(_) => true,
            };
            assert!(failed, "{cut:?}");
        }
    }

    #[tokio::test]
    async fn the_older_transport_answers_on_its_stream() {
        let script = Script::new("s").text_tool("echo", "hi").legacy();
        let server = HttpServer::start(script).unwrap();
        assert_eq!(call(&server, None, "echo").await.status(), 405);
        let client = http_client().unwrap();
        let mut stream = client.get(server.url()).send().await.unwrap();
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let mut told = String::new();
        while !told.ends_with("\n\n") {
            let piece = stream.chunk().await.unwrap().unwrap();
            told.push_str(std::str::from_utf8(&piece).unwrap());
        }
        assert_eq!(told, "event: endpoint\ndata: /messages?session=s1\n\n");
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
                             "params": {"name": "echo"}});
        let place =
            |session: &str| format!("http://{}/messages?session={session}", server.address());
        let posted = client
            .post(place("s1"))
            .json(&message)
            .send()
            .await
            .unwrap();
        assert_eq!(posted.status(), 202);
        let answer = stream.chunk().await.unwrap().unwrap();
        let answer = std::str::from_utf8(&answer).unwrap();
        assert!(answer.starts_with("event: message\ndata: {"), "{answer}");
        assert!(answer.contains("\"id\":7"), "{answer}");
        let unknown = client
            .post(place("s9"))
            .json(&message)
            .send()
            .await
            .unwrap();
        assert_eq!(unknown.status(), 404);
    }

    #[tokio::test]
    async fn a_server_that_refuses_answers_everybody_alike_until_it_relents() {
        let script = Script::new("s")
            .text_tool("echo", "hi")
            .with_http(without_sessions(false));
        let server = HttpServer::start(script).unwrap();
        server.refuse(503, "closed");
        assert_eq!(call(&server, None, "echo").await.status(), 503);
        server.relent();
        assert_eq!(call(&server, None, "echo").await.status(), 200);
        assert_eq!(server.records().calls_of("echo"), 2, "both are recorded");
    }

    #[tokio::test]
    async fn a_client_that_leaves_is_recorded() {
        let script = Script::new("s")
            .on_call("hang", [Action::Hang])
            .with_http(without_sessions(false));
        let server = HttpServer::start(script).unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(200), call(&server, None, "hang"));
        assert!(waited.await.is_err());
        wait_for("the departure", Duration::from_secs(5), || async {
            let records = server.records().all();
            let left = records
                .iter()
                .any(|record| record.kind == RecordKind::Disconnected);
            if left { Ok(()) } else { Err(records) }
        })
        .await
        .unwrap();
    }
}
