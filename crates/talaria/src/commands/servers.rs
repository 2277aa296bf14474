//! `talaria servers`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use talaria_config::Config;
use talaria_types::Deadline;

use super::Surroundings;
use crate::arguments::TargetArguments;
use crate::configuration;
use crate::engine::Standalone;
use crate::exit::{CommandError, Exit};
use crate::output::with_progress;
use crate::table::Table;

/// How long servers may take to start in this process.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// What is known of the servers, as the service tells it.
#[derive(Debug, Serialize, Deserialize)]
struct ServerList {
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
    let well = lines
        .iter()
        .all(|line| matches!(line.state.as_str(), "ready" | "disabled"));
    Ok(if well { Exit::Ok } else { Exit::CheckFailed })
}

async fn start_here(
    surroundings: &Surroundings,
    config: Config,
) -> Result<ServerList, CommandError> {
    let deadline = Deadline::after(START_TIMEOUT);
    let here = Standalone::start(config, &surroundings.environment, deadline).await?;
    let servers = here.supervisor.servers();
    here.stop().await;
    let servers = servers
        .into_iter()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>();
    Ok(ServerList {
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
        "TRANSPORT",
        "TOOLS",
        "RUNNING",
        "WAITING",
        "RESTARTS",
        "PROTOCOL",
        "PROGRAM",
        "REASON",
    ]);
    for line in lines {
        table.row(&[
            line.name.clone(),
            line.state.clone(),
            line.transport.clone(),
            line.tools.to_string(),
            line.in_flight.to_string(),
            line.pending.to_string(),
            line.restarts.to_string(),
            line.protocol_version.clone().unwrap_or_default(),
            line.server_info.clone().unwrap_or_default(),
            line.reason.clone().unwrap_or_default(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ServerList, lines, render};

    #[test]
    fn a_server_is_a_line() {
        let list = ServerList {
            servers: vec![json!({
                "name": "files", "state": "backoff", "reason": "exited", "transport": "stdio",
                "protocol_version": null, "server_info": "files 1.0", "pid": null, "tools": 3,
                "in_flight": 1, "pending": 2, "restarts": 4, "next_attempt_ms": 10,
                "a_later_field": true
            })],
        };
        assert_eq!(
            render(&lines(&list).unwrap()),
            "SERVER  STATE    TRANSPORT  TOOLS  RUNNING  WAITING  RESTARTS  PROTOCOL  PROGRAM    REASON\n\
             files   backoff  stdio      3      1        2        4                   files 1.0  exited\n"
        );
        assert_eq!(render(&[]), "No servers are configured.\n");
    }
}
