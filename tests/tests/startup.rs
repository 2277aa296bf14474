//! A service with bad servers beside good ones: it is there at once, the good ones work as if
//! they were alone, and the bad ones are shown with state, reason and next probe.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::{HttpScript, ProcessAction};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{
    Action, HttpServer, RefusingPort, Script, Service, ServiceBuilder, process, programs, wait_for,
};

/// How long the healthy tools may take to be listed, on a machine that does nothing else.
const SOON: Duration = Duration::from_secs(1);
/// How many times longer than without bad servers a busy machine may take for the same.
const BUSY: u32 = 2;

fn good(name: &str) -> Script {
    Script::new(name)
        .text_tool("echo", "echoed")
        .on_call("hang", [Action::Hang])
}

fn healthy(remote: &HttpServer) -> ServiceBuilder {
    Service::builder(programs!())
        .unwrap()
        .stdio("good", good("good"))
        .unwrap()
        .stdio("fine", good("fine"))
        .unwrap()
        .http("remote", remote)
}

/// The bad servers; what they need lives as long as the parts returned.
fn with_bad_ones(
    builder: ServiceBuilder,
    mute: &HttpServer,
    port: &RefusingPort,
) -> ServiceBuilder {
    let silent = Script::new("silent").on_method("initialize", [Action::Hang]);
    let crashing = Script::new("crashing").at_start([ProcessAction::Exit { code: 9 }.into()]);
    let nowhere = format!("http://{}/mcp", port.address());
    builder
        .stdio("silent", silent)
        .unwrap()
        .set(&["mcp_servers", "silent", "connect_timeout"], 2)
        .stdio("crashing", crashing)
        .unwrap()
        .server("ghost", json!({"command": "/nonexistent/program"}))
        .server("lost", json!({"command": "no-such-program-anywhere"}))
        .server("mute", json!({"url": mute.url(), "connect_timeout": 2}))
        .server("nowhere", json!({"url": nowhere}))
}

/// Starts a service and says how long it took until every healthy tool was listed.
async fn time_to_list(builder: ServiceBuilder) -> (Service, Duration) {
    let started = talaria_types::runtime::now();
    let service = builder.start_unsettled().await.unwrap();
    wait_for("the healthy tools", PATIENCE, || async {
        let (answer, took) = timed(service.get("/v1/tools")).await;
        assert!(took < SOON, "a list took {took:?}");
        let listed = answer.unwrap().ok().unwrap();
        let tools = listed["tools"].as_array().unwrap().clone();
        let names: Vec<&str> = tools
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        let wanted = ["mcp__good__echo", "mcp__fine__echo", "mcp__remote__echo"];
        if wanted.iter().all(|name| names.contains(name)) {
            Ok(())
        } else {
            Err(listed.to_string())
        }
    })
    .await
    .unwrap();
    (service, started.elapsed())
}

async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = talaria_types::runtime::now();
    let value = work.await;
    (value, started.elapsed())
}

fn mute() -> HttpServer {
    HttpServer::start(
        Script::new("mute")
            .on_method("server/discover", [Action::Hang])
            .on_method("initialize", [Action::Hang])
            .with_http(HttpScript {
                sessions: false,
                ..HttpScript::default()
            }),
    )
    .unwrap()
}

#[tokio::test]
async fn healthy_tools_are_listed_within_a_second_whatever_the_others_do() {
    let remote = HttpServer::start(good("remote")).unwrap();
    let (mute, port) = (mute(), RefusingPort::take().unwrap());
    let (alone, without) = time_to_list(healthy(&remote)).await;
    drop(alone);
    let builder = with_bad_ones(healthy(&remote), &mute, &port);
    let (service, with) = time_to_list(builder).await;
    let most = SOON.max(without * BUSY);
    assert!(
        with <= most,
        "{with:?} with bad servers, {without:?} without"
    );
    assert_eq!(service.get("/readyz").await.unwrap().status, 200);
    for server in ["good", "fine", "remote"] {
        let (answer, took) = timed(service.call(server, "echo", json!({}))).await;
        assert_eq!(answer.unwrap().ok().unwrap()["text"], "echoed", "{server}");
        assert!(took < SOON, "{server} took {took:?}");
    }
}

#[tokio::test]
async fn bad_servers_are_shown_with_state_reason_and_next_probe() {
    let remote = HttpServer::start(good("remote")).unwrap();
    let (mute, port) = (mute(), RefusingPort::take().unwrap());
    let builder = with_bad_ones(healthy(&remote), &mute, &port);
    let service = builder.start_unsettled().await.unwrap();
    for name in ["silent", "crashing", "ghost", "lost", "mute", "nowhere"] {
        let status = wait_for("a state with a reason and a probe", PATIENCE, || async {
            let status = service.server(name).await.unwrap();
            let is_told = status["reason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty());
            if is_told && status["next_attempt_ms"].is_u64() {
                Ok(status)
            } else {
                Err(status)
            }
        })
        .await
        .unwrap();
        let state = status["state"].as_str().unwrap();
        let honest = ["backoff", "parked", "failed"];
        assert!(honest.contains(&state), "{status}");
        assert_eq!(status["tools"], 0, "{status}");
    }
    let listed = service.get("/v1/servers").await.unwrap().ok().unwrap();
    assert_eq!(listed["servers"].as_array().unwrap().len(), 9, "{listed}");
    let calls = ["silent", "crashing", "ghost", "lost", "mute", "nowhere"];
    for name in calls {
        let body = json!({"server": name, "name": "t", "timeout_ms": 20_000});
        let (answer, took) = timed(service.post("/v1/tools/call", &body)).await;
        let problem = answer.unwrap().problem().unwrap();
        assert_eq!(problem["outcome_uncertain"], false, "{problem}");
        assert!(took < Duration::from_secs(10), "{name}: {took:?}");
    }
}

#[tokio::test]
async fn a_killed_child_is_back_within_a_second_and_only_its_call_in_flight_fails() {
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("good", good("good"))
        .unwrap()
        .stdio("fine", good("fine"))
        .unwrap()
        .start()
        .await
        .unwrap();
    let status = service.server("good").await.unwrap();
    let pid = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
    let in_flight = service.call("good", "hang", json!({}));
    let others = async {
        service
            .wait_record("good", "the call", PATIENCE, |record| record.calls("hang"))
            .await
            .unwrap();
        // One waits behind the call that will be lost, one is at another server.
        let waiting = service.call("good", "echo", json!({}));
        let elsewhere = service.call("fine", "echo", json!({}));
        let kill = async {
            wait_for("the second call to wait", PATIENCE, || async {
                let status = service.server("good").await.unwrap();
                let waits = status["pending"] == 1;
                if waits { Ok(()) } else { Err(status) }
            })
            .await
            .unwrap();
            process::signal(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
            timed(back(&service, pid)).await.1
        };
        tokio::join!(waiting, elsewhere, kill)
    };
    let (lost, (waiting, elsewhere, took)) = tokio::join!(in_flight, others);
    let problem = lost.unwrap().problem().unwrap();
    assert_eq!(problem["code"], "connection_lost", "{problem}");
    assert_eq!(problem["outcome_uncertain"], true, "{problem}");
    assert_eq!(waiting.unwrap().ok().unwrap()["text"], "echoed");
    assert_eq!(elsewhere.unwrap().ok().unwrap()["text"], "echoed");
    assert!(took < SOON, "it took {took:?}");
}

/// Waits until another process serves.
async fn back(service: &Service, pid: u32) -> Value {
    wait_for("another process", PATIENCE, || async {
        let status = service.server("good").await.unwrap();
        let other = status["pid"]
            .as_u64()
            .is_some_and(|now| now != u64::from(pid));
        if other && status["state"] == "ready" {
            Ok(status)
        } else {
            Err(status)
        }
    })
    .await
    .unwrap()
}
