//! `talaria test`.

use std::time::Duration;

use talaria_config::{ServerConfig, ServerEntry};
use talaria_types::{Deadline, ServerName};

use super::{Surroundings, tool_arguments};
use crate::arguments::TestArguments;
use crate::configuration;
use crate::engine::Standalone;
use crate::exit::{CommandError, Exit};
use crate::output::with_progress;
use crate::server_test::{ServerTest, TestReport, ToolCall};

/// Tests one server in this process and prints the report.
pub(super) async fn run(
    surroundings: &Surroundings,
    arguments: TestArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.quiet_log()?;
    let call = match arguments.tool {
        Some(tool) => Some(ToolCall {
            tool,
            arguments: tool_arguments(&arguments.arguments)?,
        }),
        None => None,
    };
    let mut config = configuration::load(&arguments.config, &surroundings.environment)?.config;
    let server = usable(
        config
            .servers
            .get(&ServerName::from(arguments.name.as_str())),
        &arguments.name,
    )?;
    // A server may be tested before it is enabled.
    let entry = ServerEntry::Usable(Box::new(ServerConfig {
        enabled: true,
        ..server.clone()
    }));
    config.servers = [(server.name.clone(), entry)].into();
    let deadline = Deadline::after(Duration::from_secs(arguments.timeout));
    // Boxed, since it holds whole deliveries across its waits.
    let tested = Box::pin(async {
        let here = Standalone::start(config, &surroundings.environment, deadline).await?;
        let report = ServerTest::new(&here, &server, deadline).run(call).await;
        here.stop().await;
        Ok::<_, CommandError>(report)
    });
    let report = with_progress(&format!("testing {}", server.name), tested).await?;
    surroundings.output.print(&report, TestReport::render)?;
    Ok(report.exit())
}

fn usable(entry: Option<&ServerEntry>, name: &str) -> Result<ServerConfig, CommandError> {
    match entry {
        Some(ServerEntry::Usable(server)) => Ok(server.as_ref().clone()),
        Some(ServerEntry::Broken { problem }) => {
            Err(CommandError::configuration(vec![problem.clone()]))
        }
        None => Err(CommandError::configuration(vec![format!(
            "the configuration has no server {name:?}"
        )])),
    }
}
