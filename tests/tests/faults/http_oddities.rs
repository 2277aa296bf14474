//! Streamable HTTP as servers in the wild write it: strange event streams, wrong answers,
//! redirects.

use std::time::Duration;

use serde_json::json;
use talaria_testkit::script::{HttpAction, HttpScript, parts, text_result, tool};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, HttpServer, Script, Service, programs, wait_for};

use crate::stage::{call, text_of_call, timed};

async fn serving(script: Script) -> (Service, HttpServer) {
    let server = HttpServer::start(script.text_tool("echo", "echoed")).unwrap();
    let builder = Service::builder(programs!()).unwrap().http("s", &server);
    (builder.start().await.unwrap(), server)
}

fn events(text: &str) -> Action {
    HttpAction::Events { parts: parts(text) }.into()
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Action {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    HttpAction::Answer {
        status,
        headers: headers.collect(),
        body: body.to_owned(),
    }
    .into()
}

#[tokio::test]
async fn event_streams_are_read_as_the_standard_says() {
    let ok = "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}";
    for stream in [
        format!(": a comment\n\ndata:{{\"jsonrpc\":\"2.0\",\"id\":{{id}},{ok}}}\n\n"),
        format!("event: ping\ndata: {{}}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{{id}},{ok}}}\n\n"),
        format!(
            "retry: 10\nid: 7\nevent: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{{id}},{ok}}}\n\n"
        ),
        format!("data: {{\"jsonrpc\":\"2.0\",\ndata: \"id\":{{id}},{ok}}}\n\n"),
        format!("event: message\r\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{{id}},{ok}}}\r\n\r\n"),
        format!("data: \n\ndata: not json\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{{id}},{ok}}}\n\n"),
        format!("unknown: field\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{{id}},{ok}}}\n\n"),
    ] {
        let (service, _server) = serving(Script::new("s").on_call("t", [events(&stream)])).await;
        let answer = call(&service).await;
        assert_eq!(answer.status, 200, "{stream:?}: {}", answer.excerpt());
        assert_eq!(answer.ok().unwrap()["text"], "ok", "{stream:?}");
    }
}

#[tokio::test]
async fn an_answer_of_the_wrong_kind_fails_the_call_soon() {
    for (status, kind, body) in [
        (200, "text/html", "<html>captive portal</html>"),
        (200, "application/json", ""),
        (200, "application/json", "<html>"),
        (200, "text/event-stream", ""),
        (400, "application/json", "{\"error\":\"no\"}"),
        (429, "", "slow down"),
        (500, "text/plain", "broken"),
        (503, "", ""),
    ] {
        assert_fails_soon(status, kind, body).await;
    }
}

/// Asserts that an answer with this status, type and body fails its call and nothing else.
async fn assert_fails_soon(status: u16, kind: &str, body: &str) {
    let headers = [("Content-Type", kind)];
    let headers = if kind.is_empty() {
        &headers[..0]
    } else {
        &headers[..]
    };
    let script = Script::new("s").on_call("t", [answer(status, headers, body)]);
    let (service, server) = serving(script).await;
    let body = json!({"server": "s", "name": "t", "timeout_ms": 20_000});
    let (answer, took) = timed(service.post("/v1/tools/call", &body)).await;
    let problem = answer.unwrap().problem().unwrap();
    assert_eq!(problem["server"], "s", "{status} {kind}: {problem}");
    assert!(took < Duration::from_secs(5), "{status} {kind}: {took:?}");
    assert_eq!(
        server.records().calls_of("t"),
        1,
        "{status} {kind}: repeated"
    );
    let echoed = service.call("s", "echo", json!({})).await.unwrap();
    assert_eq!(echoed.status, 200, "{status} {kind}: {}", echoed.excerpt());
}

#[tokio::test]
async fn s12_a_redirect_to_another_place_gets_no_credentials() {
    let other = HttpServer::start(Script::new("other").text_tool("t", "stolen")).unwrap();
    let target = other.url();
    let script = Script::new("s").on_call("t", [answer(307, &[("Location", &target)], "")]);
    let server = HttpServer::start(script.text_tool("echo", "echoed")).unwrap();
    let entry =
        json!({"url": server.url(), "headers": {"Authorization": "Bearer precious-secret"}});
    let builder = Service::builder(programs!()).unwrap().server("s", entry);
    let service = builder.start().await.unwrap();
    let (_, took) = timed(call(&service)).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    for record in other.records().all() {
        let sent = format!("{:?}", record.headers);
        assert!(!sent.contains("precious-secret"), "{sent}");
    }
}

#[tokio::test]
async fn a_changed_tool_list_is_told_on_the_event_stream() {
    let announce = HttpAction::Announce {
        method: "notifications/tools/list_changed".to_owned(),
    };
    let script = Script::new("s")
        .with_tools(vec![tool("t"), tool("echo"), tool("old")])
        .on_call(
            "t",
            [
                Action::SetTools {
                    tools: vec![tool("t"), tool("echo"), tool("new")],
                },
                announce.into(),
                Action::Answer {
                    result: text_result("told"),
                },
            ],
        )
        .with_http(HttpScript {
            get: None,
            ..HttpScript::default()
        });
    let (service, server) = serving(script).await;
    wait_for("the event stream", PATIENCE, || async {
        let gets = server.records().all();
        let open = gets
            .iter()
            .any(|record| record.kind == talaria_testkit::RecordKind::Get);
        if open { Ok(()) } else { Err(gets) }
    })
    .await
    .unwrap();
    assert_eq!(text_of_call(&service).await, "told");
    wait_for("the new tool", PATIENCE, || async {
        let listed = service.get("/v1/tools").await.unwrap().text().unwrap();
        let fresh = listed.contains("mcp__s__new") && !listed.contains("mcp__s__old");
        if fresh { Ok(()) } else { Err(listed) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn small_pieces_with_pauses_between_arrive_whole() {
    let result = json!({"content": [{"type": "text", "text": "piece by piece \u{1f388}"}]});
    let drip = Action::Send {
        parts: parts(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{result}}}"
        )),
        pace: talaria_testkit::script::Pace::Drip,
    };
    for sse in [false, true] {
        let http = HttpScript {
            sse,
            ..HttpScript::default()
        };
        let script = Script::new("s")
            .on_call("t", [drip.clone()])
            .with_http(http);
        let (service, _server) = serving(script).await;
        assert_eq!(text_of_call(&service).await, "piece by piece \u{1f388}");
    }
}
