//! Handles to series: cached where the labels are few and hot, looked up elsewhere.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, SharedString};
use parking_lot::{Mutex, RwLock};
use talaria_types::ServerName;
use tracing_appender::non_blocking::ErrorCounter;

use crate::metrics::{
    Family, HTTP_SERVER_ACTIVE, LOG_LINES_DROPPED, MAX_TOOL_LABELS, MEDIA_BYTES, MEDIA_FILES,
    OTHER, SERVER_IN_FLIGHT, SERVER_PENDING, SERVER_QUEUE_WAIT, SERVER_STATE, SERVER_UP, TASKS,
    WIRE_RECEIVED,
};

/// Longest tool name that keeps its own label.
const MAX_TOOL_LABEL_BYTES: usize = 128;

static METADATA: Metadata<'static> = Metadata::new("talaria", Level::INFO, None);

/// Everything an event counts on.
pub(crate) struct Series {
    /// `http_server_active_requests`.
    pub(crate) http_active: Gauge,
    /// `talaria_media_files`.
    pub(crate) media_files: Gauge,
    /// `talaria_media_bytes`.
    pub(crate) media_bytes: Gauge,
    tasks: Gauge,
    log_lines_dropped: Counter,
    log_drops: Mutex<Option<ErrorCounter>>,
    servers: RwLock<HashMap<ServerName, Arc<ServerSeries>>>,
    tools_named: AtomicUsize,
}

/// The hot series of one server.
pub(crate) struct ServerSeries {
    /// Its name as a label.
    pub(crate) label: SharedString,
    /// `talaria_server_in_flight`.
    pub(crate) in_flight: Gauge,
    /// `talaria_server_pending`.
    pub(crate) pending: Gauge,
    /// `talaria_server_queue_wait_seconds`.
    pub(crate) queue_wait: Histogram,
    /// `talaria_wire_received_bytes_total`.
    pub(crate) wire_received: Counter,
    up: Gauge,
    /// Nobody configures it any more.
    is_gone: AtomicBool,
    state: Mutex<Option<Gauge>>,
    tools: RwLock<HashMap<Box<str>, SharedString>>,
}

impl Series {
    pub(super) fn new() -> Self {
        Self {
            http_active: gauge(&HTTP_SERVER_ACTIVE, []),
            media_files: gauge(&MEDIA_FILES, []),
            media_bytes: gauge(&MEDIA_BYTES, []),
            tasks: gauge(&TASKS, []),
            log_lines_dropped: counter(&LOG_LINES_DROPPED, []),
            log_drops: Mutex::new(None),
            servers: RwLock::new(HashMap::new()),
            tools_named: AtomicUsize::new(0),
        }
    }

    /// The series of a server; made on first use.
    pub(crate) fn server(&self, name: &ServerName) -> Arc<ServerSeries> {
        if let Some(known) = self.servers.read().get(name) {
            return Arc::clone(known);
        }
        let mut servers = self.servers.write();
        let known = servers
            .entry(name.clone())
            .or_insert_with(|| Arc::new(ServerSeries::new(name)));
        Arc::clone(known)
    }

    /// The label of a tool: its name, or `other` once too many have one.
    pub(crate) fn tool_label(&self, server: &ServerSeries, tool: &str) -> SharedString {
        if let Some(known) = server.tools.read().get(tool) {
            return known.clone();
        }
        if tool.len() > MAX_TOOL_LABEL_BYTES {
            return SharedString::const_str(OTHER);
        }
        let taken = self
            .tools_named
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |named| {
                (named < MAX_TOOL_LABELS).then_some(named + 1)
            });
        if taken.is_err() {
            return SharedString::const_str(OTHER);
        }
        let label = SharedString::from_shared(label_text(tool).into());
        let raced = server.tools.write().insert(tool.into(), label.clone());
        if raced.is_some() {
            self.tools_named.fetch_sub(1, Ordering::Relaxed);
        }
        label
    }

    /// Labels of the servers that nobody configures any more.
    pub(super) fn gone(&self) -> Vec<SharedString> {
        let servers = self.servers.read();
        servers
            .values()
            .filter(|server| server.is_gone.load(Ordering::Relaxed))
            .map(|server| server.label.clone())
            .collect()
    }

    /// Names where the log counts the lines it drops.
    pub(crate) fn watch_log_drops(&self, drops: ErrorCounter) {
        *self.log_drops.lock() = Some(drops);
    }

    /// Reads what is counted elsewhere.
    pub(super) fn refresh(&self) {
        let tasks = u32::try_from(talaria_types::runtime::tasks()).unwrap_or(u32::MAX);
        self.tasks.set(f64::from(tasks));
        let dropped = self
            .log_drops
            .lock()
            .as_ref()
            .map_or(0, ErrorCounter::dropped_lines);
        self.log_lines_dropped
            .absolute(u64::try_from(dropped).unwrap_or(u64::MAX));
    }
}

impl ServerSeries {
    fn new(name: &ServerName) -> Self {
        let label = SharedString::from_shared(label_text(name.as_str()).into());
        Self {
            in_flight: gauge(&SERVER_IN_FLIGHT, [label.clone()]),
            pending: gauge(&SERVER_PENDING, [label.clone()]),
            queue_wait: histogram(&SERVER_QUEUE_WAIT, [label.clone()]),
            wire_received: counter(&WIRE_RECEIVED, [label.clone()]),
            up: gauge(&SERVER_UP, [label.clone()]),
            is_gone: AtomicBool::new(false),
            state: Mutex::new(None),
            tools: RwLock::new(HashMap::new()),
            label,
        }
    }

    /// Shows the state the server is in and zeroes the one it left.
    pub(crate) fn state_changed(&self, state: &'static str, reason: &'static str) {
        self.is_gone.store(false, Ordering::Relaxed);
        let up = matches!(state, "ready" | "degraded");
        self.up.set(if up { 1.0 } else { 0.0 });
        let entered = gauge(
            &SERVER_STATE,
            [self.label.clone(), state.into(), reason.into()],
        );
        let mut current = self.state.lock();
        if let Some(left) = current.take() {
            left.set(0.0);
        }
        entered.set(1.0);
        *current = Some(entered);
    }

    /// Its gauges are left out of what is shown until it is there again: the exporter cannot
    /// forget single series, and a server that nobody configures is not down.
    pub(crate) fn removed(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

/// A counter of the family with these label values, in the order of the catalogue.
pub(crate) fn counter<const N: usize>(family: &Family, values: [SharedString; N]) -> Counter {
    let key = key(family, values);
    metrics::with_recorder(|recorder| recorder.register_counter(&key, &METADATA))
}

/// A gauge of the family with these label values, in the order of the catalogue.
pub(crate) fn gauge<const N: usize>(family: &Family, values: [SharedString; N]) -> Gauge {
    let key = key(family, values);
    metrics::with_recorder(|recorder| recorder.register_gauge(&key, &METADATA))
}

/// A histogram of the family with these label values, in the order of the catalogue.
pub(crate) fn histogram<const N: usize>(family: &Family, values: [SharedString; N]) -> Histogram {
    let key = key(family, values);
    metrics::with_recorder(|recorder| recorder.register_histogram(&key, &METADATA))
}

fn key<const N: usize>(family: &Family, values: [SharedString; N]) -> Key {
    debug_assert_eq!(family.labels.len(), N, "labels of {}", family.name);
    let labels: Vec<Label> = family
        .labels
        .iter()
        .zip(values)
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| Label::new(*name, value))
        .collect();
    Key::from_parts(family.name, labels)
}

/// A name as a label value: what the exposed text would have to escape becomes `_`, because
/// the exporter's escaping folds some distinct values into one.
pub(crate) fn label_text(name: &str) -> String {
    name.chars()
        .map(|character| match character {
            '"' | '\\' => '_',
            other if other.is_control() => '_',
            other => other,
        })
        .collect()
}
