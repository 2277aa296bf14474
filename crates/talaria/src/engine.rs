//! Everything of the service but HTTP: the media store, the servers, the delivery.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value};
use talaria_actors::{
    DeliverOptions, DeliveryService, Placement, Supervisor, SupervisorHandle, SupervisorOptions,
    ToolAnswer,
};
use talaria_config::Config;
use talaria_content::{Delivery, Format};
use talaria_media::{MediaOptions, MediaStore};
use talaria_types::runtime::{BlockingPool, now};
use talaria_types::{CallContext, Deadline, Failure};

use crate::exit::CommandError;

/// How long a short command waits for calls when it ends; none run by then.
const BRIEF_DRAIN: Duration = Duration::from_secs(1);

/// The parts that do the work; cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    /// The configuration.
    pub config: Arc<Config>,
    /// Delivered files.
    pub store: MediaStore,
    /// Bounded blocking jobs.
    pub blocking: BlockingPool,
    /// Makes deliveries.
    pub delivery: DeliveryService,
}

impl Engine {
    /// Opens the media store; `base_url` begins artifact URLs where HTTP serves them. Starts
    /// nothing yet.
    #[must_use]
    pub fn open(config: Arc<Config>, base_url: Option<String>) -> Self {
        let talaria = &config.talaria;
        let store = MediaStore::open(MediaOptions {
            root: talaria.home.join("cache"),
            max_bytes: talaria.media.max_bytes,
            ttl: talaria.media.ttl,
            grace: talaria.media.grace,
            fsync: talaria.media.fsync,
            base_url: talaria.media.public_url.clone().or(base_url),
        });
        let blocking = BlockingPool::new(talaria.limits.blocking_jobs.get());
        let delivery = DeliveryService::new(&config, store.clone(), blocking.clone());
        Self {
            config,
            store,
            blocking,
            delivery,
        }
    }

    /// Starts every enabled server, each on its own loop. Needs a running actix system.
    ///
    /// # Errors
    /// The guard process cannot be started.
    pub fn start_servers(
        &self,
        environment: &Arc<BTreeMap<String, String>>,
    ) -> Result<SupervisorHandle, CommandError> {
        let program = std::env::current_exe().context("find this program")?;
        let supervisor = Supervisor::start(SupervisorOptions {
            config: Arc::clone(&self.config),
            store: self.store.clone(),
            blocking: self.blocking.clone(),
            placement: Placement::OwnArbiters,
            guard_program: Some(program),
            environment: Arc::clone(environment),
        });
        supervisor
            .context("start the servers")
            .map_err(CommandError::from)
    }
}

/// An engine and its servers in the process of a short command.
#[derive(Debug)]
pub struct Standalone {
    /// The engine.
    pub engine: Engine,
    /// Its servers.
    pub supervisor: SupervisorHandle,
}

impl Standalone {
    /// Starts every enabled server and waits, no longer than the deadline, until each is ready
    /// or has failed once. Needs a running actix system.
    ///
    /// # Errors
    /// The guard process cannot be started.
    pub async fn start(
        config: Config,
        environment: &BTreeMap<String, String>,
        deadline: Deadline,
    ) -> Result<Self, CommandError> {
        let engine = Engine::open(Arc::new(config), None);
        let supervisor = engine.start_servers(&Arc::new(environment.clone()))?;
        supervisor.settled(deadline).await;
        Ok(Self { engine, supervisor })
    }

    /// Calls a tool by its public name and delivers what it answers, as the service would.
    ///
    /// # Errors
    /// Any transport-level failure; a tool's own error is a delivery.
    pub async fn call(
        &self,
        ctx: &CallContext,
        public_name: &str,
        arguments: Map<String, Value>,
        format: Format,
    ) -> Result<Delivery, Failure> {
        let began = now();
        let called = self
            .supervisor
            .call_tool(ctx.clone(), public_name, arguments);
        let ToolAnswer {
            raw,
            kind,
            server,
            tool,
            reader,
        } = called.await?;
        let options = DeliverOptions {
            kind,
            server: Some(server),
            tool: Some(tool),
            reader,
            format,
        };
        let mut delivery = self.engine.delivery.deliver(ctx, raw, options).await?;
        delivery.elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(delivery)
    }

    /// Stops the servers.
    pub async fn stop(self) {
        self.supervisor.drain(BRIEF_DRAIN).await;
    }
}
