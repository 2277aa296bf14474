//! `talaria servers`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use talaria_config::Config;
use talaria_content::injection::Finding;
use talaria_types::Deadline;

use super::Surroundings;
use crate::arguments::TargetArguments;
use crate::configuration;
use crate::engine::Standalone;
use crate::exit::{CommandError, Exit};
use crate::output::with_progress;
use crate::table::{Table, count};

/// How long servers may take to start in this process.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// States that need nobody's attention.
const WELL: [&str; 4] = ["ready", "degraded", "configured", "disabled"];

/// What is known of the servers, as the service tells it.
#[derive(Debug, Serialize, Deserialize)]
struct ServerList {
    #[serde(default)]
    version: u64,
    servers: Vec<Value>,
}

/// The fields of a server's status that the table shows.
#[derive(Debug, Deserialize)]
struct ServerLine {
    name: String,
    state: String,
    reason: Option<String>,
    transport: String,
    protocol_version: Option<String>,
    server_info: Option<String>,
    tools: u64,
    in_flight: u64,
    pending: u64,
    restarts: u64,
    since: Option<String>,
    next_attempt_ms: Option<u64>,
    #[serde(default)]
    stale: bool,
    #[serde(default)]
    needs_reauth: bool,
    breaker: Option<BreakerLine>,
    #[serde(default)]
    findings: Vec<Finding>,
}

/// The fields of a breaker that the table shows.
#[derive(Debug, Deserialize)]
struct BreakerLine {
    state: String,
    retry_after_ms: Option<u64>,
}

impl ServerLine {
    /// What an operator should know besides the state.
    fn notes(&self) -> String {
        let mut notes = Vec::new();
        if self.needs_reauth {
            notes.push("needs other credentials".to_owned());
        }
        if let Some(breaker) = self
            .breaker
            .as_ref()
            .filter(|breaker| breaker.state != "closed")
        {
            let state = breaker.state.replace('_', " ");
            let wait = breaker
                .retry_after_ms
                .map(|wait| format!(" for {}", seconds(wait)));
            notes.push(format!("breaker {state}{}", wait.unwrap_or_default()));
        }
        if self.stale {
            notes.push("tools as they were".to_owned());
        }
        if !self.findings.is_empty() {
            notes.push(count(self.findings.len(), "finding"));
        }
        notes.join(", ")
    }
}

/// Milliseconds as seconds, rounded up so that nobody comes early.
fn seconds(milliseconds: u64) -> String {
    format!("{} s", milliseconds.div_ceil(1000))
}

/// Prints the servers; exit code 1 if an enabled one is not ready.
pub(super) async fn run(
    surroundings: &Surroundings,
    target: TargetArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.quiet_log()?;
    let list: ServerList = match surroundings.service(&target)? {
        Some(client) => client.get("/v1/servers").await?,
        None => {
            let config = configuration::load(&target.config, &surroundings.environment)?.config;
            with_progress("starting the servers", start_here(surroundings, config)).await?
        }
    };
    let lines = lines(&list)?;
    surroundings.output.print(&list, |_| render(&lines))?;
    let well = lines.iter().all(|line| WELL.contains(&line.state.as_str()));
    Ok(if well { Exit::Ok } else { Exit::CheckFailed })
}

async fn start_here(
    surroundings: &Surroundings,
    config: Config,
) -> Result<ServerList, CommandError> {
    let deadline = Deadline::after(START_TIMEOUT);
    let here = Standalone::start(config, &surroundings.environment, deadline).await?;
    let version = here.supervisor.version();
    let servers = here.supervisor.servers();
    here.stop().await;
    let servers = servers
        .into_iter()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>();
    Ok(ServerList {
        version,
        servers: servers.map_err(anyhow::Error::from)?,
    })
}

fn lines(list: &ServerList) -> Result<Vec<ServerLine>, CommandError> {
    let lines = list
        .servers
        .iter()
        .map(ServerLine::deserialize)
        .collect::<Result<_, _>>();
    Ok(lines.map_err(|error| anyhow::Error::new(error).context("read the list of servers"))?)
}

fn render(lines: &[ServerLine]) -> String {
    if lines.is_empty() {
        return "No servers are configured.\n".to_owned();
    }
    let mut table = Table::new(&[
        "SERVER",
        "STATE",
        "SINCE",
        "NEXT TRY",
        "TRANSPORT",
        "TOOLS",
        "RUNNING",
        "WAITING",
        "RESTARTS",
        "PROTOCOL",
        "PROGRAM",
        "NOTES",
        "REASON",
    ]);
    for line in lines {
        table.row(&[
            line.name.clone(),
            line.state.clone(),
            line.since.clone().unwrap_or_default(),
            line.next_attempt_ms.map(seconds).unwrap_or_default(),
            line.transport.clone(),
            line.tools.to_string(),
            line.in_flight.to_string(),
            line.pending.to_string(),
            line.restarts.to_string(),
            line.protocol_version.clone().unwrap_or_default(),
            line.server_info.clone().unwrap_or_default(),
            line.notes(),
            line.reason.clone().unwrap_or_default(),
        ]);
    }
    let mut text = table.render();
    let findings = lines
        .iter()
        .flat_map(|line| line.findings.iter().map(|finding| (&line.name, finding)));
    for (index, (server, finding)) in findings.enumerate() {
        if index == 0 {
            text.push_str("\nWords that may steer the model:\n");
        }
        let tool = finding.tool.as_deref().unwrap_or_default();
        let Finding {
            place,
            pattern,
            excerpt,
            ..
        } = finding;
        text.push_str(&format!("{server} {tool} {place}: {pattern}: {excerpt}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ServerList, lines, render};

    #[test]
    fn a_server_is_a_line() {
        let list = ServerList {
            version: 1,
            servers: vec![json!({
                "name": "files", "state": "backoff", "reason": "exited", "transport": "stdio",
                "protocol_version": null, "server_info": "files 1.0", "pid": null, "tools": 3,
                "in_flight": 1, "pending": 2, "restarts": 4, "next_attempt_ms": 10,
                "since": "2026-11-30T21:05:00Z", "stale": true, "needs_reauth": true,
                "breaker": { "state": "half_open", "retry_after_ms": null },
                "findings": [{
                    "tool": "read", "place": "/description", "pattern": "concealment",
                    "excerpt": "do not tell",
                }],
                "a_later_field": true
            })],
        };
        let text = render(&lines(&list).unwrap());
        for expected in [
            "files   backoff  2026-11-30T21:05:00Z  1 s       stdio ",
            "files 1.0  needs other credentials, breaker half open, tools as they were, 1 finding  \
             exited\n",
            "\nWords that may steer the model:\nfiles read /description: concealment: do not tell\n",
        ] {
            assert!(text.contains(expected), "{expected:?} in {text}");
        }
        assert_eq!(render(&[]), "No servers are configured.\n");
    }
}
