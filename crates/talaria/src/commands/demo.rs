//! `talaria demo`.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use talaria_config::{Config, ServerConfig, ServerEntry};
use talaria_types::{Deadline, ServerName};

use super::Surroundings;
use crate::arguments::DemoArguments;
use crate::client::ServiceClient;
use crate::configuration;
use crate::demo::{self, Demo, DemoReport};
use crate::demo_server::DEMO_SERVER_SUBCOMMAND;
use crate::exit::{CommandError, Exit};
use crate::output::with_progress;
use crate::service::Service;

/// How long the demo server may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the demo in a service of its own and prints the report.
pub(super) async fn run(
    surroundings: &Surroundings,
    arguments: DemoArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.quiet_log()?;
    let home = home(&arguments)?;
    let report = with_progress("running the demo", run_in(surroundings, home.clone())).await?;
    surroundings.output.print(&report, DemoReport::render)?;
    if arguments.clean {
        std::fs::remove_dir_all(&home).with_context(|| format!("remove {}", home.display()))?;
    }
    Ok(report.exit())
}

/// The folder of this run, made if it is not there.
fn home(arguments: &DemoArguments) -> Result<PathBuf, CommandError> {
    let home = match &arguments.home {
        Some(home) => {
            let home = configuration::absolute(home)?;
            std::fs::create_dir_all(&home).with_context(|| format!("make {}", home.display()))?;
            home
        }
        None => tempfile::Builder::new()
            .prefix("talaria-demo-")
            .tempdir()
            .context("make a folder for the demo")?
            .keep(),
    };
    Ok(home
        .canonicalize()
        .with_context(|| format!("find {}", home.display()))?)
}

async fn run_in(surroundings: &Surroundings, home: PathBuf) -> Result<DemoReport, CommandError> {
    let program = std::env::current_exe().context("find this program")?;
    let environment = &surroundings.environment;
    let mut config = Config::with_home(home.clone());
    config.talaria.listen = (Ipv4Addr::LOCALHOST, 0).into();
    let server = ServerConfig::stdio(
        demo::SERVER,
        program.to_string_lossy(),
        [DEMO_SERVER_SUBCOMMAND],
    );
    let entry = ServerEntry::Usable(Box::new(server));
    config.servers.insert(ServerName::from(demo::SERVER), entry);
    let _refusing = demo::configure_failover(&mut config)?;
    let metrics = talaria_telemetry::install().context("set up the metrics")?;
    let service = Service::start(config, environment.clone(), metrics, None).await?;
    service
        .supervisor()
        .settled(Deadline::after(START_TIMEOUT))
        .await;
    let client = ServiceClient::new(&service.url(), None)?;
    let report = Demo::new(&client, &home, service.engine().blocking.clone())
        .run()
        .await;
    service.drain().await?;
    report
}
