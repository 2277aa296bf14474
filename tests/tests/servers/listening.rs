//! `GET /v1/events`, versions of the lists, and stale tools of servers that are down.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::{ProcessAction, text_result, tool};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, HttpServer, Script, Service, wait_for};

use crate::stage::{builder, call, listed, start};

/// Reads events until one of a kind fits.
async fn read_until(
    stream: &mut reqwest::Response,
    told: &mut String,
    fits: impl Fn(&str, &Value) -> bool,
) -> Value {
    let reading = async {
        loop {
            while let Some((event, rest)) = told.clone().split_once("\n\n") {
                rest.clone_into(told);
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let (Some(kind), Some(data)) = (field("event: "), field("data: ")) else {
                    continue;
                };
                let data: Value = serde_json::from_str(data).unwrap();
                if fits(kind, &data) {
                    return data;
                }
            }
            let piece = stream.chunk().await.unwrap().expect("the stream goes on");
            told.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("the event")
}

async fn listen(service: &Service) -> reqwest::Response {
    let request = service.client().get(service.url("/v1/events"));
    let stream = request.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    stream
}

#[tokio::test]
async fn a_death_and_a_new_list_are_told() {
    let script = Script::new("s")
        .with_tools(vec![tool("t"), tool("die"), tool("old")])
        .on_call(
            "t",
            [
                Action::SetTools {
                    tools: vec![tool("t"), tool("die"), tool("new")],
                },
                Action::Notify {
                    method: "notifications/tools/list_changed".to_owned(),
                    params: json!({}),
                },
                Action::Answer {
                    result: text_result("ok"),
                },
            ],
        )
        .on_call("die", [ProcessAction::Exit { code: 1 }.into()]);
    let service = start(script).await;
    let mut stream = listen(&service).await;
    let mut told = String::new();
    assert_eq!(call(&service).await.status, 200);
    let changed = read_until(&mut stream, &mut told, |kind, _| kind == "tools_changed").await;
    assert_eq!(changed["server"], "s", "{changed}");
    assert_eq!(changed["added"], json!(["mcp__s__new"]), "{changed}");
    assert_eq!(changed["removed"], json!(["mcp__s__old"]), "{changed}");
    service.call("s", "die", json!({})).await.unwrap();
    let state = |wanted: &'static str| {
        move |kind: &str, data: &Value| kind == "server_state" && data["to"] == wanted
    };
    let down = read_until(&mut stream, &mut told, |kind, data| {
        kind == "server_state" && data["to"] != "ready"
    })
    .await;
    assert_eq!(down["server"], "s", "{down}");
    read_until(&mut stream, &mut told, state("ready")).await;
}

#[tokio::test]
async fn tools_of_a_server_that_is_down_stay_listed_as_stale() {
    let script = || Script::new("s").text_tool("t", "ok");
    let server = HttpServer::start(script()).unwrap();
    let service = builder().http("s", &server).start().await.unwrap();
    let fresh = listed(&service).await;
    assert_ne!(fresh[0]["stale"], json!(true), "{fresh:?}");
    server.refuse(500, "broken");
    wait_for("the server to be given up", PATIENCE, || async {
        call(&service).await;
        service
            .post("/v1/servers/s/reconnect", &json!({}))
            .await
            .unwrap();
        let tools = listed(&service).await;
        if tools[0]["stale"] == json!(true) {
            Ok(())
        } else {
            Err(tools)
        }
    })
    .await
    .unwrap();
    let stale = listed(&service).await;
    assert_eq!(stale[0]["name"], "mcp__s__t", "{stale:?}");
    assert!(stale[0]["down_since"].is_string(), "{stale:?}");
    let status = service.server("s").await.unwrap();
    assert_eq!(status["stale"], true, "{status}");
    assert!(status["down_since"].is_string(), "{status}");
}

#[tokio::test]
async fn a_list_that_did_not_change_is_not_sent_again() {
    let service = start(Script::new("s").text_tool("t", "ok")).await;
    for path in ["/v1/tools", "/v1/servers"] {
        let first = service.get(path).await.unwrap();
        let tag = first.header("etag").to_owned();
        assert!(!tag.is_empty(), "{path}");
        let again = service
            .client()
            .get(service.url(path))
            .header("If-None-Match", &tag)
            .timeout(Duration::from_secs(5))
            .send()
            .await
            .unwrap();
        assert_eq!(again.status(), 304, "{path}");
    }
}
