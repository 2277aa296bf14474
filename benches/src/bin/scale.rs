//! Many servers: hundreds of stdio servers start in one go; what each costs Talaria itself, that
//! a reload touches only what changed, and that a stop leaves nothing behind.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use serde_json::{Value, json};
use talaria_benches::programs;
use talaria_testkit::service::{Service, ServiceBuilder};
use talaria_testkit::{Programs, process, wait_for};
use tokio::time::Instant;

/// How long everything may take to be ready, to be reloaded and to be gone.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long memory is left alone before it is read.
const REST: Duration = Duration::from_secs(15);
const MIB: f64 = 1024.0 * 1024.0;

#[derive(Debug, Parser)]
struct Arguments {
    /// Servers.
    #[arg(long, default_value_t = 300)]
    servers: usize,
    /// Fail when a server costs Talaria more idle memory than this, in MiB.
    #[arg(long, default_value_t = 0.35)]
    most_mib: f64,
    /// Leave the reload out.
    #[arg(long)]
    without_reload: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let programs = programs::build()?;

    let empty = Service::builder(programs)?.start().await?;
    tokio::time::sleep(REST).await;
    let alone = empty.memory()?.resident;
    println!("without a server: {:.1} MiB", alone as f64 / MIB);
    drop(empty);

    let builder = with_servers(programs, arguments.servers)?;
    let started = Instant::now();
    let service = builder.clone().start_unsettled().await?;
    println!("listens after {:.2} s", started.elapsed().as_secs_f64());
    let pids = all_ready(&service, arguments.servers).await?;
    println!(
        "{} servers ready after {:.1} s",
        pids.len(),
        started.elapsed().as_secs_f64()
    );
    let peak = service.memory()?.peak;
    tokio::time::sleep(REST).await;
    let idle = tell_memory(&service, "idle", alone, arguments.servers)?;
    println!("peak while starting: {:.1} MiB", peak as f64 / MIB);
    let calls = Instant::now();
    for number in 0..arguments.servers {
        let text = format!("token-{number}");
        let answer = service
            .call(&name(number), "echo", json!({"text": text}))
            .await?;
        let delivery = answer.ok()?;
        ensure!(delivery["text"] == text.as_str(), "{delivery}");
    }
    println!(
        "one call to each: {:.2} ms a call",
        calls.elapsed().as_secs_f64() * 1000.0 / arguments.servers as f64
    );
    tokio::time::sleep(REST).await;
    let used = tell_memory(&service, "after a call to each", alone, arguments.servers)?;

    if !arguments.without_reload {
        reload_one(&service, &builder, &pids).await?;
    }

    let stopping = Instant::now();
    service.terminate()?;
    service.wait_exit(PATIENCE).await?;
    service.wait_no_processes(Duration::from_secs(5)).await?;
    println!(
        "stopped after {:.2} s, no process left",
        stopping.elapsed().as_secs_f64()
    );
    let worst = idle.max(used);
    ensure!(
        worst <= arguments.most_mib,
        "a server costs {worst:.3} MiB, {} at most wanted",
        arguments.most_mib
    );
    Ok(())
}

fn name(number: usize) -> String {
    format!("demo-{number:03}")
}

fn entry(programs: Programs, mark: &str) -> Value {
    json!({"command": programs.talaria, "args": ["demo-server"], "env": {"MARK": mark}})
}

fn with_servers(programs: Programs, servers: usize) -> anyhow::Result<ServiceBuilder> {
    let mut builder = Service::builder(programs)?;
    for number in 0..servers {
        builder = builder.server(&name(number), entry(programs, "first"));
    }
    Ok(builder)
}

/// Waits until all servers are ready and answers their processes by name.
async fn all_ready(service: &Service, servers: usize) -> anyhow::Result<BTreeMap<String, u64>> {
    wait_for("all servers to be ready", PATIENCE, || async {
        let pids = pids(service).await.map_err(|error| error.to_string())?;
        if pids.len() == servers {
            Ok(pids)
        } else {
            // Looking costs the processor that the servers start on.
            tokio::time::sleep(Duration::from_millis(200)).await;
            Err(format!("{} ready", pids.len()))
        }
    })
    .await
}

/// The processes of the servers that are ready.
async fn pids(service: &Service) -> anyhow::Result<BTreeMap<String, u64>> {
    let listed = service.get("/v1/servers").await?.ok()?;
    let servers = listed["servers"].as_array().context("a list")?;
    let ready = servers.iter().filter(|server| server["state"] == "ready");
    Ok(ready
        .filter_map(|server| Some((server["name"].as_str()?.to_owned(), server["pid"].as_u64()?)))
        .collect())
}

/// Prints what Talaria holds and answers its share for each server in MiB.
fn tell_memory(service: &Service, when: &str, alone: u64, servers: usize) -> anyhow::Result<f64> {
    let resident = service.memory()?.resident;
    let each = resident.saturating_sub(alone) as f64 / MIB / servers as f64;
    let threads = std::fs::read_dir(format!("/proc/{}/task", service.pid()))?.count();
    println!(
        "{when}: {:.1} MiB, {each:.3} MiB a server, {threads} threads",
        resident as f64 / MIB
    );
    Ok(each)
}

/// Changes one server's entry and sees that the others do not notice.
async fn reload_one(
    service: &Service,
    builder: &ServiceBuilder,
    before: &BTreeMap<String, u64>,
) -> anyhow::Result<()> {
    let changed = name(before.len() / 2);
    let changed_builder = builder.clone().set(
        &["mcp_servers", &changed, "env", "MARK"],
        Value::from("second"),
    );
    changed_builder.write_config()?;
    let started = Instant::now();
    let report = service.post("/v1/reload", &json!({})).await?.ok()?;
    let unchanged = report["unchanged"].as_u64();
    ensure!(
        report["changed"] == json!([changed]) && unchanged == Some(before.len() as u64 - 1),
        "the reload reports {report}"
    );
    let after = wait_for("the changed server to be ready", PATIENCE, || async {
        let now = pids(service).await.map_err(|error| error.to_string())?;
        let is_new = now
            .get(&changed)
            .is_some_and(|pid| before.get(&changed) != Some(pid));
        if is_new && now.len() == before.len() {
            Ok(now)
        } else {
            Err(format!("{} ready", now.len()))
        }
    })
    .await?;
    let touched: Vec<&String> = before
        .iter()
        .filter(|(name, pid)| after.get(*name) != Some(pid))
        .map(|(name, _)| name)
        .collect();
    println!(
        "reload of one in {:.2} s; processes that changed: {touched:?}",
        started.elapsed().as_secs_f64()
    );
    ensure!(touched == [&changed], "others were touched: {touched:?}");
    let old = u32::try_from(before.get(&changed).copied().unwrap_or_default())?;
    ensure!(!process::is_alive(old), "the old process still runs");
    Ok(())
}
