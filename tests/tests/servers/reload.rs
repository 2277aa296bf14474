//! Reloads: only what changed restarts, what runs ends, a broken file changes nothing.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::text_result;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, Script, Service, ServiceBuilder, process, wait_for};

use crate::stage::{builder, names, timed};

fn script(name: &str) -> Script {
    Script::new(name).text_tool("t", "ok")
}

/// Three servers; the file is not watched, so that only the test reloads.
fn three() -> ServiceBuilder {
    ["a", "b", "c"]
        .into_iter()
        .fold(builder(), |builder, name| {
            builder.stdio(name, script(name)).unwrap()
        })
        .set(&["talaria", "watch_config"], false)
}

async fn pid(service: &Service, name: &str) -> u64 {
    let status = service.wait_state(name, "ready", PATIENCE).await.unwrap();
    status["pid"].as_u64().unwrap()
}

async fn reload(service: &Service) -> Value {
    let answer = service.post("/v1/reload", &json!({})).await.unwrap();
    answer.ok().unwrap()
}

#[tokio::test]
async fn a_reload_touches_only_what_changed() {
    let builder = three();
    let service = builder.clone().start().await.unwrap();
    let (a, b, c) = (
        pid(&service, "a").await,
        pid(&service, "b").await,
        pid(&service, "c").await,
    );
    builder
        .set(&["mcp_servers", "b", "env", "ROUND"], "2")
        .without("c")
        .stdio("d", script("d"))
        .unwrap()
        .write_config()
        .unwrap();
    let report = reload(&service).await;
    assert_eq!(report["changed"], json!(["b"]), "{report}");
    assert_eq!(report["removed"], json!(["c"]), "{report}");
    assert_eq!(report["added"], json!(["d"]), "{report}");
    assert_eq!(report["unchanged"], 1, "{report}");
    wait_for("another process of b", PATIENCE, || async {
        let now = pid(&service, "b").await;
        if now == b { Err(now) } else { Ok(()) }
    })
    .await
    .unwrap();
    assert_eq!(pid(&service, "a").await, a);
    pid(&service, "d").await;
    assert_eq!(service.get("/v1/servers/c").await.unwrap().status, 404);
    assert_eq!(
        names(&service).await,
        ["mcp__a__t", "mcp__b__t", "mcp__d__t"]
    );
    wait_for("c to leave the gauges", PATIENCE, || async {
        let metrics = service.metrics().await.unwrap();
        let up = |server| {
            metrics
                .value("talaria_server_up", &[("server", server)])
                .ok()
        };
        match (up("a"), up("c")) {
            (Some(_), None) => Ok(()),
            other => Err(other),
        }
    })
    .await
    .unwrap();
    for old in [b, c] {
        let old = u32::try_from(old).unwrap();
        wait_for("the old process to be gone", PATIENCE, || {
            std::future::ready(if process::is_alive(old) {
                Err(old)
            } else {
                Ok(())
            })
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn l38_two_reloads_at_once_are_one() {
    let builder = three();
    let service = builder.clone().start().await.unwrap();
    let nothing_ran = process::descendants(service.pid()).len();
    builder
        .stdio("d", script("d"))
        .unwrap()
        .write_config()
        .unwrap();
    let (one, two) = tokio::join!(reload(&service), reload(&service));
    let added = [&one, &two].map(|report| report["added"].as_array().unwrap().len());
    assert_eq!(added.iter().sum::<usize>(), 1, "{one} {two}");
    pid(&service, "d").await;
    let starts = service.records("d").unwrap();
    let started = starts
        .iter()
        .filter(|record| record.kind == talaria_testkit::RecordKind::Started);
    assert_eq!(started.count(), 1, "one child");
    assert_eq!(
        process::descendants(service.pid()).len(),
        nothing_ran + 1,
        "one process more"
    );
}

#[tokio::test]
async fn a_call_in_flight_survives_the_reload_of_its_server() {
    let base = three();
    let gate = base.home().join("gate");
    let slow = Script::new("slow").on_call(
        "t",
        [
            Action::AwaitFile { path: gate.clone() },
            Action::Answer {
                result: text_result("in the end"),
            },
        ],
    );
    // Each round has a name of its own: what a script records outlives its server.
    for (name, removed) in [("changed", false), ("gone", true)] {
        drop(std::fs::remove_file(&gate));
        let builder = base.clone().stdio(name, slow.clone()).unwrap();
        let service = builder.clone().start().await.unwrap();
        let changed = if removed {
            builder.without(name)
        } else {
            builder.set(&["mcp_servers", name, "env", "ROUND"], "2")
        };
        let calling = service.call(name, "t", json!({}));
        let reloading = async {
            service
                .wait_record(name, "the call", PATIENCE, |record| record.calls("t"))
                .await
                .unwrap();
            changed.write_config().unwrap();
            let reload = reload(&service);
            let release = async {
                // The gate opens once the reload is under way or done.
                let other = service.call("a", "t", json!({})).await.unwrap();
                assert_eq!(other.status, 200);
                std::fs::write(&gate, "").unwrap();
            };
            tokio::join!(reload, release).0
        };
        let (answer, report) = tokio::join!(calling, reloading);
        let delivery = answer.unwrap().ok().unwrap();
        assert_eq!(delivery["text"], "in the end", "{report}");
    }
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_told_with_its_key() {
    let builder = three();
    let service = builder.clone().start().await.unwrap();
    let before = pid(&service, "a").await;
    let file = builder
        .clone()
        .without("a")
        .set(&["talaria", "limits", "mesage_bytes"], "1MiB")
        .write_config()
        .unwrap();
    for words in ["talaria.limits.mesage_bytes", "line 1"] {
        let refused = service.post("/v1/reload", &json!({})).await.unwrap();
        let problem = refused.problem().unwrap();
        assert_eq!(problem["code"], "config_invalid", "{problem}");
        let problems = problem["problems"].to_string();
        assert!(problems.contains(words), "{problem}");
        assert_eq!(pid(&service, "a").await, before);
        std::fs::write(&file, "mcp_servers: [unclosed").unwrap();
    }
    builder.write_config().unwrap();
    let report = reload(&service).await;
    assert_eq!(report["unchanged"], 3, "{report}");
    assert_eq!(pid(&service, "a").await, before);
}

#[tokio::test]
async fn k09_a_server_that_left_the_file_is_retired() {
    let builder = ["a", "b"].into_iter().fold(builder(), |builder, name| {
        builder.stdio(name, script(name)).unwrap()
    });
    let service = builder.clone().start().await.unwrap();
    let a = pid(&service, "a").await;
    let b = u32::try_from(pid(&service, "b").await).unwrap();
    builder.without("b").write_config().unwrap();
    wait_for("the server to be retired", PATIENCE, || async {
        let status = service.get("/v1/servers/b").await.unwrap().status;
        if status == 404 && !process::is_alive(b) {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await
    .unwrap();
    assert_eq!(names(&service).await, ["mcp__a__t"]);
    assert_eq!(pid(&service, "a").await, a, "the other was not touched");
}

#[tokio::test]
async fn fr_173_a_server_that_is_added_changes_no_name() {
    let odd = |name: &str| Script::new(name).text_tool("a-b", "this");
    let builder = builder()
        .stdio("x.y", odd("x.y"))
        .unwrap()
        .set(&["talaria", "watch_config"], false);
    let service = builder.clone().start().await.unwrap();
    let before = names(&service).await;
    // Sanitised, its name and that of its tool are the same as the other's.
    builder
        .stdio("x_y", Script::new("x_y").text_tool("a_b", "that"))
        .unwrap()
        .write_config()
        .unwrap();
    reload(&service).await;
    pid(&service, "x_y").await;
    let after = names(&service).await;
    assert_eq!(after.len(), 2, "{after:?}");
    assert!(after.contains(&before[0]), "{before:?} {after:?}");
}

#[tokio::test]
async fn sighup_reloads() {
    let builder = three();
    let service = builder.clone().start().await.unwrap();
    builder
        .stdio("d", script("d"))
        .unwrap()
        .write_config()
        .unwrap();
    process::signal(service.pid(), nix::sys::signal::Signal::SIGHUP).unwrap();
    wait_for("the new server", PATIENCE, || async {
        let names = names(&service).await;
        if names.contains(&"mcp__d__t".to_owned()) {
            Ok(())
        } else {
            Err(names)
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_reload_leaves_calls_to_others_alone() {
    let builder = three();
    let service = builder.clone().start().await.unwrap();
    let calls = async {
        for _ in 0..100 {
            let (answer, took) = timed(service.call("a", "t", json!({}))).await;
            assert_eq!(answer.unwrap().status, 200);
            assert!(took < Duration::from_secs(1), "{took:?}");
        }
    };
    let reloads = async {
        for round in 0..4 {
            builder
                .clone()
                .set(&["mcp_servers", "b", "env", "ROUND"], round.to_string())
                .write_config()
                .unwrap();
            reload(&service).await;
        }
    };
    tokio::join!(calls, reloads);
}
