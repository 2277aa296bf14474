//! Servers over Streamable HTTP that fail.

use std::time::Duration;

use serde_json::json;
use talaria_testkit::records::RecordKind;
use talaria_testkit::script::{
    HttpAction, HttpScript, document_answer, http_status, raw, text_result,
};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, HttpServer, PayloadSpec, Script, Service, programs, wait_for};

use crate::stage::{AT_ONCE, call, text_of_call, timed};

async fn serving(server: &HttpServer) -> Service {
    Service::builder(programs!())
        .unwrap()
        .http("s", server)
        .start()
        .await
        .unwrap()
}

fn both_answers() -> [HttpScript; 2] {
    [false, true].map(|sse| HttpScript {
        sse,
        ..HttpScript::default()
    })
}

fn scripted(http: HttpScript, script: Script) -> HttpServer {
    HttpServer::start(script.text_tool("echo", "echoed").with_http(http)).unwrap()
}

async fn assert_still_serves(service: &Service) {
    let echoed = service
        .call("s", "echo", json!({}))
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(echoed["text"], "echoed");
}

#[tokio::test]
async fn answers_arrive_whatever_way_they_are_written() {
    for sse in [false, true] {
        for split_writes in [false, true] {
            for sessions in [false, true] {
                let http = HttpScript {
                    sse,
                    split_writes,
                    sessions,
                    ..HttpScript::default()
                };
                let server = scripted(
                    http,
                    Script::new("s").text_tool("t", "h\u{e9}llo \u{1f388}"),
                );
                let service = serving(&server).await;
                assert_eq!(text_of_call(&service).await, "h\u{e9}llo \u{1f388}");
            }
        }
    }
}

#[tokio::test]
async fn fr_143_a_lost_session_is_renewed_once_and_the_call_repeated_once() {
    let script = Script::new("s")
        .on_call(
            "t",
            [
                HttpAction::ForgetSessions.into(),
                http_status(404, "no session"),
            ],
        )
        .text_tool("t", "fresh");
    let server = scripted(HttpScript::default(), script);
    let service = serving(&server).await;
    assert_eq!(text_of_call(&service).await, "fresh");
    let records = server.records().all();
    let hellos: Vec<_> = records
        .iter()
        .filter(|record| record.method() == Some("initialize"))
        .collect();
    assert_eq!(hellos.len(), 2, "one new session");
    assert!(
        !hellos[1].headers.contains_key("mcp-session-id"),
        "{:?}",
        hellos[1]
    );
}

#[tokio::test]
async fn fr_144_an_answer_that_answers_nothing_fails_the_call_soon() {
    let said = [
        "{\"error\":\"Session not found\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"Invalid Request\"}}",
    ];
    for http in both_answers() {
        for words in said {
            let server = scripted(http.clone(), Script::new("s").on_call("t", [raw(words)]));
            let service = serving(&server).await;
            let (answer, took) = timed(call(&service)).await;
            let problem = answer.problem().unwrap();
            assert_eq!(problem["server"], "s", "{problem}");
            assert!(took < Duration::from_secs(5), "{took:?} for {words}");
            assert_still_serves(&service).await;
        }
    }
}

#[tokio::test]
async fn fr_145_a_server_without_an_event_stream_is_not_pestered() {
    for get in [(200, "see docs"), (400, ""), (405, "")] {
        let http = HttpScript {
            get: Some((get.0, get.1.to_owned())),
            ..HttpScript::default()
        };
        let server = scripted(http, Script::new("s").text_tool("t", "ok"));
        let service = serving(&server).await;
        for _ in 0..3 {
            assert_eq!(text_of_call(&service).await, "ok");
        }
        let gets = |records: &[talaria_testkit::Record]| {
            records
                .iter()
                .filter(|record| record.kind == RecordKind::Get)
                .count()
        };
        assert!(gets(&server.records().all()) <= 5, "{get:?}");
        assert_eq!(
            service.server("s").await.unwrap()["state"],
            "ready",
            "{get:?}"
        );
    }
}

#[tokio::test]
async fn fr_146_a_finished_stream_is_not_resumed() {
    let http = HttpScript {
        sse: true,
        ..HttpScript::default()
    };
    let script = Script::new("s").on_call(
        "t",
        [
            Action::Progress { progress: 1 },
            Action::Answer {
                result: text_result("done"),
            },
        ],
    );
    let server = scripted(http, script);
    let service = serving(&server).await;
    assert_eq!(text_of_call(&service).await, "done");
    service.terminate().unwrap();
    service.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(server.records().calls_of("t"), 1);
    let resumed = server.records().all().into_iter().any(|record| {
        record.kind == RecordKind::Get && record.headers.contains_key("last-event-id")
    });
    assert!(!resumed);
}

#[tokio::test]
async fn fr_147_a_reset_connection_fails_the_call_and_names_the_server() {
    for http in both_answers() {
        let begins = if http.sse {
            vec![Action::Progress { progress: 1 }]
        } else {
            Vec::new()
        };
        let actions = begins.into_iter().chain([HttpAction::Reset.into()]);
        let server = scripted(http, Script::new("s").on_call("t", actions));
        let service = serving(&server).await;
        let (answer, took) = timed(call(&service)).await;
        let problem = answer.problem().unwrap();
        assert_eq!(problem["server"], "s", "{problem}");
        assert_eq!(problem["outcome_uncertain"], true, "{problem}");
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert!(server.records().calls_of("t") <= 1, "the call was repeated");
        assert_still_serves(&service).await;
    }
}

#[tokio::test]
async fn a_half_closed_answer_fails_the_call_soon() {
    for http in both_answers() {
        let begins = if http.sse {
            vec![Action::Progress { progress: 1 }]
        } else {
            Vec::new()
        };
        let actions = begins.into_iter().chain([HttpAction::HalfClose.into()]);
        let server = scripted(http, Script::new("s").on_call("t", actions));
        let service = serving(&server).await;
        let (answer, took) = timed(call(&service)).await;
        let problem = answer.problem().unwrap();
        assert_eq!(problem["outcome_uncertain"], true, "{problem}");
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert_still_serves(&service).await;
    }
}

#[tokio::test]
async fn l37_an_oversize_body_fails_its_call_and_the_session_survives() {
    for http in both_answers() {
        let answer = document_answer("x://h/big", PayloadSpec::of(4 * 1024 * 1024));
        let server = scripted(http, Script::new("s").on_call("t", [answer]));
        let service = Service::builder(programs!())
            .unwrap()
            .http("s", &server)
            .set(&["talaria", "limits", "message_bytes"], "1MiB")
            .start()
            .await
            .unwrap();
        let (answer, took) = timed(call(&service)).await;
        assert_eq!(answer.code().unwrap(), "message_too_large");
        assert!(took < AT_ONCE, "{took:?}");
        assert_still_serves(&service).await;
        assert_eq!(
            server.records().count_of("initialize"),
            1,
            "the session was given up"
        );
    }
}

#[tokio::test]
async fn fr_149_a_configured_header_is_on_every_request() {
    let http = HttpScript {
        token: Some("abc".to_owned()),
        ..HttpScript::default()
    };
    let server = scripted(http, Script::new("s").text_tool("t", "ok"));
    let entry =
        json!({"url": server.url(), "headers": {"Authorization": "Bearer ${EXAMPLE_TOKEN}"}});
    let service = Service::builder(programs!())
        .unwrap()
        .env("EXAMPLE_TOKEN", "abc")
        .server("s", entry)
        .start()
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(text_of_call(&service).await, "ok");
    }
    let again = service
        .post("/v1/servers/s/reconnect", &json!({}))
        .await
        .unwrap();
    assert_eq!(again.ok().unwrap()["state"], "ready");
    assert_eq!(text_of_call(&service).await, "ok");
    for record in server.records().all() {
        let sent = record.headers.get("authorization").map(String::as_str);
        assert_eq!(sent, Some("Bearer abc"), "{record:?}");
    }
    let log = service.log().unwrap();
    assert!(!log.contains("Bearer abc"), "the secret is in the log");
}

#[tokio::test]
async fn fr_149_an_unset_variable_fails_that_server_and_sends_nothing() {
    let server = scripted(HttpScript::default(), Script::new("s").text_tool("t", "ok"));
    let entry =
        json!({"url": server.url(), "headers": {"Authorization": "Bearer ${EXAMPLE_TOKEN}"}});
    let service = Service::builder(programs!())
        .unwrap()
        .server("s", entry)
        .start_unsettled()
        .await
        .unwrap();
    let status = service.wait_state("s", "failed", PATIENCE).await.unwrap();
    assert!(
        status["reason"].as_str().unwrap().contains("EXAMPLE_TOKEN"),
        "{status}"
    );
    assert_eq!(call(&service).await.code().unwrap(), "server_misconfigured");
    assert!(server.records().all().is_empty());
}

#[tokio::test]
async fn fr_150_a_server_that_wants_other_credentials_is_told_so() {
    let challenge = (
        "WWW-Authenticate".to_owned(),
        "Bearer resource_metadata=\"http://127.0.0.1:9/.well-known/oauth-protected-resource\""
            .to_owned(),
    );
    let refuse = HttpAction::Answer {
        status: 401,
        headers: vec![challenge],
        body: "token stale-secret expired".to_owned(),
    };
    let server = scripted(
        HttpScript::default(),
        Script::new("s").on_call("t", [refuse.into()]),
    );
    let entry = json!({"url": server.url(), "headers": {"Authorization": "Bearer stale-secret"}});
    let service = Service::builder(programs!())
        .unwrap()
        .server("s", entry)
        .start()
        .await
        .unwrap();
    let (answer, took) = timed(call(&service)).await;
    let problem = answer.problem().unwrap();
    assert_eq!(problem["code"], "server_unauthorized", "{problem}");
    assert_eq!(problem["server"], "s");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(server.records().calls_of("t") <= 2);
    assert!(!problem.to_string().contains("stale-secret"), "{problem}");
    assert!(!service.log().unwrap().contains("stale-secret"));
}

#[tokio::test]
async fn a_server_that_goes_away_and_comes_back_is_found_again() {
    let script = || {
        Script::new("s")
            .text_tool("t", "ok")
            .text_tool("echo", "echoed")
    };
    let server = HttpServer::start(script()).unwrap();
    let address = server.address();
    let service = serving(&server).await;
    assert_eq!(text_of_call(&service).await, "ok");
    drop(server);
    let problem = call(&service).await.problem().unwrap();
    assert_eq!(problem["server"], "s", "{problem}");
    let _back = HttpServer::start_at(script(), address).unwrap();
    wait_for("the server to serve again", PATIENCE, || async {
        let answer = call(&service).await;
        if answer.status == 200 {
            Ok(())
        } else {
            Err(answer.excerpt())
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_server_that_dies_while_it_works_fails_the_call() {
    for http in both_answers() {
        let begins = if http.sse {
            vec![Action::Progress { progress: 1 }]
        } else {
            Vec::new()
        };
        let script = Script::new("s").on_call("t", begins.into_iter().chain([Action::Hang]));
        let server = scripted(http, script);
        let records = server.records().clone();
        let service = serving(&server).await;
        let death = async {
            wait_for("the call", AT_ONCE, || async {
                if records.calls_of("t") == 1 {
                    Ok(())
                } else {
                    Err(records.all())
                }
            })
            .await
            .unwrap();
            drop(server);
        };
        let ((answer, ()), took) = timed(async { tokio::join!(call(&service), death) }).await;
        let problem = answer.problem().unwrap();
        assert_eq!(problem["outcome_uncertain"], true, "{problem}");
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_is_told_to_the_http_server() {
    let server = scripted(
        HttpScript::default(),
        Script::new("s").on_call("t", [Action::Hang]),
    );
    let service = serving(&server).await;
    let records = server.records();
    let asked = wait_for("the call", AT_ONCE, || async {
        if records.calls_of("t") == 1 {
            Ok(())
        } else {
            Err(records.all())
        }
    });
    tokio::select! {
        answer = call(&service) => panic!("{answer:?}"),
        asked = asked => asked.unwrap(),
    }
    wait_for("the cancellation", AT_ONCE, || async {
        let told = records.all().iter().any(|record| {
            record.method() == Some("notifications/cancelled")
                || record.kind == RecordKind::Disconnected
        });
        if told { Ok(()) } else { Err(records.all()) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn l07_an_explicit_reconnect_does_not_wait_for_its_turn() {
    let script = || Script::new("s").text_tool("t", "ok");
    let server = HttpServer::start(script()).unwrap();
    let address = server.address();
    let builder = Service::builder(programs!()).unwrap().http("s", &server);
    drop(server);
    let service = builder.start_unsettled().await.unwrap();
    // Once the pauses have grown, the next attempt of its own is far away.
    wait_for("a long pause", PATIENCE, || async {
        let status = service.server("s").await.unwrap();
        let pause = status["next_attempt_ms"].as_u64().unwrap_or(0);
        if pause > 3_000 { Ok(()) } else { Err(status) }
    })
    .await
    .unwrap();
    let _back = HttpServer::start_at(script(), address).unwrap();
    let (again, took) = timed(service.post("/v1/servers/s/reconnect", &json!({}))).await;
    assert_eq!(again.unwrap().ok().unwrap()["state"], "ready");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(text_of_call(&service).await, "ok");
}
