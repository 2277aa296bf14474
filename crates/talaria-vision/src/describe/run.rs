//! The course of one description: whom to ask, for how long, and what follows. Pure: it takes
//! what happened and the time, and answers with the next order.
//!
//! One deadline binds the whole chain. A link gets its own timeout, but leaves [`RESERVE`] to
//! every link after it, so that the last one always has its turn (design decision 28).

use std::time::{Duration, Instant};

use super::health::{Blocked, HadTime, Health};
use super::verdict::{Fault, FaultKind, Verdict};

mod again;
mod terms;

use again::{Again, again};
pub use terms::{Attempt, End, HopReason, Order, Outcome, Record, Size, Terms};

/// What a link is left by those before it, unless its own timeout is shorter.
const RESERVE: Duration = Duration::from_secs(10);
/// What a link gets where the others' reserves would leave it less, unless even sharing evenly
/// gives less.
const LEAST_SHARE: Duration = Duration::from_secs(2);
/// The longest wait that the last link may ask for.
pub(super) const LAST_PATIENCE: Duration = Duration::from_secs(30);
/// Pause before looking again whether another request found out that a link works.
const PROBE_PAUSE: Duration = Duration::from_millis(250);
/// With less time than this nobody is asked.
const LEAST_ATTEMPT: Duration = Duration::from_millis(50);
/// How often one link is asked at most.
const MOST_ASKED: usize = 2;
/// How many are asked at a time at most.
const MOST_OPEN: usize = 2;

/// One description under way.
#[derive(Clone, Debug)]
pub struct Run {
    links: Vec<Link>,
    hedge_after: Option<Duration>,
    deadline: Instant,
    /// The first link that had no turn yet.
    position: usize,
    repeat: Option<Repeat>,
    open: Vec<Open>,
    records: Vec<Record>,
    answer: Option<(usize, String)>,
    reasoned: Option<(usize, String)>,
    next_id: usize,
}

#[derive(Clone, Debug)]
struct Link {
    terms: Terms,
    asked: usize,
}

/// A link that will be asked again.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    link: usize,
    size: Size,
    at: Instant,
}

/// An attempt under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    attempt: Attempt,
    began: Instant,
    had_time: HadTime,
    is_hedge: bool,
}

impl Run {
    /// A description that must be there by the deadline. Where `hedge_after` is set, the next
    /// link is asked beside one that is silent for so long.
    #[must_use]
    pub fn new(links: Vec<Terms>, hedge_after: Option<Duration>, deadline: Instant) -> Self {
        let links = links.into_iter().map(|terms| Link { terms, asked: 0 });
        Self {
            links: links.collect(),
            hedge_after,
            deadline,
            position: 0,
            repeat: None,
            open: Vec::new(),
            records: Vec::new(),
            answer: None,
            reasoned: None,
            next_id: 0,
        }
    }

    /// When it is over at the latest.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What to do now.
    pub fn next(&mut self, health: &mut Health, now: Instant) -> Order {
        if self.answer.is_some() {
            return Order::Done;
        }
        if now >= self.deadline {
            self.run_out(health, now);
            return Order::Done;
        }
        if let Some(repeat) = self.repeat {
            if now < repeat.at {
                return Order::Wait(repeat.at.min(self.deadline));
            }
            self.repeat = None;
            if let Some(attempt) = self.begin(repeat.link, repeat.size, health, now) {
                return Order::Ask(attempt);
            }
        }
        if self.open.is_empty() || self.hedge_due().is_some_and(|due| now >= due) {
            while self.repeat.is_none() && self.position < self.links.len() {
                let link = self.position;
                self.position += 1;
                if let Some(attempt) = self.begin(link, Size::Full, health, now) {
                    return Order::Ask(attempt);
                }
            }
        }
        let wake = match self.repeat {
            Some(repeat) => Some(repeat.at),
            None if self.open.is_empty() => return Order::Done,
            None => self.hedge_due().filter(|due| *due > now),
        };
        Order::Wait(wake.map_or(self.deadline, |wake| wake.min(self.deadline)))
    }

    /// Takes in what an attempt came to. One that is not under way any more is ignored.
    pub fn report(&mut self, id: usize, verdict: Verdict, health: &mut Health, now: Instant) {
        let Some(place) = self.open.iter().position(|open| open.attempt.id == id) else {
            return;
        };
        let open = self.open.swap_remove(place);
        let link = open.attempt.link;
        health.record(link, &verdict, open.had_time, now);
        let outcome = match verdict {
            Verdict::Answer(text) => {
                self.answer.get_or_insert((link, text));
                Outcome::Answered
            }
            Verdict::Reasoned(text) => {
                self.reasoned.get_or_insert((link, text));
                self.plan_repeat(&open, FaultKind::ReasoningOnly, None, (health, now));
                Outcome::Reasoned
            }
            Verdict::Failed(fault) => {
                self.plan_repeat(&open, fault.kind, fault.retry_after, (health, now));
                Outcome::Failed(fault)
            }
        };
        self.keep(&open, outcome, now);
    }

    /// The report so far, with what is under way as if it had ended without an answer.
    #[must_use]
    pub fn so_far(&self, now: Instant) -> Vec<Record> {
        let mut records = self.records.clone();
        records.extend(self.open.iter().map(|open| Record {
            link: open.attempt.link,
            size: open.attempt.size,
            took: now.saturating_duration_since(open.began),
            is_hedge: open.is_hedge,
            outcome: Outcome::Failed(overdue()),
        }));
        records
    }

    /// Ends the run, done or not, and says what came of it. What is still under way counts as
    /// cancelled.
    pub fn finish(mut self, health: &mut Health, now: Instant) -> (End, Vec<Record>) {
        for open in std::mem::take(&mut self.open) {
            health.forget(open.attempt.link, now);
            self.keep(&open, Outcome::Cancelled, now);
        }
        let end = match (self.answer, self.reasoned) {
            (Some((link, text)), _) => End::Answered { link, text },
            (None, Some((link, text))) => End::Reasoned { link, text },
            (None, None) => End::Failed,
        };
        (end, self.records)
    }

    /// Starts an attempt, or notes why there is none.
    fn begin(
        &mut self,
        link: usize,
        size: Size,
        health: &mut Health,
        now: Instant,
    ) -> Option<Attempt> {
        let after = self.hop_to(link);
        let terms = &self.links.get(link)?.terms;
        let own = terms.timeout;
        let share = self.share(link, own, health, now);
        let until = now + share;
        let refused = if let Some(fault) = &terms.unusable {
            Some(fault.clone())
        } else if share < LEAST_ATTEMPT {
            Some(no_time())
        } else if let Err(blocked) = health.admit(link, now, until) {
            if let Some(at) = self.wait_for(link, blocked, health, now) {
                self.repeat = Some(Repeat { link, size, at });
                return None;
            }
            Some(blocked.fault())
        } else {
            None
        };
        if let Some(fault) = refused {
            self.skip(link, fault);
            return None;
        }
        if let Some(link) = self.links.get_mut(link) {
            link.asked += 1;
        }
        let attempt = Attempt {
            id: self.next_id,
            link,
            size,
            until,
            after,
        };
        self.next_id += 1;
        self.open.push(Open {
            attempt,
            began: now,
            had_time: if share >= own.min(RESERVE) {
                HadTime::Enough
            } else {
                HadTime::Short
            },
            is_hedge: after.is_some_and(|(_, reason)| reason == HopReason::Hedge),
        });
        Some(attempt)
    }

    /// How long a link may take: its own timeout, what the links after it leave, and the end.
    fn share(&self, link: usize, own: Duration, health: &Health, now: Instant) -> Duration {
        let remaining = self.deadline.saturating_duration_since(now);
        let later: Duration = self
            .others(link, health, now)
            .map(|other| other.timeout.min(RESERVE))
            .sum();
        let reserve = own.min(RESERVE);
        let all = (later + reserve).as_secs_f64();
        let even = if later.is_zero() || all <= 0.0 {
            remaining
        } else {
            remaining.mul_f64(reserve.as_secs_f64() / all)
        };
        let share = remaining
            .saturating_sub(later)
            .max(even.min(LEAST_SHARE).min(remaining));
        own.min(share)
    }

    /// The links that could still have their first turn.
    fn others<'a>(
        &'a self,
        link: usize,
        health: &'a Health,
        now: Instant,
    ) -> impl Iterator<Item = &'a Terms> {
        let links = self.links.iter().enumerate().skip(self.position);
        links
            .filter(move |(other, _)| *other != link && health.check(*other, now).is_ok())
            .map(|(_, link)| &link.terms)
            .filter(|terms| terms.unusable.is_none())
    }

    /// Plans to ask a link again, where that makes sense and there is time.
    fn plan_repeat(
        &mut self,
        open: &Open,
        kind: FaultKind,
        retry_after: Option<Duration>,
        (health, now): (&Health, Instant),
    ) {
        let link = open.attempt.link;
        let Some(Link { terms, asked }) = self.links.get(link) else {
            return;
        };
        if !terms.repeats || *asked >= MOST_ASKED || !self.open.is_empty() {
            return;
        }
        let is_last = self.others(link, health, now).next().is_none();
        let took = now.saturating_duration_since(open.began);
        let wait = match again(kind, retry_after, took, is_last) {
            Again::No => return,
            Again::Smaller if open.attempt.size == Size::Smaller => return,
            Again::Smaller => Duration::ZERO,
            Again::After(wait) => wait,
        };
        if !self.has_time(link, wait, health, now) {
            return;
        }
        let size = if kind == FaultKind::TooLarge {
            Size::Smaller
        } else {
            open.attempt.size
        };
        let at = now + wait;
        self.repeat = Some(Repeat { link, size, at });
    }

    /// When to try a link again whose breaker is open, where that makes sense: it is the only one
    /// left, and it said when it will answer, or somebody is finding out.
    fn wait_for(
        &self,
        link: usize,
        blocked: Blocked,
        health: &Health,
        now: Instant,
    ) -> Option<Instant> {
        let is_last = self.open.is_empty() && self.others(link, health, now).next().is_none();
        let is_short =
            blocked.wait.is_zero() || (blocked.is_named && blocked.wait <= LAST_PATIENCE);
        let wait = blocked.wait.max(PROBE_PAUSE);
        (is_last && is_short && self.has_time(link, wait, health, now)).then(|| now + wait)
    }

    /// Whether a link could still be asked after a wait.
    fn has_time(&self, link: usize, wait: Duration, health: &Health, now: Instant) -> bool {
        let remaining = self.deadline.saturating_duration_since(now);
        wait + LEAST_ATTEMPT <= self.share(link, remaining, health, now)
    }

    /// When the next link is asked beside the one that is silent, where one is left to ask.
    fn hedge_due(&self) -> Option<Instant> {
        if self.open.is_empty() || self.open.len() >= MOST_OPEN {
            return None;
        }
        if self.position >= self.links.len() {
            return None;
        }
        let began = self.open.iter().map(|open| open.began).max()?;
        began.checked_add(self.hedge_after?)
    }

    /// Whom an attempt at a link stands in for.
    fn hop_to(&self, link: usize) -> Option<(usize, HopReason)> {
        if let Some(open) = self.open.last() {
            return Some((open.attempt.link, HopReason::Hedge));
        }
        let last = self.records.last().filter(|record| record.link != link)?;
        let reason = match &last.outcome {
            Outcome::Failed(fault) => fault.kind,
            Outcome::Answered | Outcome::Reasoned | Outcome::Cancelled => FaultKind::ReasoningOnly,
        };
        Some((last.link, HopReason::Fault(reason)))
    }

    /// The deadline passed.
    fn run_out(&mut self, health: &mut Health, now: Instant) {
        for open in std::mem::take(&mut self.open) {
            let fault = overdue();
            let verdict = Verdict::Failed(fault.clone());
            health.record(open.attempt.link, &verdict, open.had_time, now);
            self.keep(&open, Outcome::Failed(fault), now);
        }
        self.repeat = None;
        while self.position < self.links.len() {
            let link = self.position;
            self.position += 1;
            let unusable = self
                .links
                .get(link)
                .and_then(|link| link.terms.unusable.clone());
            self.skip(link, unusable.unwrap_or_else(no_time));
        }
    }

    fn keep(&mut self, open: &Open, outcome: Outcome, now: Instant) {
        self.records.push(Record {
            link: open.attempt.link,
            size: open.attempt.size,
            took: now.saturating_duration_since(open.began),
            is_hedge: open.is_hedge,
            outcome,
        });
    }

    fn skip(&mut self, link: usize, fault: Fault) {
        self.records.push(Record {
            link,
            size: Size::Full,
            took: Duration::ZERO,
            is_hedge: false,
            outcome: Outcome::Failed(fault),
        });
    }
}

fn overdue() -> Fault {
    Fault::new(
        FaultKind::Timeout,
        "the time of the whole description ran out",
    )
}

fn no_time() -> Fault {
    Fault::new(FaultKind::NoTime, "")
}

#[cfg(test)]
mod tests;
