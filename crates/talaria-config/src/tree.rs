//! The validated tree. Data only; [`crate::load`] makes it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use talaria_types::ServerName;

mod gate;
mod http;
mod images;
mod server;
mod vision;

pub use gate::{
    Endpoint, GateConfig, ImageInputMode, MainModel, ModelFacts, ProviderFacts, ToolResultImages,
};
pub use http::{HttpConfig, HttpKind, TlsConfig, Verify};
pub use images::{ImageDelivery, ImagesConfig, Tiles};
pub use server::{
    NamePrefix, ProtocolWish, ServerConfig, ServerEntry, ToolFilter, TransportConfig, Trust,
};
pub(crate) use vision::is_nobody;
pub use vision::{
    BackendConfig, DescribeImages, ImageForm, KeyRing, McpFallback, Pattern, Secret, VisionConfig,
};

use crate::defaults;
use crate::secrets::SecretValues;

/// Everything an operator can set, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The section `talaria`.
    pub talaria: TalariaConfig,
    /// The section `mcp_servers`. Broken entries stay, so that they can be shown.
    pub servers: BTreeMap<ServerName, ServerEntry>,
    /// `tool_budget.mcp_result_size_chars`: characters of model text per result before it is
    /// spilled to a file.
    pub result_size_chars: usize,
    /// Whether pictures reach a model.
    pub gate: GateConfig,
    /// What describes pictures.
    pub vision: VisionConfig,
    /// What is asked about what servers run.
    pub security: SecurityConfig,
    /// Values that came out of the environment; [`Config::show`] never shows them.
    pub environment_values: SecretValues,
    /// Those of variables whose names say that they are secret; see [`Config::secrets`].
    pub environment_secrets: SecretValues,
    /// Problems that do not stop the service, each with its key path.
    pub warnings: Vec<String>,
}

impl Config {
    /// The defaults with this home directory and no servers.
    #[must_use]
    pub fn with_home(home: PathBuf) -> Self {
        Self {
            talaria: TalariaConfig::with_home(home),
            servers: BTreeMap::new(),
            result_size_chars: defaults::RESULT_SIZE_CHARS,
            gate: GateConfig::default(),
            vision: VisionConfig::default(),
            security: SecurityConfig::default(),
            environment_values: SecretValues::default(),
            environment_secrets: SecretValues::default(),
            warnings: Vec::new(),
        }
    }
}

/// The section `talaria`.
#[derive(Clone, Debug, PartialEq)]
pub struct TalariaConfig {
    /// Where HTTP listens.
    pub listen: SocketAddr,
    /// Root of `cache/` and `logs/`; absolute.
    pub home: PathBuf,
    /// Bearer tokens; empty means no authentication (loopback only).
    pub tokens: Vec<TokenConfig>,
    /// Host names besides loopback and the listen address that requests may name.
    pub allowed_hosts: Vec<String>,
    /// Probes (`/healthz`, `/readyz`) answered without a token.
    pub open_probes: bool,
    /// Media store.
    pub media: MediaConfig,
    /// Preparation and placing of pictures.
    pub images: ImagesConfig,
    /// Calls.
    pub calls: CallsConfig,
    /// Bounds.
    pub limits: LimitsConfig,
    /// Whether changes of the file are applied without a command.
    pub watch_config: bool,
}

impl TalariaConfig {
    /// The defaults with this home directory.
    #[must_use]
    pub fn with_home(home: PathBuf) -> Self {
        Self {
            listen: defaults::LISTEN,
            home,
            tokens: Vec::new(),
            allowed_hosts: Vec::new(),
            open_probes: false,
            media: MediaConfig::default(),
            images: ImagesConfig::default(),
            calls: CallsConfig::default(),
            limits: LimitsConfig::default(),
            watch_config: true,
        }
    }
}

/// One bearer token.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenConfig {
    /// Name for logs and ownership of artifacts.
    pub name: String,
    /// The secret itself; never printed.
    pub token: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Servers it may use; `*` is all.
    pub servers: Vec<String>,
}

impl fmt::Debug for TokenConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenConfig")
            .field("name", &self.name)
            .field("scopes", &self.scopes)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Call tools and deliver results.
    Call,
    /// Approve write tools of untrusted servers.
    Approve,
    /// Read every artifact.
    Artifacts,
    /// Read metrics and probes.
    Metrics,
    /// Operate servers.
    Admin,
}

impl Scope {
    /// Every scope, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::Call,
        Self::Approve,
        Self::Artifacts,
        Self::Metrics,
        Self::Admin,
    ];

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Approve => "approve",
            Self::Artifacts => "artifacts",
            Self::Metrics => "metrics",
            Self::Admin => "admin",
        }
    }
}

/// `talaria.media`.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaConfig {
    /// Quota of the whole store.
    pub max_bytes: u64,
    /// Age at which a file expires.
    pub ttl: Duration,
    /// A file younger than this is never removed.
    pub grace: Duration,
    /// Base of artifact URLs when Talaria stands behind a proxy.
    pub public_url: Option<String>,
    /// Whether every file is flushed to the disk before it is named.
    pub fsync: bool,
}

impl Default for MediaConfig {
    fn default() -> Self {
        Self {
            max_bytes: defaults::MEDIA_MAX_BYTES,
            ttl: defaults::MEDIA_TTL,
            grace: defaults::MEDIA_GRACE,
            public_url: None,
            fsync: false,
        }
    }
}

/// `talaria.calls`.
#[derive(Clone, Debug, PartialEq)]
pub struct CallsConfig {
    /// Upper bound of any call.
    pub max_call_duration: Duration,
    /// How long draining waits for calls that run.
    pub drain_timeout: Duration,
    /// Whether formats `text` and `hermes` put results into an element that says they are data
    /// (specification 1.12).
    pub wrap_untrusted: bool,
}

impl Default for CallsConfig {
    fn default() -> Self {
        Self {
            max_call_duration: defaults::MAX_CALL_DURATION,
            drain_timeout: defaults::DRAIN_TIMEOUT,
            wrap_untrusted: false,
        }
    }
}

/// `talaria.limits`.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitsConfig {
    /// One message of a server.
    pub message_bytes: usize,
    /// One request body.
    pub body_bytes: usize,
    /// Calls that wait at one server.
    pub pending_per_server: NonZeroUsize,
    /// Calls of one token that wait or run.
    pub pending_per_token: NonZeroUsize,
    /// Size at which a server's stderr log starts over.
    pub stderr_log_bytes: u64,
    /// Blocking jobs (disk, large results) at a time.
    pub blocking_jobs: NonZeroUsize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            message_bytes: defaults::MESSAGE_BYTES,
            body_bytes: defaults::BODY_BYTES,
            pending_per_server: defaults::PENDING_PER_SERVER,
            pending_per_token: defaults::PENDING_PER_TOKEN,
            stderr_log_bytes: defaults::STDERR_LOG_BYTES,
            blocking_jobs: defaults::BLOCKING_JOBS,
        }
    }
}

/// What of the section `security` concerns servers (specification 6.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityConfig {
    /// Whether packages are looked up among known malware before a launcher runs them.
    pub osv_check: bool,
    /// Where they are looked up.
    pub osv_url: String,
}

impl Default for SecurityConfig {
    fn default() -> Self {
        Self {
            osv_check: true,
            osv_url: defaults::OSV_URL.to_owned(),
        }
    }
}
