//! Every default of the configuration, and the bounds of what may be set.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// `talaria.listen`.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8700);
/// `talaria.home`, below the user's home directory.
pub const HOME: &str = "~/.talaria";

/// `talaria.media.max_bytes`.
pub const MEDIA_MAX_BYTES: u64 = 10 * 1024 * 1024 * 1024;
/// `talaria.media.ttl`.
pub const MEDIA_TTL: Duration = Duration::from_secs(24 * 3600);
/// `talaria.media.grace`.
pub const MEDIA_GRACE: Duration = Duration::from_secs(10 * 60);

/// `talaria.images.queue`.
pub const IMAGE_QUEUE: NonZeroUsize = count(64);
/// Most threads that may prepare pictures.
pub const MAX_IMAGE_WORKERS: usize = 256;
/// `vision.embed_target_bytes`, as in Hermes.
pub const EMBED_TARGET_BYTES: usize = 256 * 1024;
/// What `vision.embed_target_bytes` is clamped to.
pub const EMBED_TARGET_BOUNDS: RangeInclusive<usize> = 64 * 1024..=4 * MIB;

/// `talaria.vision.total_timeout`.
pub const VISION_TOTAL_TIMEOUT: Duration = Duration::from_secs(180);
/// `talaria.vision.cache_ttl`.
pub const VISION_CACHE_TTL: Duration = Duration::from_secs(10 * 60);
/// `auxiliary.vision.timeout`, as in Hermes.
pub const VISION_TIMEOUT: Duration = Duration::from_secs(120);
/// `auxiliary.vision.download_timeout`, as in Hermes.
pub const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// `auxiliary.vision.temperature`, as in Hermes.
pub const VISION_TEMPERATURE: f64 = 0.1;
/// What `auxiliary.vision.temperature` may be.
pub const VISION_TEMPERATURE_BOUNDS: RangeInclusive<f64> = 0.0..=2.0;
/// `auxiliary.vision.mcp_fallback[].timeout`.
pub const MCP_FALLBACK_TIMEOUT: Duration = Duration::from_secs(60);
/// `auxiliary.vision.mcp_fallback[].failure_patterns`: servers that tell a failure as their
/// answer. The first is MiniMax's; the last two are how programs tell of an error.
pub const FAILURE_PATTERNS: [&str; 4] = [
    "^Failed to perform VLM analysis",
    "^Failed to (?:analy[sz]e|process|understand|describe|read|load|fetch|download) (?:the )?(?:image|picture)\\b",
    "^Error: ",
    "^Traceback \\(most recent call last\\)",
];
/// Words in place of a provider that mean nobody.
pub const NO_PROVIDER: [&str; 3] = ["none", "off", "disabled"];
/// Largest compiled regular expression.
pub const MAX_PATTERN_BYTES: usize = 256 * 1024;
/// Providers of models and the variables that hold their keys, the first that is set counts.
pub const KEY_VARIABLES: &[(&str, &[&str])] = &[
    ("openai", &["OPENAI_API_KEY"]),
    ("anthropic", &["ANTHROPIC_API_KEY"]),
    ("google", &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
    ("openrouter", &["OPENROUTER_API_KEY"]),
    ("nous", &["NOUS_API_KEY"]),
    ("deepinfra", &["DEEPINFRA_API_KEY"]),
    ("zai", &["ZAI_API_KEY", "GLM_API_KEY", "Z_AI_API_KEY"]),
    ("minimax", &["MINIMAX_API_KEY"]),
    ("xai", &["XAI_API_KEY"]),
    ("xiaomi", &["XIAOMI_API_KEY"]),
    ("mistral", &["MISTRAL_API_KEY"]),
    ("groq", &["GROQ_API_KEY"]),
    ("together", &["TOGETHER_API_KEY"]),
    ("fireworks", &["FIREWORKS_API_KEY"]),
    ("alibaba", &["DASHSCOPE_API_KEY"]),
    ("moonshot", &["MOONSHOT_API_KEY", "KIMI_API_KEY"]),
    ("huggingface", &["HF_TOKEN"]),
    ("ollama", &["OLLAMA_API_KEY"]),
];

/// `talaria.calls.max_call_duration`.
pub const MAX_CALL_DURATION: Duration = Duration::from_secs(3600);
/// `talaria.calls.drain_timeout`.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// `talaria.limits.message_bytes`: escapes and repeated copies are real.
pub const MESSAGE_BYTES: usize = 160 * MIB;
/// `talaria.limits.body_bytes`: a 50 MiB payload in base64, and room.
pub const BODY_BYTES: usize = 96 * MIB;
/// Most JSON values of one message or request body: in memory each takes many times the two
/// bytes it may take on the wire, so a bound on bytes alone bounds no memory.
pub const MAX_JSON_VALUES: usize = 1_000_000;
/// `talaria.limits.pending_per_server`.
pub const PENDING_PER_SERVER: NonZeroUsize = count(64);
/// `talaria.limits.pending_per_token`.
pub const PENDING_PER_TOKEN: NonZeroUsize = count(32);
/// `talaria.limits.stderr_log_bytes`.
pub const STDERR_LOG_BYTES: u64 = 10 * 1024 * 1024;
/// `talaria.limits.blocking_jobs`.
pub const BLOCKING_JOBS: NonZeroUsize = count(8);

/// `mcp_servers.*.timeout` where neither it nor `timeouts.mcp.tool_call` is set.
pub const TOOL_CALL_TIMEOUT: Duration = Duration::from_secs(300);
/// `mcp_servers.*.connect_timeout`.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// `mcp_servers.*.keepalive_interval` of HTTP servers.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(180);
/// Smallest `mcp_servers.*.keepalive_interval`; smaller values are raised to it.
pub const MIN_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// `mcp_servers.*.rpc_concurrency`.
pub const RPC_CONCURRENCY: NonZeroUsize = count(1);
/// `mcp_servers.*.rpc_concurrency` of servers with `supports_parallel_tool_calls: true`.
pub const PARALLEL_RPC_CONCURRENCY: NonZeroUsize = count(8);

/// `security.osv_url`: the public database of vulnerable and hostile packages.
pub const OSV_URL: &str = "https://api.osv.dev/v1/query";
/// HTTP path of an MCP server on a unix socket that names none.
pub const UNIX_SOCKET_PATH: &str = "/mcp";
/// Shortest configured secret that is looked for in what servers say.
pub const MIN_SECRET_CHARS: usize = 8;

/// `tool_budget.mcp_result_size_chars`.
pub const RESULT_SIZE_CHARS: usize = 50_000;

/// Longest duration that may be set; more would overflow the clock somewhere.
pub const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 3600);
/// Largest count that may be set.
pub const MAX_COUNT: usize = 1_000_000;
/// Largest message and body that may be allowed: payload offsets are 32-bit on some targets.
pub const MAX_MESSAGE_BYTES: u64 = 2 * 1024 * 1024 * 1024 - 1;
/// Smallest message and body that may be allowed; a handshake needs this much.
pub const MIN_MESSAGE_BYTES: u64 = 64 * 1024;
/// Shortest bearer token.
pub const MIN_TOKEN_CHARS: usize = 16;
/// Largest configuration file.
pub const MAX_FILE_BYTES: usize = 4 * MIB;

const fn count(value: usize) -> NonZeroUsize {
    match NonZeroUsize::new(value) {
        Some(value) => value,
        None => NonZeroUsize::MIN,
    }
}
