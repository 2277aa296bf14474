//! Nothing that was started outlives the service, however it ends.

use std::time::Duration;

use nix::sys::signal::Signal;
use talaria_testkit::script::ProcessAction;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, Script, Service, process, programs, wait_for};

use crate::stage::AT_ONCE;

/// A server that ignores the end of its input and SIGTERM and has a child that does too.
fn stubborn() -> Script {
    let mut script = Script::new("stubborn")
        .at_start([ProcessAction::Grandchild.into()])
        .text_tool("echo", "echoed")
        .on_call("hang", [Action::Hang]);
    script.ignore_end_of_input = true;
    script.ignore_sigterm = true;
    script
}

async fn with_stubborn_servers() -> Service {
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("one", stubborn())
        .unwrap()
        .stdio("two", stubborn())
        .unwrap()
        .start()
        .await
        .unwrap();
    wait_for("two servers and two grandchildren", AT_ONCE, || async {
        let below = process::descendants(service.pid());
        let shells = below
            .iter()
            .filter(|process| process.command.starts_with("sh "))
            .count();
        if shells == 2 { Ok(()) } else { Err(below) }
    })
    .await
    .unwrap();
    service
}

#[tokio::test]
async fn fr_160_nothing_survives_a_kill_of_the_service_for_two_seconds() {
    let service = with_stubborn_servers().await;
    service.kill().unwrap();
    service.wait_exit(AT_ONCE).await.unwrap();
    service
        .wait_no_processes(Duration::from_secs(2))
        .await
        .unwrap();
}

#[tokio::test]
async fn fr_160_nothing_survives_a_normal_stop() {
    let service = with_stubborn_servers().await;
    service.terminate().unwrap();
    let status = service.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{status}");
    service
        .wait_no_processes(Duration::from_secs(2))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_disabled_server_leaves_nothing_running() {
    let service = with_stubborn_servers().await;
    let status = service.server("one").await.unwrap();
    let first = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
    let group = process::view(first).unwrap().group;
    let nothing = serde_json::json!({});
    let answer = service
        .post("/v1/servers/one/disable", &nothing)
        .await
        .unwrap();
    assert_eq!(answer.ok().unwrap()["state"], "disabled");
    wait_for("the group to be gone", PATIENCE, || async {
        let mut left = process::all();
        left.retain(|process| process.group == group && process.state != 'Z');
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await
    .unwrap();
    assert_eq!(
        service.call("two", "echo", nothing).await.unwrap().status,
        200
    );
}

#[tokio::test]
async fn a_guard_that_dies_does_not_take_the_service_with_it() {
    let service = with_stubborn_servers().await;
    let guard = process::descendants(service.pid())
        .into_iter()
        .find(|process| process.command.contains("__guard"))
        .expect("a guard process");
    process::signal(guard.pid, Signal::SIGKILL).unwrap();
    let answer = service
        .call("one", "echo", serde_json::json!({}))
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
}
