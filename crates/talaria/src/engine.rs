//! Everything of the service but HTTP: the media store, the servers, the delivery, and who
//! describes pictures.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value};
use talaria_actors::{
    DeliverOptions, Delivered, DeliveryParts, DeliveryService, ImageWishes, Placement, Supervisor,
    SupervisorHandle, SupervisorOptions, ToolAnswer, VisionHandle, VisionParts,
};
use talaria_config::Config;
use talaria_content::Format;
use talaria_image::{DEFAULT_PIXELS, ImagePool, PoolOptions};
use talaria_media::{MediaOptions, MediaStore};
use talaria_telemetry::logging;
use talaria_types::runtime::{BlockingPool, now};
use talaria_types::{CallContext, Deadline, Failure};
use talaria_vision::Gatekeeper;
use talaria_vision::describe::Chain;

use crate::exit::CommandError;

/// How long is waited for calls and pictures at the end; none should run by then.
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
    /// Prepares pictures.
    pool: ImagePool,
    /// Knows which models see.
    gatekeeper: Gatekeeper,
    /// Describes pictures, once the servers are there.
    vision: Option<VisionHandle>,
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
        let pool = ImagePool::start(PoolOptions {
            workers: talaria.images.workers.unwrap_or_else(processors),
            queue: talaria.images.queue,
            pixels: DEFAULT_PIXELS,
            drawer: std::env::current_exe().ok(),
        });
        let gatekeeper = Gatekeeper::new(&config);
        let parts = DeliveryParts {
            store: store.clone(),
            blocking: blocking.clone(),
            gatekeeper: gatekeeper.clone(),
            pool: pool.clone(),
        };
        let delivery = DeliveryService::new(&config, parts);
        // Before there is a server that could have a secret logged.
        let masker = delivery.masker().clone();
        logging::mask_lines(move |line| masker.current().mask(line).into_owned());
        Self {
            config,
            store,
            blocking,
            delivery,
            pool,
            gatekeeper,
            vision: None,
        }
    }

    /// Waits until no picture is being described, no longer than the deadline.
    pub async fn described(&self, deadline: Deadline) {
        if let Some(vision) = &self.vision {
            vision.idle(deadline).await;
        }
    }

    /// Gives up the descriptions that are being made, and takes no more.
    pub async fn close_vision(&self) {
        if let Some(vision) = &self.vision {
            vision.close(Deadline::after(BRIEF_DRAIN)).await;
        }
    }

    /// Gives up descriptions, lets the pictures that are being prepared end, and takes no more.
    pub async fn close(&self) {
        self.close_vision().await;
        // Whoever waited for one is gone by now; what does not end in time ends with the process.
        let _in_time = self.pool.close(Deadline::after(BRIEF_DRAIN)).await;
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
            masker: self.delivery.masker().clone(),
        });
        supervisor
            .context("start the servers")
            .map_err(CommandError::from)
    }

    /// Starts what describes pictures, on a loop of its own: deliveries made from now on have it.
    /// Needs a running actix system.
    ///
    /// # Errors
    /// The system gives no thread for it.
    pub fn start_vision(&mut self, supervisor: &SupervisorHandle) -> Result<(), CommandError> {
        let parts = VisionParts {
            chain: Chain::resolve(&self.config, self.gatekeeper.catalogue()),
            config: Arc::clone(&self.config),
            pool: self.pool.clone(),
            store: self.store.clone(),
            blocking: self.blocking.clone(),
            supervisor: supervisor.clone(),
        };
        let vision = VisionHandle::start(parts, Placement::OwnArbiters);
        let vision = vision.context("start what describes pictures")?;
        self.delivery = self.delivery.clone().with_vision(vision.clone());
        self.vision = Some(vision);
        Ok(())
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
    /// The guard process cannot be started, or the system gives no thread.
    pub async fn start(
        config: Config,
        environment: &BTreeMap<String, String>,
        deadline: Deadline,
    ) -> Result<Self, CommandError> {
        let mut engine = Engine::open(Arc::new(config), None);
        let supervisor = engine.start_servers(&Arc::new(environment.clone()))?;
        if let Err(error) = engine.start_vision(&supervisor) {
            supervisor.drain(Duration::ZERO).await;
            return Err(error);
        }
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
    ) -> Result<Delivered, Failure> {
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
            images: ImageWishes::default(),
        };
        let mut delivered = self.engine.delivery.deliver(ctx, raw, options).await?;
        let took = began.elapsed();
        delivered.delivery.elapsed_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Ok(delivered)
    }

    /// Stops the servers, and what asks their tools.
    pub async fn stop(self) {
        self.engine.close_vision().await;
        self.supervisor.drain(BRIEF_DRAIN).await;
        self.engine.close().await;
    }
}

/// One worker for each processor.
fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
