//! Half an hour of mixed load while servers are killed and the configuration is reloaded: no
//! answer may be lost or come twice, and memory must be level.

mod ledger;
mod load;
mod trouble;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use clap::Parser;
use futures_util::future::join_all;
use serde_json::json;
use talaria_benches::programs;
use talaria_testkit::script::{HttpScript, document_answer};
use talaria_testkit::service::{Service, ServiceBuilder};
use talaria_testkit::{Action, HttpServer, PayloadSpec, Programs, Script};
use tokio::time::Instant;

use ledger::Ledger;
use load::Load;
use trouble::Trouble;
use watch::Watch;

/// Bytes of the documents that servers return.
const DOCUMENT_BYTES: usize = 300_000;
/// Stdio servers that note what they run.
const LOCAL: [&str; 4] = ["local-0", "local-1", "local-2", "local-3"];
/// Stdio servers of the real SDK.
const DEMO: [&str; 2] = ["demo-0", "demo-1"];
/// Servers over HTTP that note what they run.
const REMOTE: [&str; 2] = ["json", "events"];
/// How long the service may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Parser)]
struct Arguments {
    /// How long.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Clients, each with one call at a time.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Calls a second at most, of all clients together.
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    /// Seconds between two killed servers.
    #[arg(long, default_value_t = 5.0)]
    kill_every: f64,
    /// Seconds between two reloads.
    #[arg(long, default_value_t = 30.0)]
    reload_every: f64,
    /// Fail when memory grew by more percent after the first minutes.
    #[arg(long, default_value_t = 8.0)]
    most_percent: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let programs = programs::build()?;
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("journal");
    std::fs::write(&journal, "")?;
    let script = |name: &str| script(name, &journal);
    let remote = [
        HttpServer::start(script("json"))?,
        HttpServer::start(script("events").with_http(HttpScript {
            sse: true,
            get: None,
            ..HttpScript::default()
        }))?,
    ];
    let builder = described(programs, script, &remote)?;
    let service = Arc::new(builder.clone().start().await?);
    let ledger = Arc::new(Ledger::default());
    let until = Instant::now() + Duration::from_secs_f64(arguments.minutes * 60.0);

    let pause = Duration::from_secs_f64(arguments.clients as f64 / arguments.rate);
    let clients = (0..arguments.clients).map(|number| {
        let load = Load::new(Arc::clone(&service), Arc::clone(&ledger), number, pause);
        load.run(until)
    });
    let trouble = Trouble::new(&service, &builder, &remote);
    let mut watch = Watch::new(&service, &ledger);
    let seconds = Duration::from_secs_f64;
    let (loads, killed, reloaded, watched) = tokio::join!(
        join_all(clients),
        trouble.kill(until, seconds(arguments.kill_every)),
        trouble.reload(until, seconds(arguments.reload_every)),
        watch.run(until),
    );
    loads.into_iter().collect::<anyhow::Result<Vec<()>>>()?;
    watched?;
    println!("{} kills, {} reloads", killed?, reloaded?);

    let metrics = service.metrics().await?;
    let reconnects = metrics.sum("talaria_server_reconnects_total", &[]);
    println!("{reconnects} reconnects, as the service counts them");
    drop(metrics);
    service.terminate()?;
    service.wait_exit(PATIENCE).await?;
    service.wait_no_processes(Duration::from_secs(5)).await?;
    let tally = ledger.close(&journal)?;
    println!("{tally}");
    let growth = watch.growth_percent(arguments.minutes)?;
    println!("memory grew by {growth:.1} % after the first minutes");
    ensure!(tally.is_clean(), "answers were lost, wrong or came twice");
    ensure!(
        growth <= arguments.most_percent,
        "memory grew by {growth:.1} %"
    );
    Ok(())
}

/// A server that notes every call it runs.
fn script(name: &str, journal: &std::path::Path) -> Script {
    let echo = Action::Echo {
        argument: "text".to_owned(),
        journal: Some(journal.to_owned()),
    };
    let mut script = Script::new(name)
        .on_call("echo", [echo.clone()])
        .on_call("slow", [Action::Delay { ms: 250 }, echo])
        .on_call(
            "file",
            [document_answer(
                "x://h/soak.bin",
                PayloadSpec::of(DOCUMENT_BYTES),
            )],
        )
        .on_call("hang", [Action::AwaitCancel]);
    script.is_forgetful = true;
    script
}

fn described(
    programs: Programs,
    script: impl Fn(&str) -> Script,
    remote: &[HttpServer; 2],
) -> anyhow::Result<ServiceBuilder> {
    // The store turns over many times, so that its index is level, too.
    let mut builder = Service::builder(programs)?
        .set(&["talaria", "media", "max_bytes"], "64MiB")
        .set(&["talaria", "media", "grace"], "5s");
    for (number, name) in LOCAL.into_iter().enumerate() {
        builder = builder
            .stdio(name, script(name))?
            .set(&["mcp_servers", name, "rpc_concurrency"], number + 1);
    }
    for name in DEMO {
        let entry = json!({"command": programs.talaria, "args": ["demo-server"]});
        builder = builder.server(name, entry);
    }
    for (name, server) in REMOTE.into_iter().zip(remote) {
        builder = builder.http(name, server);
    }
    Ok(builder)
}
