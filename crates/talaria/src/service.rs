//! The running service: the engine, HTTP in front of it, and the order in which they end.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use talaria_actors::SupervisorHandle;
use talaria_config::Config;
use talaria_http::{HttpServer, Reload, RunningServer, ServeError, ServeOptions, StopMode};
use talaria_media::MediaStore;
use talaria_telemetry::MetricsHandle;
use talaria_types::Deadline;
use talaria_types::runtime::{self, BlockingPool};
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::exit::CommandError;
use crate::reload::{Origin, Reloader};

/// Time between two sweeps of the media store.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// A service that answers requests.
#[derive(Debug)]
pub struct Service {
    engine: Engine,
    supervisor: SupervisorHandle,
    http: RunningServer,
    sweeper: JoinHandle<()>,
    /// Reads the configuration again; none where it comes from nowhere.
    reloads: Option<(Reloader, JoinHandle<()>)>,
}

impl Service {
    /// Binds, opens the store, starts the servers and answers requests. `origin` is where the
    /// configuration can be read again. Needs a running actix system.
    ///
    /// # Errors
    /// The address cannot be used, or a part cannot start; nothing is left running.
    pub async fn start(
        config: Config,
        environment: BTreeMap<String, String>,
        metrics: MetricsHandle,
        origin: Option<Origin>,
    ) -> Result<Self, CommandError> {
        let listen = config.talaria.listen;
        let listener = TcpListener::bind(listen).with_context(|| format!("listen on {listen}"))?;
        let address = listener.local_addr().context("learn the address")?;
        let (config, environment) = (Arc::new(config), Arc::new(environment));
        let mut engine = Engine::open(Arc::clone(&config), Some(base_url(address)));
        let supervisor = engine.start_servers(&environment)?;
        let reloads = origin.map(|origin| Reloader::start(origin, &engine, supervisor.clone()));
        let served = engine.start_vision(&supervisor).and_then(|()| {
            let options = ServeOptions {
                config,
                supervisor: supervisor.clone(),
                delivery: engine.delivery.clone(),
                store: engine.store.clone(),
                blocking: engine.blocking.clone(),
                metrics,
                reload: reloads.as_ref().map(|(reloader, _)| hook(reloader)),
                listener,
                workers: None,
            };
            HttpServer::serve(options).map_err(refusal)
        });
        let http = match served {
            Ok(http) => http,
            Err(error) => {
                stop_reloads(&reloads);
                engine.close_vision().await;
                supervisor.drain(Duration::ZERO).await;
                return Err(error);
            }
        };
        let sweeper = runtime::spawn_local(
            "media-sweep",
            sweep_forever(engine.store.clone(), engine.blocking.clone()),
        );
        Ok(Self {
            engine,
            supervisor,
            http,
            sweeper,
            reloads,
        })
    }

    /// Base URL for requests from this machine.
    #[must_use]
    pub fn url(&self) -> String {
        base_url(self.http.address())
    }

    /// The parts behind HTTP.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The servers.
    #[must_use]
    pub const fn supervisor(&self) -> &SupervisorHandle {
        &self.supervisor
    }

    /// Whoever reads the configuration again; none where it comes from nowhere.
    #[must_use]
    pub fn reloader(&self) -> Option<&Reloader> {
        self.reloads.as_ref().map(|(reloader, _)| reloader)
    }

    /// Waits until HTTP ends without being asked to.
    ///
    /// # Errors
    /// It ended with an error.
    pub async fn ended(&mut self) -> Result<(), CommandError> {
        Ok(self.http.ended().await.context("serve HTTP")?)
    }

    /// Ends in order: no new calls, descriptions and calls that run end or reach the drain
    /// timeout, servers stop, answers leave, connections close, the preparation of pictures ends.
    ///
    /// # Errors
    /// HTTP ended with an error.
    pub async fn drain(self) -> Result<(), CommandError> {
        self.http.drain();
        stop_reloads(&self.reloads);
        let until = Deadline::after(self.engine.config.talaria.calls.drain_timeout);
        // A description may still need the tool of a server.
        self.engine.described(until).await;
        self.supervisor.drain(until.remaining()).await;
        // The last calls may have brought pictures.
        self.engine.described(until).await;
        self.engine.close_vision().await;
        self.sweeper.abort();
        let stopped = self.http.stop(StopMode::Graceful).await;
        // The last answers may have waited for pictures.
        self.engine.close().await;
        Ok(stopped.context("stop HTTP")?)
    }
}

fn hook(reloader: &Reloader) -> Arc<dyn Reload> {
    Arc::new(reloader.clone())
}

fn stop_reloads(reloads: &Option<(Reloader, JoinHandle<()>)>) {
    if let Some((_, task)) = reloads {
        task.abort();
    }
}

/// Why HTTP does not start: what the operator asked for, or what broke.
fn refusal(error: ServeError) -> CommandError {
    match error {
        ServeError::Unprotected(_) => CommandError::usage(error.to_string()),
        ServeError::Socket(_) | ServeError::Run(_) | ServeError::Task(_) => {
            anyhow::Error::new(error).context("serve HTTP").into()
        }
    }
}

/// An address as a URL; one that means every interface becomes loopback.
fn base_url(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

/// Removes what is expired or over the quota, now and every minute.
async fn sweep_forever(store: MediaStore, blocking: BlockingPool) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let store = store.clone();
        let sweep = move || store.sweep(runtime::wall_clock());
        if let Err(failure) = blocking.run(Deadline::after(SWEEP_INTERVAL), sweep).await {
            // The next tick tries again.
            tracing::warn!(code = failure.code().as_str(), "media sweep put off");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::base_url;

    #[test]
    fn an_address_for_every_interface_is_reached_over_loopback() {
        let url = |address: &str| base_url(address.parse().unwrap());
        assert_eq!(url("127.0.0.1:8700"), "http://127.0.0.1:8700");
        assert_eq!(url("0.0.0.0:80"), "http://127.0.0.1:80");
        assert_eq!(url("[::]:80"), "http://[::1]:80");
    }
}
