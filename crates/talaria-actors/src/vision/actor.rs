//! The vision actor.
//!
//! Owns: the descriptions under way, who waits for them, the health of the chain, what was
//! answered lately, and the connections to backends.
//! Accepts: `Analyze`, `Close`.
//! Emits: calls to MCP servers through the supervisor.
//! Never: decodes a picture, touches the disk, or waits inside a handler.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler};
use futures_util::FutureExt;
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, Failure, NoticeCode, runtime};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::DropGuard;
use tracing::Instrument;

use super::VisionParts;
use super::analysis::Analysis;
use super::cache::Cache;
use super::job::{Job, own_context};
use super::messages::{Analyze, Close, Key, Unmade};
use super::waiters::Waiter;
use super::workshop::{Backends, MOST_RUNNING, Workshop};

/// Questions that may wait for the actor's loop.
const MAILBOX: usize = 512;
/// Descriptions that are made or wait for their turn.
const MOST_JOBS: usize = MOST_RUNNING;
/// Requests that may share one description, besides the first.
const MOST_JOINERS: usize = 256;
/// How much earlier or later than a description ends somebody's time may, who still joins it.
const LEAST_SLACK: Duration = Duration::from_secs(1);
/// The name of the queue in metrics.
pub(super) const QUEUE: &str = "vision";

/// The actor.
pub(super) struct VisionActor {
    shop: Rc<Workshop>,
    jobs: HashMap<u64, Running>,
    /// The latest description of each question.
    latest: HashMap<Key, u64>,
    cache: Cache,
    next: u64,
    /// How many descriptions are under way, for everybody.
    running: watch::Sender<usize>,
    /// Tells the handle that it has ended, however it did.
    _ended: DropGuard,
}

/// A description under way, from outside.
#[derive(Debug)]
struct Running {
    key: Key,
    deadline: Deadline,
    joiners: mpsc::Sender<Waiter>,
    /// How many have joined it.
    joined: usize,
}

impl VisionActor {
    pub(super) fn new(
        parts: VisionParts,
        backends: Box<dyn Backends>,
        running: watch::Sender<usize>,
        ended: DropGuard,
    ) -> Self {
        events::queue_depth(QUEUE, 0, MOST_JOBS);
        events::vision_running(0);
        Self {
            cache: Cache::new(parts.config.vision.cache_ttl),
            shop: Rc::new(Workshop::new(parts, backends)),
            jobs: HashMap::new(),
            latest: HashMap::new(),
            next: 0,
            running,
            _ended: ended,
        }
    }

    /// Lets a question wait for a description under way, where it is the same and has about as
    /// much time; gives it back otherwise.
    fn join(&mut self, key: &Key, mut waiter: Waiter) -> Option<Waiter> {
        let running = self.latest.get(key).and_then(|id| self.jobs.get_mut(id));
        let Some(running) = running else {
            return Some(waiter);
        };
        // One that has to leave much earlier would see only the first link of the chain, and one
        // with much more time would be told of a chain that nobody gave its time.
        let slack = (running.deadline.remaining() / 10).max(LEAST_SLACK);
        let (its, theirs) = (waiter.deadline.instant(), running.deadline.instant());
        if its + slack < theirs || theirs + slack < its {
            return Some(waiter);
        }
        if running.joined >= MOST_JOINERS {
            let words = format!("{MOST_JOINERS} requests wait for this description already");
            waiter.answer(Err(refused(&words)));
            return None;
        }
        waiter.is_joiner = true;
        match running.joiners.try_send(waiter) {
            Ok(()) => {
                running.joined += 1;
                events::vision_shared("coalesced");
                None
            }
            Err(TrySendError::Full(mut waiter) | TrySendError::Closed(mut waiter)) => {
                waiter.is_joiner = false;
                Some(waiter)
            }
        }
    }

    fn start(
        &mut self,
        key: Key,
        job: Job,
        joiners: mpsc::Sender<Waiter>,
        ctx: &mut Context<Self>,
    ) {
        let id = self.next;
        self.next += 1;
        self.latest.insert(key.clone(), id);
        let running = Running {
            key,
            deadline: job.ctx.deadline,
            joiners,
            joined: 0,
        };
        self.jobs.insert(id, running);
        self.show_load();
        let span = job.ctx.span.clone();
        // A defect costs its own description, never the actor.
        let work = AssertUnwindSafe(job.run()).catch_unwind().instrument(span);
        ctx.spawn(wrap_future::<_, Self>(work).map(move |made, actor, _| {
            actor.ended(id, made.unwrap_or_else(|_| broken()));
        }));
    }

    fn ended(&mut self, id: u64, made: Option<Analysis>) {
        let Some(running) = self.jobs.remove(&id) else {
            return;
        };
        if self.latest.get(&running.key) == Some(&id) {
            self.latest.remove(&running.key);
        }
        if let Some(analysis) = made {
            let now = runtime::now().into_std();
            self.cache.put(running.key, analysis, now);
        }
        self.show_load();
    }

    fn show_load(&self) {
        self.running.send_replace(self.jobs.len());
        events::vision_running(self.jobs.len());
        events::queue_depth(QUEUE, self.jobs.len(), MOST_JOBS);
    }
}

/// Whoever waited hears it from the channel that closes.
fn broken() -> Option<Analysis> {
    tracing::error!("describing a picture panicked");
    None
}

impl Actor for VisionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Analyze> for VisionActor {
    type Result = ();

    fn handle(&mut self, message: Analyze, ctx: &mut Context<Self>) {
        let Analyze {
            ctx: asked,
            question,
            reply,
        } = message;
        let waiter = Waiter::new(reply, asked.deadline, asked.cancel.clone());
        if waiter.gone.is_cancelled() {
            return;
        }
        let key = Key::of(&question);
        if let Some(known) = self.cache.get(&key, runtime::now().into_std()) {
            events::vision_shared("cached");
            waiter.answer(Ok(known));
            return;
        }
        let Some(waiter) = self.join(&key, waiter) else {
            return;
        };
        if self.jobs.len() >= MOST_JOBS {
            waiter.answer(Err(busy()));
            return;
        }
        let (joiners, joining) = mpsc::channel(MOST_JOINERS);
        let job = Job {
            shop: Rc::clone(&self.shop),
            ctx: own_context(&asked, waiter.deadline),
            question,
            first: waiter,
            joiners: joining,
        };
        self.start(key, job, joiners, ctx);
    }
}

impl Handler<Close> for VisionActor {
    type Result = ();

    fn handle(&mut self, _: Close, ctx: &mut Context<Self>) {
        // The futures of the descriptions go away with the context.
        ctx.stop();
    }
}

/// Every place is taken.
pub(super) fn busy() -> Unmade {
    let words = format!("{MOST_JOBS} pictures are being described already");
    refused(&words)
}

fn refused(words: &str) -> Unmade {
    events::queue_refused(QUEUE);
    let words = format!("{words}; try again later");
    Unmade {
        failure: Failure::new(ErrorCode::Busy, words).retry_after(Duration::from_secs(1)),
        notice: NoticeCode::ImageBusy,
        refusal: None,
    }
}
