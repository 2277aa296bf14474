//! The catalogue: every family, its kind, unit, labels, buckets and help.
//!
//! Descriptions in the exposed text and the table of `docs/metrics.md` are made from it.

use metrics::Unit;

/// Buckets for requests: OpenTelemetry's for MCP operations, and a fast end from 200 µs.
pub const REQUEST_BUCKETS: &[f64] = &[
    0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
    30.0, 60.0, 120.0, 300.0,
];

/// Buckets for our own share of a call: 50 µs to 10 s.
pub const OVERHEAD_BUCKETS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 10.0,
];

/// Buckets for how long a session lives: a second to a week.
pub const SESSION_BUCKETS: &[f64] = &[
    1.0, 10.0, 60.0, 300.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0, 604_800.0,
];

/// Buckets for encodes of a picture.
pub const ENCODES_BUCKETS: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0];

/// Distinct (server, tool) pairs that keep their name as a label; the rest are `other`.
pub const MAX_TOOL_LABELS: usize = 200;

/// What folds values outside a closed or capped set.
pub const OTHER: &str = "other";

/// States of a server, as `talaria_server_state` names them.
pub const SERVER_STATES: &[&str] = &[
    "configured",
    "connecting",
    "ready",
    "degraded",
    "backoff",
    "parked",
    "failed",
    "disabled",
    "draining",
    "stopped",
];

/// Reasons of a server's state besides the error codes; any other word becomes `other`.
pub const STATE_REASONS: &[&str] = &[
    "added",
    "called",
    "closed",
    "config",
    "connected",
    "drain",
    "exited",
    "frozen",
    "idle",
    "keepalive",
    "lazy",
    "lifetime",
    "operator",
    "panic",
    "probe",
    "reload",
    "restart_budget",
    "session_expired",
    "shutdown",
    "stale_list",
];

/// Kind of a family, as Prometheus names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts observations by bucket.
    Histogram,
}

impl Kind {
    /// The word after `# TYPE name`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One family of series.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Name as exposed.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Base unit.
    pub unit: Unit,
    /// Label names. A label whose value is empty is left out of the series.
    pub labels: &'static [&'static str],
    /// Upper bounds of the buckets of a histogram.
    pub buckets: &'static [f64],
    /// What it says.
    pub help: &'static str,
}

macro_rules! families {
    ($($const_name:ident = $name:literal, $kind:ident, $unit:ident, $labels:expr, $buckets:expr,
        $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $const_name: Family = Family {
                name: $name,
                kind: Kind::$kind,
                unit: Unit::$unit,
                labels: &$labels,
                buckets: $buckets,
                help: $help,
            };
        )*

        /// Every family, in the order of the documentation and of the exposed text.
        pub const CATALOGUE: &[Family] = &[$($const_name,)*];
    };
}

families! {
    MCP_CLIENT_OPERATION = "mcp_client_operation_duration_seconds", Histogram, Seconds,
        ["server", "mcp_method_name", "gen_ai_tool_name", "network_transport", "error_type"],
        REQUEST_BUCKETS,
        "Time from sending a request to an MCP server to its end. error_type is our error code, \
         tool_error when the tool said so, absent on success.";
    MCP_CLIENT_SESSION = "mcp_client_session_duration_seconds", Histogram, Seconds,
        ["server", "network_transport", "cause"], SESSION_BUCKETS,
        "Life of a session with an MCP server, by what ended it.";
    HTTP_SERVER_REQUEST = "http_server_request_duration_seconds", Histogram, Seconds,
        ["http_request_method", "http_route", "http_response_status_code", "error_type"],
        REQUEST_BUCKETS,
        "Time from the first byte of an HTTP request to its answer.";
    HTTP_SERVER_ACTIVE = "http_server_active_requests", Gauge, Count, [], &[],
        "HTTP requests that are being answered.";
    SERVER_UP = "talaria_server_up", Gauge, Count, ["server"], &[],
        "1 while the server has a session (ready or degraded), else 0.";
    SERVER_STATE = "talaria_server_state", Gauge, Count, ["server", "state", "reason"], &[],
        "1 for the state a server is in and why it came there, 0 for states it has left.";
    SERVER_RECONNECTS = "talaria_server_reconnects_total", Counter, Count, ["server", "cause"], &[],
        "Reconnects that were started, by what made them necessary.";
    SERVER_IN_FLIGHT = "talaria_server_in_flight", Gauge, Count, ["server"], &[],
        "Requests a server is working on.";
    SERVER_PENDING = "talaria_server_pending", Gauge, Count, ["server"], &[],
        "Requests that wait at a server's RPC lock.";
    SERVER_QUEUE_WAIT = "talaria_server_queue_wait_seconds", Histogram, Seconds, ["server"],
        OVERHEAD_BUCKETS,
        "How long a request waited at a server's RPC lock.";
    SERVER_BREAKER = "talaria_server_breaker_state", Gauge, Count, ["server", "state"], &[],
        "1 for what the breaker before a server lets through (closed, half_open, open), 0 for \
         the others.";
    CIRCUIT_REFUSED = "talaria_circuit_refused_total", Counter, Count, ["server", "scope"], &[],
        "Calls that a breaker refused: that of the server, or the one of a tool in the caller's \
         session (server, tool).";
    KEEPALIVES = "talaria_keepalives_total", Counter, Count, ["server", "outcome"], &[],
        "Times an idle session was asked for a sign of life (alive, refused, silent, lost, \
         unauthorized, untold).";
    LIST_REFRESHES = "talaria_list_refreshes_total", Counter, Count, ["server", "outcome"], &[],
        "Times a tool list that changed was read again (read, failed).";
    CATALOGUE_CHANGES = "talaria_catalogue_changes_total", Counter, Count, ["server"], &[],
        "Times a server's tool list changed.";
    CATALOGUE_TOOLS = "talaria_catalogue_tools_changed_total", Counter, Count,
        ["server", "change"], &[],
        "Tools that came or went with such a change (added, removed).";
    ARGUMENT_CHECKS = "talaria_argument_checks_total", Counter, Count, ["server", "outcome"], &[],
        "Calls whose arguments were refused because they do not fit the tool's input schema \
         (refused), or not checked to the end (too_costly), and schemas that cannot be enforced \
         (unusable_schema).";
    STEERING_FOUND = "talaria_steering_findings_total", Counter, Count, ["server", "pattern"], &[],
        "Words meant to steer a model that were found in a server's instructions or in tools that \
         are new or changed. The tools are offered all the same.";
    CONFIG_RELOADS = "talaria_config_reloads_total", Counter, Count, ["trigger", "outcome"], &[],
        "Times the configuration was read again, by what asked for it (http, signal, watch) and \
         what became of it (applied, unchanged, refused).";
    CONFIG_RELOAD_OK = "talaria_config_last_reload_successful", Gauge, Count, [], &[],
        "1 while the file that was read last is in force, 0 since one was refused.";
    WIRE_RECEIVED = "talaria_wire_received_bytes_total", Counter, Bytes, ["server"], &[],
        "Bytes of messages read from a server.";
    WIRE_FAULTS = "talaria_wire_faults_total", Counter, Count, ["server", "code"], &[],
        "Messages of a server that failed a call or were dropped.";
    WIRE_MENDED = "talaria_wire_mended_total", Counter, Count, ["server", "fault"], &[],
        "Faults of messages that were mended (lone_surrogate, invalid_utf8, too_deep, huge_number, \
         raw_control).";
    QUEUE_DEPTH = "talaria_queue_depth", Gauge, Count, ["queue"], &[],
        "Entries in a bounded queue.";
    QUEUE_CAPACITY = "talaria_queue_capacity", Gauge, Count, ["queue"], &[],
        "Entries a bounded queue can hold.";
    QUEUE_REFUSED = "talaria_queue_refused_total", Counter, Count, ["queue"], &[],
        "Entries a full queue refused.";
    DEADLINE_EXCEEDED = "talaria_deadline_exceeded_total", Counter, Count, ["stage"], &[],
        "Calls whose deadline ran out, by the stage they were in (connect, queue, rpc, vision, \
         fetch, delivery, drain).";
    BLOCKS_RECEIVED = "talaria_blocks_received_total", Counter, Count, ["kind"], &[],
        "Content blocks of results as they came in. The sum equals that of \
         talaria_blocks_settled_total.";
    BLOCKS_SETTLED = "talaria_blocks_settled_total", Counter, Count, ["kind", "fate", "code"], &[],
        "Content blocks by fate (delivered, saved, spilled, refused) and, where there was one, \
         the code of the notice.";
    DELIVERY_DURATION = "talaria_delivery_duration_seconds", Histogram, Seconds,
        ["format", "is_error"], OVERHEAD_BUCKETS,
        "Time from a raw result to its finished delivery, files included.";
    DELIVERY_TEXT = "talaria_delivery_text_bytes_total", Counter, Bytes, ["format"], &[],
        "Bytes of text handed to models.";
    GATE_DECISIONS = "talaria_gate_decisions_total", Counter, Count,
        ["open", "cause", "source"], &[],
        "Decisions of the pixel gate, one for each delivery, by what decided and where the \
         picture came from (mcp, vision_analyze, browser, computer_use).";
    IMAGE_PREPARED = "talaria_image_prepared_total", Counter, Count,
        ["input", "output", "outcome"], &[],
        "Pictures given to the pool, by the format that came in, the format that left and what \
         became of them (prepared, original, or why there is none).";
    IMAGE_QUEUE_WAIT = "talaria_image_queue_wait_seconds", Histogram, Seconds, [],
        OVERHEAD_BUCKETS,
        "How long a picture waited for a thread of the pool.";
    IMAGE_RUN = "talaria_image_run_seconds", Histogram, Seconds, ["input"], OVERHEAD_BUCKETS,
        "How long a thread of the pool worked on a picture, waiting for its turn included.";
    IMAGE_PIXELS = "talaria_image_input_pixels_total", Counter, Count, ["input"], &[],
        "Pixels of the pictures that were worked on, as they came in.";
    IMAGE_OUTPUT = "talaria_image_output_bytes_total", Counter, Bytes, ["output"], &[],
        "Bytes of the pictures that left.";
    IMAGE_ENCODES = "talaria_image_encodes", Histogram, Count, [], ENCODES_BUCKETS,
        "Times a picture was encoded in full until it kept its budget; 0 for originals.";
    IMAGE_ATTACHMENTS = "talaria_image_attachments_total", Counter, Count,
        ["outcome", "code"], &[],
        "Pictures of deliveries whose gate was open, by what became of them (attached, refused, \
         duplicate, left_out) and, where one was refused, the code of its notice.";
    VISION_ATTEMPT = "talaria_vision_attempt_duration_seconds", Histogram, Seconds,
        ["backend", "stage", "outcome"], REQUEST_BUCKETS,
        "Attempts of the vision chain at a link (primary, fallback, mcp), by what they came to: \
         answered, reasoned, cancelled, or the kind of fault. Links that were passed over count \
         with no time.";
    VISION_ANALYSIS = "talaria_vision_analysis_duration_seconds", Histogram, Seconds,
        ["outcome"], REQUEST_BUCKETS,
        "Descriptions of pictures, by what they came to (answered, reasoned, failed, timeout, \
         refused, cancelled).";
    VISION_RUNNING = "talaria_vision_analyses", Gauge, Count, [], &[],
        "Descriptions of pictures that are being made.";
    VISION_FALLBACKS = "talaria_vision_fallbacks_total", Counter, Count,
        ["from", "to", "reason"], &[],
        "Times a link of the vision chain was asked because of another one, by the kind of its \
         fault, or hedge.";
    VISION_BREAKER = "talaria_vision_breaker_state", Gauge, Count, ["backend", "state"], &[],
        "1 for what the breaker of a link lets through (closed, half_open, open), 0 for the \
         others.";
    VISION_HEDGES = "talaria_vision_hedges_total", Counter, Count, ["outcome"], &[],
        "Links that were asked beside a slow one, by whether theirs was the answer (won, \
         wasted).";
    VISION_SHARED = "talaria_vision_shared_answers_total", Counter, Count, ["source"], &[],
        "Descriptions that were made for another request (coalesced, cached).";
    VISION_BUDGET_LEFT = "talaria_vision_budget_left_seconds", Histogram, Seconds, [],
        REQUEST_BUCKETS,
        "Time that was left of a description's limit when it ended.";
    MEDIA_SAVED_FILES = "talaria_media_saved_files_total", Counter, Count, ["kind"], &[],
        "Files written to the media store.";
    MEDIA_SAVED_BYTES = "talaria_media_saved_bytes_total", Counter, Bytes, ["kind"], &[],
        "Bytes written to the media store.";
    MEDIA_FAILURES = "talaria_media_failures_total", Counter, Count, ["code"], &[],
        "Files that could not be stored.";
    MEDIA_REMOVED_FILES = "talaria_media_removed_files_total", Counter, Count, ["reason"], &[],
        "Files removed from the media store (expired, quota, deleted).";
    MEDIA_REMOVED_BYTES = "talaria_media_removed_bytes_total", Counter, Bytes, ["reason"], &[],
        "Bytes removed from the media store (expired, quota, deleted).";
    MEDIA_FILES = "talaria_media_files", Gauge, Count, [], &[],
        "Files the media store holds.";
    MEDIA_BYTES = "talaria_media_bytes", Gauge, Bytes, [], &[],
        "Bytes the media store holds.";
    LOG_LINES_DROPPED = "talaria_log_lines_dropped_total", Counter, Count, [], &[],
        "Log lines dropped because the reader of stderr was too slow.";
    TASKS = "talaria_tasks", Gauge, Count, [], &[],
        "Background tasks that have not ended; level while the same servers do the same work.";
    BUILD_INFO = "talaria_build_info", Gauge, Count, ["version"], &[],
        "Always 1; the labels name the build.";
    PROCESS_CPU = "process_cpu_seconds_total", Counter, Seconds, [], &[],
        "Processor time used, user and system.";
    PROCESS_OPEN_FDS = "process_open_fds", Gauge, Count, [], &[],
        "Open file descriptors.";
    PROCESS_MAX_FDS = "process_max_fds", Gauge, Count, [], &[],
        "Most file descriptors the process may open.";
    PROCESS_VIRTUAL_MEMORY = "process_virtual_memory_bytes", Gauge, Bytes, [], &[],
        "Virtual memory size.";
    PROCESS_VIRTUAL_MEMORY_MAX = "process_virtual_memory_max_bytes", Gauge, Bytes, [], &[],
        "Most virtual memory the process may have.";
    PROCESS_RESIDENT_MEMORY = "process_resident_memory_bytes", Gauge, Bytes, [], &[],
        "Resident memory size.";
    PROCESS_START = "process_start_time_seconds", Gauge, Seconds, [], &[],
        "When the process started, in seconds since 1970.";
    PROCESS_THREADS = "process_threads", Gauge, Count, [], &[],
        "Threads of the process.";
}
