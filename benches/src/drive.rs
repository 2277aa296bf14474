//! Closed loops of HTTP clients: each sends its next request when its last was answered.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use futures_util::future::join_all;
use hdrhistogram::Histogram;
use serde_json::Value;
use tokio::time::Instant;

/// One request, made again and again.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What it is called in the report.
    pub name: &'static str,
    /// Where it goes.
    pub url: String,
    /// Its JSON body.
    pub body: Value,
    /// Text that a right answer contains.
    pub answer_contains: &'static str,
}

/// What a run measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Latencies in microseconds.
    pub latency: Histogram<u64>,
    /// Requests that failed, the first few in words.
    pub errors: Vec<String>,
    /// How many failed.
    pub failed: u64,
    /// How long it ran.
    pub took: Duration,
}

impl Outcome {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            latency: Histogram::new_with_bounds(1, 600_000_000, 3)?,
            errors: Vec::new(),
            failed: 0,
            took: Duration::ZERO,
        })
    }

    /// Answers a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.latency.len() as f64 / self.took.as_secs_f64()
    }

    /// A quantile in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1000.0
    }

    /// One line of a report.
    #[must_use]
    pub fn line(&self, name: &str) -> String {
        format!(
            "{name:<28} {:>9} answers {:>6} failed {:>9.1}/s   p50 {:>8.3} ms   p99 {:>8.3} ms   max {:>8.3} ms",
            self.latency.len(),
            self.failed,
            self.rate(),
            self.quantile_ms(0.5),
            self.quantile_ms(0.99),
            self.latency.max() as f64 / 1000.0,
        )
    }
}

/// Runs `clients` closed loops of one shape until the time is up.
///
/// # Errors
/// No client can be made, or nothing at all was answered.
pub async fn run(shape: Shape, clients: usize, time: Duration) -> anyhow::Result<Outcome> {
    let shape = Arc::new(shape);
    let started = Instant::now();
    let loops = (0..clients).map(|_| one_loop(Arc::clone(&shape), started + time));
    let mut total = Outcome::new()?;
    for outcome in join_all(loops).await {
        let outcome = outcome?;
        total.latency.add(&outcome.latency)?;
        total.failed += outcome.failed;
        total.errors.extend(outcome.errors);
    }
    total.took = started.elapsed();
    total.errors.truncate(5);
    ensure!(
        !total.latency.is_empty(),
        "{}: nothing was answered: {:?}",
        shape.name,
        total.errors
    );
    Ok(total)
}

async fn one_loop(shape: Arc<Shape>, until: Instant) -> anyhow::Result<Outcome> {
    let client = talaria_testkit::service::http_client()?;
    let body = serde_json::to_vec(&shape.body)?;
    let mut outcome = Outcome::new()?;
    while Instant::now() < until {
        let sent = Instant::now();
        match once(&client, &shape, body.clone()).await {
            Ok(()) => {
                let micros = u64::try_from(sent.elapsed().as_micros())?;
                outcome.latency.saturating_record(micros.max(1));
            }
            Err(error) => {
                outcome.failed += 1;
                if outcome.errors.len() < 5 {
                    outcome.errors.push(format!("{error:#}"));
                }
            }
        }
    }
    Ok(outcome)
}

async fn once(client: &reqwest::Client, shape: &Shape, body: Vec<u8>) -> anyhow::Result<()> {
    let response = client
        .post(&shape.url)
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await?;
    let status = response.status();
    let text = response.text().await?;
    ensure!(status == 200, "{}: status {status}: {text}", shape.name);
    ensure!(
        text.contains(shape.answer_contains),
        "{}: not the right answer: {text}",
        shape.name
    );
    Ok(())
}
