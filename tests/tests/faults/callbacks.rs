//! What a server sends of its own accord.

use serde_json::{Value, json};
use talaria_testkit::script::{text_result, tool};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, Script, wait_for};

use crate::stage::{AT_ONCE, assert_alive, pid, start, text_of_call};

fn notify(method: &str, params: Value) -> Action {
    Action::Notify {
        method: method.to_owned(),
        params,
    }
}

#[tokio::test]
async fn fr_139_odd_and_unknown_notifications_are_tolerated() {
    let script = Script::new("s").on_call(
        "t",
        [
            notify("notifications/tools/list_changed", json!([])),
            notify("notifications/unknown/thing", json!({"x": 1})),
            notify(
                "notifications/message",
                json!({"level": "info", "data": {"a": [1]}}),
            ),
            notify(
                "notifications/progress",
                json!({"progressToken": "nobody", "progress": 1}),
            ),
            Action::Answer {
                result: text_result("ok"),
            },
        ],
    );
    let service = start(script).await;
    let pid = pid(&service).await;
    assert_eq!(text_of_call(&service).await, "ok");
    assert_alive(&service, &pid).await;
}

#[tokio::test]
async fn fr_140_requests_of_the_server_are_answered() {
    let ask = |id: i64, method: &str, params: Value| Action::Request {
        id,
        method: method.to_owned(),
        params,
    };
    let sample = json!({"messages": [], "maxTokens": 10});
    let script = Script::new("s").on_call(
        "t",
        [
            ask(9001, "ping", json!({})),
            ask(9002, "roots/list", json!({})),
            ask(9003, "sampling/createMessage", sample),
            Action::AwaitReplies { count: 3 },
            Action::Answer {
                result: text_result("all answered"),
            },
        ],
    );
    let service = start(script).await;
    assert_eq!(text_of_call(&service).await, "all answered");
    let reply = |id: i64| {
        let records = service.records("s").unwrap();
        let found = records
            .into_iter()
            .find(|record| record.message["id"] == id && record.message.get("method").is_none());
        found.expect("an answer").message
    };
    assert_eq!(reply(9001)["result"], json!({}));
    for id in [9002, 9003] {
        let reply = reply(id);
        let refused = reply["error"]["code"] == -32601;
        assert!(refused || reply["result"].is_object(), "{reply}");
    }
}

#[tokio::test]
async fn l25_a_changed_tool_list_is_read_again() {
    let script = Script::new("s")
        .with_tools(vec![tool("t"), tool("b"), tool("echo")])
        .on_call(
            "t",
            [
                Action::SetTools {
                    tools: vec![tool("t"), tool("c"), tool("echo")],
                },
                notify("notifications/tools/list_changed", json!({})),
                Action::Answer {
                    result: text_result("changed"),
                },
            ],
        );
    let service = start(script).await;
    let names = || async {
        let listed = service
            .get("/v1/tools?server=s")
            .await
            .unwrap()
            .ok()
            .unwrap();
        let tools = listed["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(names().await.contains(&"mcp__s__b".to_owned()));
    assert_eq!(text_of_call(&service).await, "changed");
    wait_for("the new list", PATIENCE, || async {
        let names = names().await;
        let new = names.contains(&"mcp__s__c".to_owned());
        let old = names.contains(&"mcp__s__b".to_owned());
        if new && !old { Ok(()) } else { Err(names) }
    })
    .await
    .unwrap();
    let metrics = service.metrics().await.unwrap();
    assert!(metrics.sum("talaria_catalogue_changes_total", &[("server", "s")]) >= 1.0);
}

#[tokio::test]
async fn fr_159_a_refresh_that_fails_keeps_the_old_tools() {
    let first = Action::Answer {
        result: json!({"tools": [tool("t"), tool("echo")]}),
    };
    let refuse = Action::Fail {
        code: -32000,
        message: "busy".to_owned(),
    };
    let script = Script::new("s")
        .on_method("tools/list", [first])
        .on_method("tools/list", [refuse])
        .on_call(
            "t",
            [
                notify("notifications/tools/list_changed", json!({})),
                Action::Answer {
                    result: text_result("told"),
                },
            ],
        );
    let service = start(script).await;
    assert_eq!(text_of_call(&service).await, "told");
    wait_for("the refresh", AT_ONCE, || async {
        let records = service.records("s").unwrap();
        let lists = records
            .iter()
            .filter(|record| record.method() == Some("tools/list"))
            .count();
        if lists >= 2 { Ok(()) } else { Err(lists) }
    })
    .await
    .unwrap();
    let pid = pid(&service).await;
    assert_alive(&service, &pid).await;
    assert_eq!(text_of_call(&service).await, "told");
}
