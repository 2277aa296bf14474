//! Servers that are lazy, and sessions that are ended on purpose.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_types::Deadline;

use super::stage::{LONG, Stage, on_paused_clock, wait_until};
use crate::fake::{Connect, Fleet, Seen};
use crate::supervisor::Placement;

fn started(fleet: &Fleet, home: &Path, server: &Value) -> Stage {
    let config = json!({
        "talaria": { "home": home },
        "mcp_servers": { "s": server },
    });
    Stage::start_with(fleet, &config, Placement::Current)
}

async fn until_written(home: &Path) {
    let file = home.join("cache/mcp_schema_cache.json");
    wait_until("the tools are remembered", || file.exists()).await;
}

#[test]
fn l33_a_lazy_server_offers_what_it_offered_before_and_connects_with_the_first_call() {
    let home = tempfile::tempdir().unwrap();
    let lazy = json!({ "command": "fake", "lazy": true });
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet.server("s").offer(&["echo", "gone"]);
        let stage = started(&fleet, home.path(), &lazy);
        stage.reaches("ready").await;
        assert_eq!(stage.supervisor.tools().len(), 2, "nothing was known yet");
        until_written(home.path()).await;
        stage.supervisor.drain(Duration::from_secs(1)).await;
    });
    on_paused_clock(async {
        let fleet = Fleet::default();
        let server = fleet.server("s");
        let stage = started(&fleet, home.path(), &lazy);
        stage.settle().await;
        assert_eq!(stage.status().state, "configured");
        assert_eq!(stage.supervisor.tools().len(), 2);
        assert_eq!(server.count(&Seen::Connected), 0, "no spawn");
        tokio::time::sleep(LONG).await;
        assert_eq!(server.count(&Seen::Connected), 0);
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(server.count(&Seen::Connected), 1);
        let names: Vec<_> = stage
            .supervisor
            .tools()
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        assert_eq!(names, ["mcp__s__echo"], "what it no longer has is removed");
        stage.supervisor.drain(Duration::from_secs(1)).await;
    });
}

#[test]
fn a_lazy_server_that_cannot_be_reached_is_told_of_by_the_first_call() {
    let home = tempfile::tempdir().unwrap();
    let lazy = json!({ "command": "fake", "lazy": true });
    on_paused_clock(async {
        let fleet = Fleet::default();
        let stage = started(&fleet, home.path(), &lazy);
        stage.reaches("ready").await;
        until_written(home.path()).await;
        stage.supervisor.drain(Duration::from_secs(1)).await;
    });
    on_paused_clock(async {
        let fleet = Fleet::default();
        fleet.server("s").next_connects([Connect::Hang]);
        let stage = started(&fleet, home.path(), &lazy);
        stage.settle().await;
        let since = talaria_types::runtime::now();
        let failure = stage.call("echo").await.unwrap_err();
        let waited = since.elapsed().as_secs_f64();
        assert!((14.9..15.2).contains(&waited), "{waited}");
        assert!(failure.detail().contains("connecting"), "{failure}");
        stage.supervisor.drain(Duration::from_secs(1)).await;
    });
}

#[test]
fn an_idle_session_ends_and_the_next_call_makes_another() {
    on_paused_clock(async {
        let config = json!({ "command": "fake", "idle_timeout_seconds": 60 });
        let (stage, server) = Stage::one_with(&config).await;
        let took = stage.reaches("configured").await;
        assert!((59..=61).contains(&took.as_secs()), "{took:?}");
        assert_eq!(server.open_sessions(), 0);
        assert_eq!(stage.supervisor.tools().len(), 1, "the tools stay");
        let snapshot = stage.supervisor.server_handle("s").snapshot();
        assert!(!snapshot.stale && snapshot.down_since.is_none());
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(server.count(&Seen::Connected), 2);
        assert_eq!(stage.status().state, "ready");
    });
}

#[test]
fn a_session_over_its_lifetime_is_replaced_between_two_calls() {
    on_paused_clock(async {
        let config = json!({ "command": "fake", "max_lifetime_seconds": 60 });
        let (stage, server) = Stage::one_with(&config).await;
        let release = server.hold("echo");
        let running = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(server.count(&Seen::Connected), 1, "not while a call runs");
        let waiting = stage.start_call("echo", LONG);
        release.notify_one();
        assert!(running.await.unwrap().is_ok());
        wait_until("the new session", || server.count(&Seen::Connected) == 2).await;
        release.notify_one();
        assert!(waiting.await.unwrap().is_ok());
        assert_eq!(server.most_sessions(), 1);
    });
}

#[test]
fn an_operator_connects_a_server_whose_session_was_ended() {
    on_paused_clock(async {
        let config = json!({ "command": "fake", "idle_timeout_seconds": 5 });
        let (stage, _server) = Stage::one_with(&config).await;
        stage.reaches("configured").await;
        let deadline = Deadline::after(LONG);
        let status = stage.supervisor.reconnect("s", deadline).await.unwrap();
        assert_eq!(status.state, "ready");
    });
}
