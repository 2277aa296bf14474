//! What a server writes to its stderr: into a bounded log file, never into our way.
//!
//! The pipe is always drained at once, so that the child never blocks on it. What the disk or the
//! rate does not take is dropped and counted.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use parking_lot::Mutex;
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, Failure, runtime};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const CHUNK_BYTES: usize = 8 * 1024;

/// What may wait for the disk.
const PENDING_BYTES: usize = 128 * 1024;

/// Pause between two writes; with the bound above it limits the rate to 1.25 MiB/s.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// How long a write waits for a worker before its bytes are dropped.
const WRITE_WAIT: Duration = Duration::from_secs(5);

/// Last words kept for the error of a server that does not start.
const LAST_WORDS_BYTES: usize = 2_000;

/// The bounded log file of one server.
#[derive(Debug)]
pub(crate) struct StderrLog {
    path: PathBuf,
    limit: u64,
    open: Option<(File, u64)>,
}

/// The end of what was written so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWords {
    words: Arc<Mutex<Vec<u8>>>,
    ended: CancellationToken,
}

impl LastWords {
    /// The last words as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.words.lock())
            .trim()
            .to_owned()
    }

    /// Waits until nothing more can come, but not for ever.
    pub(crate) async fn complete(&self, patience: Duration) {
        drop(tokio::time::timeout(patience, self.ended.cancelled()).await);
    }

    fn add(&self, piece: &[u8]) {
        let mut words = self.words.lock();
        let end = piece
            .get(piece.len().saturating_sub(LAST_WORDS_BYTES)..)
            .unwrap_or_default();
        words.extend_from_slice(end);
        let surplus = words.len().saturating_sub(LAST_WORDS_BYTES);
        words.drain(..surplus);
    }
}

impl StderrLog {
    pub(crate) const fn new(path: PathBuf, limit: u64) -> Self {
        Self {
            path,
            limit,
            open: None,
        }
    }

    /// Appends, starting over where the file would grow over its limit. Blocks on the disk.
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let (mut file, mut size) = match self.open.take() {
            Some(open) => open,
            None => self.open_file()?,
        };
        if size.saturating_add(length) > self.limit {
            file.set_len(0)?;
            size = 0;
        }
        file.write_all(text)?;
        self.open = Some((file, size.saturating_add(length)));
        Ok(())
    }

    fn open_file(&self) -> io::Result<(File, u64)> {
        use std::os::unix::fs::OpenOptionsExt;

        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = File::options();
        let file = options
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)?;
        let size = file.metadata()?.len();
        Ok((file, size))
    }
}

/// Drains a server's stderr into its log until it ends.
pub(crate) fn follow<R>(
    stderr: R,
    log: StderrLog,
    header: &str,
    blocking: BlockingPool,
) -> LastWords
where
    R: AsyncRead + Send + Unpin + 'static,
{
    let words = LastWords::default();
    let mut pending = Pending::default();
    pending.add(format!("\n=== {} {header} ===\n", utc_now()).as_bytes());
    let follower = Follower {
        words: words.clone(),
        pending,
        blocking,
        next_write: runtime::now(),
    };
    drop(runtime::spawn("mcp_stderr", follower.run(stderr, log)));
    words
}

struct Follower {
    words: LastWords,
    pending: Pending,
    blocking: BlockingPool,
    next_write: Instant,
}

impl Follower {
    async fn run<R: AsyncRead + Unpin>(mut self, mut stderr: R, log: StderrLog) {
        let mut chunk = vec![0; CHUNK_BYTES];
        let (path, limit) = (log.path.clone(), log.limit);
        let reopened = || StderrLog::new(path.clone(), limit);
        let mut idle_log = Some(log);
        let writing = write_out(self.blocking.clone(), None, Vec::new());
        tokio::pin!(writing);
        loop {
            let may_write = idle_log.is_some() && !self.pending.is_empty();
            tokio::select! {
                read = stderr.read(&mut chunk) => {
                    let piece = chunk.get(..read.unwrap_or(0)).unwrap_or_default();
                    if piece.is_empty() {
                        break;
                    }
                    self.words.add(piece);
                    self.pending.add(piece);
                }
                () = tokio::time::sleep_until(self.next_write), if may_write => {
                    self.next_write = runtime::now() + WRITE_INTERVAL;
                    let text = self.pending.take();
                    writing.set(write_out(self.blocking.clone(), idle_log.take(), text));
                }
                // A lost worker takes its log with it; the pipe is drained all the same.
                log = &mut writing, if idle_log.is_none() => {
                    idle_log = Some(log.unwrap_or_else(reopened));
                }
            }
        }
        self.words.ended.cancel();
        let log = match idle_log {
            Some(log) => Some(log),
            None => writing.await,
        };
        drop(write_out(self.blocking, log, self.pending.take()).await);
    }
}

/// Writes on a worker. The log comes back unless the worker was lost.
async fn write_out(
    blocking: BlockingPool,
    log: Option<StderrLog>,
    text: Vec<u8>,
) -> Option<StderrLog> {
    let log = Arc::new(Mutex::new(log?));
    let shared = Arc::clone(&log);
    let written: Result<io::Result<()>, Failure> = blocking
        .run(Deadline::after(WRITE_WAIT), move || {
            shared.lock().append(&text)
        })
        .await;
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "a server's stderr log cannot be written"),
        Err(failure) => tracing::warn!(error = %failure, "a server's stderr was not logged"),
    }
    Arc::into_inner(log).map(Mutex::into_inner)
}

/// What waits for the disk, bounded.
#[derive(Debug, Default)]
struct Pending {
    text: Vec<u8>,
    dropped: usize,
}

impl Pending {
    fn add(&mut self, piece: &[u8]) {
        let room = PENDING_BYTES
            .saturating_sub(self.text.len())
            .min(piece.len());
        let (kept, dropped) = piece.split_at(room);
        self.text.extend_from_slice(kept);
        self.dropped += dropped.len();
    }

    const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn take(&mut self) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.text);
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            text.extend_from_slice(format!("\n=== {dropped} bytes dropped ===\n").as_bytes());
        }
        text
    }
}

/// The time of a header line, as `2026-01-31T12:00:00Z`.
fn utc_now() -> String {
    let since = runtime::wall_clock()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    utc(since.as_secs())
}

/// Civil date from days since 1970, by Howard Hinnant's `civil_from_days`.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("talaria-stderr-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        folder.join("deep").join("server.log")
    }

    async fn logged(input: Vec<u8>, name: &str, limit: u64) -> (String, LastWords) {
        let path = temporary(name);
        let words = LastWords::default();
        let follower = Follower {
            words: words.clone(),
            pending: Pending::default(),
            blocking: BlockingPool::new(1),
            next_write: runtime::now(),
        };
        follower
            .run(io::Cursor::new(input), StderrLog::new(path.clone(), limit))
            .await;
        (std::fs::read_to_string(path).unwrap(), words)
    }

    #[tokio::test]
    async fn copies_what_is_written() {
        let (text, words) = logged(b"warning: x\nready\n".to_vec(), "copy", 1_000).await;
        assert_eq!(text, "warning: x\nready\n");
        assert_eq!(words.text(), "warning: x\nready");
    }

    #[tokio::test]
    async fn a_flood_is_dropped_and_counted() {
        let flood = vec![b'x'; 40 * 1024 * 1024];
        let (text, words) = logged(flood, "flood", 100 * 1024 * 1024).await;
        assert!(text.len() < 8 * 1024 * 1024, "{}", text.len());
        assert!(text.contains("bytes dropped ==="), "nothing was counted");
        assert_eq!(words.text().len(), LAST_WORDS_BYTES);
    }

    #[test]
    fn the_file_starts_over_at_its_limit() {
        let path = temporary("limit");
        let mut log = StderrLog::new(path.clone(), 10);
        log.append(b"12345678").unwrap();
        log.append(b"abc").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abc");
        let mut reopened = StderrLog::new(path.clone(), 10);
        reopened.append(b"def").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdef");
    }

    #[test]
    fn dates_are_right() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
    }
}
