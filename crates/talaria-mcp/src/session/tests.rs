//! Sessions over pipes, against a server written by hand.

use std::time::Duration;

use serde_json::{Map, Value, json};
use talaria_config::TransportConfig;
use talaria_types::{Deadline, ErrorCode, Failure, RawResult, runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::testing::{FolderSink, Server, limits, options};

struct Fixture {
    server: Server,
    session: Session,
    events: mpsc::Receiver<SessionEvent>,
    sink: Arc<FolderSink>,
}

fn unused_transport() -> TransportConfig {
    TransportConfig::Stdio {
        command: "unused".to_owned(),
        args: Vec::new(),
        env: std::collections::BTreeMap::new(),
        cwd: None,
    }
}

/// A session whose server is played by the test.
async fn connected() -> Fixture {
    let sink = FolderSink::new();
    let (options, events) = options(
        unused_transport(),
        Arc::clone(&sink) as Arc<dyn PayloadSink>,
    );
    let (mut server, reader, writer) = Server::new();
    let connecting = runtime::spawn("connect", async move {
        connect::over_pipes(&options, reader, writer).await
    });
    server.shake_hands().await;
    let session = connecting.await.unwrap().unwrap();
    Fixture {
        server,
        session,
        events,
        sink,
    }
}

impl Fixture {
    fn call(&self) -> JoinHandle<Result<RawResult, Failure>> {
        self.call_within(limits())
    }

    fn call_within(&self, limits: RpcLimits) -> JoinHandle<Result<RawResult, Failure>> {
        let session = self.session.clone();
        runtime::spawn("call", async move {
            let rpc = Rpc::CallTool {
                name: "t".to_owned(),
                arguments: Map::new(),
            };
            session.request(rpc, limits).await
        })
    }

    /// Starts a call and returns its id as the server sees it.
    async fn call_seen(&mut self) -> (JoinHandle<Result<RawResult, Failure>>, Value) {
        let call = self.call();
        let request = self.server.expect("tools/call").await;
        (call, request["id"].clone())
    }

    /// The connection works: a call is answered.
    async fn still_works(&mut self) {
        let (call, id) = self.call_seen().await;
        self.server
            .send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": true } }))
            .await;
        assert_eq!(call.await.unwrap().unwrap().json, json!({ "ok": true }));
    }
}

#[tokio::test]
async fn tells_what_the_handshake_told() {
    let fixture = connected().await;
    assert_eq!(
        fixture.session.peer(),
        &PeerInfo {
            name: "odd".to_owned(),
            version: "1".to_owned(),
            protocol_version: "2025-11-25".to_owned(),
            tools: true,
            resources: false,
            prompts: false,
            instructions: None,
            pid: None,
        }
    );
}

#[tokio::test]
async fn introduces_itself_without_capabilities() {
    let (options, _events) = options(unused_transport(), FolderSink::new());
    let (mut server, reader, writer) = Server::new();
    let connecting = runtime::spawn("connect", async move {
        connect::over_pipes(&options, reader, writer).await
    });
    let discover = server.expect("server/discover").await;
    server
        .send(&json!({ "id": discover["id"], "error": { "code": -32601, "message": "no" } }))
        .await;
    let initialize = server.initialize().await;
    assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(initialize["params"]["clientInfo"]["name"], "talaria");
    assert_eq!(initialize["params"]["capabilities"], json!({}));
    connecting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_modern_server_is_discovered() {
    let (options, mut events) = options(unused_transport(), FolderSink::new());
    let (mut server, reader, writer) = Server::new();
    let connecting = runtime::spawn("connect", async move {
        connect::over_pipes(&options, reader, writer).await
    });
    let discover = server.expect("server/discover").await;
    let result = json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": { "listChanged": true }, "resources": {}, "prompts": null },
        "instructions": "be kind",
    });
    server
        .send(&json!({ "jsonrpc": "2.0", "id": discover["id"], "result": result }))
        .await;
    let session = connecting.await.unwrap().unwrap();
    let peer = session.peer();
    assert_eq!(peer.protocol_version, "2026-07-28");
    assert_eq!(
        (peer.tools, peer.resources, peer.prompts),
        (true, true, false)
    );
    assert_eq!(peer.instructions.as_deref(), Some("be kind"));
    let listen = server.expect("subscriptions/listen").await;
    assert_eq!(
        listen["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    let changed = json!({
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": { "_meta": { "io.modelcontextprotocol/subscriptionId": listen["id"] } },
    });
    server.send(&changed).await;
    assert_eq!(events.recv().await, Some(SessionEvent::ToolsChanged));
}

#[tokio::test]
async fn an_old_server_that_is_silent_to_discover_still_works() {
    let (mut options, _events) = options(unused_transport(), FolderSink::new());
    options.deadline = Deadline::after(Duration::from_secs(3));
    let (mut server, reader, writer) = Server::new();
    let connecting = runtime::spawn("connect", async move {
        connect::over_pipes(&options, reader, writer).await
    });
    let discover = server.expect("server/discover").await;
    let initialize = server.next().await.unwrap();
    assert_eq!(initialize["method"], "initialize");
    // Slow rather than silent: its late answer must not end the handshake.
    let late = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} });
    server
        .send(&json!({ "jsonrpc": "2.0", "id": discover["id"], "result": late }))
        .await;
    let result = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": null });
    server
        .send(&json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": result }))
        .await;
    let session = connecting.await.unwrap().unwrap();
    assert_eq!(session.peer().protocol_version, "2024-11-05");
    assert_eq!(session.peer().name, "unknown");
}

#[tokio::test]
async fn whatever_a_server_has_against_discover_it_is_initialized() {
    for reply in [
        json!({ "error": { "code": -32022, "message": "x", "data": { "supported": ["2025-11-25"] } } }),
        json!({ "error": { "code": -32020, "message": "header mismatch" } }),
        json!({ "error": "what?" }),
        json!({ "result": { "supportedVersions": ["2025-11-25"], "capabilities": {} } }),
        json!({ "result": "what?" }),
        json!({ "result": {} }),
    ] {
        let (options, _events) = options(unused_transport(), FolderSink::new());
        let (mut server, reader, writer) = Server::new();
        let connecting = runtime::spawn("connect", async move {
            connect::over_pipes(&options, reader, writer).await
        });
        let discover = server.expect("server/discover").await;
        let mut message = reply.clone();
        message["id"] = discover["id"].clone();
        server.send(&message).await;
        server.initialize().await;
        let session = connecting.await.unwrap().unwrap();
        assert_eq!(session.peer().protocol_version, "2025-11-25", "{reply}");
    }
}

#[tokio::test]
async fn a_broken_element_of_a_batch_costs_its_own_call_only() {
    let mut fixture = connected().await;
    let (good, good_id) = fixture.call_seen().await;
    let (broken, broken_id) = fixture.call_seen().await;
    let batch = format!(
        r#"[{{"jsonrpc":"2.0","id":{good_id},"result":{{"ok":1}}}},{{"jsonrpc":"2.0","id":{broken_id},"result":{{"x":"\x"}}}}]"#
    );
    fixture.server.write(format!("{batch}\n").as_bytes()).await;
    assert_eq!(good.await.unwrap().unwrap().json, json!({ "ok": 1 }));
    assert_eq!(
        broken.await.unwrap().unwrap_err().code(),
        ErrorCode::MalformedMessage
    );
}

#[tokio::test]
async fn a_server_that_never_answers_fails_the_connect_in_time() {
    let (mut options, _events) = options(unused_transport(), FolderSink::new());
    options.deadline = Deadline::after(Duration::from_millis(300));
    let (_server, reader, writer) = Server::new();
    let failure = connect::over_pipes(&options, reader, writer)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectTimeout);
}

#[tokio::test]
async fn a_server_that_refuses_the_handshake_is_quoted() {
    let (options, _events) = options(unused_transport(), FolderSink::new());
    let (mut server, reader, writer) = Server::new();
    let connecting = runtime::spawn("connect", async move {
        connect::over_pipes(&options, reader, writer).await
    });
    for method in ["server/discover", "initialize"] {
        let request = server.expect(method).await;
        let error = json!({ "code": -32000, "message": "licence expired" });
        server
            .send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }))
            .await;
    }
    let failure = connecting.await.unwrap().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectFailed);
    assert_eq!(failure.server_words(), Some("licence expired"));
}

#[tokio::test]
async fn a_result_arrives_raw() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    let result = json!({ "content": [{ "type": "hologram", "x": [1, null] }], "isError": 7 });
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
        .await;
    assert_eq!(call.await.unwrap().unwrap().json, result);
}

#[tokio::test]
async fn a_big_payload_arrives_as_a_handle() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    let block = json!({ "type": "audio", "data": "A".repeat(400_000), "mimeType": "audio/wav" });
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [block] } }))
        .await;
    let result = call.await.unwrap().unwrap();
    assert_eq!(
        result.payloads.keys().collect::<Vec<_>>(),
        ["/content/0/data"]
    );
    assert_eq!(fixture.sink.files(), 1);
    drop(result);
    assert_eq!(fixture.sink.files(), 0);
}

#[tokio::test]
async fn odd_spellings_of_a_response_are_understood() {
    let mut fixture = connected().await;
    for spelling in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"ok":1}}"#,
        r#"{"id":ID,"result":{"ok":1}}"#,
        r#"{"jsonrpc":"1.0","id":"ID","result":{"ok":1},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":ID.0,"result":{"ok":1}}"#,
        r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":ID,"result":{"ok":1}}]"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x"}{"jsonrpc":"2.0","id":ID,"result":{"ok":1}}"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"ok\":1}}\r",
        "Listening on stdio\n{\"level\":\"info\"}\n{broken\n\n{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"ok\":1}}",
    ] {
        let (call, id) = fixture.call_seen().await;
        fixture
            .server
            .write(format!("{}\n", spelling.replace("ID", &id.to_string())).as_bytes())
            .await;
        let result = call.await.unwrap();
        assert_eq!(result.unwrap().json, json!({ "ok": 1 }), "{spelling}");
    }
}

/// A result that does not say whose it is may be the late answer of another call.
#[tokio::test]
async fn a_result_without_an_id_settles_no_call() {
    for spelling in [
        r#"{"jsonrpc":"2.0","id":null,"result":{"of":"another"}}"#,
        r#"{"jsonrpc":"2.0","result":{"of":"another"}}"#,
        r#"{"jsonrpc":"2.0","id":"word","result":{"of":"another"}}"#,
    ] {
        let mut fixture = connected().await;
        let (call, id) = fixture.call_seen().await;
        fixture
            .server
            .write(format!("{spelling}\n").as_bytes())
            .await;
        fixture
            .server
            .send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": 1 } }))
            .await;
        let result = call.await.unwrap().unwrap();
        assert_eq!(result.json, json!({ "ok": 1 }), "{spelling}");
    }
}

#[tokio::test]
async fn what_has_no_id_fails_no_call_after_one_was_given_up() {
    let mut fixture = connected().await;
    let cancel = CancellationToken::new();
    let given_up = fixture.call_within(RpcLimits {
        cancel: cancel.clone(),
        ..limits()
    });
    fixture.server.expect("tools/call").await;
    cancel.cancel();
    assert_eq!(
        given_up.await.unwrap().unwrap_err().code(),
        ErrorCode::Cancelled
    );
    fixture.server.expect("notifications/cancelled").await;
    for late in [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"cancelled"}}"#,
        r#"{"jsonrpc":"2.0","id":"word","error":{"code":-32000,"message":"cancelled"}}"#,
        r#"{"jsonrpc":"2.0","result":{"a":"\x"}}"#,
    ] {
        let (call, id) = fixture.call_seen().await;
        fixture.server.write(format!("{late}\n").as_bytes()).await;
        fixture
            .server
            .send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": 1 } }))
            .await;
        let result = call.await.unwrap().unwrap();
        assert_eq!(result.json, json!({ "ok": 1 }), "{late}");
    }
}

#[tokio::test]
async fn an_answer_that_is_neither_fails_its_call_at_once() {
    let mut fixture = connected().await;
    for nothing in [
        r#"{"jsonrpc":"2.0","id":ID}"#,
        r#"{"jsonrpc":"2.0","id":"ID","error":null}"#,
    ] {
        let (call, id) = fixture.call_seen().await;
        let nothing = nothing.replace("ID", &id.to_string());
        fixture
            .server
            .write(format!("{nothing}\n").as_bytes())
            .await;
        let failure = call.await.unwrap().unwrap_err();
        assert_eq!(failure.code(), ErrorCode::MalformedMessage, "{nothing}");
        assert!(failure.is_outcome_uncertain());
    }
    fixture.still_works().await;
}

#[tokio::test]
async fn odd_spellings_of_an_error_are_understood() {
    let mut fixture = connected().await;
    for (error, words) in [
        (r#"{"code":-32602,"message":"bad"}"#, "bad"),
        (r#"{"code":1e300,"message":"bad"}"#, "bad"),
        (r#"{"code":-3.7,"message":"bad"}"#, "bad"),
        (r#"{"code":"E_BAD","message":"bad"}"#, "bad"),
        (r#"{"message":"bad"}"#, "bad"),
        (r#""bad""#, "bad"),
        (r#"{"code":7}"#, r#"{"code":7}"#),
    ] {
        for (id_is_known, result) in [(true, ""), (true, r#","result":null"#), (false, "")] {
            let (call, id) = fixture.call_seen().await;
            let id = if id_is_known {
                id.to_string()
            } else {
                "null".to_owned()
            };
            let message =
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}{result}}}\n");
            fixture.server.write(message.as_bytes()).await;
            let failure = call.await.unwrap().unwrap_err();
            assert_eq!(failure.code(), ErrorCode::ServerError, "{message}");
            assert_eq!(failure.server_words(), Some(words), "{message}");
            assert_eq!(failure.server().map(ServerName::as_str), Some("odd"));
            assert!(!failure.is_outcome_uncertain());
        }
    }
    fixture.still_works().await;
}

#[tokio::test]
async fn mended_faults_cost_nothing_else() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    let mut line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"a\":\"x\\ud800\",\"b\":\"")
            .into_bytes();
    line.extend_from_slice(b"\xff\"}}\n");
    fixture.server.write(&line).await;
    let result = call.await.unwrap().unwrap();
    assert_eq!(result.json, json!({ "a": "x\u{fffd}", "b": "\u{fffd}" }));
    assert_eq!(result.notes.len(), 2);
}

#[tokio::test]
async fn an_unreadable_answer_fails_its_own_call_at_once() {
    let mut fixture = connected().await;
    for broken in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"te"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"a":"\x"}}"#,
        r#"{"result":{"a":"\x"},"jsonrpc":"2.0","id":ID}"#,
        r#"{"jsonrpc":"2.0","result":{"a":"#,
    ] {
        let (call, id) = fixture.call_seen().await;
        fixture
            .server
            .write(format!("{}\n", broken.replace("ID", &id.to_string())).as_bytes())
            .await;
        let failure = call.await.unwrap().unwrap_err();
        assert_eq!(failure.code(), ErrorCode::MalformedMessage, "{broken}");
        assert!(failure.is_outcome_uncertain());
    }
    fixture.still_works().await;
}

#[tokio::test]
async fn an_oversize_answer_fails_its_own_call_and_no_other() {
    let mut fixture = connected().await;
    let filler = "x".repeat(5 * 1024 * 1024);
    for spelling in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"text":"FILLER"}]}}"#,
        r#"{"result":{"content":[{"text":"FILLER"}]},"jsonrpc":"2.0","id":ID}"#,
    ] {
        let (call, id) = fixture.call_seen().await;
        let (other, other_id) = fixture.call_seen().await;
        let line = spelling
            .replace("ID", &id.to_string())
            .replace("FILLER", &filler);
        fixture.server.write(format!("{line}\n").as_bytes()).await;
        let failure = call.await.unwrap().unwrap_err();
        assert_eq!(failure.code(), ErrorCode::MessageTooLarge);
        assert!(failure.detail().contains("4194304"), "{}", failure.detail());
        assert!(failure.is_outcome_uncertain());
        fixture
            .server
            .send(&json!({ "jsonrpc": "2.0", "id": other_id, "result": {} }))
            .await;
        assert!(other.await.unwrap().is_ok());
    }
    fixture.still_works().await;
}

#[tokio::test]
async fn an_oversize_answer_that_names_its_call_first_fails_it_before_it_ends() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    fixture
        .server
        .write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"").as_bytes())
        .await;
    fixture.server.write(&vec![b'x'; 5 * 1024 * 1024]).await;
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::MessageTooLarge);
    fixture.server.write(b"\"}\n").await;
    fixture.still_works().await;
}

#[tokio::test]
async fn unreadable_server_messages_fail_no_call() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    let filler = "x".repeat(5 * 1024 * 1024);
    for message in [
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"#.to_owned(),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{filler}"}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":9999,"result":{{"data":"{filler}"}}}}"#),
        r#"{"jsonrpc":"2.0","id":9999,"result":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":9999,"error":{"code":1,"message":"x"}}"#.to_owned(),
        "[1,2,3]".to_owned(),
        "null".to_owned(),
        "Traceback (most recent call last):".to_owned(),
    ] {
        fixture
            .server
            .write(format!("{message}\n").as_bytes())
            .await;
    }
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": true } }))
        .await;
    assert_eq!(call.await.unwrap().unwrap().json, json!({ "ok": true }));
}

#[tokio::test]
async fn fr_139_odd_notifications_are_tolerated() {
    let mut fixture = connected().await;
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": [] }))
        .await;
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/unknown/thing", "params": { "x": 1 } }))
        .await;
    assert_eq!(
        fixture.events.recv().await,
        Some(SessionEvent::ToolsChanged)
    );
    fixture.still_works().await;
}

#[tokio::test]
async fn fr_140_requests_of_the_server_are_answered_during_a_call() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    for (own_id, method) in [
        (json!("p"), "ping"),
        (json!(0), "roots/list"),
        (json!(1.0), "sampling/createMessage"),
        (json!("e"), "elicitation/create"),
        (json!("x"), "no/such/method"),
    ] {
        let params = json!({ "messages": 7 });
        fixture
            .server
            .send(&json!({ "jsonrpc": "2.0", "id": own_id, "method": method, "params": params }))
            .await;
        let reply = fixture.server.next().await.unwrap();
        if method == "ping" {
            assert_eq!(reply["result"], json!({}), "{reply}");
        } else {
            assert_eq!(reply["error"]["code"], -32601, "{reply}");
        }
        assert_eq!(reply["id"].as_f64(), own_id.as_f64());
    }
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }))
        .await;
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test]
async fn silence_ends_a_call_and_cancels_it() {
    let mut fixture = connected().await;
    let idle = Duration::from_millis(150);
    let call = fixture.call_within(RpcLimits { idle, ..limits() });
    let request = fixture.server.expect("tools/call").await;
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::Timeout);
    assert!(failure.is_outcome_uncertain());
    let cancelled = fixture.server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    // The answer comes after all: it belongs to nobody.
    let block = json!({ "data": "A".repeat(40_000) });
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "content": [block] } }))
        .await;
    fixture.still_works().await;
    assert_eq!(fixture.sink.files(), 0);
    assert_eq!(fixture.session.shared.intake.calls.len(), 0);
}

#[tokio::test]
async fn progress_renews_the_idle_timer() {
    let mut fixture = connected().await;
    let idle = Duration::from_millis(300);
    let call = fixture.call_within(RpcLimits { idle, ..limits() });
    let request = fixture.server.expect("tools/call").await;
    let token = &request["params"]["_meta"]["progressToken"];
    let began = runtime::now();
    for progress in 0..8 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // Some servers turn the token into a string.
        let token = if progress % 2 == 0 {
            token.clone()
        } else {
            json!(token.to_string())
        };
        let params = json!({ "progressToken": token, "progress": progress });
        fixture
            .server
            .send(
                &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
            )
            .await;
    }
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": {} }))
        .await;
    assert!(call.await.unwrap().is_ok());
    assert!(runtime::now().duration_since(began) > idle * 2);
}

#[tokio::test]
async fn the_deadline_ends_a_call_whatever_the_progress() {
    let mut fixture = connected().await;
    let deadline = Deadline::after(Duration::from_millis(400));
    let call = fixture.call_within(RpcLimits {
        deadline,
        ..limits()
    });
    let request = fixture.server.expect("tools/call").await;
    let params =
        json!({ "progressToken": request["params"]["_meta"]["progressToken"], "progress": 1 });
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }))
        .await;
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::Timeout);
    fixture.server.expect("notifications/cancelled").await;
}

#[tokio::test]
async fn cancellation_reaches_the_server() {
    let mut fixture = connected().await;
    let limits = limits();
    let cancel = limits.cancel.clone();
    let call = fixture.call_within(limits);
    let request = fixture.server.expect("tools/call").await;
    cancel.cancel();
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::Cancelled);
    let cancelled = fixture.server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn dropping_a_call_cancels_it() {
    let mut fixture = connected().await;
    let call = fixture.call();
    let request = fixture.server.expect("tools/call").await;
    call.abort();
    let cancelled = fixture.server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(fixture.session.shared.intake.calls.len(), 0);
}

#[tokio::test]
async fn the_end_of_the_output_fails_every_call_at_once() {
    let mut fixture = connected().await;
    let (one, _) = fixture.call_seen().await;
    let (two, _) = fixture.call_seen().await;
    let began = runtime::now();
    fixture.server.close_output().await;
    for call in [one, two] {
        let failure = call.await.unwrap().unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ConnectionLost);
        assert!(failure.is_outcome_uncertain());
    }
    assert!(runtime::now().duration_since(began) < Duration::from_secs(1));
    assert!(matches!(
        fixture.session.closed().await,
        ClosedBy::Transport(_)
    ));
    let failure = fixture.call().await.unwrap().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectionLost);
    assert!(!failure.is_outcome_uncertain(), "it was never sent");
}

#[tokio::test]
async fn an_answer_without_its_line_end_counts() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "last": true } });
    fixture.server.write(answer.to_string().as_bytes()).await;
    fixture.server.close_output().await;
    assert_eq!(call.await.unwrap().unwrap().json, json!({ "last": true }));
}

#[tokio::test]
async fn an_answer_cut_by_the_end_fails_its_call() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    fixture
        .server
        .write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"co").as_bytes())
        .await;
    fixture.server.close_output().await;
    let failure = call.await.unwrap().unwrap_err();
    assert!(
        matches!(
            failure.code(),
            ErrorCode::MalformedMessage | ErrorCode::ConnectionLost
        ),
        "{failure:?}"
    );
    assert!(failure.is_outcome_uncertain());
}

#[tokio::test]
async fn a_ping_that_is_refused_counts_as_answered() {
    let mut fixture = connected().await;
    let session = fixture.session.clone();
    let ping = runtime::spawn(
        "ping",
        async move { session.request(Rpc::Ping, limits()).await },
    );
    let request = fixture.server.expect("ping").await;
    let error = json!({ "code": -32601, "message": "Method not found" });
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }))
        .await;
    assert!(ping.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_result_that_asks_for_input_is_an_error() {
    let mut fixture = connected().await;
    let (call, id) = fixture.call_seen().await;
    let result = json!({ "resultType": "input_required", "inputRequests": {} });
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
        .await;
    assert_eq!(
        call.await.unwrap().unwrap_err().code(),
        ErrorCode::ServerError
    );
}

#[tokio::test]
async fn requests_carry_what_they_were_given() {
    let mut fixture = connected().await;
    let uri = "x://y".to_owned();
    let arguments = Map::from_iter([("a".to_owned(), json!("b"))]);
    for (rpc, params) in [
        (Rpc::ListTools { cursor: None }, json!({})),
        (
            Rpc::ListTools {
                cursor: Some("c".into()),
            },
            json!({ "cursor": "c" }),
        ),
        (
            Rpc::ListResources {
                cursor: Some("c".into()),
            },
            json!({ "cursor": "c" }),
        ),
        (
            Rpc::ListPrompts {
                cursor: Some("c".into()),
            },
            json!({ "cursor": "c" }),
        ),
        (
            Rpc::ReadResource { uri: uri.clone() },
            json!({ "uri": uri }),
        ),
        (
            Rpc::CallTool {
                name: "n".into(),
                arguments: arguments.clone(),
            },
            json!({ "name": "n", "arguments": { "a": "b" } }),
        ),
        (
            Rpc::GetPrompt {
                name: "n".into(),
                arguments: arguments.clone(),
            },
            json!({ "name": "n", "arguments": { "a": "b" } }),
        ),
    ] {
        let method = rpc.method();
        let session = fixture.session.clone();
        let asking = runtime::spawn("rpc", async move { session.request(rpc, limits()).await });
        let mut request = fixture.server.expect(method).await;
        let sent = request["params"].as_object_mut().unwrap();
        sent.remove("_meta");
        assert_eq!(Value::Object(sent.clone()), params);
        fixture
            .server
            .send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "m": method } }))
            .await;
        assert_eq!(asking.await.unwrap().unwrap().json, json!({ "m": method }));
    }
}

#[tokio::test]
async fn closing_closes_the_pipe_and_is_told() {
    let mut fixture = connected().await;
    let (call, _) = fixture.call_seen().await;
    fixture
        .session
        .close(Deadline::after(Duration::from_secs(5)))
        .await;
    assert_eq!(fixture.session.closed().await, ClosedBy::Us);
    assert_eq!(
        call.await.unwrap().unwrap_err().code(),
        ErrorCode::ConnectionLost
    );
    while let Some(message) = fixture.server.next().await {
        assert_eq!(message["method"], "notifications/cancelled");
    }
}

#[tokio::test]
async fn dropping_the_session_closes_the_pipe() {
    let Fixture {
        mut server,
        session,
        ..
    } = connected().await;
    drop(session);
    assert_eq!(server.next().await, None);
}

#[tokio::test]
async fn a_full_event_channel_drops_events_and_nothing_else() {
    let mut fixture = connected().await;
    for _ in 0..100 {
        fixture
            .server
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }))
            .await;
    }
    fixture.still_works().await;
    let mut told = 0;
    while fixture.events.try_recv().is_ok() {
        told += 1;
    }
    assert_eq!(told, 16);
}

#[tokio::test]
async fn a_server_that_asks_and_does_not_read_gets_no_more_than_a_queue_of_answers() {
    let mut fixture = connected().await;
    for id in 0..6_000 {
        fixture
            .server
            .send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
            .await;
    }
    let call = fixture.call();
    let mut answers = 0;
    let request = loop {
        let message = fixture.server.next().await.unwrap();
        if message["method"] == "tools/call" {
            break message;
        }
        answers += 1;
    };
    assert!(answers < 4_000, "{answers}");
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": {} }))
        .await;
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test]
async fn the_bytes_of_a_line_that_is_not_whole_renew_nothing() {
    let mut fixture = connected().await;
    let idle = Duration::from_millis(300);
    let call = fixture.call_within(RpcLimits { idle, ..limits() });
    let id = fixture.server.expect("tools/call").await["id"].clone();
    let began = runtime::now();
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"x\":\"");
    fixture.server.write(head.as_bytes()).await;
    fixture.server.write(&vec![b'x'; 100_000]).await;
    while !call.is_finished() {
        fixture.server.write(b"xxxx").await;
        tokio::time::sleep(idle / 10).await;
        assert!(runtime::now().duration_since(began) < idle * 10);
    }
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::Timeout);
    assert!(failure.is_outcome_uncertain());
    // The session goes on behind the line.
    fixture.server.write(b"\"}}\n").await;
    fixture.server.expect("notifications/cancelled").await;
    fixture.still_works().await;
}

/// Refuses every payload and notes whether the loop itself brought one.
#[derive(Debug)]
struct Watchful {
    looping: std::thread::ThreadId,
    elsewhere: parking_lot::Mutex<Vec<bool>>,
}

impl PayloadSink for Watchful {
    fn begin(&self) -> Result<Box<dyn talaria_types::PayloadWriter>, talaria_types::PayloadError> {
        let is_elsewhere = std::thread::current().id() != self.looping;
        self.elsewhere.lock().push(is_elsewhere);
        Err(talaria_types::PayloadError {
            code: ErrorCode::MediaUnavailable,
            detail: "full".to_owned(),
        })
    }
}

#[tokio::test]
async fn the_smallest_payload_is_decoded_off_the_loop() {
    let sink = Arc::new(Watchful {
        looping: std::thread::current().id(),
        elsewhere: parking_lot::Mutex::default(),
    });
    let (options, events) = options(
        unused_transport(),
        Arc::clone(&sink) as Arc<dyn PayloadSink>,
    );
    let (mut server, reader, writer) = Server::new();
    let connecting = runtime::spawn("connect", async move {
        connect::over_pipes(&options, reader, writer).await
    });
    server.shake_hands().await;
    let mut fixture = Fixture {
        server,
        session: connecting.await.unwrap().unwrap(),
        events,
        sink: FolderSink::new(),
    };
    let (call, id) = fixture.call_seen().await;
    let data = "A".repeat(crate::wire::MIN_PAYLOAD_BYTES);
    let block = json!({ "type": "audio", "data": data, "mimeType": "audio/wav" });
    fixture
        .server
        .send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [block] } }))
        .await;
    call.await.unwrap().unwrap();
    assert_eq!(*sink.elsewhere.lock(), [true]);
}
