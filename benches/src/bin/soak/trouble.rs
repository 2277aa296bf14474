//! What happens to the servers meanwhile: they are killed, lose their sessions, and change in
//! the configuration.

use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;
use serde_json::json;
use talaria_testkit::service::{Service, ServiceBuilder};
use talaria_testkit::{HttpServer, process};
use tokio::time::{Instant, MissedTickBehavior};

use crate::{DEMO, LOCAL};

/// The server that a reload changes.
const CHANGING: &str = LOCAL[3];
/// The server that comes and goes.
const EXTRA: &str = "extra";

/// Whoever makes it.
#[derive(Clone, Copy)]
pub struct Trouble<'a> {
    service: &'a Service,
    builder: &'a ServiceBuilder,
    remote: &'a [HttpServer; 2],
}

impl<'a> Trouble<'a> {
    pub const fn new(
        service: &'a Service,
        builder: &'a ServiceBuilder,
        remote: &'a [HttpServer; 2],
    ) -> Self {
        Self {
            service,
            builder,
            remote,
        }
    }

    /// Kills one server after the other; each time a server over HTTP forgets its sessions, or
    /// breaks its event streams off, too.
    pub async fn kill(&self, until: Instant, every: Duration) -> anyhow::Result<usize> {
        let victims: Vec<&str> = LOCAL.into_iter().chain(DEMO).collect();
        let mut kills = 0;
        let mut pace = tokio::time::interval_at(Instant::now() + every, every);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while pace.tick().await < until {
            let victim = victims[kills % victims.len()];
            let status = self.service.server(victim).await?;
            if let Some(pid) = status["pid"].as_u64() {
                // It may be on its way out already.
                if process::signal(u32::try_from(pid)?, Signal::SIGKILL).is_ok() {
                    kills += 1;
                }
            }
            let [json, events] = self.remote;
            match kills % 3 {
                0 => json.forget_sessions(),
                1 => events.forget_sessions(),
                _ => events.cut_streams(),
            }
        }
        Ok(kills)
    }

    /// Reloads: one server changes every time, another comes and goes.
    pub async fn reload(&self, until: Instant, every: Duration) -> anyhow::Result<usize> {
        let demo = self.builder.clone();
        let mut reloads = 0;
        let mut pace = tokio::time::interval_at(Instant::now() + every, every);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while pace.tick().await < until {
            reloads += 1;
            let round = format!("round {reloads}");
            let mut builder = demo
                .clone()
                .set(&["mcp_servers", CHANGING, "env", "ROUND"], round);
            let comes = reloads % 2 == 1;
            if comes {
                builder = builder.server(EXTRA, json!({"command": "sleep", "args": ["3600"]}));
            }
            builder.write_config()?;
            let report = self.service.post("/v1/reload", &json!({})).await?.ok()?;
            // The file watch may have been quicker; then there is nothing left to do.
            let by_watch = report["changed"] == json!([]);
            ensure!(
                by_watch || report["changed"] == json!([CHANGING]),
                "the reload reports {report}"
            );
            let other = if comes { "added" } else { "removed" };
            ensure!(
                by_watch || report[other] == json!([EXTRA]),
                "the reload reports {report}"
            );
        }
        Ok(reloads)
    }
}
