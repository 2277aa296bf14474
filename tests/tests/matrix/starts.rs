//! Servers that are slow or strange at the start, and lists that never end.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::{http_status, text_result, tool};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, HttpServer, Script, Service, ServiceBuilder, programs, wait_for};

use crate::stage::timed;
use crate::stdio::notify;

/// A builder with the server `s` over both transports in turn; what is returned beside it must
/// live on.
fn both(script: &Script) -> [(ServiceBuilder, Option<HttpServer>); 2] {
    let builder = || Service::builder(programs!()).unwrap();
    let server = HttpServer::start(script.clone()).unwrap();
    [
        (builder().stdio("s", script.clone()).unwrap(), None),
        (builder().http("s", &server), Some(server)),
    ]
}

#[tokio::test]
async fn a_call_during_a_slow_start_waits_for_it() {
    let script = Script::new("s")
        .on_method("initialize", [Action::Delay { ms: 1_500 }, Action::Usual])
        .text_tool("t", "after all");
    for (builder, _server) in both(&script) {
        let builder = builder
            .stdio("quick", Script::new("quick").text_tool("t", "at once"))
            .unwrap();
        let service = builder.start_unsettled().await.unwrap();
        service
            .wait_state("quick", "ready", PATIENCE)
            .await
            .unwrap();
        let quick = service.call("quick", "t", json!({})).await.unwrap();
        assert_eq!(quick.ok().unwrap()["text"], "at once");
        let (answer, took) = timed(service.call("s", "t", json!({}))).await;
        let delivery = answer.unwrap().ok().unwrap();
        assert_eq!(delivery["text"], "after all");
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[tokio::test]
async fn a_server_of_an_unknown_revision_is_served_and_its_revision_shown() {
    let script = Script::new("s")
        .with_protocol("1999-01-01")
        .text_tool("t", "understood");
    for (builder, _server) in both(&script) {
        let service = builder.start().await.unwrap();
        let status = service.server("s").await.unwrap();
        assert_eq!(status["protocol_version"], "1999-01-01", "{status}");
        let answer = service.call("s", "t", json!({})).await.unwrap();
        assert_eq!(answer.ok().unwrap()["text"], "understood");
    }
}

/// A server whose list is normal at first and then has a next page for ever.
fn endless() -> Script {
    let page = |number: usize| json!({"tools": [tool(&format!("p{number}"))], "nextCursor": format!("page-{number}")});
    let first = json!({"tools": [tool("t"), tool("echo")]});
    let mut script = Script::new("s").on_method("tools/list", [Action::Answer { result: first }]);
    for number in 0..400 {
        let result = page(number);
        script = script.on_method("tools/list", [Action::Answer { result }]);
    }
    script
        .on_call(
            "t",
            [
                notify("notifications/tools/list_changed", json!({})),
                Action::Answer {
                    result: text_result("told"),
                },
            ],
        )
        .text_tool("echo", "echoed")
}

#[tokio::test]
async fn pages_without_end_delay_no_call_for_long() {
    let script = endless();
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap();
    let service = service.start().await.unwrap();
    let told = service.call("s", "t", json!({})).await.unwrap();
    assert_eq!(told.ok().unwrap()["text"], "told");
    let pages = || {
        let records = service.records("s").unwrap();
        let lists = records
            .iter()
            .filter(|record| record.method() == Some("tools/list"));
        lists.count()
    };
    wait_for("the last page", PATIENCE, || async {
        let pages = pages();
        if pages >= 51 { Ok(()) } else { Err(pages) }
    })
    .await
    .unwrap();
    let (echoed, took) = timed(service.call("s", "p1", json!({}))).await;
    // The server does not know the tool, but it is offered and was asked.
    assert_eq!(echoed.unwrap().code().unwrap(), "server_error");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(pages(), 51, "50 pages and no more");
}

#[tokio::test]
async fn a_server_that_is_no_mcp_server_is_shown_with_the_reason() {
    let page: Vec<Action> = vec![http_status(200, "<html>hello</html>")];
    let script = Script::new("s")
        .on_method("initialize", page.clone())
        .on_method("server/discover", page);
    let server = HttpServer::start(script).unwrap();
    let service = Service::builder(programs!())
        .unwrap()
        .http("s", &server)
        .start_unsettled()
        .await
        .unwrap();
    let status: Value = wait_for("a reason", PATIENCE, || async {
        let status = service.server("s").await.unwrap();
        if status["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty())
        {
            Ok(status)
        } else {
            Err(status)
        }
    })
    .await
    .unwrap();
    assert_ne!(status["state"], "ready", "{status}");
}
