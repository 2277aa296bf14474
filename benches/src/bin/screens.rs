//! Isolation: the latency of small calls to a server that also returns 4K screenshots in a loop,
//! each made ready for a model that sees.
//!
//! The control run has the same loop for a model that does not see, and another process that makes
//! the same pictures ready at the same rate and the same priority: the same work, elsewhere.
//! Prints the ratios of p50 and p99.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use serde_json::{Value, json};
use talaria_benches::drive::{self, Outcome, Shape};
use talaria_benches::programs;
use talaria_image::{Target, Watch, prepare};
use talaria_testkit::Programs;
use talaria_testkit::script::{Action, Script};
use talaria_testkit::service::Service;
use tokio::time::{Interval, MissedTickBehavior, interval};

#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds of each run.
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Clients that make small calls.
    #[arg(long, default_value_t = 2)]
    clients: usize,
    /// Screenshots a second.
    #[arg(long, default_value_t = 6)]
    rate: u32,
    /// Pairs of runs, in alternating order; the median ratio counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Fail when a median ratio is over this.
    #[arg(long, default_value_t = 1.5)]
    most: f64,
    /// Makes the screenshot ready at the rate until killed; for the control run itself.
    #[arg(long, hide = true)]
    burn: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if arguments.burn {
        return runtime.block_on(burn(&std::fs::read(screenshot())?, arguments.rate));
    }
    runtime.block_on(compare(&arguments))
}

fn screenshot() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/images/doc4k2x.png")
}

async fn compare(arguments: &Arguments) -> anyhow::Result<()> {
    let programs = programs::build()?;
    let mut ratios = Vec::new();
    for round in 0..arguments.rounds {
        let (inside, outside) = if round % 2 == 0 {
            let inside = measure(programs, arguments, true).await?;
            (inside, measure(programs, arguments, false).await?)
        } else {
            let outside = measure(programs, arguments, false).await?;
            (measure(programs, arguments, true).await?, outside)
        };
        println!("{}", inside.line("pictures made ready here"));
        println!("{}", outside.line("control: made ready elsewhere"));
        let ratio = |quantile| inside.quantile_ms(quantile) / outside.quantile_ms(quantile);
        println!(
            "round {}: p50 ratio {:.2}, p99 ratio {:.2}",
            round + 1,
            ratio(0.5),
            ratio(0.99)
        );
        ratios.push([ratio(0.5), ratio(0.99)]);
    }
    let median = |which: usize| {
        let mut all: Vec<f64> = ratios.iter().map(|ratio| ratio[which]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (p50, p99) = (median(0), median(1));
    println!(
        "median ratios: p50 {p50:.2}, p99 {p99:.2}; at most {:.2} wanted",
        arguments.most
    );
    ensure!(
        p50.max(p99) <= arguments.most,
        "making pictures ready costs small calls too much"
    );
    Ok(())
}

/// Small calls beside the loop of screenshots; the pictures are made ready in the service or in
/// a process of their own.
async fn measure(
    programs: Programs,
    arguments: &Arguments,
    inside: bool,
) -> anyhow::Result<Outcome> {
    let image = STANDARD.encode(std::fs::read(screenshot())?);
    let result = json!({"content": [{"type": "image", "mimeType": "image/png", "data": image}]});
    let script = Script::new("screens")
        .text_tool("echo", "forty-two")
        .on_call("shot", [Action::Answer { result }]);
    let service = Service::builder(programs)?
        .stdio("screens", script)?
        .start()
        .await?;

    let burner = if inside {
        None
    } else {
        Some(Burner::start(arguments.rate)?)
    };
    let small = Shape {
        name: "echo",
        url: service.url("/v1/tools/call"),
        body: json!({"server": "screens", "name": "echo", "arguments": {}}),
        answer_contains: "forty-two",
    };
    let time = Duration::from_secs(arguments.seconds);
    // The first picture fills caches and finds the threads.
    shot(&service, inside).await?;
    ensure!(
        !inside || service.pid() > 0 && has_pool(service.pid())?,
        "no thread of the pool"
    );
    let outcome = tokio::select! {
        biased;
        outcome = drive::run(small, arguments.clients, time) => outcome?,
        error = shots(&service, arguments.rate, inside) => return Err(error),
    };
    drop(burner);
    ensure!(
        outcome.failed == 0,
        "small calls failed: {:?}",
        outcome.errors
    );
    Ok(outcome)
}

/// One screenshot after the other at a rate; only ever ends with an error.
async fn shots(service: &Service, rate: u32, seeing: bool) -> anyhow::Error {
    let mut ticks = ticks(rate);
    loop {
        ticks.tick().await;
        if let Err(error) = shot(service, seeing).await {
            return error;
        }
    }
}

async fn shot(service: &Service, seeing: bool) -> anyhow::Result<()> {
    let route = if seeing {
        json!({"provider": "anthropic", "model": "claude-sonnet-4-5"})
    } else {
        json!({"provider": "deepseek", "model": "deepseek-chat"})
    };
    let body: Value = json!({
        "server": "screens", "name": "shot", "arguments": {},
        "route": route, "format": "anthropic", "call_id": "toolu_01Screen",
    });
    let block = service.post("/v1/tools/call", &body).await?.ok()?;
    let content = block["content"].as_array().context("content")?;
    let pictures = content
        .iter()
        .filter(|part| part["type"] == "image")
        .count();
    ensure!(
        pictures == usize::from(seeing),
        "{pictures} pictures: {content:?}"
    );
    Ok(())
}

/// Whether the service has threads for pictures.
fn has_pool(pid: u32) -> anyhow::Result<bool> {
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = std::fs::read_to_string(task?.path().join("comm"))?;
        if name.starts_with("image-") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same work in another process; killed when dropped.
struct Burner(Child);

impl Burner {
    fn start(rate: u32) -> anyhow::Result<Self> {
        // The priority of the pool's threads.
        let child = Command::new("nice")
            .args(["-n", "10"])
            .arg(std::env::current_exe()?)
            .args(["--burn", "--rate", &rate.to_string()])
            .stdin(Stdio::null())
            .spawn()
            .context("start the other process")?;
        Ok(Self(child))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

async fn burn(png: &[u8], rate: u32) -> anyhow::Result<()> {
    let mut ticks = ticks(rate);
    loop {
        ticks.tick().await;
        prepare(png, &Target::default(), &Watch::never())?;
    }
}

/// So many a second, and fewer where there is no time.
fn ticks(rate: u32) -> Interval {
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
