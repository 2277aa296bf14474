//! What the service holds, looked at again and again.

use std::time::Duration;

use anyhow::{Context, ensure};
use talaria_testkit::Holdings;
use talaria_testkit::service::Service;
use tokio::time::Instant;

use crate::ledger::Ledger;

/// Pause between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// Looks between two lines.
const LINE: usize = 12;
/// What does not count of a long run, in minutes; of a short one it is a sixth.
const WARM_MINUTES: f64 = 5.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Looks in the order of time.
pub struct Watch<'a> {
    service: &'a Service,
    ledger: &'a Ledger,
    looks: Vec<Look>,
}

struct Look {
    minutes: f64,
    resident: u64,
    holdings: Holdings,
}

impl<'a> Watch<'a> {
    pub const fn new(service: &'a Service, ledger: &'a Ledger) -> Self {
        Self {
            service,
            ledger,
            looks: Vec::new(),
        }
    }

    /// Looks until the time is up and prints a line each minute.
    pub async fn run(&mut self, until: Instant) -> anyhow::Result<()> {
        let started = Instant::now();
        while Instant::now() + EVERY < until {
            tokio::time::sleep(EVERY).await;
            let look = Look {
                minutes: started.elapsed().as_secs_f64() / 60.0,
                resident: self.service.memory()?.resident,
                holdings: self.service.holdings().await?,
            };
            self.looks.push(look);
            if self.looks.len().is_multiple_of(LINE) {
                self.tell();
            }
        }
        Ok(())
    }

    fn tell(&self) {
        if let Some(look) = self.looks.last() {
            let Holdings {
                tasks,
                descriptors,
                threads,
                processes,
            } = look.holdings;
            println!(
                "{:5.1} min: {:.1} MiB, {tasks} tasks, {threads} threads, {descriptors} \
                 descriptors, {processes} processes; {}",
                look.minutes,
                look.resident as f64 / MIB,
                self.ledger.line()
            );
        }
    }

    /// By how much memory grew from the first fifth to the last, warming aside.
    pub fn growth_percent(&self, minutes: f64) -> anyhow::Result<f64> {
        let warm = WARM_MINUTES.min(minutes / 6.0);
        let looks: Vec<&Look> = self
            .looks
            .iter()
            .filter(|look| look.minutes >= warm)
            .collect();
        let fifth = looks.len() / 5;
        ensure!(fifth > 0, "too short to tell anything of memory");
        let first = looks.get(..fifth).context("the first fifth")?;
        let last = looks.get(looks.len() - fifth..).context("the last fifth")?;
        let (first, last) = (median(first), median(last));
        println!(
            "memory: {:.1} MiB after warming, {:.1} MiB at the end, {:.1} MiB at most",
            first / MIB,
            last / MIB,
            looks.iter().map(|look| look.resident).max().unwrap_or(0) as f64 / MIB
        );
        Ok((last / first - 1.0) * 100.0)
    }
}

fn median(looks: &[&Look]) -> f64 {
    let mut values: Vec<u64> = looks.iter().map(|look| look.resident).collect();
    values.sort_unstable();
    values[values.len() / 2] as f64
}
