//! Failover: how much longer a description takes when the primary refuses, beside the same
//! fallback asked directly, in one run; and that a primary whose breaker is open is left alone.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use talaria_benches::programs;
use talaria_testkit::{Programs, RefusingPort, Reply, Service, VisionEndpoint, pictures, samples};
use tokio::time::Instant;

/// Questions after the breaker has opened.
const LEFT_ALONE: u32 = 10;
/// Failures that open a breaker, and some more.
const OPENING: u32 = 6;

#[derive(Debug, Parser)]
struct Arguments {
    /// Questions to each service.
    #[arg(long, default_value_t = 40)]
    rounds: u32,
    /// How long the fallback takes, in milliseconds.
    #[arg(long, default_value_t = 200)]
    own: u64,
    /// Fail when the median failover costs more milliseconds than this.
    #[arg(long, default_value_t = 20.0)]
    most: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let programs = programs::build()?;
    let own = Duration::from_millis(arguments.own);
    let fallback = VisionEndpoint::start([Reply::chat("by the fallback").after(own)])?;
    let address = free_address()?;
    let alone = service(programs, vec![backend(&fallback.base(), "fallback")]).await?;
    let primary = format!("http://{address}/v1");
    let chain = vec![
        backend(&primary, "primary"),
        backend(&fallback.base(), "fallback"),
    ];
    let chained = service(programs, chain).await?;

    let mut direct = Histogram::<u64>::new(3)?;
    let mut failed_over = Histogram::<u64>::new(3)?;
    // The first round finds the threads and opens the connections.
    for round in 0..=arguments.rounds {
        let (one, took_one) = ask(&alone, round).await?;
        answered_by(&one, "fallback")?;
        close_breaker(&chained, address, round).await?;
        let (other, took_other) = ask(&chained, round).await?;
        answered_by(&other, "fallback")?;
        ensure!(
            other["attempts"][0]["code"] == "unreachable",
            "the primary did not refuse: {other}"
        );
        if round > 0 {
            direct.record(micros(took_one)?)?;
            failed_over.record(micros(took_other)?)?;
        }
    }
    report("fallback alone", &direct);
    report("after a primary that refuses", &failed_over);
    let cost = |quantile: f64| millis(&failed_over, quantile) - millis(&direct, quantile);
    println!(
        "failover costs {:.2} ms in the median, {:.2} ms at p90; ratio {:.3}; at most {:.0} ms wanted",
        cost(0.5),
        cost(0.9),
        millis(&failed_over, 0.5) / millis(&direct, 0.5),
        arguments.most
    );
    ensure!(cost(0.5) < arguments.most, "failover costs too much");
    leaves_alone(&chained, address).await
}

/// With the breaker open nobody knocks at the primary, though it would answer again.
async fn leaves_alone(chained: &Service, address: SocketAddr) -> anyhow::Result<()> {
    for number in 0..OPENING {
        ask(chained, 20_000 + number).await?;
    }
    let primary = VisionEndpoint::start_at(address, [Reply::chat("by the primary")])?;
    for number in 0..LEFT_ALONE {
        let (answer, _) = ask(chained, 30_000 + number).await?;
        answered_by(&answer, "fallback")?;
        ensure!(
            answer["attempts"][0]["code"] == "circuit_open",
            "the breaker is not open: {answer}"
        );
    }
    let knocked = primary.connections().total;
    println!("breaker open: {knocked} connections to the primary in {LEFT_ALONE} questions");
    ensure!(
        knocked == 0,
        "the primary was contacted with its breaker open"
    );
    Ok(())
}

/// Lets the primary answer one question, so that its breaker is closed, and refuse again.
async fn close_breaker(service: &Service, address: SocketAddr, round: u32) -> anyhow::Result<()> {
    let primary = VisionEndpoint::start_at(address, [Reply::chat("by the primary")])?;
    let (answer, _) = ask(service, 10_000 + round).await?;
    drop(primary);
    answered_by(&answer, "primary")
}

/// A port nobody listens at.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(RefusingPort::take()?.address())
}

fn backend(base: &str, model: &str) -> Value {
    json!({"provider": "custom", "base_url": base, "model": model, "api_key": model})
}

async fn service(programs: Programs, chain: Vec<Value>) -> anyhow::Result<Service> {
    let mut links = chain.into_iter();
    let mut vision = links.next().context("a chain")?;
    vision["fallback_chain"] = links.collect();
    Service::builder(programs)?
        .set(&["auxiliary", "vision"], vision)
        .set(&["talaria", "vision", "cache_ttl"], "0s")
        .start()
        .await
}

/// Asks for the description of a picture; every number is another picture.
async fn ask(service: &Service, number: u32) -> anyhow::Result<(Value, Duration)> {
    let [_, red, green, blue] = number.wrapping_mul(2_654_435_761).to_be_bytes();
    let picture = pictures::plain_png(640, 400, [red, green, blue])?;
    let body = json!({"image": {"data": samples::base64(&picture)}, "prompt": "What is it?"});
    let started = Instant::now();
    let answer = service.post("/v1/vision/analyze", &body).await?;
    let took = started.elapsed();
    Ok((answer.ok()?, took))
}

fn answered_by(answer: &Value, model: &str) -> anyhow::Result<()> {
    let via = answer["via"].as_str().unwrap_or_default();
    ensure!(
        via.ends_with(model),
        "answered by {via}, not {model}: {answer}"
    );
    Ok(())
}

fn micros(took: Duration) -> anyhow::Result<u64> {
    Ok(u64::try_from(took.as_micros())?)
}

fn millis(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    histogram.value_at_quantile(quantile) as f64 / 1_000.0
}

fn report(name: &str, histogram: &Histogram<u64>) {
    println!(
        "{name:<30} {:>4} answers   p50 {:>8.2} ms   p90 {:>8.2} ms   max {:>8.2} ms",
        histogram.len(),
        millis(histogram, 0.5),
        millis(histogram, 0.9),
        histogram.max() as f64 / 1_000.0,
    );
}
