//! Sessions over HTTP: lost, answered with nothing, without an event stream.

use std::time::Duration;

use serde_json::json;
use talaria_testkit::script::{HttpAction, HttpScript, parts, raw};
use talaria_testkit::{Action, HttpServer, RecordKind, Script, Service, wait_for};

use crate::stage::{builder, call, timed};

/// How long a server without an event stream is watched.
const WATCHED: Duration = Duration::from_secs(30);
/// Most requests for a stream in that time.
const MOST_GETS: usize = 5;

fn both() -> [HttpScript; 2] {
    [false, true].map(|sse| HttpScript {
        sse,
        ..HttpScript::default()
    })
}

async fn serving(server: &HttpServer) -> Service {
    builder().http("s", server).start().await.unwrap()
}

#[tokio::test]
async fn fr_144_the_words_of_an_answer_to_nobody_are_told() {
    let nobody = json!({
        "jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "Invalid Request"},
    });
    let cases = [
        (
            "{\"error\":\"Session not found\"}".to_owned(),
            "Session not found",
        ),
        (nobody.to_string(), "Invalid Request"),
    ];
    for http in both() {
        for (body, words) in &cases {
            let script = Script::new("s")
                .on_call("t", [raw(body)])
                .with_http(http.clone());
            let server = HttpServer::start(script).unwrap();
            let service = serving(&server).await;
            let (answer, took) = timed(call(&service)).await;
            let problem = answer.problem().unwrap();
            assert!(took < Duration::from_secs(5), "{took:?}");
            let told = problem["model_text"].as_str().unwrap();
            assert!(told.contains("'s'") || told.contains(" s"), "{told}");
            assert!(told.contains(words), "{words}: {told}");
        }
    }
}

#[tokio::test]
async fn fr_145_a_server_without_an_event_stream_is_asked_for_one_a_few_times_only() {
    let answers = |status: u16, body: &str| HttpScript {
        get: Some((status, body.to_owned())),
        ..HttpScript::default()
    };
    let kinds = [answers(200, "see docs"), answers(400, ""), answers(405, "")];
    let servers: Vec<HttpServer> = kinds
        .into_iter()
        .map(|http| {
            let script = Script::new("s").text_tool("t", "ok").with_http(http);
            HttpServer::start(script).unwrap()
        })
        .collect();
    let service = servers
        .iter()
        .enumerate()
        .fold(builder(), |builder, (number, server)| {
            builder.http(&format!("s{number}"), server)
        });
    let service = service.start().await.unwrap();
    let too_many = wait_for("too many requests for a stream", WATCHED, || async {
        for (number, server) in servers.iter().enumerate() {
            let name = format!("s{number}");
            let answer = service.call(&name, "t", json!({})).await.unwrap();
            assert_eq!(answer.ok().unwrap()["text"], "ok");
            let records = server.records().all();
            let gets = records
                .iter()
                .filter(|record| record.kind == RecordKind::Get);
            let gets = gets.count();
            if gets > MOST_GETS {
                return Ok((name, gets));
            }
        }
        tokio::time::timeout(Duration::from_millis(500), std::future::pending::<()>())
            .await
            .unwrap_err();
        Err("few")
    });
    assert!(too_many.await.is_err(), "a server was pestered");
    for number in 0..servers.len() {
        let status = service.server(&format!("s{number}")).await.unwrap();
        assert_eq!(status["state"], "ready", "{status}");
    }
}

#[tokio::test]
async fn a_stream_that_closes_after_a_comment_fails_the_call_at_once() {
    let comment = HttpAction::Events {
        parts: parts(": keep-alive\n\n"),
    };
    let script = Script::new("s").on_call("t", [Action::Http(comment)]);
    let server = HttpServer::start(script).unwrap();
    let service = serving(&server).await;
    let (answer, took) = timed(call(&service)).await;
    assert_eq!(answer.problem().unwrap()["outcome_uncertain"], true);
    assert!(took < Duration::from_secs(5), "{took:?}");
}
