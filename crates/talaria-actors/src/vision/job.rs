//! One description: made ready, asked for along the chain, handed to everybody who waits.
//!
//! All of it is one future of the actor. What it started ends with it: attempts are futures inside
//! of it, so that dropping it closes connections and cancels calls.

use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use talaria_telemetry::events;
use talaria_types::{CallContext, Deadline, runtime};
use talaria_vision::describe::{Order, Size};
use tokio::sync::{OnceCell, mpsc};
use tokio::time::Instant;

use super::Question;
use super::analysis::Analysis;
use super::messages::{Reply, Unmade};
use super::progress::Progress;
use super::waiters::{Parting, Waiter, Waiters};
use super::workshop::{Sitting, Workshop, not_looked_at};

/// One description to make.
pub(super) struct Job {
    pub(super) shop: Rc<Workshop>,
    /// Its own: cancelled when nobody waits any more.
    pub(super) ctx: CallContext,
    pub(super) question: Question,
    pub(super) first: Waiter,
    /// Others who ask the same.
    pub(super) joiners: mpsc::Receiver<Waiter>,
}

impl Job {
    /// Makes it. Answers with what may be kept for others.
    pub(super) async fn run(self) -> Option<Analysis> {
        let Self {
            shop,
            ctx,
            question,
            first,
            mut joiners,
        } = self;
        let began = runtime::now();
        // Whatever ends this future ends what it waits for.
        let _leaving = ctx.cancel.clone().drop_guard();
        let mut waiters = Waiters::default();
        waiters.add(first);
        let progress = Progress::default();
        let mut has_overdue = false;
        let work = describe(&shop, &ctx, &question, &progress);
        tokio::pin!(work);
        let made = loop {
            tokio::select! {
                biased;
                made = &mut work => break Some(made),
                Some(joiner) = joiners.recv() => waiters.add(joiner),
                (waiter, parting) = waiters.parting() => {
                    if parting == Parting::Overdue {
                        has_overdue = true;
                        waiter.answer(progress.so_far(&shop).ok_or_else(not_looked_at));
                    }
                    if waiters.is_empty() {
                        break None;
                    }
                }
            }
        };
        let (label, left, reply) = ended(&shop, made, &progress, has_overdue);
        events::vision_analysis_ended(label, began.elapsed(), left);
        let reply = reply?;
        while let Ok(joiner) = joiners.try_recv() {
            waiters.add(joiner);
        }
        waiters.answer(&reply);
        reply.ok()
    }
}

/// What the work came to, and how it is counted.
type Made = Result<(Analysis, std::time::Duration), Unmade>;

fn ended(
    shop: &Workshop,
    made: Option<Made>,
    progress: &Progress,
    has_overdue: bool,
) -> (&'static str, std::time::Duration, Option<Reply>) {
    match made {
        Some(Ok((analysis, left))) => {
            let label = match &analysis.answer {
                Some(answer) if answer.is_reasoning => "reasoned",
                Some(_) => "answered",
                None if analysis.ran_out_of_time() => {
                    events::deadline_exceeded("vision");
                    "timeout"
                }
                None => "failed",
            };
            (label, left, Some(Ok(analysis)))
        }
        Some(Err(unmade)) => ("refused", std::time::Duration::ZERO, Some(Err(unmade))),
        None => {
            let left = progress.finish(shop).map(|finished| finished.left);
            let label = if has_overdue { "timeout" } else { "cancelled" };
            (label, left.unwrap_or_default(), None)
        }
    }
}

/// Walks along the chain.
async fn describe(
    shop: &Workshop,
    ctx: &CallContext,
    question: &Question,
    progress: &Progress,
) -> Made {
    let _turn = shop.turn(ctx.deadline).await?;
    let (full, _shared) = shop.darkroom.develop(ctx, question).await?;
    let sitting = Sitting {
        ctx,
        question,
        full,
        smaller: OnceCell::new(),
    };
    progress.begin(shop.run(ctx.deadline));
    let mut attempts = FuturesUnordered::new();
    loop {
        match progress.next(shop) {
            Order::Ask(attempt) => attempts.push(shop.ask(&sitting, attempt)),
            Order::Wait(until) => tokio::select! {
                biased;
                Some((id, verdict)) = attempts.next() => progress.report(shop, id, verdict),
                () = tokio::time::sleep_until(Instant::from_std(until)) => {}
            },
            Order::Done => break,
        }
    }
    // What is still under way ends before it is counted as cancelled.
    drop(attempts);
    let Some(finished) = progress.finish(shop) else {
        return Ok((Analysis::of(Vec::new()), std::time::Duration::ZERO));
    };
    let size = finished.source().map_or(Size::Full, |record| record.size);
    let scale_note = match (size, sitting.smaller.get()) {
        (Size::Smaller, Some(Ok(smaller))) => smaller.scale_note(),
        (Size::Smaller | Size::Full, _) => sitting.full.scale_note(),
    };
    let left = finished.left;
    Ok((finished.analysis(shop, scale_note), left))
}

/// The context of a description of its own, bound to no caller.
pub(super) fn own_context(asked: &CallContext, deadline: Deadline) -> CallContext {
    CallContext {
        request_id: asked.request_id.clone(),
        span: tracing::debug_span!(
            parent: &asked.span,
            "describe_image",
            request_id = %asked.request_id,
        ),
        ..CallContext::new(deadline)
    }
}
