//! The log: where it goes, in which form, and which lines are in it.
//!
//! Lines are written by a thread of their own behind a bounded queue, so that a slow reader of
//! stderr costs lines (counted by `talaria_log_lines_dropped_total`) and never a loop.

use std::io::IsTerminal;

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, fmt};

/// What is logged unless the operator says otherwise.
///
/// What rmcp calls an error is a failure that Talaria reports itself, with the server's name.
pub const DEFAULT_FILTER: &str = "info,rmcp=off,actix_server=warn";

/// Lines that may wait for the writer.
const QUEUED_LINES: usize = 16_384;

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Human on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// The log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter cannot be read.
    #[error("reading the log filter `{filter}`")]
    Filter {
        /// The filter as given.
        filter: String,
        /// Why.
        #[source]
        source: ParseError,
    },
    /// The process has a log already.
    #[error("installing the log")]
    Taken(#[source] TryInitError),
}

/// Writes what still waits when dropped; keep it until the process ends.
#[derive(Debug)]
#[must_use = "lines that still wait are lost when the guard is dropped early"]
pub struct LogGuard {
    _writer: WorkerGuard,
}

/// Sends the log to stderr. `filter` is what `TALARIA_LOG` holds; [`DEFAULT_FILTER`] if absent.
///
/// # Errors
/// The filter cannot be read, or the process has a log already.
pub fn init(format: LogFormat, filter: Option<&str>) -> Result<LogGuard, LoggingError> {
    let filter = filter
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .unwrap_or(DEFAULT_FILTER);
    let filter = EnvFilter::try_new(filter).map_err(|source| LoggingError::Filter {
        filter: filter.to_owned(),
        source,
    })?;
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(QUEUED_LINES)
        .lossy(true)
        .thread_name("log-writer")
        .finish(std::io::stderr());
    let drops = writer.error_counter();
    let is_terminal = std::io::stderr().is_terminal();
    let base = fmt().with_env_filter(filter).with_writer(writer);
    match format {
        LogFormat::Human => base.with_ansi(is_terminal).finish().try_init(),
        LogFormat::Auto if is_terminal => base.with_ansi(true).finish().try_init(),
        LogFormat::Auto | LogFormat::Json => base
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .finish()
            .try_init(),
    }
    .map_err(LoggingError::Taken)?;
    if let Ok(handle) = crate::install() {
        handle.watch_log_drops(drops);
    }
    Ok(LogGuard { _writer: guard })
}
