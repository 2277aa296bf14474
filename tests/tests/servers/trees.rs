//! Process trees: wrappers whose children ignore every polite request.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Script, Service, ServiceBuilder, process, programs};

use crate::stage::builder;

/// A shell that starts a child which ignores the end of its input and SIGTERM, and becomes the
/// server.
fn wrapped(script: Script) -> ServiceBuilder {
    let builder = builder();
    let path = builder.home().join("wrapped.script.json");
    script.write(&path).unwrap();
    let line = format!(
        "(trap '' TERM HUP; exec sleep 1000) & exec {} {}",
        programs!().server,
        path.display()
    );
    builder.server("w", json!({"command": "sh", "args": ["-c", line]}))
}

async fn started() -> Service {
    let service = wrapped(Script::new("w").text_tool("t", "ok"))
        .start()
        .await
        .unwrap();
    let said = service.call("w", "t", json!({})).await.unwrap();
    assert_eq!(said.ok().unwrap()["text"], "ok");
    let below = process::descendants(service.pid());
    let sleeps = below
        .iter()
        .any(|process| process.command.contains("sleep 1000"));
    assert!(sleeps, "{below:?}");
    service
}

fn left(home: &Path) -> Vec<process::ProcessView> {
    process::belonging_to(home)
}

#[tokio::test]
async fn fr_160_a_wrapper_and_its_child_end_with_a_normal_stop() {
    let service = started().await;
    service.terminate().unwrap();
    assert!(service.wait_exit(PATIENCE).await.unwrap().success());
    let gone = service.wait_no_processes(Duration::from_secs(5)).await;
    assert!(gone.is_ok(), "{:?}", left(service.home()));
}

#[tokio::test]
async fn l31_a_wrapper_and_its_child_end_when_the_service_is_killed() {
    let service = started().await;
    service.kill().unwrap();
    service.wait_exit(PATIENCE).await.unwrap();
    let gone = service.wait_no_processes(Duration::from_secs(5)).await;
    assert!(gone.is_ok(), "{:?}", left(service.home()));
}
