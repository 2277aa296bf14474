//! Starting and stopping the HTTP server.

use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::{App, web};
use talaria_actors::{DeliveryService, SupervisorHandle};
use talaria_config::Config;
use talaria_media::MediaStore;
use talaria_telemetry::MetricsHandle;
use talaria_types::runtime::{self, BlockingPool};
use tokio::task::JoinHandle;

use crate::operation;
use crate::reload::Reload;
use crate::state::AppState;

/// How long a connection may stay idle between requests.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// How long a client may take to send the head of its first request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to close its side after the last answer.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long sent bytes may stay unacknowledged, or a full window closed, before the kernel
/// gives the connection up: bounds a reader that stopped reading.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(120);
/// Idle time after which the kernel asks a silent peer whether it still exists, so that a caller
/// whose machine vanished is noticed during a long call.
const PROBE_AFTER: Duration = Duration::from_secs(60);
const PROBE_INTERVAL: Duration = Duration::from_secs(15);
/// Connections one worker holds; more wait in the listen queue.
const CONNECTIONS_PER_WORKER: usize = 2048;
/// Added to the drain timeout for what an answer still needs after its call ended.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// What the server is made from.
#[derive(Debug)]
pub struct ServeOptions {
    /// The configuration.
    pub config: Arc<Config>,
    /// Routes calls and owns the servers.
    pub supervisor: SupervisorHandle,
    /// Turns raw results into deliveries.
    pub delivery: DeliveryService,
    /// Where files are.
    pub store: MediaStore,
    /// Bounded blocking jobs.
    pub blocking: BlockingPool,
    /// Renders `/metrics`.
    pub metrics: MetricsHandle,
    /// Reads the configuration again; none where it did not come from anywhere.
    pub reload: Option<Arc<dyn Reload>>,
    /// A bound socket; port 0 is fine.
    pub listener: TcpListener,
    /// Event loops; as many as the machine has cores when absent.
    pub workers: Option<NonZeroUsize>,
}

/// Why the server could not start or ended badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Decision of the house: nothing but loopback is served without authentication.
    #[error(
        "serving {0} without authentication: an address that is not loopback needs talaria.auth.tokens"
    )]
    Unprotected(SocketAddr),
    /// The socket is not usable.
    #[error("using the listening socket")]
    Socket(#[source] std::io::Error),
    /// The server ended with an error.
    #[error("running the http server")]
    Run(#[source] std::io::Error),
    /// The task that runs the server died.
    #[error("waiting for the http server")]
    Task(#[source] tokio::task::JoinError),
}

/// Starts the HTTP server.
#[derive(Debug)]
pub struct HttpServer;

impl HttpServer {
    /// Starts to listen. Needs a running actix system; leaves signals to the caller.
    ///
    /// # Errors
    /// The socket is not usable, or is not loopback while no token is configured.
    pub fn serve(options: ServeOptions) -> Result<RunningServer, ServeError> {
        let address = options.listener.local_addr().map_err(ServeError::Socket)?;
        if !address.ip().is_loopback() && options.config.talaria.tokens.is_empty() {
            return Err(ServeError::Unprotected(address));
        }
        let workers = options.workers;
        let stop_after = options.config.talaria.calls.drain_timeout + STOP_MARGIN;
        let (listener, state) = AppState::new(options, address);
        let state = web::Data::new(state);
        let shared = state.clone();
        let server = listen(listener, workers, stop_after, move |services| {
            services.app_data(shared.clone());
            operation::register(services);
        })
        .map_err(ServeError::Socket)?;
        let handle = server.handle();
        let task = Some(runtime::spawn("http_server", server));
        Ok(RunningServer {
            address,
            state,
            handle,
            task,
        })
    }
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Requests that run are answered first, as long as the drain timeout allows.
    Graceful,
    /// Connections are closed now.
    Now,
}

/// A server that listens. Dropping it stops the server at once.
#[derive(Debug)]
pub struct RunningServer {
    address: SocketAddr,
    state: web::Data<AppState>,
    handle: ServerHandle,
    task: Option<JoinHandle<std::io::Result<()>>>,
}

impl RunningServer {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no new calls from now on: they are answered `shutting_down`, and `/readyz` says so.
    /// What runs goes on, and everything else is still answered.
    pub fn drain(&self) {
        self.state.start_draining();
    }

    /// Waits until the server ends without being asked to.
    ///
    /// # Errors
    /// It ended with an error.
    pub async fn ended(&mut self) -> Result<(), ServeError> {
        let Some(task) = self.task.as_mut() else {
            return Ok(());
        };
        let ended = task.await;
        self.task = None;
        ended.map_err(ServeError::Task)?.map_err(ServeError::Run)
    }

    /// Stops listening and ends the connections.
    ///
    /// # Errors
    /// It ended with an error.
    pub async fn stop(mut self, mode: StopMode) -> Result<(), ServeError> {
        self.drain();
        self.handle.stop(mode == StopMode::Graceful).await;
        self.ended().await
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// Sets a server up that has the given services. Everything about connections is decided here.
fn listen<F>(
    listener: TcpListener,
    workers: Option<NonZeroUsize>,
    stop_after: Duration,
    services: F,
) -> std::io::Result<Server>
where
    F: Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
{
    let server = actix_web::HttpServer::new(move || App::new().configure(services.clone()))
        .workers(workers.map_or_else(cores, NonZeroUsize::get))
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_TIMEOUT)
        .client_disconnect_timeout(DISCONNECT_TIMEOUT)
        // A caller that closes its side has gone away: its request is dropped, and with it the
        // call. Otherwise a request would run on until its answer cannot be written.
        .h1_allow_half_closed(false)
        .max_connections(CONNECTIONS_PER_WORKER)
        .shutdown_timeout(stop_after.as_secs())
        .tcp_nodelay(true)
        .on_connect(|connection, _| watch_peer(connection))
        .disable_signals()
        .listen(listener)?;
    Ok(server.run())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Asks the kernel to notice peers that vanished or stopped reading. A socket that refuses an
/// option still works, only less watchfully.
fn watch_peer(connection: &dyn std::any::Any) {
    let Some(stream) = connection.downcast_ref::<actix_web::rt::net::TcpStream>() else {
        return;
    };
    let socket = socket2::SockRef::from(stream);
    let probes = socket2::TcpKeepalive::new()
        .with_time(PROBE_AFTER)
        .with_interval(PROBE_INTERVAL);
    let watched = socket
        .set_tcp_keepalive(&probes)
        .and_then(|()| set_unread_timeout(&socket, UNREAD_TIMEOUT));
    if let Err(error) = watched {
        tracing::debug!(%error, "setting socket options failed");
    }
}

#[cfg(target_os = "linux")]
fn set_unread_timeout(socket: &socket2::SockRef<'_>, timeout: Duration) -> std::io::Result<()> {
    socket.set_tcp_user_timeout(Some(timeout))
}

#[cfg(not(target_os = "linux"))]
fn set_unread_timeout(_: &socket2::SockRef<'_>, _: Duration) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[path = "server/connection_tests.rs"]
mod connection_tests;
