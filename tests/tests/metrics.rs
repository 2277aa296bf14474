//! What Prometheus sees after traffic: every block accounted for, every promised series there.

use std::collections::BTreeSet;

use serde_json::json;
use talaria_telemetry::metrics::{CATALOGUE, Kind};
use talaria_testkit::exposition::Exposition;
use talaria_testkit::samples::{PDF, PNG_1X1, base64, wav};
use talaria_testkit::script::{ProcessAction, raw, text_result};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Script, Service, programs, wait_for};

/// Every kind of block and every fate.
fn everything() -> serde_json::Value {
    json!({"content": [
        {"type": "text", "text": "hi"},
        {"type": "text", "text": "x".repeat(80_000)},
        {"type": "image", "mimeType": "image/png", "data": PNG_1X1},
        {"type": "image", "mimeType": "image/png", "data": "***"},
        {"type": "audio", "mimeType": "audio/wav", "data": base64(&wav())},
        {"type": "audio", "mimeType": "audio/wav", "data": ""},
        {"type": "resource", "resource": {"uri": "x://h/a.pdf", "blob": base64(PDF)}},
        {"type": "resource", "resource": {"uri": "x://h/t", "text": "embedded"}},
        {"type": "resource", "resource": {"uri": "x://h/none"}},
        {"type": "resource_link", "uri": "x://h/l", "name": "l"},
        {"type": "resource_link", "uri": "", "name": "l"},
        {"type": "hologram"},
        "loose",
        null,
    ]})
}

const BLOCKS: f64 = 14.0;

fn assert_balanced(metrics: &Exposition) {
    let kinds: BTreeSet<&str> = metrics
        .named("talaria_blocks_received_total")
        .iter()
        .map(|sample| sample.labels["kind"].as_str())
        .collect();
    for kind in kinds {
        let received = metrics.sum("talaria_blocks_received_total", &[("kind", kind)]);
        let settled = metrics.sum("talaria_blocks_settled_total", &[("kind", kind)]);
        assert_eq!(received, settled, "blocks of kind {kind}");
    }
}

#[tokio::test]
async fn every_block_received_has_its_fate() {
    let script = Script::new("s").tool("t", everything());
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
        .start()
        .await
        .unwrap();
    assert_eq!(service.call("s", "t", json!({})).await.unwrap().status, 200);
    for format in ["talaria", "hermes", "text"] {
        let mut failed = everything();
        failed["isError"] = json!(true);
        for result in [everything(), failed] {
            assert_eq!(service.deliver(result, format).await.unwrap().status, 200);
        }
    }
    let metrics = service.metrics().await.unwrap();
    assert_eq!(
        metrics.sum("talaria_blocks_received_total", &[]),
        7.0 * BLOCKS
    );
    assert_eq!(
        metrics.sum("talaria_blocks_settled_total", &[]),
        7.0 * BLOCKS
    );
    assert_balanced(&metrics);
    for fate in ["delivered", "saved", "spilled", "refused"] {
        let settled = metrics.sum("talaria_blocks_settled_total", &[("fate", fate)]);
        assert!(settled > 0.0, "no block was {fate}");
    }
    for refused in metrics.named("talaria_blocks_settled_total") {
        let coded = refused.labels.contains_key("code");
        assert!(refused.labels["fate"] != "refused" || coded, "{refused:?}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_stored_is_refused_in_the_sum_too() {
    let service = Service::builder(programs!())
        .unwrap()
        .start()
        .await
        .unwrap();
    std::fs::remove_dir_all(service.cache()).unwrap();
    std::fs::write(service.cache(), "in the way").unwrap();
    assert_eq!(
        service
            .deliver(everything(), "talaria")
            .await
            .unwrap()
            .status,
        200
    );
    let metrics = service.metrics().await.unwrap();
    assert_eq!(metrics.sum("talaria_blocks_received_total", &[]), BLOCKS);
    assert_balanced(&metrics);
    let lost = [("fate", "refused"), ("code", "not_stored")];
    assert!(metrics.sum("talaria_blocks_settled_total", &lost) >= 3.0);
}

#[tokio::test]
async fn traffic_leaves_the_series_that_are_promised() {
    let script = Script::new("s")
        .tool("t", everything())
        .tool(
            "bad",
            json!({"isError": true, "content": [{"type": "text", "text": "no"}]}),
        )
        .on_call(
            "broken",
            [raw("{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{]}")],
        )
        .on_call("die", [ProcessAction::Exit { code: 1 }.into()]);
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
        .start()
        .await
        .unwrap();
    for tool in ["t", "t", "bad", "broken", "die"] {
        service.call("s", tool, json!({})).await.unwrap();
    }
    service.wait_state("s", "ready", PATIENCE).await.unwrap();
    let metrics = service.metrics().await.unwrap();

    let operation = "mcp_client_operation_duration_seconds_count";
    let calls = |tool: &str, error: Option<&str>| {
        let mut labels = vec![
            ("server", "s"),
            ("mcp_method_name", "tools/call"),
            ("gen_ai_tool_name", tool),
            ("network_transport", "pipe"),
        ];
        labels.extend(error.map(|error| ("error_type", error)));
        metrics.value(operation, &labels).unwrap()
    };
    assert_eq!(calls("t", None), 2.0);
    assert_eq!(calls("bad", Some("tool_error")), 1.0);
    assert_eq!(calls("broken", Some("malformed_message")), 1.0);
    assert_eq!(calls("die", Some("connection_lost")), 1.0);
    assert!(metrics.sum(operation, &[("mcp_method_name", "tools/list")]) >= 1.0);

    assert_eq!(
        metrics
            .value("talaria_server_up", &[("server", "s")])
            .unwrap(),
        1.0
    );
    assert_eq!(
        metrics.sum("talaria_server_state", &[("server", "s")]),
        1.0,
        "one state at a time"
    );
    assert_eq!(
        metrics.sum(
            "talaria_server_state",
            &[("server", "s"), ("state", "ready")]
        ),
        1.0
    );
    assert!(metrics.sum("talaria_server_reconnects_total", &[("server", "s")]) >= 1.0);
    assert_eq!(
        metrics
            .value("talaria_server_in_flight", &[("server", "s")])
            .unwrap(),
        0.0
    );
    assert_eq!(
        metrics
            .value("talaria_server_pending", &[("server", "s")])
            .unwrap(),
        0.0
    );
    assert!(
        metrics.sum(
            "talaria_server_queue_wait_seconds_count",
            &[("server", "s")]
        ) >= 5.0
    );
    assert!(
        metrics.sum(
            "mcp_client_session_duration_seconds_count",
            &[("server", "s")]
        ) >= 1.0
    );
    assert!(metrics.sum("talaria_wire_received_bytes_total", &[("server", "s")]) > 80_000.0);
    let faults = [("server", "s"), ("code", "malformed_message")];
    assert_eq!(
        metrics.value("talaria_wire_faults_total", &faults).unwrap(),
        1.0
    );
    assert_eq!(
        metrics.sum("talaria_delivery_duration_seconds_count", &[]),
        3.0
    );
    assert_eq!(
        metrics.sum(
            "talaria_delivery_duration_seconds_count",
            &[("is_error", "true")]
        ),
        1.0
    );
    assert!(
        metrics.sum(
            "talaria_delivery_text_bytes_total",
            &[("format", "talaria")]
        ) > 0.0
    );
    assert!(metrics.sum("talaria_media_saved_files_total", &[]) >= 6.0);
    assert!(metrics.value("talaria_media_files", &[]).unwrap() >= 6.0);
    let http = [
        ("http_route", "/v1/tools/call"),
        ("http_response_status_code", "200"),
    ];
    assert_eq!(
        metrics.sum("http_server_request_duration_seconds_count", &http),
        3.0
    );
    let lost = [
        ("http_route", "/v1/tools/call"),
        ("http_response_status_code", "502"),
    ];
    assert_eq!(
        metrics.sum("http_server_request_duration_seconds_count", &lost),
        2.0
    );
    assert_eq!(
        metrics.value("http_server_active_requests", &[]).unwrap(),
        1.0,
        "this scrape"
    );
    assert_eq!(metrics.sum("talaria_build_info", &[]), 1.0);
    assert!(metrics.value("process_resident_memory_bytes", &[]).unwrap() > 1e6);
    assert!(metrics.value("process_open_fds", &[]).unwrap() > 3.0);
}

#[tokio::test]
async fn only_series_of_the_catalogue_with_their_labels_are_exposed() {
    let script = Script::new("s").tool("t", everything());
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
        .start()
        .await
        .unwrap();
    assert_eq!(service.call("s", "t", json!({})).await.unwrap().status, 200);
    let metrics = service.metrics().await.unwrap();
    for sample in metrics.samples() {
        let family = CATALOGUE.iter().find(|family| {
            family.name == sample.name
                || family.kind == Kind::Histogram
                    && ["_bucket", "_sum", "_count"]
                        .iter()
                        .any(|end| sample.name.strip_suffix(end) == Some(family.name))
        });
        let family = family.unwrap_or_else(|| panic!("{sample:?} is not in the catalogue"));
        for label in sample.labels.keys().filter(|label| *label != "le") {
            assert!(family.labels.contains(&label.as_str()), "{sample:?}");
        }
        assert_eq!(metrics.types()[family.name], family.kind.as_str());
    }
}

#[tokio::test]
async fn unbounded_words_never_become_labels() {
    let script = Script::new("s").text_tool("t", "t");
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
        .start()
        .await
        .unwrap();
    for number in 0..20 {
        let unknown = json!({"server": "s", "name": format!("tool-{number}")});
        service.post("/v1/tools/call", &unknown).await.unwrap();
        service
            .get(&format!("/v1/artifacts/secret-{number}"))
            .await
            .unwrap();
        service.get(&format!("/nowhere/{number}")).await.unwrap();
        service
            .get(&format!("/v1/servers/nobody-{number}"))
            .await
            .unwrap();
    }
    let metrics = service.metrics().await.unwrap();
    for sample in metrics.samples() {
        for value in sample.labels.values() {
            let ours = ["tool-", "secret-", "nobody-", "nowhere"];
            assert!(!ours.iter().any(|word| value.contains(word)), "{sample:?}");
        }
    }
}

#[tokio::test]
async fn what_is_in_flight_shows_while_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let script = Script::new("s").on_call(
        "t",
        [
            talaria_testkit::Action::AwaitFile { path: gate.clone() },
            talaria_testkit::Action::Answer {
                result: text_result("done"),
            },
        ],
    );
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
        .start()
        .await
        .unwrap();
    let calls = async {
        tokio::join!(
            service.call("s", "t", json!({})),
            service.call("s", "t", json!({}))
        )
    };
    let look = async {
        wait_for("one in flight and one pending", PATIENCE, || async {
            let metrics = service.metrics().await.unwrap();
            let now = ["talaria_server_in_flight", "talaria_server_pending"]
                .map(|name| metrics.sum(name, &[("server", "s")]));
            if now == [1.0, 1.0] { Ok(()) } else { Err(now) }
        })
        .await
        .unwrap();
        std::fs::write(&gate, "").unwrap();
    };
    let ((one, two), ()) = tokio::join!(calls, look);
    assert_eq!((one.unwrap().status, two.unwrap().status), (200, 200));
}
