//! One entry of `mcp_servers`.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use talaria_types::ServerName;

use super::HttpConfig;
use crate::defaults;

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
    /// Whether its tools are offered from what was learnt before and the first call connects.
    pub lazy: bool,
    /// Age without a call at which a session ends; never where absent.
    pub idle_timeout: Option<Duration>,
    /// Age at which a session ends; never where absent.
    pub max_lifetime: Option<Duration>,
    /// Which revision of the protocol is spoken.
    pub protocol: ProtocolWish,
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
        Self::with_transport(name.into(), TransportConfig::http(url))
    }

    /// A server with this transport, everything else at its default.
    #[must_use]
    pub fn with_transport(name: ServerName, transport: TransportConfig) -> Self {
        let keepalive_interval = match &transport {
            TransportConfig::Stdio { .. } => None,
            TransportConfig::Http(_) => Some(defaults::KEEPALIVE_INTERVAL),
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
            lazy: false,
            idle_timeout: None,
            max_lifetime: None,
            protocol: ProtocolWish::Auto,
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

/// Which revision of the protocol is spoken (specification 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolWish {
    /// With a handshake, or without one where the server knows none.
    Auto,
    /// Without a handshake.
    Stateless,
    /// With a handshake.
    Legacy,
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
    /// HTTP, in one of its two forms.
    Http(Box<HttpConfig>),
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

impl ProtocolWish {
    /// Every wish.
    pub const ALL: &'static [Self] = &[Self::Auto, Self::Stateless, Self::Legacy];

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Stateless => "stateless",
            Self::Legacy => "legacy",
        }
    }
}

impl TransportConfig {
    /// HTTP to an address, everything else at its default.
    #[must_use]
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http(Box::new(HttpConfig::new(url)))
    }

    /// OpenTelemetry's `network.transport`: `pipe`, `tcp` or `unix`.
    #[must_use]
    pub fn network_transport(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "pipe",
            Self::Http(http) if http.unix_socket.is_some() => "unix",
            Self::Http(_) => "tcp",
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
            Self::Http(http) => http.fmt(f),
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
