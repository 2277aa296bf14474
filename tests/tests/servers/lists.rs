//! Tool lists that change and refreshes that fail.

use serde_json::json;
use talaria_testkit::script::{text_result, tool};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, Script, wait_for};

use crate::stage::{builder, names, start, text_of};

fn changed() -> Action {
    Action::Notify {
        method: "notifications/tools/list_changed".to_owned(),
        params: json!({}),
    }
}

fn answer(text: &str) -> Action {
    Action::Answer {
        result: text_result(text),
    }
}

fn list(tools: &[&str]) -> Action {
    let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
    Action::Answer {
        result: json!({ "tools": tools }),
    }
}

#[tokio::test]
async fn l25_what_came_and_what_went_is_named_in_the_log() {
    let script = Script::new("s")
        .on_method("tools/list", [list(&["a", "b"])])
        .on_method("tools/list", [list(&["a", "c"])])
        .on_call("a", [changed(), answer("told")])
        .text_tool("c", "new");
    let service = start(script).await;
    assert_eq!(text_of(&service, "mcp__s__a").await, "told");
    wait_for("the new list", PATIENCE, || async {
        let names = names(&service).await;
        if names == ["mcp__s__a", "mcp__s__c"] {
            Ok(())
        } else {
            Err(names)
        }
    })
    .await
    .unwrap();
    assert_eq!(text_of(&service, "mcp__s__c").await, "new");
    let log = service.log().unwrap();
    let told = log.lines().any(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let names = |field: &str, name: &str| line[field].to_string().contains(name);
        line["level"] == "WARN" && names("added", "c") && names("removed", "b")
    });
    assert!(told, "{log}");
}

#[tokio::test]
async fn l28_a_refresh_that_fails_keeps_the_old_tools() {
    let refused = Action::Fail {
        code: -32000,
        message: "not now".to_owned(),
    };
    let script = Script::new("s")
        .on_method("tools/list", [list(&["a", "b"])])
        .on_method("tools/list", [refused])
        .on_call("a", [changed(), answer("told")])
        .text_tool("b", "still here");
    let service = start(script).await;
    assert_eq!(text_of(&service, "mcp__s__a").await, "told");
    service
        .wait_record("s", "the refresh", PATIENCE, {
            let lists = std::cell::Cell::new(0);
            move |record| {
                let is_list = record.method() == Some("tools/list");
                lists.set(lists.get() + usize::from(is_list));
                lists.get() > 1
            }
        })
        .await
        .unwrap();
    assert_eq!(names(&service).await, ["mcp__s__a", "mcp__s__b"]);
    assert_eq!(text_of(&service, "mcp__s__b").await, "still here");
}

#[tokio::test]
async fn fr_159_tools_stay_while_the_server_is_too_busy_to_list_them() {
    let script = Script::new("s")
        .on_method("tools/list", [list(&["a", "b"])])
        .on_method("tools/list", [Action::Hang])
        .on_call("a", [changed(), Action::Hang])
        .text_tool("b", "still here");
    let service = builder()
        .stdio("s", script)
        .unwrap()
        .set(&["mcp_servers", "s", "timeout"], 1)
        .set(&["mcp_servers", "s", "connect_timeout"], 2)
        .start()
        .await
        .unwrap();
    let busy = service.call("s", "a", json!({})).await.unwrap();
    assert_eq!(busy.code().unwrap(), "timeout");
    wait_for("the list without an answer", PATIENCE, || async {
        let records = service.records("s").unwrap();
        let lists = records
            .iter()
            .filter(|record| record.method() == Some("tools/list"))
            .count();
        if lists >= 2 { Ok(()) } else { Err(lists) }
    })
    .await
    .unwrap();
    assert_eq!(names(&service).await, ["mcp__s__a", "mcp__s__b"]);
    assert_eq!(text_of(&service, "mcp__s__b").await, "still here");
}
