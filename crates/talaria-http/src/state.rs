//! What every worker shares.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::web::Bytes;
use talaria_actors::{DeliveryService, SupervisorHandle};
use talaria_config::Config;
use talaria_media::MediaStore;
use talaria_telemetry::MetricsHandle;
use talaria_types::runtime::BlockingPool;
use talaria_types::{ErrorCode, Failure};

use crate::auth::Authenticator;
use crate::body::BodyBounds;
use crate::openapi;
use crate::origin::HostPolicy;
use crate::reload::Reload;
use crate::server::ServeOptions;

/// The parts a route may use.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) config: Arc<Config>,
    pub(crate) supervisor: SupervisorHandle,
    pub(crate) delivery: DeliveryService,
    pub(crate) store: MediaStore,
    pub(crate) blocking: BlockingPool,
    pub(crate) metrics: MetricsHandle,
    pub(crate) reload: Option<Arc<dyn Reload>>,
    pub(crate) authenticator: Authenticator,
    pub(crate) hosts: HostPolicy,
    pub(crate) openapi: Bytes,
    pub(crate) bodies: BodyBounds,
    draining: AtomicBool,
}

impl AppState {
    /// The state of a server at an address, and the socket it will use.
    pub(crate) fn new(options: ServeOptions, address: SocketAddr) -> (TcpListener, Self) {
        let talaria = &options.config.talaria;
        let bodies = BodyBounds::new(talaria.limits.body_bytes);
        let state = Self {
            authenticator: Authenticator::new(talaria, address),
            hosts: HostPolicy::new(talaria, address),
            openapi: Bytes::from(openapi::document().to_string()),
            config: options.config,
            supervisor: options.supervisor,
            delivery: options.delivery,
            store: options.store,
            blocking: options.blocking,
            metrics: options.metrics,
            reload: options.reload,
            bodies,
            draining: AtomicBool::new(false),
        };
        (options.listener, state)
    }

    pub(crate) fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.supervisor.end_listening();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Refuses new work once draining has begun.
    pub(crate) fn accept_work(&self) -> Result<(), Failure> {
        if self.is_draining() {
            let detail = "this replica is shutting down and takes no new calls; send the call to \
                          another or try again shortly";
            return Err(
                Failure::new(ErrorCode::ShuttingDown, detail).retry_after(Duration::from_secs(1))
            );
        }
        Ok(())
    }
}
