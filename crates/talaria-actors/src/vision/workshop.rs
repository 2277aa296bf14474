//! What all descriptions share on the loop of the vision actor: the chain, its health, and whom
//! to ask.

use std::cell::RefCell;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use talaria_image::DEFAULT_MAX_SIDE;
use talaria_telemetry::events::{self, VisionAttempt};
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, NoticeCode, runtime};
use talaria_vision::describe::{
    Ask, Attempt, Backend, BackendClient, BreakerState, Fault, FaultKind, Health, HopReason,
    Identity, Link, Outcome, Record, Run, Size, Terms, Verdict, prompt,
};
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tracing::Instrument;

use super::analysis::AnalysisAttempt;
use super::messages::Unmade;
use super::picture::{Darkroom, Frame, Ready};
use super::tool::ToolDesk;
use super::{Question, VisionParts};

/// Descriptions that are made at a time, where the configuration names no number.
pub(super) const MOST_RUNNING: usize = 256;

/// Asks backends. Made on the loop that uses it: a connection belongs to the loop it was opened
/// on.
pub(super) trait Backends: fmt::Debug {
    /// Asks one for a description.
    fn ask<'a>(
        &'a self,
        backend: &'a Backend,
        ask: Ask<'a>,
        deadline: Deadline,
    ) -> LocalBoxFuture<'a, Verdict>;
}

impl Backends for BackendClient {
    fn ask<'a>(
        &'a self,
        backend: &'a Backend,
        ask: Ask<'a>,
        deadline: Deadline,
    ) -> LocalBoxFuture<'a, Verdict> {
        Box::pin(async move { Self::ask(self, backend, &ask, deadline).await })
    }
}

/// What all descriptions share.
pub(super) struct Workshop {
    backends: Box<dyn Backends>,
    tools: ToolDesk,
    pub(super) darkroom: Darkroom,
    links: Vec<Link>,
    vias: Vec<String>,
    terms: Vec<Terms>,
    pub(super) health: RefCell<Health>,
    /// What the breakers were last shown as.
    shown: RefCell<Vec<BreakerState>>,
    hedge_after: Option<Duration>,
    temperature: f64,
    turns: Semaphore,
}

/// One question, with its picture ready.
#[derive(Debug)]
pub(super) struct Sitting<'a> {
    pub(super) ctx: &'a CallContext,
    pub(super) question: &'a Question,
    pub(super) full: Ready,
    pub(super) smaller: OnceCell<Result<Ready, Fault>>,
}

impl Workshop {
    pub(super) fn new(parts: VisionParts, backends: Box<dyn Backends>) -> Self {
        let vision = &parts.config.vision;
        let running = vision
            .max_concurrency
            .map_or(MOST_RUNNING, |most| most.get());
        let links = parts.chain.links;
        let identities: Vec<Identity> = links.iter().enumerate().map(identity).collect();
        let shop = Self {
            backends,
            tools: ToolDesk {
                supervisor: parts.supervisor,
                store: parts.store,
                blocking: parts.blocking.clone(),
            },
            darkroom: Darkroom::new(
                parts.pool,
                parts.blocking,
                frame(&links, parts.config.talaria.images.budget),
                parts.config.talaria.images.queue.get(),
            ),
            vias: links.iter().map(Link::via).collect(),
            terms: links.iter().map(terms).collect(),
            health: RefCell::new(Health::new(&identities)),
            shown: RefCell::new(vec![BreakerState::Closed; links.len()]),
            hedge_after: vision.hedge_after,
            temperature: vision.temperature,
            turns: Semaphore::new(running),
            links,
        };
        for via in &shop.vias {
            events::vision_breaker(via, BreakerState::Closed.as_str());
        }
        shop
    }

    /// The name of a link.
    pub(super) fn via(&self, link: usize) -> &str {
        self.vias.get(link).map_or("", String::as_str)
    }

    /// A run over the whole chain.
    pub(super) fn run(&self, deadline: Deadline) -> Run {
        let deadline = deadline.instant().into_std();
        Run::new(self.terms.clone(), self.hedge_after, deadline)
    }

    /// Waits for a place among the descriptions that are made at a time.
    pub(super) async fn turn(&self, deadline: Deadline) -> Result<SemaphorePermit<'_>, Unmade> {
        let turn = self.turns.acquire();
        match tokio::time::timeout_at(deadline.instant(), turn).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => {
                events::deadline_exceeded("vision");
                Err(not_looked_at())
            }
        }
    }

    /// Makes an attempt. It ends at its time, whatever the link does.
    pub(super) async fn ask(&self, sitting: &Sitting<'_>, attempt: Attempt) -> (usize, Verdict) {
        if let Some((from, reason)) = attempt.after {
            events::vision_fell_back(
                self.via(from),
                self.via(attempt.link),
                HopReason::as_str(reason),
            );
        }
        let began = runtime::now();
        let until = Instant::from_std(attempt.until);
        let deadline = Deadline::at(until);
        let span = tracing::debug_span!("vision_attempt", backend = self.via(attempt.link));
        let asking = self.put(sitting, attempt, deadline).instrument(span);
        let asking = AssertUnwindSafe(asking).catch_unwind();
        let verdict = match tokio::time::timeout_at(until, asking).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => {
                let via = self.via(attempt.link);
                tracing::error!(backend = via, "asking for a description panicked");
                Verdict::failed(FaultKind::Unsendable, "asking it broke inside Talaria")
            }
            Err(_) => {
                let waited = began.elapsed().as_secs_f64();
                Verdict::failed(FaultKind::Timeout, &format!("none within {waited:.1} s"))
            }
        };
        (attempt.id, verdict)
    }

    async fn put(&self, sitting: &Sitting<'_>, attempt: Attempt, deadline: Deadline) -> Verdict {
        let Some(link) = self.links.get(attempt.link) else {
            return Verdict::failed(FaultKind::Misconfigured, "there is no such link");
        };
        // The attempt's time is less than that of the description.
        let ctx = CallContext {
            deadline,
            ..sitting.ctx.clone()
        };
        let ready = match attempt.size {
            Size::Full => Ok(&sitting.full),
            Size::Smaller => {
                let making = || self.darkroom.smaller(&ctx, sitting.question, &sitting.full);
                sitting.smaller.get_or_init(making).await.as_ref()
            }
        };
        let ready = match ready {
            Ok(ready) => ready,
            Err(fault) => return Verdict::Failed(fault.clone()),
        };
        match link {
            Link::Broken { fault, .. } => Verdict::Failed(fault.clone()),
            Link::Mcp(tool) => {
                let darkroom = &self.darkroom;
                self.tools
                    .ask(tool, sitting, ready, darkroom, deadline)
                    .await
            }
            Link::Http(backend) => {
                let encoded = match self.darkroom.encoded(ready, deadline).await {
                    Ok(encoded) => encoded,
                    Err(fault) => return Verdict::Failed(fault),
                };
                let words = prompt(sitting.question.prompt.as_deref());
                let ask = Ask {
                    prompt: &words,
                    picture: encoded,
                    temperature: self.temperature,
                };
                self.backends.ask(backend, ask, deadline).await
            }
        }
    }

    /// Shows what the breakers let through, where that changed.
    pub(super) fn show_breakers(&self) {
        let (health, now) = (self.health.borrow(), runtime::now().into_std());
        for (link, shown) in self.shown.borrow_mut().iter_mut().enumerate() {
            let state = health.state(link, now);
            if *shown != state {
                *shown = state;
                events::vision_breaker_changed(self.via(link), state.as_str());
            }
        }
    }

    /// Counts what was tried.
    pub(super) fn count(&self, records: &[Record]) {
        for record in records {
            let via = self.via(record.link);
            let told = AnalysisAttempt::of(record, via);
            events::vision_attempt_ended(&VisionAttempt {
                backend: via,
                stage: self.stage(record.link),
                outcome: told.outcome,
                took: record.took,
                detail: told.detail.as_deref().unwrap_or_default(),
            });
            if record.is_hedge {
                let won = record.outcome == Outcome::Answered;
                events::vision_hedge_ended(if won { "won" } else { "wasted" });
            }
        }
    }

    fn stage(&self, link: usize) -> &'static str {
        match self.links.get(link) {
            Some(Link::Mcp(_)) => "mcp",
            Some(Link::Http(_) | Link::Broken { .. }) | None if link == 0 => "primary",
            Some(Link::Http(_) | Link::Broken { .. }) | None => "fallback",
        }
    }
}

/// The time was over before anybody could be asked.
pub(super) fn not_looked_at() -> Unmade {
    let words = "other pictures took all the time; this one was not looked at";
    Unmade {
        failure: Failure::new(ErrorCode::Timeout, words),
        notice: NoticeCode::ImageLate,
        refusal: None,
    }
}

/// Under which names a link's health is kept; nobody shares those of one that is never asked.
fn identity((place, link): (usize, &Link)) -> Identity {
    let alone = || Identity {
        account: format!("broken:{place}"),
        model: format!("broken:{place}"),
    };
    link.identity().unwrap_or_else(alone)
}

/// What a picture must become so that every backend of the chain takes it.
fn frame(links: &[Link], budget: usize) -> Frame {
    let mut frame = Frame {
        budget,
        max_side: DEFAULT_MAX_SIDE,
    };
    for link in links {
        if let Link::Http(backend) = link {
            frame.budget = frame.budget.min(backend.limits.max_bytes);
            frame.max_side = frame.max_side.min(backend.limits.max_side);
        }
    }
    frame
}

/// What the policy knows of a link.
fn terms(link: &Link) -> Terms {
    Terms {
        timeout: link.timeout(),
        // What a tool does besides answering is unknown, so it is not called twice.
        repeats: matches!(link, Link::Http(_)),
        unusable: match link {
            Link::Broken { fault, .. } => Some(fault.clone()),
            Link::Http(_) | Link::Mcp(_) => None,
        },
    }
}
