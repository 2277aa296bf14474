//! Sessions over HTTP+SSE, against a server written by hand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use talaria_config::{HttpConfig, HttpKind, TransportConfig};
use talaria_testkit::wait_for;
use talaria_types::{Deadline, RawResult};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

use super::*;
use crate::habits::Habits;
use crate::session::{ClosedBy, ConnectOptions, Rpc, Session, SessionEvent, connect};
use crate::testing::{FolderSink, limits, options};

/// What a test decides about its server.
struct Play {
    /// What the first event says; `{origin}` is filled in.
    endpoint: &'static str,
    /// Status of a `POST` to the stream's own path.
    stream_post: u16,
    /// Status of a `GET`, and its media type.
    get: (u16, &'static str),
    /// Events and status for a message; the handshake is played already.
    answer: Box<Answer>,
}

type Answer = dyn Fn(&Value) -> (u16, Vec<String>) + Send + Sync;

impl Default for Play {
    fn default() -> Self {
        Self {
            endpoint: "/messages?session=1",
            stream_post: 405,
            get: (200, "text/event-stream"),
            answer: Box::new(|message| (202, vec![answered(message, &text("fine"))])),
        }
    }
}

struct Server {
    origin: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    streams: Arc<AtomicUsize>,
    /// Ends every stream when it is dropped or an empty text is sent.
    say: broadcast::Sender<String>,
}

#[derive(Clone, Debug)]
struct Heard {
    line: String,
    head: String,
    message: Value,
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

fn answered(message: &Value, result: &Value) -> String {
    event(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

impl Server {
    async fn start(play: Play) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (say, _) = broadcast::channel(64);
        let server = Self {
            origin,
            heard: Arc::default(),
            streams: Arc::default(),
            say,
        };
        let play = Arc::new(play);
        let shared = (
            server.origin.clone(),
            Arc::clone(&server.heard),
            Arc::clone(&server.streams),
            server.say.clone(),
        );
        drop(runtime::spawn("legacy_server", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (play, shared) = (Arc::clone(&play), shared.clone());
                drop(runtime::spawn("legacy_connection", async move {
                    serve(stream, &play, shared).await;
                }));
            }
        }));
        server
    }

    fn config(&self, kind: HttpKind) -> HttpConfig {
        let mut config = HttpConfig::new(format!("{}/sse", self.origin));
        config.kind = kind;
        config.headers = BTreeMap::from([("Authorization".to_owned(), "Bearer abc".to_owned())]);
        config
    }

    fn options(&self, kind: HttpKind) -> ConnectOptions {
        options(
            TransportConfig::Http(Box::new(self.config(kind))),
            FolderSink::new(),
        )
        .0
    }

    async fn connected(play: Play) -> (Self, Session) {
        let server = Self::start(play).await;
        let session = connect(server.options(HttpKind::Sse)).await.unwrap();
        (server, session)
    }

    fn count(&self, line: &str) -> usize {
        self.heard
            .lock()
            .iter()
            .filter(|heard| heard.line.starts_with(line))
            .count()
    }

    fn calls(&self) -> usize {
        let heard = self.heard.lock();
        heard
            .iter()
            .filter(|heard| heard.message["method"] == "tools/call")
            .count()
    }
}

type Shared = (
    String,
    Arc<Mutex<Vec<Heard>>>,
    Arc<AtomicUsize>,
    broadcast::Sender<String>,
);

async fn serve(mut stream: TcpStream, play: &Play, (origin, heard, streams, say): Shared) {
    let mut request = Vec::new();
    let (head, body) = loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
            if body.len() >= length {
                break (head, body.to_owned());
            }
        }
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let message = serde_json::from_str(&body).unwrap_or(Value::Null);
    let line = head.lines().next().unwrap_or_default().to_owned();
    heard.lock().push(Heard {
        line: line.clone(),
        head,
        message: message.clone(),
    });
    let plain = |status: u16| {
        format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    };
    if line.starts_with("get") {
        let (status, media_type) = play.get;
        if status != 200 || media_type != "text/event-stream" {
            let head = format!("HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\n");
            drop(
                stream
                    .write_all(format!("{head}Content-Length: 0\r\n\r\n").as_bytes())
                    .await,
            );
            return;
        }
        streams.fetch_add(1, Ordering::SeqCst);
        let mut said = say.subscribe();
        let endpoint = play.endpoint.replace("{origin}", &origin);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
             : hello\n\nevent: endpoint\ndata: {endpoint}\n\n"
        );
        drop(stream.write_all(head.as_bytes()).await);
        drop(say);
        while let Ok(said) = said.recv().await {
            if said.is_empty() || stream.write_all(said.as_bytes()).await.is_err() {
                return;
            }
        }
        return;
    }
    if !line.starts_with("post /messages") {
        drop(stream.write_all(plain(play.stream_post).as_bytes()).await);
        return;
    }
    let (status, events) = match message["method"].as_str() {
        Some("initialize") => {
            let result = json!({
                "protocolVersion": "2024-11-05",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "old", "version": "1" },
            });
            (202, vec![answered(&message, &result)])
        }
        Some(method) if method.starts_with("notifications/") => (202, Vec::new()),
        Some(_) | None => (play.answer)(&message),
    };
    drop(stream.write_all(plain(status).as_bytes()).await);
    for event in events {
        drop(say.send(event));
    }
}

async fn call(session: &Session) -> Result<RawResult, Failure> {
    let rpc = Rpc::CallTool {
        name: "t".to_owned(),
        arguments: Map::new(),
    };
    session.request(rpc, limits()).await
}

#[tokio::test]
async fn a_session_lives_in_its_event_stream() {
    let (server, session) = Server::connected(Play::default()).await;
    assert_eq!(session.peer().name, "old");
    assert_eq!(session.peer().protocol_version, "2024-11-05");
    assert_eq!(call(&session).await.unwrap().json, text("fine"));
    for heard in server.heard.lock().iter() {
        assert!(
            heard.head.contains("authorization: bearer abc"),
            "{heard:?}"
        );
    }
    assert_eq!(
        server.count("post /sse"),
        0,
        "nothing but the old way was tried"
    );
    session.close(Deadline::after(Duration::from_secs(5))).await;
    assert_eq!(session.closed().await, ClosedBy::Us);
    wait_for("the end of the stream", Duration::from_secs(5), || {
        drop(server.say.send(": anybody there\n\n".to_owned()));
        std::future::ready(
            (server.say.receiver_count() == 0)
                .then_some(())
                .ok_or("still read"),
        )
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_session() {
    let play = Play {
        answer: Box::new(|_| (202, vec![String::new()])),
        ..Play::default()
    };
    let (_server, session) = Server::connected(play).await;
    let failure = call(&session).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectionLost);
    assert!(failure.is_outcome_uncertain());
    assert!(matches!(session.closed().await, ClosedBy::Transport(_)));
}

#[tokio::test]
async fn a_session_that_the_server_forgot_ends_and_its_call_was_not_sent() {
    for status in [404, 410] {
        let play = Play {
            answer: Box::new(move |_| (status, Vec::new())),
            ..Play::default()
        };
        let (server, session) = Server::connected(play).await;
        let failure = call(&session).await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ConnectionLost);
        assert!(!failure.is_outcome_uncertain());
        assert!(matches!(session.closed().await, ClosedBy::Transport(_)));
        assert_eq!(server.calls(), 1);
    }
}

#[tokio::test]
async fn refusals_fail_their_call_and_nothing_else() {
    for (status, code) in [
        (401, ErrorCode::ServerUnauthorized),
        (403, ErrorCode::ServerError),
        (400, ErrorCode::ServerError),
        (503, ErrorCode::ConnectionLost),
        (502, ErrorCode::ConnectionLost),
    ] {
        let first = AtomicUsize::new(0);
        let play = Play {
            answer: Box::new(move |message| {
                if first.fetch_add(1, Ordering::SeqCst) == 0 {
                    (status, Vec::new())
                } else {
                    (200, vec![answered(message, &text("fine"))])
                }
            }),
            ..Play::default()
        };
        let (server, session) = Server::connected(play).await;
        assert_eq!(call(&session).await.unwrap_err().code(), code, "{status}");
        assert_eq!(call(&session).await.unwrap().json, text("fine"));
        assert_eq!(server.calls(), 2);
    }
}

#[tokio::test]
async fn odd_events_cost_nothing_and_oversize_ones_their_call() {
    let play = Play {
        answer: Box::new(|message| {
            let noise = [
                "event: ping\ndata: {\"x\":1}\n\n".to_owned(),
                "event: endpoint\ndata: http://elsewhere.example/\n\n".to_owned(),
                "data: no json\n\n".to_owned(),
                event(&json!({ "jsonrpc": "2.0", "id": 4711, "result": {} })),
                event(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })),
            ];
            let result = if message["params"]["name"] == "huge" {
                text(&"x".repeat(5_000_000))
            } else {
                text("fine")
            };
            let answer = answered(message, &result);
            (
                202,
                noise.into_iter().chain([answer.clone(), answer]).collect(),
            )
        }),
        ..Play::default()
    };
    let server = Server::start(play).await;
    let transport = TransportConfig::Http(Box::new(server.config(HttpKind::Sse)));
    let (options, mut events) = options(transport, FolderSink::new());
    let session = connect(options).await.unwrap();
    assert_eq!(call(&session).await.unwrap().json, text("fine"));
    assert_eq!(events.recv().await, Some(SessionEvent::ToolsChanged));
    let rpc = Rpc::CallTool {
        name: "huge".to_owned(),
        arguments: Map::new(),
    };
    let failure = session.request(rpc, limits()).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::MessageTooLarge);
    assert_eq!(call(&session).await.unwrap().json, text("fine"));
}

#[tokio::test]
async fn messages_go_to_the_servers_own_origin_only() {
    for (endpoint, is_taken) in [
        ("/messages", true),
        ("messages?session=1", true),
        ("{origin}/messages", true),
        ("http://127.0.0.1:1/messages", false),
        ("//elsewhere.example/messages", false),
        ("http://[", false),
    ] {
        let server = Server::start(Play {
            endpoint,
            ..Play::default()
        })
        .await;
        let outcome = connect(server.options(HttpKind::Sse)).await;
        assert_eq!(outcome.is_ok(), is_taken, "{endpoint}: {outcome:?}");
        if let Err(failure) = outcome {
            assert_eq!(failure.code(), ErrorCode::ConnectFailed);
            assert_eq!(server.heard.lock().len(), 1, "nothing was posted");
        }
    }
}

#[tokio::test]
async fn l34_a_server_that_knows_no_post_is_asked_the_older_way_and_remembered() {
    for stream_post in [400, 404, 405, 406, 411] {
        let server = Server::start(Play {
            stream_post,
            ..Play::default()
        })
        .await;
        let options = server.options(HttpKind::Auto);
        let session = connect(options.clone()).await.unwrap();
        assert_eq!(call(&session).await.unwrap().json, text("fine"));
        let tried = server.count("post /sse");
        assert!(tried > 0);
        let again = connect(options.clone()).await.unwrap();
        assert_eq!(call(&again).await.unwrap().json, text("fine"));
        assert_eq!(server.count("post /sse"), tried, "it is remembered");
        let stranger = ConnectOptions {
            habits: Habits::default(),
            ..options
        };
        connect(stranger).await.unwrap();
        assert!(server.count("post /sse") > tried);
    }
}

#[tokio::test]
async fn the_older_way_is_not_tried_where_that_would_be_wrong() {
    let refuses = |status| Play {
        stream_post: status,
        ..Play::default()
    };
    for (play, kind, is_strict) in [
        (refuses(405), HttpKind::Streamable, false),
        (refuses(405), HttpKind::Auto, true),
        (refuses(500), HttpKind::Auto, false),
        (refuses(401), HttpKind::Auto, false),
    ] {
        let server = Server::start(play).await;
        let mut config = server.config(kind);
        config.strict_redirect_headers = is_strict;
        config.skip_preflight = true;
        let transport = TransportConfig::Http(Box::new(config));
        let outcome = connect(options(transport, FolderSink::new()).0).await;
        assert!(outcome.is_err());
        assert_eq!(server.count("get"), 0);
    }
}

#[tokio::test]
async fn a_page_is_told_from_an_endpoint() {
    for (kind, skip_preflight, code) in [
        (HttpKind::Auto, false, ErrorCode::ServerMisconfigured),
        (HttpKind::Streamable, false, ErrorCode::ServerMisconfigured),
        (HttpKind::Streamable, true, ErrorCode::ConnectFailed),
        (HttpKind::Sse, false, ErrorCode::ServerMisconfigured),
    ] {
        let server = Server::start(Play {
            get: (200, "text/html"),
            ..Play::default()
        })
        .await;
        let mut config = server.config(kind);
        config.skip_preflight = skip_preflight;
        let transport = TransportConfig::Http(Box::new(config));
        let failure = connect(options(transport, FolderSink::new()).0)
            .await
            .unwrap_err();
        assert_eq!(failure.code(), code, "{kind:?} {skip_preflight}");
        if code == ErrorCode::ServerMisconfigured {
            assert!(
                failure.detail().contains("not an MCP endpoint"),
                "{}",
                failure.detail()
            );
            assert!(
                failure.detail().contains("text/html"),
                "{}",
                failure.detail()
            );
        }
    }
}

#[tokio::test]
async fn a_silent_event_stream_fails_the_connect_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = HttpConfig::new(format!("http://{}/sse", listener.local_addr().unwrap()));
    config.kind = HttpKind::Sse;
    let (mut options, _events) =
        options(TransportConfig::Http(Box::new(config)), FolderSink::new());
    options.deadline = Deadline::after(Duration::from_millis(300));
    let failure = connect(options).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectTimeout);
}
