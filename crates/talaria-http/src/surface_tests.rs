//! The surface over a real socket: a real service, asked by hand.

mod artifacts;
mod bodies;
mod calls;
mod client;
mod events;
mod service;
mod tokens;
mod vision;

use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::Value;
use talaria_actors::{
    DeliveryParts, DeliveryService, Placement, Supervisor, SupervisorHandle, SupervisorOptions,
    VisionHandle, VisionParts,
};
use talaria_config::{Config, ServerConfig, ServerEntry, TokenConfig, VisionConfig};
use talaria_image::{ImagePool, PoolOptions};
use talaria_media::{MediaOptions, MediaStore};
use talaria_types::runtime::BlockingPool;
use talaria_vision::Gatekeeper;
use talaria_vision::describe::Chain;

use crate::fixtures::talaria_config;
use crate::server::{HttpServer, RunningServer, ServeOptions};
use client::{Reply, ask};

/// A running service with its own home.
struct Fixture {
    server: RunningServer,
    supervisor: SupervisorHandle,
    store: MediaStore,
    _home: tempfile::TempDir,
}

fn fixture() -> Fixture {
    with_tokens(Vec::new())
}

fn with_tokens(tokens: Vec<TokenConfig>) -> Fixture {
    with_servers(tokens, Vec::new())
}

fn with_servers(tokens: Vec<TokenConfig>, servers: Vec<ServerConfig>) -> Fixture {
    with_vision(tokens, servers, VisionConfig::default())
}

fn with_vision(
    tokens: Vec<TokenConfig>,
    servers: Vec<ServerConfig>,
    vision: VisionConfig,
) -> Fixture {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (options, home) = options(listener, tokens, servers, vision);
    started(options, home)
}

fn with_body_bytes(bytes: usize) -> Fixture {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut options, home) = options(listener, Vec::new(), Vec::new(), VisionConfig::default());
    Arc::make_mut(&mut options.config).talaria.limits.body_bytes = bytes;
    started(options, home)
}

fn started(options: ServeOptions, home: tempfile::TempDir) -> Fixture {
    let (supervisor, store) = (options.supervisor.clone(), options.store.clone());
    Fixture {
        server: HttpServer::serve(options).unwrap(),
        supervisor,
        store,
        _home: home,
    }
}

/// A service ready to start, and its home.
fn options(
    listener: TcpListener,
    tokens: Vec<TokenConfig>,
    servers: Vec<ServerConfig>,
    vision: VisionConfig,
) -> (ServeOptions, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let mut talaria = talaria_config();
    talaria.home = home.path().to_path_buf();
    talaria.tokens = tokens;
    let store = MediaStore::open(MediaOptions {
        root: home.path().join("cache"),
        max_bytes: talaria.media.max_bytes,
        ttl: talaria.media.ttl,
        grace: talaria.media.grace,
        fsync: false,
        base_url: Some("http://files.example".to_owned()),
    });
    let config = Arc::new(Config {
        talaria,
        servers: servers
            .into_iter()
            .map(|server| (server.name.clone(), ServerEntry::Usable(Box::new(server))))
            .collect(),
        vision,
        ..Config::with_home(std::path::PathBuf::new())
    });
    let blocking = BlockingPool::new(4);
    let supervisor = Supervisor::start(SupervisorOptions {
        config: Arc::clone(&config),
        store: store.clone(),
        blocking: blocking.clone(),
        placement: Placement::Current,
        guard_program: None,
        environment: Arc::default(),
        masker: talaria_actors::SharedMasker::default(),
    })
    .unwrap();
    let pool = ImagePool::start(PoolOptions {
        workers: NonZeroUsize::MIN,
        queue: NonZeroUsize::MIN,
        pixels: 100_000_000,
        drawer: None,
    });
    let delivery = DeliveryService::new(
        &config,
        DeliveryParts {
            store: store.clone(),
            blocking: blocking.clone(),
            gatekeeper: Gatekeeper::new(&config),
            pool: pool.clone(),
        },
    );
    let vision = VisionParts {
        config: Arc::clone(&config),
        chain: Chain::resolve(&config, None),
        pool,
        store: store.clone(),
        blocking: blocking.clone(),
        supervisor: supervisor.clone(),
    };
    let vision = VisionHandle::start(vision, Placement::Current).unwrap();
    let options = ServeOptions {
        delivery: delivery.with_vision(vision),
        config,
        supervisor,
        store,
        blocking,
        metrics: talaria_telemetry::install().unwrap(),
        reload: None,
        listener,
        workers: NonZeroUsize::new(1),
    };
    (options, home)
}

impl Fixture {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"").await
    }

    async fn send(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
        ask(self.address(), method, path, headers, body).await
    }

    /// Posts JSON.
    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_as(path, body, &[]).await
    }

    async fn post_as(&self, path: &str, body: &Value, headers: &[&str]) -> Reply {
        let headers = [&["Content-Type: application/json"], headers].concat();
        self.send("POST", path, &headers, body.to_string().as_bytes())
            .await
    }
}
