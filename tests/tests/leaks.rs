//! What hundreds of calls leave behind: nothing.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::{HttpScript, document_answer, raw};
use talaria_testkit::service::{PATIENCE, http_client};
use talaria_testkit::{
    Action, HttpServer, PayloadSpec, Script, Service, Slack, programs, wait_for,
};

/// Rounds of traffic; each makes every kind of call once per server.
const ROUNDS: usize = 20;

/// What may come and go with pools.
const KEPT: Slack = Slack {
    tasks: 1,
    descriptors: 6,
    threads: 6,
};
/// What caches and the allocator may keep, in bytes.
const KEPT_MEMORY: f64 = 48e6;

fn script(name: &str) -> Script {
    Script::new(name)
        .text_tool("echo", "echoed")
        .on_call(
            "file",
            [document_answer("x://h/file.bin", PayloadSpec::of(300_000))],
        )
        .on_call(
            "refused",
            [document_answer(
                "x://h/file.bin",
                PayloadSpec::of(3_000_000),
            )],
        )
        .on_call(
            "broken",
            [raw("{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{]}")],
        )
        .on_call("hang", [Action::AwaitCancel])
}

async fn memory(service: &Service) -> f64 {
    let metrics = service.metrics().await.unwrap();
    metrics.value("process_resident_memory_bytes", &[]).unwrap()
}

/// Makes every kind of call once, several at a time.
async fn round(service: &Service, server: &str) {
    let call = |tool: &'static str, limit: Option<u64>| async move {
        let mut body = json!({"server": server, "name": tool});
        if let Some(limit) = limit {
            body["timeout_ms"] = json!(limit);
        }
        service.post("/v1/tools/call", &body).await.unwrap().status
    };
    let statuses = tokio::join!(
        call("echo", None),
        call("file", None),
        call("refused", None),
        call("broken", None),
    );
    assert_eq!(statuses, (200, 200, 502, 502), "{server}");
    assert_eq!(call("hang", Some(30)).await, 504);
    let body = json!({"server": server, "name": "hang"});
    let request = http_client()
        .unwrap()
        .post(service.url("/v1/tools/call"))
        .json(&body)
        .send();
    // The caller goes away with its call in flight.
    assert!(
        tokio::time::timeout(Duration::from_millis(50), request)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn hundreds_of_calls_leave_nothing_behind() {
    let http = HttpScript {
        sse: true,
        ..HttpScript::default()
    };
    let remote = HttpServer::start(script("remote").with_http(http)).unwrap();
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("local", script("local"))
        .unwrap()
        .http("remote", &remote)
        .set(&["talaria", "limits", "message_bytes"], "2MiB")
        .start()
        .await
        .unwrap();
    let servers = ["local", "remote"];
    for server in servers {
        round(&service, server).await;
        round(&service, server).await;
    }
    let before = service.holdings().await.unwrap();
    let memory_before = memory(&service).await;
    for _ in 0..ROUNDS {
        for server in servers {
            round(&service, server).await;
        }
    }
    service.wait_given_back(before, KEPT).await.unwrap();
    wait_for("the memory to be given back", PATIENCE, || async {
        let now = memory(&service).await;
        if now <= memory_before + KEPT_MEMORY {
            Ok(())
        } else {
            Err((memory_before, now))
        }
    })
    .await
    .unwrap();
    for server in servers {
        let status: Value = service.server(server).await.unwrap();
        assert_eq!(status["state"], "ready", "{status}");
        assert_eq!(
            (&status["in_flight"], &status["pending"]),
            (&json!(0), &json!(0))
        );
        assert_eq!(status["restarts"], 0, "{status}");
    }
    let saved = std::fs::read_dir(service.cache().join("documents"))
        .unwrap()
        .count();
    assert_eq!(
        saved,
        (ROUNDS + 2) * servers.len(),
        "one file per delivered document"
    );
    let staged = std::fs::read_dir(service.cache().join("staging"));
    assert_eq!(staged.map_or(0, Iterator::count), 0, "staging files remain");
}

#[tokio::test]
async fn servers_that_die_again_and_again_leave_nothing_behind() {
    let dying = Script::new("s").text_tool("echo", "echoed").on_call(
        "die",
        [talaria_testkit::script::ProcessAction::Exit { code: 1 }.into()],
    );
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", dying)
        .unwrap()
        .start()
        .await
        .unwrap();
    let mut before = None;
    for _ in 0..6 {
        let lost = service.call("s", "die", json!({})).await.unwrap();
        assert_eq!(lost.code().unwrap(), "connection_lost");
        let again = service
            .post("/v1/servers/s/reconnect", &json!({}))
            .await
            .unwrap();
        assert_eq!(again.ok().unwrap()["state"], "ready");
        let before = match before {
            Some(before) => before,
            None => *before.insert(service.holdings().await.unwrap()),
        };
        service.wait_given_back(before, KEPT).await.unwrap();
    }
    let running = talaria_testkit::process::descendants(service.pid());
    let servers = running
        .iter()
        .filter(|process| process.command.contains("scripted-server"));
    assert_eq!(servers.count(), 1, "{running:?}");
}
