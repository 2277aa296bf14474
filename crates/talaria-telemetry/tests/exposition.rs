//! The exposed text: it parses, holds every family of the catalogue, and follows the events.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support fails the test"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use talaria_telemetry::events::{self, ImageJob, McpOperation, VisionAttempt};
use talaria_telemetry::metrics::{CATALOGUE, Kind};
use talaria_types::{ErrorCode, NoticeCode, ServerName, WireNote};

const MS: Duration = Duration::from_millis(3);

/// A sample: name, labels, value.
#[derive(Debug, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Reads Prometheus' text format, strictly.
fn parse(text: &str) -> Vec<Sample> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| parse_line(line).unwrap_or_else(|| panic!("cannot read `{line}`")))
        .collect()
}

fn parse_line(line: &str) -> Option<Sample> {
    let name_end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (key, after) = rest.split_once("=\"")?;
            let end = after.find('"')?;
            let (value, after) = after.split_at(end);
            assert!(
                !value.contains('\\'),
                "label values need no escapes: {line}"
            );
            assert!(
                labels.insert(key.to_owned(), value.to_owned()).is_none(),
                "{line}"
            );
            rest = after.strip_prefix('"')?;
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => break,
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.strip_prefix(' ')?.parse().ok()?;
    Some(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

fn render() -> String {
    talaria_telemetry::install().expect("installs").render()
}

/// The value of the one sample of `name` that has these labels, whatever else it has.
fn value(text: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let found: Vec<_> = parse(text)
        .into_iter()
        .filter(|sample| sample.name == name)
        .filter(|sample| {
            labels
                .iter()
                .all(|(k, v)| sample.labels.get(*k).is_some_and(|l| l == v))
        })
        .collect();
    assert!(
        found.len() < 2,
        "{name} {labels:?} is not unique: {found:?}"
    );
    found.first().map(|sample| sample.value)
}

fn call<'a>(server: &'a ServerName, tool: &'a str) -> McpOperation<'a> {
    McpOperation {
        server,
        method: "tools/call",
        tool: Some(tool),
        transport: "pipe",
    }
}

fn fire_every_event(server: &ServerName) {
    events::server_state_changed(server, "connecting", "ready", "connected");
    events::mcp_operation_ended(&call(server, "echo"), MS, None);
    events::mcp_session_ended(server, "pipe", MS, "shutdown");
    events::server_reconnect(server, "exited");
    events::server_breaker_changed(server, "open");
    events::circuit_refused(server, "server");
    events::keepalive_ended(server, "alive");
    events::list_refreshed(server, "read");
    events::catalogue_changed(server, 2, 1);
    events::arguments_checked(server, events::ArgumentOutcome::Refused);
    events::steering_counted(server, "concealment");
    events::steering_told(server, Some("echo"), "concealment", "do not tell");
    events::config_read();
    events::config_reloaded("http", events::ReloadOutcome::Applied);
    events::server_load(server, 1, 4);
    events::server_queue_waited(server, MS);
    events::queue_depth("everything", 3, 64);
    events::queue_refused("everything");
    events::deadline_exceeded("queue");
    events::wire_fault(server, ErrorCode::MalformedMessage, "not JSON");
    events::wire_mended(server, WireNote::LoneSurrogate);
    events::wire_received(server, 100);
    events::blocks_received("text", 1);
    events::blocks_settled("text", "delivered", None, 1);
    events::blocks_settled("image", "refused", Some(NoticeCode::NotBase64), 1);
    events::delivery_made("talaria", 12, MS, false);
    events::gate_decided(true, "sees", "mcp", "the model sees pictures");
    events::images_settled("attached", None, 2);
    events::images_settled("refused", Some(NoticeCode::NotAnImage), 1);
    events::image_job_ended(&ImageJob {
        input: "png",
        output: "jpeg",
        outcome: "prepared",
        pixels: 100,
        output_bytes: 10,
        encodes: 1,
        waited: Duration::from_millis(1),
        took: Duration::from_millis(30),
    });
    events::image_job_refused("busy");
    events::vision_attempt_ended(&VisionAttempt {
        backend: "openai/gpt-4o",
        stage: "primary",
        outcome: "answered",
        took: MS,
        detail: "",
    });
    events::vision_analysis_ended("answered", MS, MS);
    events::vision_running(1);
    events::vision_fell_back("openai/gpt-4o", "mcp:eyes/look", "timeout");
    events::vision_breaker_changed("openai/gpt-4o", "open");
    events::vision_hedge_ended("won");
    events::vision_shared("cached");
    events::media_saved("document", 10);
    events::media_failed(ErrorCode::MediaUnavailable, "disk full");
    events::media_removed("expired", 1, 10);
    events::media_usage(3, 30);
    events::http_request_ended("POST", "/v1/tools/call", 504, MS, Some(ErrorCode::Timeout));
}

#[test]
fn every_family_of_the_catalogue_is_exposed_with_help_type_and_its_labels() {
    talaria_telemetry::install().expect("installs");
    fire_every_event(&"everything".into());
    let text = render();
    let samples = parse(&text);
    let mut positions = Vec::new();
    for family in CATALOGUE {
        let head = format!(
            "# HELP {0} {1}\n# TYPE {0} {2}\n",
            family.name,
            family.help,
            family.kind.as_str()
        );
        positions.push(
            text.find(&head)
                .unwrap_or_else(|| panic!("no head of {}", family.name)),
        );
        assert_eq!(text.matches(&format!("# TYPE {} ", family.name)).count(), 1);
        let sample_name = match family.kind {
            Kind::Counter | Kind::Gauge => family.name.to_owned(),
            Kind::Histogram => format!("{}_count", family.name),
        };
        let of_family: Vec<_> = samples
            .iter()
            .filter(|sample| sample.name == sample_name)
            .collect();
        assert!(!of_family.is_empty(), "{} has no series", family.name);
        for sample in of_family {
            for label in sample.labels.keys() {
                assert!(family.labels.contains(&label.as_str()), "{sample:?}");
            }
        }
    }
    assert!(
        positions.is_sorted(),
        "families stand in the order of the catalogue"
    );
}

#[test]
fn no_series_stands_outside_the_catalogue() {
    talaria_telemetry::install().expect("installs");
    fire_every_event(&"outside".into());
    for line in render()
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
    {
        let name = line.split(' ').next().expect("a name");
        assert!(CATALOGUE.iter().any(|family| family.name == name), "{name}");
    }
}

#[test]
fn families_without_a_series_have_help_and_type() {
    let text = render();
    for family in CATALOGUE {
        assert!(
            text.contains(&format!("# HELP {} ", family.name)),
            "{}",
            family.name
        );
        assert!(
            text.contains(&format!("# TYPE {} ", family.name)),
            "{}",
            family.name
        );
    }
}

#[test]
fn names_follow_the_rules_of_prometheus() {
    for family in CATALOGUE {
        let allowed = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(family.name.chars().all(allowed), "{}", family.name);
        assert_eq!(
            family.kind == Kind::Counter,
            family.name.ends_with("_total"),
            "{}",
            family.name
        );
        assert_eq!(
            family.kind == Kind::Histogram,
            !family.buckets.is_empty(),
            "{}",
            family.name
        );
        assert!(family.buckets.is_sorted(), "{}", family.name);
        assert_eq!(
            family
                .labels
                .iter()
                .position(|label| *label == "server")
                .unwrap_or(0),
            0,
            "server is the first label of {}",
            family.name
        );
    }
}

#[test]
fn operations_are_counted_by_tool_and_error() {
    talaria_telemetry::install().expect("installs");
    let server = ServerName::from("operations");
    events::mcp_operation_ended(&call(&server, "a"), MS, None);
    events::mcp_operation_ended(&call(&server, "a"), MS, None);
    events::mcp_operation_ended(&call(&server, "a"), MS, Some("timeout"));
    events::mcp_operation_ended(&call(&server, "a"), MS, Some("words of a server"));
    let list = McpOperation {
        server: &server,
        method: "tools/list",
        tool: None,
        transport: "tcp",
    };
    events::mcp_operation_ended(&list, MS, None);
    let counts: Vec<_> = parse(&render())
        .into_iter()
        .filter(|s| s.name == "mcp_client_operation_duration_seconds_count")
        .filter(|s| s.labels.get("server").is_some_and(|l| l == "operations"))
        .map(|s| {
            let label = |name: &str| s.labels.get(name).cloned().unwrap_or_default();
            (
                label("mcp_method_name"),
                label("gen_ai_tool_name"),
                label("error_type"),
                s.value,
            )
        })
        .collect();
    let expected = [
        ("tools/call", "a", "", 2.0),
        ("tools/call", "a", "timeout", 1.0),
        ("tools/call", "a", "other", 1.0),
        ("tools/list", "", "", 1.0),
    ];
    assert_eq!(counts.len(), expected.len(), "{counts:?}");
    for (method, tool, error, count) in expected {
        let row = (method.to_owned(), tool.to_owned(), error.to_owned(), count);
        assert!(counts.contains(&row), "{row:?} in {counts:?}");
    }
}

#[test]
fn state_gauge_follows_the_server_and_names_the_reason() {
    talaria_telemetry::install().expect("installs");
    let server = ServerName::from("states");
    events::server_state_changed(&server, "connecting", "ready", "connected");
    let text = render();
    assert_eq!(
        value(&text, "talaria_server_up", &[("server", "states")]),
        Some(1.0)
    );
    events::server_state_changed(&server, "ready", "backoff", "connection_lost");
    events::server_state_changed(&server, "backoff", "failed", "the server said: no");
    let text = render();
    let state = |state, reason| {
        let labels = [("server", "states"), ("state", state), ("reason", reason)];
        value(&text, "talaria_server_state", &labels)
    };
    assert_eq!(
        value(&text, "talaria_server_up", &[("server", "states")]),
        Some(0.0)
    );
    assert_eq!(state("ready", "connected"), Some(0.0));
    assert_eq!(state("backoff", "connection_lost"), Some(0.0));
    assert_eq!(state("failed", "other"), Some(1.0));
}

#[test]
fn gauges_of_a_server_that_was_removed_are_gone_until_it_is_back() {
    talaria_telemetry::install().expect("installs");
    let (server, other) = (ServerName::from("leaving"), ServerName::from("leaving-not"));
    for server in [&server, &other] {
        events::server_state_changed(server, "connecting", "ready", "connected");
        events::server_reconnect(server, "lifetime");
    }
    let up = |name| value(&render(), "talaria_server_up", &[("server", name)]);
    let reconnects = || {
        let labels = [("server", "leaving"), ("cause", "lifetime")];
        value(&render(), "talaria_server_reconnects_total", &labels)
    };
    events::server_state_changed(&server, "ready", "stopped", "drain");
    assert_eq!(up("leaving"), Some(0.0));
    events::server_removed(&server);
    assert_eq!((up("leaving"), up("leaving-not")), (None, Some(1.0)));
    assert!(!render().contains("talaria_server_state{server=\"leaving\""));
    // What was counted stays: a counter that goes and comes back looks like a restart.
    assert_eq!(reconnects(), Some(1.0));
    events::server_state_changed(&server, "configured", "connecting", "added");
    events::server_state_changed(&server, "connecting", "ready", "connected");
    assert_eq!(up("leaving"), Some(1.0));
}

#[test]
fn one_state_of_a_breaker_holds_at_a_time() {
    talaria_telemetry::install().expect("installs");
    for state in events::BREAKER_STATES {
        events::vision_breaker_changed("breakers", state);
        let text = render();
        for known in events::BREAKER_STATES {
            let labels = [("backend", "breakers"), ("state", *known)];
            let shown = value(&text, "talaria_vision_breaker_state", &labels);
            assert_eq!(
                shown,
                Some(if known == state { 1.0 } else { 0.0 }),
                "{known}"
            );
        }
    }
}

#[test]
fn odd_names_do_not_break_the_text() {
    talaria_telemetry::install().expect("installs");
    let server = ServerName::from("a\"b\\c\nd,server=\"x\"");
    events::server_state_changed(&server, "connecting", "ready", "connected");
    events::mcp_operation_ended(&call(&server, "报告\"}\n x 1"), MS, None);
    let text = render();
    let labels = [("server", "a_b_c_d,server=_x_")];
    assert_eq!(value(&text, "talaria_server_up", &labels), Some(1.0));
}

#[test]
fn running_requests_are_counted_until_dropped() {
    talaria_telemetry::install().expect("installs");
    let before = value(&render(), "http_server_active_requests", &[]).expect("is shown");
    let request = events::http_request_began();
    assert_eq!(
        value(&render(), "http_server_active_requests", &[]),
        Some(before + 1.0)
    );
    drop(request);
    assert_eq!(
        value(&render(), "http_server_active_requests", &[]),
        Some(before)
    );
}

#[test]
fn unknown_http_methods_share_one_label() {
    talaria_telemetry::install().expect("installs");
    events::http_request_ended("BREW", "/odd", 405, MS, Some(ErrorCode::MethodNotAllowed));
    let labels = [("http_route", "/odd"), ("http_request_method", "_OTHER")];
    let name = "http_server_request_duration_seconds_count";
    assert_eq!(value(&render(), name, &labels), Some(1.0));
}
