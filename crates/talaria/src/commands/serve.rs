//! `talaria serve`.

use anyhow::Context;
use serde_json::json;
use talaria_telemetry::logging::LogFormat;

use super::Surroundings;
use crate::arguments::ServeArguments;
use crate::exit::{CommandError, Exit};
use crate::output::{Output, print_text};
use crate::reload::{ConfigSource, Trigger};
use crate::service::Service;
use crate::signals::{HangUps, StopSignals};

/// Serves until a signal, then drains.
pub(super) async fn run(
    surroundings: &Surroundings,
    arguments: ServeArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.log(LogFormat::Auto, None)?;
    let environment = &surroundings.environment;
    let source = ConfigSource::new(arguments.config, environment.clone(), arguments.listen);
    let (loaded, origin) = source.open()?;
    for warning in &loaded.config.warnings {
        tracing::warn!(warning, "configuration");
    }
    tracing::info!(source = loaded.source, "configuration read");
    let metrics = talaria_telemetry::install().context("set up the metrics")?;
    let mut signals = StopSignals::listen()?;
    let mut hang_ups = HangUps::listen()?;
    let mut service =
        Service::start(loaded.config, environment.clone(), metrics, Some(origin)).await?;
    announce(surroundings.output, &service.url())?;
    let supervisor = service.supervisor().clone();
    let signal = loop {
        tokio::select! {
            signal = signals.next() => break signal,
            () = hang_ups.next() => {
                if let Some(reloader) = service.reloader() {
                    reloader.request(Trigger::Signal);
                }
            }
            () = supervisor.ended() => {
                return Err(anyhow::anyhow!("the supervisor ended by itself").into());
            }
            ended = service.ended() => {
                ended?;
                return Err(anyhow::anyhow!("the HTTP server ended by itself").into());
            }
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
