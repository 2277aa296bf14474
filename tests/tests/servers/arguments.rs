//! Arguments are checked before anything is sent.

use serde_json::{Value, json};
use talaria_testkit::Script;

use crate::stage::{builder, timed};

fn tool_with(schema: &Value) -> Script {
    let definition = json!({"name": "t", "inputSchema": schema});
    Script::new("s")
        .with_tools(vec![definition])
        .text_tool("t", "ok")
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_refused_before_the_server_sees_them() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "depth": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["r", "w"]},
        },
        "required": ["path"],
    });
    let service = builder()
        .stdio("s", tool_with(&schema))
        .unwrap()
        .start()
        .await
        .unwrap();
    for (arguments, place) in [
        (json!({}), "path"),
        (json!({"path": 7}), "/path"),
        (json!({"path": "x", "depth": 0}), "/depth"),
        (json!({"path": "x", "mode": "rw"}), "/mode"),
    ] {
        let refused = service.call("s", "t", arguments.clone()).await.unwrap();
        let problem = refused.problem().unwrap();
        assert_eq!(
            problem["code"], "invalid_arguments",
            "{arguments}: {problem}"
        );
        assert_eq!(problem["outcome_uncertain"], false, "{problem}");
        for member in ["detail", "model_text"] {
            let told = problem[member].as_str().unwrap();
            assert!(told.contains(place), "{member}: {told}");
        }
    }
    let records = service.records("s").unwrap();
    assert!(!records.iter().any(|record| record.calls("t")));
    let fits = json!({"path": "x", "depth": 3, "mode": "r", "extra": true});
    let said = service.call("s", "t", fits).await.unwrap();
    assert_eq!(said.ok().unwrap()["text"], "ok");
}

#[tokio::test]
async fn a_schema_that_makes_no_sense_is_not_enforced() {
    for schema in [
        json!({"type": "object", "properties": {"x": {"type": "strnig"}}}),
        json!({"type": "object", "properties": {"x": {"pattern": "("}}}),
        json!({"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}}),
        json!({"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}}),
    ] {
        let service = builder()
            .stdio("s", tool_with(&schema))
            .unwrap()
            .start()
            .await
            .unwrap();
        let hostile = json!({"x": format!("{}!", "a".repeat(40))});
        let (answer, took) = timed(service.call("s", "t", hostile)).await;
        assert!(took.as_secs() < 3, "{schema}: {took:?}");
        let status = answer.unwrap().status;
        assert!([200, 400].contains(&status), "{schema}: {status}");
        let plain = service.call("s", "t", json!({})).await.unwrap();
        assert_eq!(plain.status, 200, "{schema}: {}", plain.excerpt());
    }
}
