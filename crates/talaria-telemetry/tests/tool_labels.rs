//! The cap on tool names as labels; a process of its own because the cap is one per process.

use std::time::Duration;

use talaria_telemetry::events::{self, McpOperation};
use talaria_telemetry::metrics::MAX_TOOL_LABELS;
use talaria_types::ServerName;

fn call(server: &ServerName, tool: &str) {
    let operation = McpOperation {
        server,
        method: "tools/call",
        tool: Some(tool),
        transport: "pipe",
    };
    events::mcp_operation_ended(&operation, Duration::from_millis(1), None);
}

fn series_of(text: &str, server: &str) -> Vec<String> {
    let server = format!("{{server=\"{server}\"");
    text.lines()
        .filter(|line| line.starts_with("mcp_client_operation_duration_seconds_count"))
        .filter(|line| line.contains(&server))
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn tool_names_beyond_the_cap_share_one_label() {
    let metrics = talaria_telemetry::install().expect("installs");
    let early = ServerName::from("early");
    call(&early, &"long".repeat(100));
    let series = series_of(&metrics.render(), "early").concat();
    assert!(
        series.contains("\"other\"") && !series.contains("longlong"),
        "{series}"
    );

    let many = ServerName::from("many");
    for number in 0..MAX_TOOL_LABELS + 50 {
        call(&many, &format!("tool-{number}"));
    }
    let series = series_of(&metrics.render(), "many");
    assert_eq!(series.len(), MAX_TOOL_LABELS + 1);
    let other = series
        .iter()
        .find(|line| line.contains("gen_ai_tool_name=\"other\""));
    assert!(other.is_some_and(|line| line.ends_with(" 50")), "{other:?}");

    let late = ServerName::from("late");
    call(&late, "first");
    assert!(
        series_of(&metrics.render(), "late")
            .concat()
            .contains("\"other\"")
    );
}
