//! Fixed threads that prepare pictures, so that no event loop ever does.

mod job;
mod queue;
mod turns;

use std::future::Future;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talaria_telemetry::events::{self, ImageJob};
use talaria_types::{CallContext, Deadline, runtime};
use tokio::sync::oneshot;

use crate::apart;
use crate::header::{self, Header};
use crate::limits::MAX_SVG_CANVAS;
use crate::prepare::prepare_read;
use crate::prepared::{Prepared, SourceFormat};
use crate::refusal::{Refusal, RefusalKind};
use crate::scratch;
use crate::sniff;
use crate::target::Target;
use crate::watch::Watch;

use self::job::Job;
use self::queue::Queue;
use self::turns::Turns;

/// Pixels that may be in work at a time: one picture of the largest size, or many small ones.
pub const DEFAULT_PIXELS: u64 = 120_000_000;
/// The name of the queue in metrics.
const QUEUE: &str = "images";

/// How large the pool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Threads.
    pub workers: NonZeroUsize,
    /// Jobs that may wait.
    pub queue: NonZeroUsize,
    /// Pixels of all the pictures that are worked on at a time. One larger picture runs alone.
    pub pixels: u64,
    /// The program that draws SVG in a process of its own; without one they are drawn here.
    pub drawer: Option<PathBuf>,
}

/// Where the bytes of a picture are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Here.
    Bytes(Vec<u8>),
    /// In a file, read by the thread that prepares it.
    File {
        /// Its path.
        path: PathBuf,
        /// How long it is; a longer one is not read.
        bytes: u64,
    },
}

/// Why the pool hands back no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolRefusal {
    /// Too many pictures wait already.
    #[error("too many pictures wait already")]
    Busy,
    /// The deadline passed first.
    #[error("the picture was not ready in time")]
    Late,
    /// The caller went away, or the pool was closed.
    #[error("nobody waited for the picture any more")]
    Abandoned,
    /// The file cannot be read.
    #[error("the picture cannot be read: {0}")]
    Unreadable(String),
    /// The preparation broke; that is a fault of ours.
    #[error("preparing the picture failed")]
    Failed,
    /// The picture itself was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl PoolRefusal {
    /// The word used in labels.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Late => "late",
            Self::Abandoned => "abandoned",
            Self::Unreadable(_) => "unreadable",
            Self::Failed => "failed",
            Self::Refused(refusal) => refusal.kind.as_str(),
        }
    }
}

/// The pool. Clones share its threads, which end with the last of them.
#[derive(Clone)]
pub struct ImagePool {
    owner: Arc<Owner>,
}

impl std::fmt::Debug for ImagePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shared = &self.owner.0;
        f.debug_struct("ImagePool")
            .field("waiting", &shared.queue.waiting())
            .field("running", &shared.queue.running())
            .finish()
    }
}

/// Ends the threads when the last handle is gone.
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.queue.close();
    }
}

struct Shared {
    queue: Queue,
    turns: Turns,
    drawer: Option<PathBuf>,
}

/// What a thread does with a job; another one in tests.
type Preparer = fn(&[u8], &Header, &Target, &Watch) -> Result<Prepared, Refusal>;

impl ImagePool {
    /// Starts the threads, at a lower priority than everything else.
    #[must_use]
    pub fn start(options: PoolOptions) -> Self {
        Self::with_preparer(options, prepare_read)
    }

    fn with_preparer(options: PoolOptions, preparer: Preparer) -> Self {
        let shared = Arc::new(Shared {
            queue: Queue::new(options.queue.get()),
            turns: Turns::new(options.pixels),
            drawer: options.drawer,
        });
        let mut started = 0;
        for number in 1..=options.workers.get() {
            let own = Arc::clone(&shared);
            let body = move || work(&own, preparer);
            match runtime::start_background_thread(format!("image-{number}"), body) {
                Ok(()) => started += 1,
                Err(error) => events::image_thread_failed(number, &error),
            }
        }
        if started == 0 {
            shared.queue.close();
        }
        Self {
            owner: Arc::new(Owner(shared)),
        }
    }

    /// Prepares a picture, within the deadline of the call.
    ///
    /// The job is dropped before it starts, or stopped between two steps, when the deadline
    /// passes, the call is cancelled or the future is dropped.
    ///
    /// # Errors
    /// Why there is no picture.
    pub fn prepare(
        &self,
        ctx: &CallContext,
        input: Input,
        target: Target,
    ) -> impl Future<Output = Result<Prepared, PoolRefusal>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        // Cancelled with the call, and when the future below is dropped.
        let cancel = ctx.cancel.child_token();
        let job = Job::new(ctx, cancel.clone(), input, target, reply);
        let guard = cancel.clone().drop_guard();
        let refused = self.owner.0.queue.push(job).err();
        let deadline = ctx.deadline;
        async move {
            let _guard = guard;
            if let Some(refusal) = refused {
                return Err(refusal);
            }
            let waiting = async {
                tokio::select! {
                    biased;
                    outcome = answer => outcome.unwrap_or(Err(PoolRefusal::Abandoned)),
                    () = cancel.cancelled() => Err(PoolRefusal::Abandoned),
                }
            };
            tokio::time::timeout_at(deadline.instant(), waiting)
                .await
                .unwrap_or(Err(PoolRefusal::Late))
        }
    }

    /// Takes no more jobs, drops those that wait, and waits until the running ones have ended.
    ///
    /// Answers whether they did before the deadline.
    pub async fn close(&self, deadline: Deadline) -> bool {
        let queue = &self.owner.0.queue;
        queue.close();
        tokio::time::timeout_at(deadline.instant(), queue.idle())
            .await
            .is_ok()
    }
}

/// The life of a thread.
fn work(shared: &Shared, preparer: Preparer) {
    while let Some(job) = shared.queue.next(scratch::release) {
        let waited = job.waited();
        let began = runtime::now();
        let span = job.span.clone();
        let outcome = span.in_scope(|| {
            // A picture that breaks us costs its own job, never the thread.
            catch_unwind(AssertUnwindSafe(|| run(shared, &job, preparer)))
                .unwrap_or(Err(PoolRefusal::Failed))
        });
        count(&job, &outcome, waited, began.elapsed());
        shared.queue.done();
        job.answer(outcome);
    }
}

fn run(shared: &Shared, job: &Job, preparer: Preparer) -> Result<Prepared, PoolRefusal> {
    job.still_wanted()?;
    let bytes = job.read()?;
    if let Some(program) = &shared.drawer
        && sniff::format(&bytes) == SourceFormat::Svg
    {
        // Not even its header is read here.
        job.learned(SourceFormat::Svg, 0);
        let _turn = shared.turns.take(MAX_SVG_CANVAS, || job.still_wanted())?;
        return apart::prepare(program, &bytes, &job.target, &job.watch())
            .map_err(|refusal| refused(job, refusal));
    }
    let header = header::read(&bytes)?;
    let pixels = header::pixels(header.width, header.height);
    job.learned(header.format, pixels);
    let _turn = shared.turns.take(pixels, || job.still_wanted())?;
    preparer(&bytes, &header, &job.target, &job.watch()).map_err(|refusal| refused(job, refusal))
}

fn refused(job: &Job, refusal: Refusal) -> PoolRefusal {
    match refusal.kind {
        // The deadline or the caller: the job knows which.
        RefusalKind::Abandoned => job.still_wanted().err().unwrap_or(PoolRefusal::Abandoned),
        RefusalKind::Failed => PoolRefusal::Failed,
        RefusalKind::NotAnImage
        | RefusalKind::Unsupported
        | RefusalKind::TooLarge
        | RefusalKind::Damaged
        | RefusalKind::TooComplex
        | RefusalKind::BadRegion
        | RefusalKind::OverBudget => PoolRefusal::Refused(refusal),
    }
}

fn count(job: &Job, outcome: &Result<Prepared, PoolRefusal>, waited: Duration, took: Duration) {
    let first = outcome
        .as_ref()
        .ok()
        .and_then(|prepared| prepared.pictures.first());
    let written = outcome.iter().flat_map(|prepared| &prepared.pictures);
    events::image_job_ended(&ImageJob {
        input: job.format(),
        output: first.map_or("", |picture| picture.format.as_str()),
        outcome: match outcome {
            Ok(_) if first.is_some_and(|picture| picture.is_original) => "original",
            Ok(_) => "prepared",
            Err(refusal) => refusal.as_str(),
        },
        pixels: job.pixels(),
        output_bytes: written.map(|picture| picture.bytes.len()).sum(),
        encodes: outcome.as_ref().map_or(0, |prepared| prepared.encodes),
        waited,
        took,
    });
}

#[cfg(test)]
mod tests;
