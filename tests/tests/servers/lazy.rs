//! Servers that start when they are called, and go when nobody calls.

use serde_json::json;
use talaria_testkit::script::tool;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{RecordKind, Script, Service, wait_for};

use crate::stage::{builder, names, text_of};

fn starts(service: &Service) -> usize {
    let records = service.records("s").unwrap();
    let started = records
        .iter()
        .filter(|record| record.kind == RecordKind::Started);
    started.count()
}

#[tokio::test]
async fn l33_a_lazy_server_is_offered_from_the_cache_and_started_by_its_first_call() {
    let known = Script::new("s")
        .text_tool("kept", "this is kept")
        .text_tool("gone", "this is gone");
    let builder = builder()
        .stdio("s", known.clone())
        .unwrap()
        .set(&["mcp_servers", "s", "lazy"], true);
    let script = builder.home().join("s.script.json");
    let records = builder.home().join("s.records.jsonl");

    // Nothing is known of it at first, so the first run asks it.
    let service = builder.clone().start_unsettled().await.unwrap();
    let said = service.call("s", "kept", json!({})).await.unwrap();
    assert_eq!(said.ok().unwrap()["text"], "this is kept");
    service.terminate().unwrap();
    service.wait_exit(PATIENCE).await.unwrap();
    let before = starts(&service);
    drop(service);

    // Meanwhile the server lost one of its tools.
    let fewer = Script::new("s")
        .with_tools(vec![tool("kept")])
        .text_tool("kept", "this is kept");
    fewer.recorded_in(&records).write(&script).unwrap();
    let service = builder.start_unsettled().await.unwrap();
    assert_eq!(names(&service).await, ["mcp__s__gone", "mcp__s__kept"]);
    let status = service.server("s").await.unwrap();
    assert_eq!(status["state"], "configured", "{status}");
    assert_eq!(starts(&service), before, "nothing was started");
    assert_eq!(text_of(&service, "mcp__s__kept").await, "this is kept");
    wait_for(
        "the tool that is gone to leave the list",
        PATIENCE,
        || async {
            let names = names(&service).await;
            if names == ["mcp__s__kept"] {
                Ok(())
            } else {
                Err(names)
            }
        },
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn an_idle_server_is_recycled_and_back_with_the_next_call() {
    let script = Script::new("s").text_tool("t", "ok");
    let service = builder()
        .stdio("s", script)
        .unwrap()
        .set(&["mcp_servers", "s", "idle_timeout_seconds"], 1)
        .start()
        .await
        .unwrap();
    service
        .wait_state("s", "configured", PATIENCE)
        .await
        .unwrap();
    assert_eq!(names(&service).await, ["mcp__s__t"], "its tools stay");
    assert_eq!(text_of(&service, "mcp__s__t").await, "ok");
}
