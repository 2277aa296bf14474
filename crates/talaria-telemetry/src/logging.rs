//! The log: where it goes, in which form, and which lines are in it.
//!
//! Lines are written by a thread of their own behind a bounded queue, so that a slow reader of
//! stderr costs lines (counted by `talaria_log_lines_dropped_total`) and never a loop.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use parking_lot::RwLock;
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

/// Takes out of a line what may not stand in a log.
type Mask = dyn Fn(&str) -> String + Send + Sync;

/// Of the process, as the log itself is.
static MASK: RwLock<Option<Arc<Mask>>> = RwLock::new(None);

/// Sends every line through `mask` from now on, whoever wrote it and with whatever words: a cause
/// deep in a chain, a dependency that traces what a server sent. It runs on the thread that
/// writes, never on a loop.
pub fn mask_lines(mask: impl Fn(&str) -> String + Send + Sync + 'static) {
    *MASK.write() = Some(Arc::new(mask));
}

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
        .finish(Masked(io::stderr()));
    let drops = writer.error_counter();
    let is_terminal = io::stderr().is_terminal();
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

/// Masks what passes. It comes one line at a time.
#[derive(Debug)]
struct Masked<W>(W);

impl<W: Write> Write for Masked<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mask = MASK.read().clone();
        match mask {
            None => self.0.write_all(line)?,
            Some(mask) => self.0.write_all(&masked(line, mask.as_ref()))?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn masked(line: &[u8], mask: &Mask) -> Vec<u8> {
    let text: Cow<'_, str> = String::from_utf8_lossy(line);
    // Its end is not part of what was said.
    let said = text.strip_suffix('\n').unwrap_or(&text);
    let mut masked = mask(said).into_bytes();
    if said.len() < text.len() {
        masked.push(b'\n');
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s02_a_line_is_masked_as_a_whole_and_keeps_its_end() {
        let mask = |line: &str| line.trim_end().replace("hunter2hunter2", "[REDACTED]");
        for (line, expected) in [
            ("a hunter2hunter2\n", "a [REDACTED]\n"),
            ("hunter2hunter2", "[REDACTED]"),
            ("\n", "\n"),
            ("", ""),
        ] {
            assert_eq!(masked(line.as_bytes(), &mask), expected.as_bytes());
        }
        assert_eq!(masked(b"\xff\n", &mask), "\u{fffd}\n".as_bytes());
    }
}
