//! `talaria serve`.

use anyhow::Context;
use serde_json::json;
use talaria_telemetry::logging::LogFormat;

use super::Surroundings;
use crate::arguments::ServeArguments;
use crate::configuration;
use crate::exit::{CommandError, Exit};
use crate::output::{Output, print_text};
use crate::service::Service;
use crate::signals::StopSignals;

/// Serves until a signal, then drains.
pub(super) async fn run(
    surroundings: &Surroundings,
    arguments: ServeArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.log(LogFormat::Auto, None)?;
    let environment = &surroundings.environment;
    let mut loaded = configuration::load(&arguments.config, environment)?;
    if let Some(listen) = arguments.listen {
        loaded.config.talaria.listen = listen;
    }
    for warning in &loaded.config.warnings {
        tracing::warn!(warning, "configuration");
    }
    tracing::info!(source = loaded.source, "configuration read");
    let metrics = talaria_telemetry::install().context("set up the metrics")?;
    let mut signals = StopSignals::listen()?;
    let mut service = Service::start(loaded.config, environment.clone(), metrics).await?;
    announce(surroundings.output, &service.url())?;
    let supervisor = service.supervisor().clone();
    let signal = tokio::select! {
        signal = signals.next() => signal,
        () = supervisor.ended() => {
            return Err(anyhow::anyhow!("the supervisor ended by itself").into());
        }
        ended = service.ended() => {
            ended?;
            return Err(anyhow::anyhow!("the HTTP server ended by itself").into());
        }
    };
    tracing::info!(signal, "draining");
    tokio::select! {
        drained = service.drain() => drained?,
        signal = signals.next() => tracing::warn!(signal, "stopping at once"),
    }
    tracing::info!("stopped");
    Ok(Exit::Ok)
}

/// Says where requests are answered: in the log, and on stdout for a program that started us.
fn announce(output: Output, url: &str) -> Result<(), CommandError> {
    tracing::info!(address = url, "ready");
    match output {
        Output::Human => Ok(()),
        Output::Json => print_text(&format!("{}\n", json!({ "event": "ready", "url": url }))),
    }
}
