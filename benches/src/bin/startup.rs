//! What bad servers cost good ones: two services side by side, one of them with a silent, a
//! missing, a crashing and an unreachable server, and the same small calls to both in turn.

use std::time::Duration;

use anyhow::ensure;
use clap::Parser;
use serde_json::json;
use talaria_benches::drive::{self, Outcome, Shape};
use talaria_benches::programs;
use talaria_testkit::script::ProcessAction;
use talaria_testkit::service::{Service, ServiceBuilder};
use talaria_testkit::{Action, HttpServer, Programs, RefusingPort, Script, wait_for};
use tokio::time::Instant;

/// The healthy tools are listed within this.
const SOON: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds of each slice.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Slices per service, in alternating order.
    #[arg(long, default_value_t = 8)]
    slices: usize,
    /// Clients that make small calls.
    #[arg(long, default_value_t = 1)]
    clients: usize,
    /// A call may take so many times as long beside bad servers …
    #[arg(long, default_value_t = 1.2)]
    most: f64,
    /// … or so many milliseconds longer.
    #[arg(long, default_value_t = 0.2)]
    most_ms: f64,
}

/// A service under measurement.
struct Side {
    name: &'static str,
    service: Service,
    slices: Vec<Outcome>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let programs = programs::build()?;
    let mute = HttpServer::start(
        Script::new("mute")
            .on_method("server/discover", [Action::Hang])
            .on_method("initialize", [Action::Hang]),
    )?;
    let port = RefusingPort::take()?;
    let alone = start("good ones alone", good(programs)?).await?;
    let beside = start(
        "beside bad ones",
        with_bad_ones(good(programs)?, &mute, &port)?,
    )
    .await?;
    let mut sides = [alone, beside];
    for slice in 0..arguments.slices {
        let order = if slice % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let side = &mut sides[side];
            let time = Duration::from_secs(arguments.seconds);
            let outcome = drive::run(echo(&side.service), arguments.clients, time).await?;
            ensure!(
                outcome.failed == 0,
                "{}: calls failed: {:?}",
                side.name,
                outcome.errors
            );
            side.slices.push(outcome);
        }
    }
    for side in &sides {
        println!("{}", side.total()?.line(side.name));
    }
    let mut missed = Vec::new();
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let [alone, beside] = sides.each_ref().map(|side| side.median_ms(quantile));
        let (ratio, more) = (beside / alone, beside - alone);
        println!("{name}: {alone:.3} ms alone, {beside:.3} ms beside bad ones, ratio {ratio:.3}");
        if ratio > arguments.most && more > arguments.most_ms {
            missed.push(name);
        }
    }
    ensure!(missed.is_empty(), "bad servers cost too much: {missed:?}");
    Ok(())
}

impl Side {
    /// The median over the slices of a quantile.
    fn median_ms(&self, quantile: f64) -> f64 {
        let mut values: Vec<f64> = self
            .slices
            .iter()
            .map(|slice| slice.quantile_ms(quantile))
            .collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    fn total(&self) -> anyhow::Result<Outcome> {
        let mut slices = self.slices.iter();
        let first = slices.next();
        let mut total = first.cloned().ok_or_else(|| anyhow::anyhow!("no slice"))?;
        for slice in slices {
            total.latency.add(&slice.latency)?;
            total.took += slice.took;
        }
        Ok(total)
    }
}

fn echo(service: &Service) -> Shape {
    Shape {
        name: "echo",
        url: service.url("/v1/tools/call"),
        body: json!({"server": "good", "name": "echo", "arguments": {"text": "forty-two"}}),
        answer_contains: "forty-two",
    }
}

fn good(programs: Programs) -> anyhow::Result<ServiceBuilder> {
    let demo = json!({"command": programs.talaria, "args": ["demo-server"]});
    Ok(Service::builder(programs)?
        .server("good", demo.clone())
        .server("fine", demo))
}

/// One server of every kind that never works.
fn with_bad_ones(
    builder: ServiceBuilder,
    mute: &HttpServer,
    port: &RefusingPort,
) -> anyhow::Result<ServiceBuilder> {
    let silent = Script::new("silent").on_method("initialize", [Action::Hang]);
    let crashing = Script::new("crashing").at_start([ProcessAction::Exit { code: 9 }.into()]);
    let nowhere = format!("http://{}/mcp", port.address());
    Ok(builder
        .stdio("silent", silent)?
        .stdio("crashing", crashing)?
        .server("ghost", json!({"command": "/nonexistent/program"}))
        .server("mute", json!({"url": mute.url()}))
        .server("nowhere", json!({"url": nowhere})))
}

/// Starts a service and tells how long its healthy tools took to be listed.
async fn start(name: &'static str, builder: ServiceBuilder) -> anyhow::Result<Side> {
    let started = Instant::now();
    let service = builder.start_unsettled().await?;
    let listening = started.elapsed();
    wait_for("the healthy tools", PATIENCE, || async {
        let listed = service
            .get("/v1/tools")
            .await
            .map_err(|error| error.to_string())?;
        let text = listed.text().map_err(|error| error.to_string())?;
        let wanted = ["mcp__good__echo", "mcp__fine__echo"];
        if wanted.iter().all(|name| text.contains(name)) {
            Ok(())
        } else {
            Err("not yet".to_owned())
        }
    })
    .await?;
    let listed = started.elapsed();
    println!("{name}: listens after {listening:.2?}, tools listed after {listed:.2?}");
    ensure!(listed <= SOON, "{name}: the healthy tools took {listed:?}");
    Ok(Side {
        name,
        service,
        slices: Vec::new(),
    })
}
