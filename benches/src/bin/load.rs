//! Load: small calls and 1 MiB deliveries against the built-in MCP server while a real
//! Prometheus scrapes. Prints rate, p50 and p99, and the series that moved; fails on any error.

use std::time::Duration;

use clap::Parser;
use serde_json::json;
use talaria_benches::drive::{self, Shape};
use talaria_benches::programs;
use talaria_benches::prometheus::Prometheus;
use talaria_testkit::process;
use talaria_testkit::service::Service;

/// Series that must be there and have moved after the run.
const MUST_MOVE: &[&str] = &[
    "mcp_client_operation_duration_seconds_count{mcp_method_name='tools/call',gen_ai_tool_name='echo'}",
    "mcp_client_operation_duration_seconds_count{mcp_method_name='tools/call',gen_ai_tool_name='blob'}",
    "http_server_request_duration_seconds_count{http_route='/v1/tools/call'}",
    "talaria_delivery_duration_seconds_count",
    "talaria_blocks_received_total",
    "talaria_blocks_settled_total",
    "talaria_wire_received_bytes_total",
    "talaria_media_saved_bytes_total",
];

/// Series that must be there.
const MUST_EXIST: &[&str] = &[
    "talaria_server_up",
    "talaria_server_state",
    "talaria_server_in_flight",
    "talaria_server_pending",
    "talaria_media_bytes",
    "talaria_build_info",
    "process_resident_memory_bytes",
];

#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds of load.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Clients that make small calls.
    #[arg(long, default_value_t = 6)]
    small: usize,
    /// Clients that fetch 1 MiB files.
    #[arg(long, default_value_t = 2)]
    large: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let programs = programs::build()?;
    let service = Service::builder(programs)?
        .server(
            "demo",
            json!({"command": programs.talaria, "args": ["demo-server"], "rpc_concurrency": 8}),
        )
        .set(
            &["talaria", "media"],
            json!({"max_bytes": "4GiB", "ttl": "1h", "grace": "5s"}),
        )
        .start()
        .await?;
    let target = service.url("").trim_start_matches("http://").to_owned();
    let prometheus = Prometheus::start(&target).await?;
    prometheus.wait_scraped().await?;

    let time = Duration::from_secs(arguments.seconds);
    let url = service.url("/v1/tools/call");
    let echo = Shape {
        name: "echo",
        url: url.clone(),
        body: json!({"server": "demo", "name": "echo", "arguments": {"text": "forty-two"}}),
        answer_contains: "forty-two",
    };
    let blob = Shape {
        name: "blob",
        url,
        body: json!({"server": "demo", "name": "blob", "arguments": {"bytes": 1 << 20}}),
        answer_contains: "\"bytes\":1048576",
    };
    let idle = process::memory(service.pid())?;
    let (small, large) = tokio::join!(
        drive::run(echo, arguments.small, time),
        drive::run(blob, arguments.large, time),
    );
    let (small, large) = (small?, large?);
    let loaded = process::memory(service.pid())?;

    println!(
        "{} s, {} + {} clients, Prometheus scraping every second",
        arguments.seconds, arguments.small, arguments.large
    );
    println!("{}", small.line("small call (echo)"));
    println!("{}", large.line("1 MiB delivery (blob)"));
    println!(
        "memory of the service: {} MiB idle, {} MiB after the load, {} MiB at most",
        idle.resident >> 20,
        loaded.resident >> 20,
        loaded.peak >> 20,
    );

    // One more scrape, so that the last answers are counted.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut missing = Vec::new();
    println!("\nseries in Prometheus");
    for (series, must_move) in MUST_MOVE
        .iter()
        .map(|series| (*series, true))
        .chain(MUST_EXIST.iter().map(|series| (*series, false)))
    {
        let value = prometheus.sum(series).await?;
        println!(
            "  {:>16}  {series}",
            value.map_or_else(|| "absent".to_owned(), |value| value.to_string())
        );
        if value.is_none_or(|value| must_move && value <= 0.0) {
            missing.push(series);
        }
    }
    let errors: Vec<&String> = small.errors.iter().chain(&large.errors).collect();
    anyhow::ensure!(errors.is_empty(), "requests failed: {errors:#?}");
    anyhow::ensure!(missing.is_empty(), "series absent or unmoved: {missing:#?}");
    Ok(())
}
