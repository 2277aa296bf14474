//! Sessions over HTTP, against scripted servers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use talaria_config::{HttpConfig, ProtocolWish, TransportConfig};
use talaria_testkit::script::{HttpAction, HttpScript, Pace};
use talaria_testkit::server::HttpServer;
use talaria_testkit::{Action, Part, PayloadSpec, Record, RecordKind, Script, wait_for};
use talaria_types::{Deadline, ErrorCode, Failure, RawResult, runtime};
use tokio::task::JoinHandle;

use crate::habits::Habit;
use crate::session::{Rpc, RpcLimits, Session, SessionEvent, connect};
use crate::testing::{FolderSink, limits, options};

const SECRET: &str = "abc";

fn script(sse: bool) -> Script {
    Script::new("odd").with_http(HttpScript {
        sse,
        ..HttpScript::default()
    })
}

fn transport(server: &HttpServer) -> TransportConfig {
    let mut config = HttpConfig::new(server.url());
    config.headers = BTreeMap::from([("Authorization".to_owned(), format!("Bearer {SECRET}"))]);
    TransportConfig::Http(Box::new(config))
}

async fn connected(script: Script) -> (HttpServer, Session) {
    let server = HttpServer::start(script).unwrap();
    let (options, _events) = options(transport(&server), FolderSink::new());
    let session = connect(options).await.unwrap();
    (server, session)
}

async fn call(session: &Session, tool: &str) -> Result<RawResult, Failure> {
    call_within(session, tool, limits()).await
}

async fn call_within(
    session: &Session,
    tool: &str,
    limits: RpcLimits,
) -> Result<RawResult, Failure> {
    let rpc = Rpc::CallTool {
        name: tool.to_owned(),
        arguments: Map::new(),
    };
    session.request(rpc, limits).await
}

fn calling(
    session: &Session,
    tool: &'static str,
    limits: RpcLimits,
) -> JoinHandle<Result<RawResult, Failure>> {
    let session = session.clone();
    runtime::spawn(
        "call",
        async move { call_within(&session, tool, limits).await },
    )
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

async fn seen(server: &HttpServer, what: &str, mut is_it: impl FnMut(&Record) -> bool) -> Record {
    let found = wait_for(what, Duration::from_secs(10), || {
        let found = server
            .records()
            .all()
            .into_iter()
            .find(|record| is_it(record));
        std::future::ready(found.ok_or("not yet"))
    });
    found.await.unwrap()
}

#[tokio::test]
async fn results_arrive_as_json_and_as_events() {
    for sse in [false, true] {
        let script = script(sse).tool("t", text("hello"));
        let (server, session) = connected(script).await;
        assert_eq!(session.peer().name, "odd");
        assert_eq!(session.peer().protocol_version, "2025-11-25");
        assert_eq!(call(&session, "t").await.unwrap().json, text("hello"));
        session.close(Deadline::after(Duration::from_secs(5))).await;
        seen(&server, "the end of the session", |record| {
            record.kind == RecordKind::Delete
        })
        .await;
    }
}

#[tokio::test]
async fn a_modern_server_is_discovered_and_cancelled_by_closing_the_response() {
    let discovered = json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {} },
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "modern", "version": "2" } },
    });
    for sse in [false, true] {
        let http = HttpScript {
            sse,
            sessions: false,
            ..HttpScript::default()
        };
        // A JSON body has no room for anything before the answer.
        let progress = sse.then_some(Action::Progress { progress: 1 });
        let hang: Vec<Action> = progress.into_iter().chain([Action::Hang]).collect();
        let script = Script::new("odd")
            .with_http(http)
            .on_method(
                "server/discover",
                [Action::Answer {
                    result: discovered.clone(),
                }],
            )
            .on_call("hang", hang);
        let (server, session) = connected(script).await;
        assert_eq!(session.peer().name, "modern");
        assert_eq!(session.peer().protocol_version, "2026-07-28");
        let limits = limits();
        let cancel = limits.cancel.clone();
        let calling = calling(&session, "hang", limits);
        let request = seen(&server, "the call", |record| record.calls("hang")).await;
        assert_eq!(request.headers["mcp-method"], "tools/call");
        assert_eq!(request.headers["mcp-name"], "hang");
        cancel.cancel();
        assert_eq!(
            calling.await.unwrap().unwrap_err().code(),
            ErrorCode::Cancelled
        );
        seen(&server, "the closed response", |record| {
            record.kind == RecordKind::Disconnected
        })
        .await;
        assert_eq!(server.records().count_of("notifications/cancelled"), 0);
    }
}

#[tokio::test]
async fn an_old_server_is_told_of_a_cancellation() {
    for sse in [false, true] {
        let (server, session) = connected(script(sse).on_call("hang", [Action::Hang])).await;
        let idle = Duration::from_millis(300);
        let calling = calling(&session, "hang", RpcLimits { idle, ..limits() });
        let failure = calling.await.unwrap().unwrap_err();
        assert_eq!(failure.code(), ErrorCode::Timeout);
        assert!(failure.is_outcome_uncertain());
        let request = seen(&server, "the call", |record| record.calls("hang")).await;
        let cancelled = seen(&server, "the cancellation", |record| {
            record.method() == Some("notifications/cancelled")
        });
        assert_eq!(
            cancelled.await.message["params"]["requestId"],
            request.message["id"]
        );
    }
}

#[tokio::test]
async fn progress_renews_the_idle_timer_over_events() {
    let mut actions = Vec::new();
    for progress in 0..6 {
        actions.push(Action::Progress { progress });
        actions.push(Action::Delay { ms: 100 });
    }
    actions.push(Action::Answer {
        result: text("late"),
    });
    let (_server, session) = connected(script(true).on_call("slow", actions)).await;
    let idle = Duration::from_millis(350);
    let result = call_within(&session, "slow", RpcLimits { idle, ..limits() }).await;
    assert_eq!(result.unwrap().json, text("late"));
}

#[tokio::test]
async fn the_bytes_of_an_answer_that_is_not_whole_renew_nothing() {
    let drip = Action::Send {
        parts: vec![
            Part::Text("{\"jsonrpc\":\"2.0\",\"id\":".to_owned()),
            Part::Id,
            Part::Text(format!(",\"result\":{}}}", text(&"drop ".repeat(2_000)))),
        ],
        pace: Pace::Drip,
    };
    for script in [script(false), script(true), Script::new("odd").legacy()] {
        let kind = format!("{:?}", script.http);
        let (_server, session) = connected(script.on_call("slow", [drip.clone()])).await;
        let idle = Duration::from_millis(300);
        let failure = call_within(&session, "slow", RpcLimits { idle, ..limits() })
            .await
            .unwrap_err();
        assert_eq!(failure.code(), ErrorCode::Timeout, "{kind}");
        assert!(failure.is_outcome_uncertain());
    }
}

#[tokio::test]
async fn big_payloads_arrive_as_handles() {
    for sse in [false, true] {
        let payload = PayloadSpec::of(2_000_000);
        let answer = talaria_testkit::script::document_answer("x://y", payload);
        let (_server, session) = connected(script(sse).on_call("big", [answer])).await;
        let result = call(&session, "big").await.unwrap();
        let payload = result.payloads.get("/content/0/resource/blob");
        let Some(talaria_types::Payload::Staged(staged)) = payload else {
            panic!("{payload:?}");
        };
        assert_eq!(staged.bytes, 2_000_000);
    }
}

#[tokio::test]
async fn an_oversize_answer_fails_its_call_and_the_session_survives() {
    for sse in [false, true] {
        let answer = talaria_testkit::script::document_answer("x://y", PayloadSpec::of(6_000_000));
        let script = script(sse)
            .on_call("huge", [answer])
            .tool("t", text("fine"));
        let (_server, session) = connected(script).await;
        let failure = call(&session, "huge").await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::MessageTooLarge);
        assert!(failure.is_outcome_uncertain());
        assert_eq!(call(&session, "t").await.unwrap().json, text("fine"));
    }
}

#[tokio::test]
async fn odd_messages_are_understood_or_fail_their_call() {
    let odd = |message: &str| {
        let mut parts = Vec::new();
        for (index, piece) in message.split("ID").enumerate() {
            if index > 0 {
                parts.push(Part::Id);
            }
            parts.push(Part::Text(piece.to_owned()));
        }
        [Action::Send {
            parts,
            pace: Pace::Fast,
        }]
    };
    for sse in [false, true] {
        let script = script(sse)
            .on_call("bare", odd(r#"{"id":"ID","result":{"ok":1},"error":null}"#))
            .on_call("batch", odd(r#"[{"method":"notifications/x"},{"id":ID,"result":{"ok":1}}]"#))
            .on_call("surrogate", odd(r#"{"jsonrpc":"2.0","id":ID,"result":{"ok":1},"x":"\ud800"}"#))
            .on_call("cut", odd(r#"{"jsonrpc":"2.0","id":ID,"result":{"#))
            .on_call("other", odd(r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#))
            .on_call("words", odd(r#"{"error":"Session not found"}"#))
            .on_call("no_id", odd(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#));
        let (_server, session) = connected(script).await;
        for tool in ["bare", "batch", "surrogate"] {
            assert_eq!(
                call(&session, tool).await.unwrap().json,
                json!({ "ok": 1 }),
                "{tool} {sse}"
            );
        }
        for (tool, code) in [
            ("cut", ErrorCode::MalformedMessage),
            (
                "other",
                if sse {
                    ErrorCode::ConnectionLost
                } else {
                    ErrorCode::MalformedMessage
                },
            ),
        ] {
            let failure = call(&session, tool).await.unwrap_err();
            assert_eq!(failure.code(), code, "{tool} {sse}");
            assert!(failure.is_outcome_uncertain());
        }
        // FR-144.
        for (tool, words) in [("words", "Session not found"), ("no_id", "Invalid Request")] {
            let failure = call(&session, tool).await.unwrap_err();
            assert_eq!(failure.code(), ErrorCode::ServerError);
            assert_eq!(failure.server_words(), Some(words));
        }
    }
}

#[tokio::test]
async fn fr_143_an_unknown_session_is_replaced_and_the_call_repeated_once() {
    let script = script(false).tool("t", text("fresh"));
    let (server, session) = connected(script).await;
    server.forget_sessions();
    assert_eq!(call(&session, "t").await.unwrap().json, text("fresh"));
    let initialized: Vec<Record> = server
        .records()
        .all()
        .into_iter()
        .filter(|record| record.method() == Some("initialize"))
        .collect();
    assert_eq!(initialized.len(), 2);
    assert!(
        initialized
            .iter()
            .all(|record| !record.headers.contains_key("mcp-session-id"))
    );
}

#[tokio::test]
async fn fr_143_a_server_that_knows_no_session_is_not_asked_for_ever() {
    for (status, body) in [
        (404, "x"),
        (400, "Bad Request: No valid session ID provided"),
    ] {
        let body = body.to_owned();
        let answer = HttpAction::Answer {
            status,
            headers: Vec::new(),
            body,
        };
        let (server, session) = connected(script(false).on_call("t", [answer.into()])).await;
        let failure = call(&session, "t").await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ConnectionLost);
        assert!(!failure.is_outcome_uncertain(), "it was not executed");
        assert!(server.records().calls_of("t") <= 2);
    }
}

#[tokio::test]
async fn fr_145_a_server_without_an_event_stream_is_not_asked_again_and_again() {
    for (status, body) in [(200, "see docs"), (400, ""), (405, "")] {
        let http = HttpScript {
            get: Some((status, body.to_owned())),
            ..HttpScript::default()
        };
        let script = Script::new("odd").with_http(http).tool("t", text("fine"));
        let (server, session) = connected(script).await;
        seen(&server, "the attempt", |record| {
            record.kind == RecordKind::Get
        })
        .await;
        for _ in 0..3 {
            assert_eq!(call(&session, "t").await.unwrap().json, text("fine"));
        }
        let asked = |record: &Record| record.kind == RecordKind::Get;
        assert_eq!(server.records().all().into_iter().filter(asked).count(), 1);
    }
}

#[tokio::test]
async fn fr_147_a_reset_connection_fails_the_call_promptly() {
    let begun = vec![Action::Progress { progress: 1 }, HttpAction::Reset.into()];
    for (actions, kinds) in [
        (begun, [true].as_slice()),
        (vec![HttpAction::Reset.into()], &[false, true]),
        (vec![HttpAction::HalfClose.into()], &[false, true]),
    ] {
        for &sse in kinds {
            let script = script(sse)
                .on_call("t", actions.clone())
                .tool("ok", text("fine"));
            let (server, session) = connected(script).await;
            let began = runtime::now();
            let failure = call(&session, "t").await.unwrap_err();
            assert_eq!(failure.code(), ErrorCode::ConnectionLost, "{actions:?}");
            assert!(failure.is_outcome_uncertain());
            assert_eq!(
                failure.server().map(ToString::to_string).as_deref(),
                Some("odd")
            );
            assert!(runtime::now().duration_since(began) < Duration::from_secs(5));
            assert_eq!(server.records().calls_of("t"), 1);
            assert_eq!(call(&session, "ok").await.unwrap().json, text("fine"));
        }
    }
}

#[tokio::test]
async fn fr_149_configured_headers_are_on_every_request() {
    let http = HttpScript {
        token: Some(SECRET.to_owned()),
        ..HttpScript::default()
    };
    let script = Script::new("odd").with_http(http).tool("t", text("fine"));
    let (server, session) = connected(script).await;
    call(&session, "t").await.unwrap();
    server.forget_sessions();
    call(&session, "t").await.unwrap();
    session.close(Deadline::after(Duration::from_secs(5))).await;
    let records = server.records().all();
    assert!(
        records
            .iter()
            .any(|record| record.kind == RecordKind::Delete)
    );
    for record in records
        .iter()
        .filter(|record| record.kind != RecordKind::Started)
    {
        assert_eq!(
            record.headers.get("authorization").map(String::as_str),
            Some("Bearer abc"),
            "{record:?}"
        );
    }
}

#[tokio::test]
async fn fr_150_refused_credentials_are_told_without_the_secret() {
    let http = HttpScript {
        token: Some("other".to_owned()),
        ..HttpScript::default()
    };
    let server = HttpServer::start(Script::new("odd").with_http(http)).unwrap();
    let (options, _events) = options(transport(&server), FolderSink::new());
    let failure = connect(options).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ServerUnauthorized);
    assert!(failure.detail().contains("authorization"));
    assert!(!format!("{failure:?}").contains(SECRET));
    // Forbidding one tool says nothing of the credentials.
    for (status, code) in [
        (401, ErrorCode::ServerUnauthorized),
        (403, ErrorCode::ServerError),
    ] {
        let challenge = ("WWW-Authenticate".to_owned(), "Bearer".to_owned());
        let answer = HttpAction::Answer {
            status,
            headers: vec![challenge],
            body: "no".to_owned(),
        };
        let (server, session) = connected(script(false).on_call("t", [answer.into()])).await;
        let failure = call(&session, "t").await.unwrap_err();
        assert_eq!(failure.code(), code);
        assert!(!failure.is_outcome_uncertain());
        assert_eq!(server.records().calls_of("t"), 1);
    }
}

#[tokio::test]
async fn http_errors_are_told_with_their_status() {
    let answer = |status, headers: &[(&str, &str)], body: &str| {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        [HttpAction::Answer {
            status,
            headers,
            body: body.to_owned(),
        }
        .into()]
    };
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"over quota"}}"#;
    let script = script(false)
        .on_call("busy", answer(429, &[("Retry-After", "7")], "slow down"))
        .on_call("gateway", answer(502, &[], "bad gateway"))
        .on_call(
            "quota",
            answer(400, &[("Content-Type", "application/json")], error),
        )
        .on_call(
            "moved",
            answer(302, &[("Location", "https://elsewhere.example/mcp")], ""),
        )
        .on_call(
            "page",
            answer(200, &[("Content-Type", "text/html")], "<html>hello</html>"),
        )
        .on_call("nothing", answer(200, &[], ""));
    let (_server, session) = connected(script).await;
    let busy = call(&session, "busy").await.unwrap_err();
    assert_eq!(busy.code(), ErrorCode::ServerError);
    assert_eq!(busy.retry_hint(), Some(Duration::from_secs(7)));
    assert_eq!(busy.server_words(), Some("slow down"));
    assert!(!busy.is_outcome_uncertain());
    let gateway = call(&session, "gateway").await.unwrap_err();
    assert_eq!(gateway.code(), ErrorCode::ConnectionLost);
    assert!(gateway.is_outcome_uncertain());
    let quota = call(&session, "quota").await.unwrap_err();
    assert_eq!(quota.code(), ErrorCode::ServerError);
    assert_eq!(quota.server_words(), Some("over quota"));
    let moved = call(&session, "moved").await.unwrap_err();
    assert!(
        moved.detail().contains("moved to another address"),
        "{}",
        moved.detail()
    );
    assert_eq!(
        moved.server_words(),
        Some("Location: https://elsewhere.example/mcp")
    );
    for tool in ["page", "nothing"] {
        let failure = call(&session, tool).await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::MalformedMessage);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_apart_from_one_that_went() {
    let server = HttpServer::start(script(false).on_call("hang", [Action::Hang])).unwrap();
    let (options, _events) = options(transport(&server), FolderSink::new());
    let session = connect(options.clone()).await.unwrap();
    let hanging = calling(&session, "hang", limits());
    seen(&server, "the call", |record| record.calls("hang")).await;
    let began = runtime::now();
    drop(server);
    let failure = hanging.await.unwrap().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectionLost);
    assert!(failure.is_outcome_uncertain());
    assert!(runtime::now().duration_since(began) < Duration::from_secs(1));
    let failure = call(&session, "hang").await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectionLost);
    assert!(!failure.is_outcome_uncertain(), "it was never sent");
    let failure = connect(options).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectFailed);
    assert!(failure.detail().contains("refused"), "{}", failure.detail());
}

#[tokio::test]
async fn a_silent_server_fails_the_connect_in_time() {
    let script = script(false)
        .on_method("server/discover", [Action::Hang])
        .on_method("initialize", [Action::Hang]);
    let server = HttpServer::start(script).unwrap();
    let (mut options, _events) = options(transport(&server), FolderSink::new());
    options.deadline = Deadline::after(Duration::from_millis(600));
    let failure = connect(options).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectTimeout);
    assert_eq!(server.records().count_of("initialize"), 1);
}

#[tokio::test]
async fn whatever_an_old_server_says_to_discover_it_is_asked_the_old_way() {
    let answer = |status, body: &str| {
        let body = body.to_owned();
        vec![
            HttpAction::Answer {
                status,
                headers: Vec::new(),
                body,
            }
            .into(),
        ]
    };
    for actions in [
        answer(404, "not found"),
        answer(
            400,
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"x"}}"#,
        ),
        answer(500, "oops"),
        answer(202, ""),
        answer(200, "<html>"),
        vec![HttpAction::Reset.into()],
        vec![Action::Hang],
    ] {
        for sse in [false, true] {
            let script = script(sse)
                .on_method("server/discover", actions.clone())
                .tool("t", text("fine"));
            let server = HttpServer::start(script).unwrap();
            let (mut options, _events) = options(transport(&server), FolderSink::new());
            options.deadline = Deadline::after(Duration::from_secs(6));
            let session = connect(options).await.unwrap();
            assert_eq!(session.peer().protocol_version, "2025-11-25", "{actions:?}");
            assert_eq!(call(&session, "t").await.unwrap().json, text("fine"));
        }
    }
}

#[tokio::test]
async fn what_comes_on_the_common_stream_is_taken_in() {
    // The answer itself may come there, as old servers do it.
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let script = script(true).on_call(
        "t",
        [
            Action::Send {
                parts: vec![Part::Text(changed.to_string())],
                pace: Pace::Drip,
            },
            Action::Request {
                id: 1,
                method: "ping".to_owned(),
                params: json!({}),
            },
            Action::AwaitReplies { count: 1 },
            Action::Answer {
                result: text("fine"),
            },
        ],
    );
    let server = HttpServer::start(script).unwrap();
    let (options, mut events) = options(transport(&server), FolderSink::new());
    let session = connect(options).await.unwrap();
    assert_eq!(call(&session, "t").await.unwrap().json, text("fine"));
    assert_eq!(events.recv().await, Some(SessionEvent::ToolsChanged));
}

#[tokio::test]
async fn annotated_arguments_become_headers() {
    let discovered =
        json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
    let schema = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    });
    let http = HttpScript {
        sessions: false,
        ..HttpScript::default()
    };
    let script = Script::new("odd")
        .with_http(http)
        .on_method("server/discover", [Action::Answer { result: discovered }])
        .with_tools(vec![
            json!({ "name": "t", "inputSchema": schema, "odd": null }),
        ])
        .tool("t", text("fine"));
    let (server, session) = connected(script).await;
    let list = session
        .request(Rpc::ListTools { cursor: None }, limits())
        .await
        .unwrap();
    assert_eq!(list.json["tools"][0]["odd"], Value::Null);
    let arguments = Map::from_iter([("region".to_owned(), json!("eu"))]);
    let rpc = Rpc::CallTool {
        name: "t".to_owned(),
        arguments,
    };
    session.request(rpc, limits()).await.unwrap();
    let request = seen(&server, "the call", |record| record.calls("t")).await;
    assert_eq!(
        request.headers.get("mcp-param-region").map(String::as_str),
        Some("eu")
    );
}

#[tokio::test]
async fn s12_redirects_are_followed_without_what_logs_in_elsewhere() {
    let redirect = |status, to: &str| {
        let headers = vec![("Location".to_owned(), to.to_owned())];
        Action::from(HttpAction::Answer {
            status,
            headers,
            body: String::new(),
        })
    };
    let http = HttpScript {
        sessions: false,
        ..HttpScript::default()
    };
    let elsewhere = Script::new("other")
        .with_http(http)
        .tool("away", text("there"));
    let elsewhere = HttpServer::start(elsewhere).unwrap();
    let script = script(false)
        .on_call("back", [redirect(307, "/mcp")])
        .tool("back", text("fine"))
        .on_call("away", [redirect(308, &elsewhere.url())])
        .on_call("moved", [redirect(302, &elsewhere.url())]);
    let server = HttpServer::start(script).unwrap();
    for (is_strict, key) in [(false, Some("k")), (true, None)] {
        let TransportConfig::Http(mut config) = transport(&server) else {
            unreachable!("it is HTTP");
        };
        config.strict_redirect_headers = is_strict;
        config.identity_header = Some(("X-Key".to_owned(), "k".to_owned()));
        let (options, _events) = options(TransportConfig::Http(config), FolderSink::new());
        let session = connect(options).await.unwrap();
        assert_eq!(call(&session, "back").await.unwrap().json, text("fine"));
        assert_eq!(call(&session, "away").await.unwrap().json, text("there"));
        let arrived = elsewhere
            .records()
            .all()
            .into_iter()
            .rfind(|record| record.calls("away"));
        let headers = arrived.unwrap().headers;
        assert_eq!(headers.get("authorization"), None);
        assert_eq!(headers.get("x-key").map(String::as_str), key);
        // The method would become another.
        let failure = call(&session, "moved").await.unwrap_err();
        let words = failure.server_words().unwrap_or_default();
        assert!(words.contains(&elsewhere.url()), "{words}");
    }
    assert_eq!(elsewhere.records().calls_of("moved"), 0);
}

#[tokio::test]
async fn a_server_that_left_the_older_transport_is_asked_anew() {
    let server = HttpServer::start(script(false).tool("t", text("fine"))).unwrap();
    let (options, _events) = options(transport(&server), FolderSink::new());
    let legacy = Habit {
        is_legacy_http: true,
        ..Habit::default()
    };
    options
        .habits
        .learn(&options.server, &options.transport, legacy);
    let session = connect(options.clone()).await.unwrap();
    assert_eq!(call(&session, "t").await.unwrap().json, text("fine"));
    let habit = options.habits.of(&options.server, &options.transport);
    assert!(habit.is_streamable && !habit.is_legacy_http, "{habit:?}");
}

#[tokio::test]
async fn an_answer_about_some_session_is_no_reason_to_repeat_its_call() {
    let answer = |status, id: &str, code: i64| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"Unknown session: tab-3"}}}}"#
        );
        HttpAction::Answer {
            status,
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body,
        }
    };
    // rmcp's third request.
    for (status, id, code, calls) in [
        (400, "2", -32000, 1),
        (404, "2", -32000, 1),
        (404, r#""2""#, -32000, 1),
        (404, "2", -32001, 2),
        (404, "null", -32000, 2),
    ] {
        let script = script(false).on_call("t", [answer(status, id, code).into()]);
        let (server, session) = connected(script).await;
        let failure = call(&session, "t").await.unwrap_err();
        assert_eq!(
            server.records().calls_of("t"),
            calls,
            "{status} {id} {code}"
        );
        if calls == 1 {
            assert_eq!(failure.code(), ErrorCode::ServerError);
            assert_eq!(failure.server_words(), Some("Unknown session: tab-3"));
        }
    }
}

#[tokio::test]
async fn a_gateway_that_has_no_server_for_now_may_have_had_one() {
    let answer = HttpAction::Answer {
        status: 503,
        headers: vec![("Retry-After".to_owned(), "3".to_owned())],
        body: "down".to_owned(),
    };
    let (_server, session) = connected(script(false).on_call("t", [answer.into()])).await;
    let failure = call(&session, "t").await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectionLost);
    assert!(failure.is_outcome_uncertain());
    assert_eq!(failure.retry_hint(), Some(Duration::from_secs(3)));
}

/// Hands every connection to a socket on to a server.
fn forward(socket: &std::path::Path, to: std::net::SocketAddr) {
    let listener = tokio::net::UnixListener::bind(socket).unwrap();
    drop(runtime::spawn("forward", async move {
        while let Ok((mut from, _)) = listener.accept().await {
            drop(runtime::spawn("forward_one", async move {
                let mut to = tokio::net::TcpStream::connect(to).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut from, &mut to).await);
            }));
        }
    }));
}

#[tokio::test]
async fn a_server_on_a_socket_is_reached_and_redirects_stay_there() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("server.sock");
    let elsewhere = HttpServer::start(script(false).tool("away", text("stolen"))).unwrap();
    let redirect = HttpAction::Answer {
        status: 307,
        headers: vec![("Location".to_owned(), elsewhere.url())],
        body: String::new(),
    };
    let script = script(true)
        .tool("t", text("fine"))
        .on_call("away", [redirect.into()]);
    let server = HttpServer::start(script).unwrap();
    forward(&socket, server.address());
    let mut config = HttpConfig::new("http://localhost/mcp");
    config.unix_socket = Some(socket);
    let transport = TransportConfig::Http(Box::new(config));
    let (mut options, _events) = options(transport, FolderSink::new());
    let proxied = BTreeMap::from([("ALL_PROXY".to_owned(), "http://127.0.0.1:1".to_owned())]);
    options.environment = std::sync::Arc::new(proxied);
    let session = connect(options).await.unwrap();
    assert_eq!(call(&session, "t").await.unwrap().json, text("fine"));
    assert!(call(&session, "away").await.is_err());
    assert_eq!(elsewhere.records().calls_of("away"), 0);
}

#[tokio::test]
async fn the_revision_that_is_wished_for_is_spoken_and_no_other() {
    let discovered =
        json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
    let both = Script::new("both")
        .with_http(HttpScript {
            sessions: false,
            ..HttpScript::default()
        })
        .on_method("server/discover", [Action::Answer { result: discovered }]);
    for (wish, version, initialized) in [
        (ProtocolWish::Auto, "2026-07-28", 0),
        (ProtocolWish::Stateless, "2026-07-28", 0),
        (ProtocolWish::Legacy, "2025-11-25", 1),
    ] {
        let server = HttpServer::start(both.clone()).unwrap();
        let (mut options, _events) = options(transport(&server), FolderSink::new());
        options.protocol = wish;
        let session = connect(options).await.unwrap();
        assert_eq!(session.peer().protocol_version, version);
        assert_eq!(server.records().count_of("initialize"), initialized);
        assert_eq!(
            server.records().count_of("server/discover"),
            1 - initialized
        );
    }
    let server = HttpServer::start(script(false)).unwrap();
    let (mut options, _events) = options(transport(&server), FolderSink::new());
    options.protocol = ProtocolWish::Stateless;
    let failure = connect(options).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectFailed);
    assert_eq!(server.records().count_of("initialize"), 0);
}

#[tokio::test]
async fn a_request_that_is_accepted_without_a_stream_for_its_answer_fails_promptly() {
    let accepted = HttpAction::Answer {
        status: 202,
        headers: Vec::new(),
        body: String::new(),
    };
    for sessions in [false, true] {
        let http = HttpScript {
            sessions,
            ..HttpScript::default()
        };
        let script = Script::new("odd")
            .with_http(http)
            .on_call("t", [accepted.clone().into()])
            .tool("ok", text("fine"));
        let (_server, session) = connected(script).await;
        let began = runtime::now();
        let failure = call(&session, "t").await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::MalformedMessage);
        assert!(failure.is_outcome_uncertain());
        assert!(runtime::now().duration_since(began) < Duration::from_secs(5));
        assert_eq!(call(&session, "ok").await.unwrap().json, text("fine"));
    }
}

/// A server that closes every connection after one response, made of the request by the test.
async fn one_shot(respond: impl Fn(&str, &str) -> String + Send + 'static) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(runtime::spawn("one_shot", async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let (head, body) = loop {
                let text = String::from_utf8_lossy(&request).to_lowercase();
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let length = head.split("content-length: ").nth(1);
                    let length =
                        length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
                    if body.len() >= length {
                        break (head.to_owned(), body.to_owned());
                    }
                }
                if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    break (String::new(), String::new());
                }
            };
            let response = respond(&head, &body);
            let head =
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n";
            let whole = if response.starts_with("HTTP/") {
                response
            } else {
                format!("{head}\r\n{response}")
            };
            if stream.write_all(whole.as_bytes()).await.is_ok() {
                drop(stream.shutdown().await);
            }
        }
    }));
    url
}

const NO_CONTENT: &str = "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const NOT_ALLOWED: &str =
    "HTTP/1.1 405 Method Not Allowed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// The id of a request as rmcp counts: discover, initialize, then the calls.
fn handshake(body: &str) -> Option<String> {
    let initialized = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "serverInfo": { "name": "odd", "version": "1" },
    });
    if body.contains("server/discover") {
        Some(NOT_ALLOWED.to_owned())
    } else if body.contains("notifications/") {
        Some(NO_CONTENT.to_owned())
    } else if body.contains("\"initialize\"") {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": initialized });
        Some(format!("data: {message}\n\n"))
    } else {
        None
    }
}

async fn session_at(url: String) -> Session {
    let (options, _events) = options(TransportConfig::http(url), FolderSink::new());
    connect(options).await.unwrap()
}

#[tokio::test]
async fn a_response_that_breaks_off_is_resumed_after_its_last_event() {
    let url = one_shot(|head, body| {
        if let Some(response) = handshake(body) {
            return response;
        }
        match (head.starts_with("post"), head.contains("last-event-id: e1")) {
            (true, _) => "id: e1\nretry: 10\ndata:\n\n".to_owned(),
            (false, true) => format!(
                "id: e2\ndata: {}\n\n",
                json!({ "jsonrpc": "2.0", "id": 2, "result": { "resumed": 1 } })
            ),
            (false, false) => NOT_ALLOWED.to_owned(),
        }
    });
    let session = session_at(url.await).await;
    assert_eq!(
        call(&session, "t").await.unwrap().json,
        json!({ "resumed": 1 })
    );
}

#[tokio::test]
async fn a_response_that_cannot_be_resumed_fails_its_call_promptly() {
    // Once the server refuses to resume, once it resumes with nothing, again and again.
    for refuses in [true, false] {
        let url = one_shot(move |head, body| {
            if let Some(response) = handshake(body) {
                return response;
            }
            let resumes = head.contains("last-event-id: e1") && !refuses;
            if head.starts_with("post") {
                "id: e1\ndata:\n\n".to_owned()
            } else if resumes {
                ": nothing\n\n".to_owned()
            } else {
                NOT_ALLOWED.to_owned()
            }
        });
        let session = session_at(url.await).await;
        let began = runtime::now();
        let failure = call(&session, "t").await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ConnectionLost);
        assert!(failure.is_outcome_uncertain());
        assert!(runtime::now().duration_since(began) < Duration::from_secs(5));
    }
}
