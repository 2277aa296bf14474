//! One run of the chain as the job and those who wait for it share it.

use std::cell::RefCell;
use std::time::Instant;

use talaria_types::runtime;
use talaria_vision::describe::{End, Health, Order, Outcome, Record, Run, Verdict};

use super::analysis::{Analysis, AnalysisAttempt, Description};
use super::workshop::Workshop;

/// A run, once it has begun. No borrow is held across an await.
#[derive(Debug, Default)]
pub(super) struct Progress(RefCell<Option<Run>>);

impl Progress {
    pub(super) fn begin(&self, run: Run) {
        *self.0.borrow_mut() = Some(run);
    }

    /// What to do next.
    pub(super) fn next(&self, shop: &Workshop) -> Order {
        let order = self.with(shop, |run, health, now| run.next(health, now));
        order.unwrap_or(Order::Done)
    }

    /// An attempt ended.
    pub(super) fn report(&self, shop: &Workshop, id: usize, verdict: Verdict) {
        self.with(shop, |run, health, now| {
            run.report(id, verdict, health, now)
        });
    }

    /// Everything that was tried until now; none where the run has not begun.
    pub(super) fn so_far(&self, shop: &Workshop) -> Option<Analysis> {
        let run = self.0.borrow();
        let records = run.as_ref()?.so_far(runtime::now().into_std());
        Some(Analysis::of(attempts(shop, &records)))
    }

    /// Ends the run, done or not, and counts what was tried.
    pub(super) fn finish(&self, shop: &Workshop) -> Option<Finished> {
        let run = self.0.borrow_mut().take()?;
        let now = runtime::now().into_std();
        let left = run.deadline().saturating_duration_since(now);
        let (end, records) = run.finish(&mut shop.health.borrow_mut(), now);
        shop.show_breakers();
        shop.count(&records);
        Some(Finished { end, records, left })
    }

    fn with<R>(
        &self,
        shop: &Workshop,
        step: impl FnOnce(&mut Run, &mut Health, Instant) -> R,
    ) -> Option<R> {
        let mut run = self.0.borrow_mut();
        let now = runtime::now().into_std();
        let stepped = step(run.as_mut()?, &mut shop.health.borrow_mut(), now);
        shop.show_breakers();
        Some(stepped)
    }
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    records: Vec<Record>,
    pub(super) left: std::time::Duration,
}

impl Finished {
    /// The record of the attempt that gave the text.
    pub(super) fn source(&self) -> Option<&Record> {
        let wanted = match &self.end {
            End::Answered { .. } => Outcome::Answered,
            End::Reasoned { .. } => Outcome::Reasoned,
            End::Failed => return None,
        };
        self.records.iter().find(|record| record.outcome == wanted)
    }

    /// What the caller gets.
    pub(super) fn analysis(self, shop: &Workshop, scale_note: Option<String>) -> Analysis {
        let answer = match self.end {
            End::Answered { link, text } => Some((link, text, false)),
            End::Reasoned { link, text } => Some((link, text, true)),
            End::Failed => None,
        };
        Analysis {
            answer: answer.map(|(link, text, is_reasoning)| Description {
                text,
                via: shop.via(link).to_owned(),
                scale_note,
                is_reasoning,
            }),
            ..Analysis::of(attempts(shop, &self.records))
        }
    }
}

fn attempts(shop: &Workshop, records: &[Record]) -> Vec<AnalysisAttempt> {
    let attempts = records.iter();
    attempts
        .map(|record| AnalysisAttempt::of(record, shop.via(record.link)))
        .collect()
}
