//! The surface over a real socket: a real service, asked by hand.

mod artifacts;
mod bodies;
mod calls;
mod client;
mod service;
mod tokens;

use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::Value;
use talaria_actors::{
    DeliveryParts, DeliveryService, Placement, Supervisor, SupervisorHandle, SupervisorOptions,
};
use talaria_config::{Config, GateConfig, ServerConfig, ServerEntry, TokenConfig};
use talaria_image::{ImagePool, PoolOptions};
use talaria_media::{MediaOptions, MediaStore};
use talaria_types::runtime::BlockingPool;
use talaria_vision::Gatekeeper;

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
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (options, _home) = options(listener, tokens, servers);
    let (supervisor, store) = (options.supervisor.clone(), options.store.clone());
    Fixture {
        server: HttpServer::serve(options).unwrap(),
        supervisor,
        store,
        _home,
    }
}

/// A service ready to start, and its home.
fn options(
    listener: TcpListener,
    tokens: Vec<TokenConfig>,
    servers: Vec<ServerConfig>,
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
        result_size_chars: 50_000,
        gate: GateConfig::default(),
        warnings: Vec::new(),
        secrets: talaria_config::SecretValues::default(),
    });
    let blocking = BlockingPool::new(4);
    let supervisor = Supervisor::start(SupervisorOptions {
        config: Arc::clone(&config),
        store: store.clone(),
        blocking: blocking.clone(),
        placement: Placement::Current,
        guard_program: None,
        environment: Arc::default(),
    })
    .unwrap();
    let options = ServeOptions {
        delivery: DeliveryService::new(
            &config,
            DeliveryParts {
                store: store.clone(),
                blocking: blocking.clone(),
                gatekeeper: Gatekeeper::new(&config),
                pool: ImagePool::start(PoolOptions {
                    workers: NonZeroUsize::MIN,
                    queue: NonZeroUsize::MIN,
                    pixels: 100_000_000,
                    drawer: None,
                }),
            },
        ),
        config,
        supervisor,
        store,
        blocking,
        metrics: talaria_telemetry::install().unwrap(),
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
