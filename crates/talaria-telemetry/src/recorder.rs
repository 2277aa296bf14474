//! The recorder behind the events: installed once per process, rendered on demand.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use metrics::SetRecorderError;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;
use tracing_appender::non_blocking::ErrorCounter;

use crate::metrics::{BUILD_INFO, CATALOGUE, Family, Kind};
use series::Series;

pub(crate) mod series;
mod text;

/// How often observations are folded into their buckets when nobody scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

static STATE: OnceLock<State> = OnceLock::new();
static INSTALLING: Mutex<()> = Mutex::new(());

/// What the process holds once a recorder is installed.
struct State {
    exporter: PrometheusHandle,
    series: Series,
    process: metrics_process::Collector,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

/// The recorder could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A histogram of the catalogue has no buckets.
    #[error("building the metrics recorder")]
    Build(#[source] BuildError),
    /// Someone else installed a recorder first.
    #[error("installing the metrics recorder")]
    Taken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The thread that folds observations could not be started.
    #[error("starting the metrics thread")]
    Thread(#[source] std::io::Error),
}

/// Renders the metrics of the process; cheap to clone.
#[derive(Clone, Copy, Debug)]
pub struct MetricsHandle {
    state: &'static State,
}

impl MetricsHandle {
    /// The metrics in Prometheus' text format, families in the order of the catalogue.
    ///
    /// Families without a series yet appear with their help and type. Takes about a
    /// millisecond with many servers.
    #[must_use]
    pub fn render(&self) -> String {
        self.state.process.collect();
        self.state.series.refresh();
        let exported = self.state.exporter.render();
        text::arrange(&exported, CATALOGUE, &self.state.series.gone())
    }

    /// Names where the log counts the lines it drops.
    pub(crate) fn watch_log_drops(&self, drops: ErrorCounter) {
        self.state.series.watch_log_drops(drops);
    }
}

/// Installs the recorder, or returns the handle of the one installed before.
///
/// # Errors
/// Another recorder was installed behind our back, or the upkeep thread could not start.
pub fn install() -> Result<MetricsHandle, InstallError> {
    let _only_one = INSTALLING.lock();
    if let Some(state) = STATE.get() {
        return Ok(MetricsHandle { state });
    }
    let recorder = builder()?.build_recorder();
    let exporter = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(taken)?;
    CATALOGUE.iter().for_each(describe);
    series::gauge(&BUILD_INFO, [env!("CARGO_PKG_VERSION").into()]).set(1.0);
    let process = metrics_process::Collector::default();
    let upkeep = exporter.clone();
    std::thread::Builder::new()
        .name("metrics-upkeep".to_owned())
        .spawn(move || {
            loop {
                std::thread::park_timeout(UPKEEP_INTERVAL);
                upkeep.run_upkeep();
            }
        })
        .map_err(InstallError::Thread)?;
    let state = STATE.get_or_init(|| State {
        exporter,
        series: Series::new(),
        process,
    });
    Ok(MetricsHandle { state })
}

/// The series to count on, once a recorder is installed.
pub(crate) fn installed() -> Option<&'static Series> {
    STATE.get().map(|state| &state.series)
}

fn builder() -> Result<PrometheusBuilder, InstallError> {
    let mut builder = PrometheusBuilder::new();
    for family in CATALOGUE
        .iter()
        .filter(|family| family.kind == Kind::Histogram)
    {
        let matcher = Matcher::Full(family.name.to_owned());
        builder = builder
            .set_buckets_for_metric(matcher, family.buckets)
            .map_err(InstallError::Build)?;
    }
    Ok(builder)
}

fn describe(family: &Family) {
    match family.kind {
        Kind::Counter => metrics::describe_counter!(family.name, family.unit, family.help),
        Kind::Gauge => metrics::describe_gauge!(family.name, family.unit, family.help),
        Kind::Histogram => metrics::describe_histogram!(family.name, family.unit, family.help),
    }
}

fn taken<R>(error: SetRecorderError<R>) -> InstallError
where
    SetRecorderError<R>: fmt::Display,
{
    InstallError::Taken(error.to_string().into())
}
