//! Isolation: the latency of small calls to one server while three others misbehave.
//!
//! One server accepts calls and never answers, one streams 50 MiB results, one floods stderr.
//! The control run makes the same load in another Talaria process on the same machine, so that
//! the processor is as busy and only the sharing differs. Prints the ratio of the p99s.

use std::time::Duration;

use clap::Parser;
use serde_json::json;
use talaria_benches::drive::{self, Outcome, Shape};
use talaria_benches::programs;
use talaria_testkit::Programs;
use talaria_testkit::payload::PayloadSpec;
use talaria_testkit::script::{Action, Pace, Part, ProcessAction, Script};
use talaria_testkit::service::{Service, ServiceBuilder};

#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds of each run.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Clients that make small calls.
    #[arg(long, default_value_t = 2)]
    clients: usize,
    /// Pairs of runs, in alternating order; the median ratio counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Fail when the median ratio is over this.
    #[arg(long, default_value_t = 2.0)]
    most: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let programs = programs::build()?;
    let mut ratios = Vec::new();
    for round in 0..arguments.rounds {
        let (shared, apart) = if round % 2 == 0 {
            let shared = measure(programs, &arguments, true).await?;
            (shared, measure(programs, &arguments, false).await?)
        } else {
            let apart = measure(programs, &arguments, false).await?;
            (measure(programs, &arguments, true).await?, apart)
        };
        println!("{}", shared.line("beside bad servers"));
        println!("{}", apart.line("control: bad ones elsewhere"));
        let ratio = shared.quantile_ms(0.99) / apart.quantile_ms(0.99);
        println!("round {}: p99 ratio {ratio:.2}", round + 1);
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!(
        "median p99 ratio {median:.2}, at most {:.2} wanted",
        arguments.most
    );
    anyhow::ensure!(
        median <= arguments.most,
        "the bad servers cost the good one too much"
    );
    Ok(())
}

/// Small calls while the bad servers run, in the same service or in another one.
async fn measure(programs: Programs, arguments: &Arguments, same: bool) -> anyhow::Result<Outcome> {
    let good = json!({"command": programs.talaria, "args": ["demo-server"]});
    let measured = Service::builder(programs)?.server("good", good);
    let (measured, other) = if same {
        (with_bad_servers(measured)?.start().await?, None)
    } else {
        let other = with_bad_servers(Service::builder(programs)?)?
            .start()
            .await?;
        (measured.start().await?, Some(other))
    };
    let bad = other.as_ref().unwrap_or(&measured);
    let time = Duration::from_secs(arguments.seconds);
    let echo = Shape {
        name: "echo",
        url: measured.url("/v1/tools/call"),
        body: json!({"server": "good", "name": "echo", "arguments": {"text": "forty-two"}}),
        answer_contains: "forty-two",
    };
    let stream = Shape {
        name: "stream",
        url: bad.url("/v1/tools/call"),
        body: json!({"server": "streaming", "name": "fetch", "arguments": {}}),
        answer_contains: "\"bytes\":52428800",
    };
    let wedged =
        json!({"server": "wedged", "name": "never", "arguments": {}, "timeout_ms": 3_600_000});
    let flood = json!({"server": "flooding", "name": "shout", "arguments": {}});
    let outcome = tokio::select! {
        biased;
        outcome = drive::run(echo, arguments.clients, time) => outcome?,
        // The others run until the measured loop has ended.
        stream = drive::run(stream, 1, time * 2) => { anyhow::bail!("the streaming loop ended: {stream:?}") }
        answer = bad.post("/v1/tools/call", &wedged) => { anyhow::bail!("the wedged server answered: {answer:?}") }
        answer = bad.post("/v1/tools/call", &flood) => { anyhow::bail!("the flooding server answered: {answer:?}") }
    };
    anyhow::ensure!(
        outcome.failed == 0,
        "small calls failed: {:?}",
        outcome.errors
    );
    Ok(outcome)
}

fn with_bad_servers(service: ServiceBuilder) -> anyhow::Result<ServiceBuilder> {
    let document = vec![
        Part::Text(r#"{"jsonrpc":"2.0","id":"#.to_owned()),
        Part::Id,
        Part::Text(r#","result":{"content":[{"type":"resource","resource":{"uri":"x://h/big.bin","mimeType":"application/octet-stream","blob":""#.to_owned()),
        Part::Payload(PayloadSpec::of(52_428_800)),
        Part::Text(r#""}}]}}"#.to_owned()),
    ];
    let flood: Vec<Action> = (0..10_000)
        .flat_map(|_| {
            [
                ProcessAction::Stderr { bytes: 65_536 }.into(),
                Action::Delay { ms: 5 },
            ]
        })
        .collect();
    service
        .stdio(
            "wedged",
            Script::new("wedged").on_call("never", [Action::Hang]),
        )?
        .stdio(
            "streaming",
            Script::new("streaming").on_call(
                "fetch",
                [Action::Send {
                    parts: document,
                    pace: Pace::Fast,
                }],
            ),
        )?
        .stdio("flooding", Script::new("flooding").on_call("shout", flood))
}
