//! A scripted server that speaks Streamable HTTP on a port of its own, inside the test.
//!
//! HTTP/1.1 is written by hand, because a web framework would not split, cut, reset or half
//! close an answer where the script says so.

mod connection;
mod head;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use anyhow::Context;
use parking_lot::Mutex;
use talaria_types::runtime::spawn;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::records::Records;
use crate::script::Script;
use crate::server::engine::Engine;

/// A running server; dropping it ends it and every connection.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    records: Records,
    sessions: Arc<Sessions>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// The sessions a server knows.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    opened: AtomicUsize,
    known: Mutex<BTreeSet<String>>,
    /// The last announcement and how many there were.
    announced: watch::Sender<(usize, String)>,
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
    }

    pub(crate) fn announce(&self, method: &str) {
        self.announced.send_modify(|(count, last)| {
            *count += 1;
            method.clone_into(last);
        });
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
        let stop = CancellationToken::new();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = std::net::TcpListener::bind(address).context("bind")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let accept = accept(listener, engine, Arc::clone(&sessions), stop.clone());
        let thread = std::thread::Builder::new()
            .name("scripted-http".to_owned())
            .spawn(move || runtime.block_on(accept))?;
        Ok(Self {
            address,
            records,
            sessions,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its MCP endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
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
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Serves connections until told to stop; the runtime's end then drops them all.
async fn accept(
    listener: std::net::TcpListener,
    engine: Arc<Engine>,
    sessions: Arc<Sessions>,
    stop: CancellationToken,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
        };
        let engine = Arc::clone(&engine);
        let sessions = Arc::clone(&sessions);
        // A broken connection is the script's or the client's doing; nobody waits for the task.
        drop(spawn("scripted_connection", async move {
            drop(connection::serve(stream, &engine, &sessions).await);
        }));
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
