//! Entries of the configuration, seen from outside.

use serde_json::json;
use talaria_testkit::Script;
use talaria_testkit::service::PATIENCE;

use crate::stage::builder;

#[tokio::test]
async fn k05_args_are_a_list_a_list_in_json_or_a_line() {
    let script = Script::new("s").text_tool("t", "ok");
    let base = builder();
    let path = base.home().join("k05.script.json");
    script.write(&path).unwrap();
    let server = talaria_testkit::programs!().server;
    let place = path.display();
    let service = base
        .server("list", json!({"command": server, "args": [path]}))
        .server(
            "json",
            json!({"command": server, "args": format!("[\"{place}\"]")}),
        )
        .server(
            "line",
            json!({"command": server, "args": format!("'{place}'")}),
        )
        .server("map", json!({"command": server, "args": {"a": 1}}))
        .start_unsettled()
        .await
        .unwrap();
    for name in ["list", "json", "line"] {
        service.wait_state(name, "ready", PATIENCE).await.unwrap();
        let said = service.call(name, "t", json!({})).await.unwrap();
        assert_eq!(said.ok().unwrap()["text"], "ok", "{name}");
    }
    let status = service.wait_state("map", "failed", PATIENCE).await.unwrap();
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.contains("mcp_servers.map.args"), "{status}");
}
