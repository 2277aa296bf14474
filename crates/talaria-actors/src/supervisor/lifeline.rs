//! When a server actor that died is started again: a budget with back-off. Pure.

use std::time::{Duration, Instant};

use crate::backoff::{Backoff, Jitter};

/// The policy for actors that die.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Waits before a restart.
    pub(crate) backoff: Backoff,
    /// Restarts without a healthy time in between.
    pub(crate) restarts: u32,
    /// An actor that lived so long has its successor start with a fresh budget.
    pub(crate) healthy_after: Duration,
    /// Pause between attempts once the budget is used up.
    pub(crate) probe_every: Duration,
}

/// What to do about a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Start again after this time.
    Restart(Duration),
    /// The budget is used up; one attempt after this time.
    Probe(Duration),
}

/// The deaths of one server's actors.
#[derive(Clone, Debug)]
pub(crate) struct Lifeline {
    budget: Budget,
    started: Option<Instant>,
    deaths: u32,
    jitter: Jitter,
}

impl Lifeline {
    /// A server whose actor has never died.
    pub(crate) const fn new(budget: Budget, jitter: Jitter) -> Self {
        Self {
            budget,
            started: None,
            deaths: 0,
            jitter,
        }
    }

    /// An actor was started.
    pub(crate) const fn started(&mut self, now: Instant) {
        self.started = Some(now);
    }

    /// The actor died.
    pub(crate) fn died(&mut self, now: Instant) -> Verdict {
        let lived = self
            .started
            .map(|started| now.saturating_duration_since(started));
        if lived.is_some_and(|lived| lived >= self.budget.healthy_after) {
            self.deaths = 0;
        }
        self.deaths = self.deaths.saturating_add(1);
        if self.deaths > self.budget.restarts {
            Verdict::Probe(self.jitter.spread(self.budget.probe_every))
        } else {
            Verdict::Restart(self.budget.backoff.delay(self.deaths, &mut self.jitter))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::plan::Timing;

    fn lifeline() -> Lifeline {
        Lifeline::new(Timing::PRODUCTION.budget, Jitter::seeded(1))
    }

    #[test]
    fn the_budget_is_reached_after_five_restarts_in_a_row() {
        let mut lifeline = lifeline();
        let now = talaria_types::runtime::now().into_std();
        for death in 1..=5 {
            lifeline.started(now);
            assert!(
                matches!(lifeline.died(now), Verdict::Restart(_)),
                "death {death}"
            );
        }
        lifeline.started(now);
        let Verdict::Probe(pause) = lifeline.died(now) else {
            panic!("still restarting")
        };
        assert!((240..=360).contains(&pause.as_secs()), "{pause:?}");
    }

    #[test]
    fn the_first_restart_is_quick_and_later_ones_are_bounded() {
        let mut lifeline = lifeline();
        let now = talaria_types::runtime::now().into_std();
        let Verdict::Restart(first) = lifeline.died(now) else {
            panic!("no restart")
        };
        assert!(first <= Duration::from_millis(120), "{first:?}");
        for _ in 0..4 {
            let Verdict::Restart(wait) = lifeline.died(now) else {
                panic!("no restart")
            };
            assert!(wait <= Duration::from_secs(72), "{wait:?}");
        }
    }

    #[test]
    fn a_healthy_minute_restores_the_budget() {
        let mut lifeline = lifeline();
        let mut now = talaria_types::runtime::now().into_std();
        for _ in 0..20 {
            lifeline.started(now);
            now += Duration::from_secs(61);
            assert!(matches!(lifeline.died(now), Verdict::Restart(_)));
        }
    }
}
