//! The log: its form, its filter, and that it is set up once.

#![expect(clippy::expect_used, reason = "test support fails the test")]

use std::process::{Command, Output};

use serde_json::Value;
use talaria_telemetry::logging::{self, LogFormat, LoggingError};
use talaria_types::{ErrorCode, ServerName, runtime};

const FORMAT: &str = "LOG_TEST_FORMAT";
const FILTER: &str = "LOG_TEST_FILTER";

/// Runs the test below once more in a process of its own, whose stderr is a pipe.
fn child(format: &str, filter: &str) -> Output {
    Command::new(std::env::current_exe().expect("the test itself"))
        .args(["--exact", "writes_lines_when_asked", "--nocapture"])
        .env(FORMAT, format)
        .env(FILTER, filter)
        .output()
        .expect("runs")
}

fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr)
        .lines()
        .map(ToOwned::to_owned)
        .collect()
}

/// What the child does; without its variables there is nothing to do.
#[test]
fn writes_lines_when_asked() {
    let environment = runtime::environment();
    let Some(format) = environment.get(FORMAT) else {
        return;
    };
    let format = match format.as_str() {
        "json" => LogFormat::Json,
        "human" => LogFormat::Human,
        _ => LogFormat::Auto,
    };
    let filter = environment.get(FILTER).map(String::as_str);
    let guard = logging::init(format, filter).expect("sets up");
    assert!(matches!(
        logging::init(format, filter),
        Err(LoggingError::Taken(_))
    ));
    let server = ServerName::from("s");
    talaria_telemetry::events::wire_fault(&server, ErrorCode::MalformedMessage, "two\nlines");
    talaria_telemetry::events::queue_refused("q");
    tracing::error!(target: "rmcp::service", "chatter");
    tracing::info!(target: "actix_server::builder", "chatter");
    drop(guard);
}

#[test]
fn a_pipe_gets_json_with_the_default_filter() {
    for format in ["auto", "json"] {
        let lines = lines(&child(format, " "));
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line: Value = serde_json::from_str(&lines[0]).expect("JSON");
        let field = |name: &str| line[name].as_str().expect("a text").to_owned();
        assert_eq!(field("level"), "WARN");
        assert_eq!(field("message"), "bad message");
        assert_eq!(field("server"), "s");
        assert_eq!(field("code"), "malformed_message");
        assert_eq!(field("detail"), "two\nlines");
        assert!(line["timestamp"].is_string());
    }
}

#[test]
fn human_lines_on_a_pipe_have_no_colours_and_stay_lines() {
    let lines = lines(&child("human", "debug"));
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[0].contains("WARN") && lines[0].contains("bad message"),
        "{lines:?}"
    );
    assert!(lines[1].contains("queue full"), "{lines:?}");
    assert!(
        lines.iter().all(|line| !line.contains('\u{1b}')),
        "{lines:?}"
    );
}

#[test]
fn a_filter_that_cannot_be_read_is_named() {
    let error = logging::init(LogFormat::Json, Some("talaria=loud")).expect_err("no such level");
    assert_eq!(error.to_string(), "reading the log filter `talaria=loud`");
}
