//! Waiting times between attempts: exponential, bounded, with jitter. Pure.

use std::time::Duration;

/// How long to wait before which attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// Before the first attempt after something that worked; the rest starts at `base`.
    pub(crate) quick: Option<Duration>,
    /// Before the first (or, after a quick one, the second) attempt.
    pub(crate) base: Duration,
    /// Never longer than this, jitter aside.
    pub(crate) ceiling: Duration,
}

/// Jitter in percent, to either side.
const SPREAD_PERCENT: u64 = 20;

impl Backoff {
    /// The wait before attempt `attempt`, counted from 1.
    pub(crate) fn delay(&self, attempt: u32, jitter: &mut Jitter) -> Duration {
        let exponent = match self.quick {
            Some(quick) if attempt <= 1 => return jitter.spread(quick),
            Some(_) => attempt.saturating_sub(2),
            None => attempt.saturating_sub(1),
        };
        let factor = 1_u32.checked_shl(exponent).filter(|factor| *factor > 0);
        let exact = factor.and_then(|factor| self.base.checked_mul(factor));
        jitter.spread(exact.unwrap_or(self.ceiling).min(self.ceiling))
    }
}

/// A small generator for jitter. Its only duty is that servers do not reconnect in step.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    /// Starts from a seed; the same seed gives the same waits.
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Starts from the process's own randomness.
    pub(crate) fn random() -> Self {
        use std::hash::{BuildHasher, RandomState};
        Self::seeded(RandomState::new().hash_one("talaria back-off"))
    }

    /// A duration within ±20 % of `exact`.
    pub(crate) fn spread(&mut self, exact: Duration) -> Duration {
        let percent = 100 - SPREAD_PERCENT + self.next() % (2 * SPREAD_PERCENT + 1);
        let scaled = exact.as_micros().saturating_mul(u128::from(percent)) / 100;
        Duration::from_micros(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// SplitMix64.
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL: Backoff = Backoff {
        quick: None,
        base: Duration::from_secs(1),
        ceiling: Duration::from_secs(60),
    };

    fn near(wait: Duration, seconds: f64) -> bool {
        (0.8 * seconds..=1.2 * seconds).contains(&wait.as_secs_f64())
    }

    #[test]
    fn doubles_from_one_second_within_a_fifth() {
        for seed in 0..200 {
            let mut jitter = Jitter::seeded(seed);
            for (attempt, seconds) in [(1, 1.0), (2, 2.0), (3, 4.0), (6, 32.0), (7, 60.0)] {
                let wait = INITIAL.delay(attempt, &mut jitter);
                assert!(near(wait, seconds), "attempt {attempt} waited {wait:?}");
            }
        }
    }

    #[test]
    fn never_exceeds_the_ceiling_by_more_than_the_jitter() {
        let mut jitter = Jitter::seeded(7);
        for attempt in [8, 31, 32, 33, 64, u32::MAX] {
            assert!(INITIAL.delay(attempt, &mut jitter) <= Duration::from_secs(72));
        }
    }

    #[test]
    fn starts_quickly_after_something_that_worked() {
        let backoff = Backoff {
            quick: Some(Duration::from_millis(100)),
            ..INITIAL
        };
        let mut jitter = Jitter::seeded(3);
        assert!(near(backoff.delay(1, &mut jitter), 0.1));
        assert!(near(backoff.delay(2, &mut jitter), 1.0));
        assert!(near(backoff.delay(3, &mut jitter), 2.0));
    }

    #[test]
    fn differs_between_seeds() {
        let waits: std::collections::BTreeSet<_> = (0..50)
            .map(|seed| INITIAL.delay(1, &mut Jitter::seeded(seed)))
            .collect();
        assert!(waits.len() > 10, "{} different waits", waits.len());
    }
}
