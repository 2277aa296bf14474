//! The only place that reads clocks and the environment or starts tasks.
//!
//! The bans of `.clippy.toml` point here; each exception is stated with its reason
//! (design decision 30).

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::{Deadline, ErrorCode, Failure};

/// The monotonic clock; follows a paused test clock.
#[must_use]
pub fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// The wall clock, for file times and timestamps only.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock"
)]
pub fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// The process environment as a map; names or values that are not UTF-8 are left out.
#[must_use]
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Tasks started here whose end has not come.
static TASKS: AtomicUsize = AtomicUsize::new(0);

tokio::task_local! {
    /// What counts the running task; it goes with the task, however that ends.
    static COUNTED: Counted;
}

/// Counts as a task until dropped.
struct Counted;

impl Counted {
    fn new() -> Self {
        TASKS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        TASKS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many tasks of the process were started here and have not ended.
#[must_use]
pub fn tasks() -> usize {
    TASKS.load(Ordering::Relaxed)
}

/// Starts a named task on the current runtime, inside the current span.
#[expect(clippy::disallowed_methods, reason = "the named wrapper itself")]
pub fn spawn<F>(name: &'static str, task: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let task = COUNTED.scope(Counted::new(), task);
    tokio::spawn(task.instrument(tracing::debug_span!("task", name)))
}

/// Starts a named task on the current thread's local set, inside the current span.
#[expect(clippy::disallowed_methods, reason = "the named wrapper itself")]
pub fn spawn_local<F>(name: &'static str, task: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let task = COUNTED.scope(Counted::new(), task);
    tokio::task::spawn_local(task.instrument(tracing::debug_span!("task", name)))
}

/// How far a background thread steps back behind the others, as `nice` counts.
#[cfg(target_os = "linux")]
const BACKGROUND_NICENESS: i32 = 10;

/// Starts a named thread that gives way to every other, for long work that no loop may do.
///
/// # Errors
/// The system has no thread left.
pub fn start_background_thread(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let lowered = move || {
        // On Linux this binds the calling thread alone. Where it is refused the work still runs.
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::nice(BACKGROUND_NICENESS) {
            tracing::debug!(error = %error, "thread keeps its priority");
        }
        body();
    };
    std::thread::Builder::new()
        .name(name)
        .spawn(lowered)
        .map(drop)
}

/// Runs blocking jobs (disk, large parses) off every loop, a bounded number at a time.
#[derive(Clone, Debug)]
pub struct BlockingPool {
    permits: Arc<Semaphore>,
    capacity: usize,
    /// Whose threads do the work. Every runtime has its own; hundreds of servers that each let
    /// their own start one would keep hundreds of stacks.
    home: Option<tokio::runtime::Handle>,
}

impl BlockingPool {
    /// A pool that runs at most `capacity` jobs at a time, on threads of the runtime in which it
    /// is made; made outside of any, on those of who calls.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(capacity)),
            capacity,
            home: tokio::runtime::Handle::try_current().ok(),
        }
    }

    /// How many jobs run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.capacity
            .saturating_sub(self.permits.available_permits())
    }

    /// Waits for a place until the deadline, then runs the job to its end.
    ///
    /// # Errors
    /// `busy` when no place came free in time, `internal` when the job panicked.
    #[expect(clippy::disallowed_methods, reason = "the bounded wrapper itself")]
    pub async fn run<T, F>(&self, deadline: Deadline, job: F) -> Result<T, Failure>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let permits = Arc::clone(&self.permits);
        let permit =
            match tokio::time::timeout_at(deadline.instant(), permits.acquire_owned()).await {
                Ok(Ok(permit)) => permit,
                Ok(Err(_)) | Err(_) => {
                    return Err(Failure::new(
                        ErrorCode::Busy,
                        "no worker came free before the deadline; try again later",
                    ));
                }
            };
        let span = tracing::Span::current();
        let job = move || {
            let _permit = permit;
            span.in_scope(job)
        };
        let working = match &self.home {
            Some(home) => home.spawn_blocking(job),
            None => tokio::task::spawn_blocking(job),
        };
        working
            .await
            .map_err(|error| Failure::new(ErrorCode::Internal, "a worker failed").caused_by(error))
    }
}
