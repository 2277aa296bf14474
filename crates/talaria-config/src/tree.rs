//! The validated tree. Data only; [`crate::load`] makes it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use talaria_types::ServerName;

mod gate;
mod images;

pub use gate::{
    Endpoint, GateConfig, ImageInputMode, MainModel, ModelFacts, ProviderFacts, ToolResultImages,
};
pub use images::{ImageDelivery, ImagesConfig, Tiles};

use crate::defaults;
use crate::secrets::{SecretValues, mask_url};

/// Everything an operator can set, checked.
#[derive(Clone, Debug)]
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
    /// Values that came out of the environment; [`Config::show`] never shows them.
    pub secrets: SecretValues,
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
            secrets: SecretValues::default(),
            warnings: Vec::new(),
        }
    }
}

/// The section `talaria`.
#[derive(Clone, Debug)]
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
        }
    }
}

/// One bearer token.
#[derive(Clone)]
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
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct CallsConfig {
    /// Upper bound of any call.
    pub max_call_duration: Duration,
    /// How long draining waits for calls that run.
    pub drain_timeout: Duration,
}

impl Default for CallsConfig {
    fn default() -> Self {
        Self {
            max_call_duration: defaults::MAX_CALL_DURATION,
            drain_timeout: defaults::DRAIN_TIMEOUT,
        }
    }
}

/// `talaria.limits`.
#[derive(Clone, Debug)]
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

/// One entry of `mcp_servers`.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEntry {
    /// Ready to use.
    Usable(Box<ServerConfig>),
    /// Refused; the others still start.
    Broken {
        /// What is wrong, with its key path.
        problem: String,
    },
}

/// A usable server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Its key under `mcp_servers`.
    pub name: ServerName,
    /// How it is reached.
    pub transport: TransportConfig,
    /// Whether it is started at all.
    pub enabled: bool,
    /// Idle timer of a call; progress renews it.
    pub timeout: Duration,
    /// Connect and initialise.
    pub connect_timeout: Duration,
    /// RPCs at a time (design decision 20).
    pub rpc_concurrency: NonZeroUsize,
    /// Which tools are offered.
    pub tools: ToolFilter,
    /// `name_prefix: none` offers tools under their own names.
    pub name_prefix: NamePrefix,
    /// Whether its write tools need an approval.
    pub trust: Trust,
    /// How often an idle session is probed; `None` where the specification says not at all
    /// (stdio servers without an explicit interval).
    pub keepalive_interval: Option<Duration>,
}

impl ServerConfig {
    /// A server over a child process, everything else at its default.
    #[must_use]
    pub fn stdio(
        name: impl Into<ServerName>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let transport = TransportConfig::Stdio {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
        };
        Self::with_transport(name.into(), transport)
    }

    /// A server over Streamable HTTP, everything else at its default.
    #[must_use]
    pub fn http(name: impl Into<ServerName>, url: impl Into<String>) -> Self {
        let transport = TransportConfig::Http {
            url: url.into(),
            headers: BTreeMap::new(),
        };
        Self::with_transport(name.into(), transport)
    }

    /// A server with this transport, everything else at its default.
    #[must_use]
    pub fn with_transport(name: ServerName, transport: TransportConfig) -> Self {
        let keepalive_interval = match &transport {
            TransportConfig::Stdio { .. } => None,
            TransportConfig::Http { .. } => Some(defaults::KEEPALIVE_INTERVAL),
        };
        Self {
            name,
            transport,
            enabled: true,
            timeout: defaults::TOOL_CALL_TIMEOUT,
            connect_timeout: defaults::CONNECT_TIMEOUT,
            rpc_concurrency: defaults::RPC_CONCURRENCY,
            tools: ToolFilter::default(),
            name_prefix: NamePrefix::Default,
            trust: Trust::Full,
            keepalive_interval,
        }
    }
}

/// Whether a server's write tools may run without an approval (specification 6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// They may.
    Full,
    /// Whoever calls must hold scope `approve` and say so. Any word but `full` means this.
    Untrusted,
}

impl Trust {
    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Untrusted => "untrusted",
        }
    }
}

/// How a server's tools are named publicly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamePrefix {
    /// `mcp__server__tool`.
    Default,
    /// The tool's own name, sanitised.
    None,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum TransportConfig {
    /// A child process that speaks over its stdin and stdout.
    Stdio {
        /// Program, as configured.
        command: String,
        /// Arguments.
        args: Vec<String>,
        /// Its own environment, added to the allow-list.
        env: BTreeMap<String, String>,
        /// Working directory.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Endpoint.
        url: String,
        /// Headers sent with every request; values are secrets.
        headers: BTreeMap<String, String>,
    },
}

impl NamePrefix {
    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::None => "none",
        }
    }
}

impl TransportConfig {
    /// OpenTelemetry's `network.transport`: `pipe` or `tcp`.
    #[must_use]
    pub const fn network_transport(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "pipe",
            Self::Http { .. } => "tcp",
        }
    }
}

impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio {
                command,
                args,
                env,
                cwd,
            } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &format_args!("[{} hidden]", args.len()))
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", &mask_url(url))
                .field("headers", &headers.keys())
                .finish(),
        }
    }
}

/// Which tools of a server are offered (specification 4.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Names or shell wildcards; beats `exclude` when present.
    pub include: Option<Vec<String>>,
    /// Names or shell wildcards.
    pub exclude: Vec<String>,
    /// No resource utilities even where the capability is advertised.
    pub without_resources: bool,
    /// No prompt utilities even where the capability is advertised.
    pub without_prompts: bool,
}
