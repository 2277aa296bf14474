//! A breaker: after three strikes in a row nothing passes for a minute, then one call tries. Pure.
//!
//! One stands before a server and counts what its transport does; small ones, fuses, stand before
//! each tool of each caller's session and count what the tool answers (design decision 18).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::inputs::CallId;
use crate::server::snapshot::BreakerState;

/// Failures in a row that open it.
const STRIKES: u32 = 3;
/// How long nothing passes.
pub(crate) const COOLDOWN: Duration = Duration::from_secs(60);
/// What those are told that come while one call tries.
const WHILE_TRYING: Duration = Duration::from_secs(1);
/// Fuses kept of one server; the one that was touched longest ago goes first.
const MAX_FUSES: usize = 512;

/// What one call says of what it passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It works.
    Good,
    /// It does not.
    Bad,
    /// Nothing.
    Nothing,
}

/// One breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaker {
    /// Everything passes; so many failed in a row.
    Closed(u32),
    /// Nothing passes until then, and one call after that.
    Open(Instant),
    /// This call tries, and another one if it has not ended by then.
    Trying(CallId, Instant),
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed(0)
    }
}

impl Breaker {
    /// How long a new call has to wait; none when it may pass now.
    pub(super) fn closed_for(&self, now: Instant) -> Option<Duration> {
        match self {
            Self::Closed(_) => None,
            Self::Open(until) => {
                Some(until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
            }
            Self::Trying(_, until) if *until <= now => None,
            Self::Trying(..) => Some(WHILE_TRYING),
        }
    }

    /// A call passes. After an opening it is the one that tries.
    pub(super) fn pass(&mut self, id: CallId, now: Instant) {
        match self {
            Self::Closed(_) => {}
            Self::Open(_) | Self::Trying(..) => *self = Self::Trying(id, now + COOLDOWN),
        }
    }

    /// A call that passed has ended; true when this opened the breaker.
    pub(super) fn settle(&mut self, id: CallId, verdict: Verdict, now: Instant) -> bool {
        match (*self, verdict) {
            (_, Verdict::Good) => {
                *self = Self::Closed(0);
                false
            }
            (Self::Closed(strikes), Verdict::Bad) if strikes + 1 < STRIKES => {
                *self = Self::Closed(strikes + 1);
                false
            }
            (Self::Closed(_), Verdict::Bad) => {
                *self = Self::Open(now + COOLDOWN);
                true
            }
            (Self::Trying(trying, _), Verdict::Bad) if trying == id => {
                *self = Self::Open(now + COOLDOWN);
                true
            }
            // The next call tries.
            (Self::Trying(trying, _), Verdict::Nothing) if trying == id => {
                *self = Self::Open(now);
                false
            }
            // One that passed before it opened tells nothing new.
            (Self::Open(_) | Self::Trying(..), Verdict::Bad) | (_, Verdict::Nothing) => false,
        }
    }

    /// As others see it.
    pub(super) fn shown(&self, now: Instant) -> BreakerState {
        match self {
            Self::Closed(_) => BreakerState::Closed,
            Self::Open(until) if *until > now => BreakerState::Open { until: *until },
            Self::Open(_) | Self::Trying(..) => BreakerState::HalfOpen,
        }
    }

    /// When what others see changes by itself.
    pub(super) fn changes_at(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Open(until) => Some(*until).filter(|until| *until > now),
            Self::Closed(_) | Self::Trying(..) => None,
        }
    }

    /// The call that tries.
    #[cfg(test)]
    pub(super) const fn trying(&self) -> Option<CallId> {
        match self {
            Self::Trying(id, _) => Some(*id),
            Self::Closed(_) | Self::Open(_) => None,
        }
    }
}

/// One tool of one caller's session, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FuseKey(pub(crate) u64);

/// The fuses that have something to remember.
#[derive(Clone, Debug, Default)]
pub(super) struct Fuses {
    fuses: BTreeMap<FuseKey, Fuse>,
}

#[derive(Clone, Copy, Debug)]
struct Fuse {
    breaker: Breaker,
    touched: Instant,
}

impl Fuses {
    /// How long a new call has to wait; none when it may pass now.
    pub(super) fn closed_for(&self, key: FuseKey, now: Instant) -> Option<Duration> {
        self.fuses.get(&key)?.breaker.closed_for(now)
    }

    /// A call passes.
    pub(super) fn pass(&mut self, key: FuseKey, id: CallId, now: Instant) {
        if let Some(fuse) = self.fuses.get_mut(&key) {
            fuse.breaker.pass(id, now);
        }
    }

    /// A call that passed has ended.
    pub(super) fn settle(&mut self, key: FuseKey, id: CallId, verdict: Verdict, now: Instant) {
        match verdict {
            Verdict::Good => {
                self.fuses.remove(&key);
            }
            Verdict::Bad => {
                self.make_room(key);
                let fuse = self.fuses.entry(key).or_insert_with(|| Fuse {
                    breaker: Breaker::default(),
                    touched: now,
                });
                fuse.touched = now;
                fuse.breaker.settle(id, Verdict::Bad, now);
            }
            Verdict::Nothing => {
                if let Some(fuse) = self.fuses.get_mut(&key) {
                    fuse.breaker.settle(id, Verdict::Nothing, now);
                }
            }
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.fuses.clear();
    }

    fn make_room(&mut self, newcomer: FuseKey) {
        if self.fuses.len() < MAX_FUSES || self.fuses.contains_key(&newcomer) {
            return;
        }
        let oldest = self.fuses.iter().min_by_key(|(_, fuse)| fuse.touched);
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            self.fuses.remove(&oldest);
        }
    }

    /// The calls that try.
    #[cfg(test)]
    pub(super) fn trying(&self) -> impl Iterator<Item = CallId> {
        self.fuses.values().filter_map(|fuse| fuse.breaker.trying())
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.fuses.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        talaria_types::runtime::now().into_std()
    }

    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for call in 1..=3 {
            assert_eq!(breaker.closed_for(now), None, "call {call} passes");
            breaker.pass(CallId(call), now);
            breaker.settle(CallId(call), Verdict::Bad, now);
        }
        breaker
    }

    #[test]
    fn three_strikes_in_a_row_open_it_for_a_minute() {
        let now = now();
        let mut breaker = Breaker::default();
        for verdict in [
            Verdict::Bad,
            Verdict::Bad,
            Verdict::Good,
            Verdict::Bad,
            Verdict::Bad,
        ] {
            assert!(!breaker.settle(CallId(1), verdict, now));
        }
        assert_eq!(breaker.closed_for(now), None);
        assert!(breaker.settle(CallId(1), Verdict::Bad, now));
        assert_eq!(breaker.closed_for(now), Some(COOLDOWN));
        assert_eq!(
            breaker.shown(now),
            BreakerState::Open {
                until: now + COOLDOWN
            }
        );
        assert_eq!(breaker.closed_for(now + COOLDOWN), None);
        assert_eq!(breaker.shown(now + COOLDOWN), BreakerState::HalfOpen);
    }

    #[test]
    fn l22_one_call_tries_and_its_success_closes_it() {
        let mut breaker = opened(now());
        let later = now() + COOLDOWN;
        breaker.pass(CallId(9), later);
        assert_eq!(
            breaker.closed_for(later),
            Some(WHILE_TRYING),
            "the others wait"
        );
        breaker.settle(CallId(9), Verdict::Good, later);
        assert_eq!(breaker, Breaker::Closed(0));
    }

    #[test]
    fn a_failed_try_opens_it_again() {
        let mut breaker = opened(now());
        let later = now() + COOLDOWN;
        breaker.pass(CallId(9), later);
        assert!(breaker.settle(CallId(9), Verdict::Bad, later));
        assert_eq!(breaker.closed_for(later), Some(COOLDOWN));
    }

    #[test]
    fn a_try_that_says_nothing_leaves_it_to_the_next_call() {
        let mut breaker = opened(now());
        let later = now() + COOLDOWN;
        breaker.pass(CallId(9), later);
        breaker.settle(CallId(9), Verdict::Nothing, later);
        assert_eq!(breaker.closed_for(later), None);
        breaker.pass(CallId(10), later);
        assert_eq!(breaker.trying(), Some(CallId(10)));
    }

    #[test]
    fn stragglers_prolong_nothing() {
        let began = now();
        let mut breaker = opened(began);
        breaker.settle(CallId(2), Verdict::Bad, began + COOLDOWN / 2);
        assert_eq!(breaker.closed_for(began + COOLDOWN), None);
        breaker.pass(CallId(9), began + COOLDOWN);
        breaker.settle(CallId(2), Verdict::Bad, began + COOLDOWN);
        assert_eq!(breaker.trying(), Some(CallId(9)));
    }

    #[test]
    fn a_try_that_takes_long_does_not_keep_the_others_out() {
        let mut breaker = opened(now());
        let later = now() + COOLDOWN;
        breaker.pass(CallId(9), later);
        assert!(breaker.closed_for(later + COOLDOWN / 2).is_some());
        assert_eq!(breaker.closed_for(later + COOLDOWN), None);
        breaker.pass(CallId(10), later + COOLDOWN);
        assert_eq!(breaker.trying(), Some(CallId(10)));
    }

    #[test]
    fn fuses_are_bounded_and_forget_what_works() {
        let now = now();
        let mut fuses = Fuses::default();
        for key in 0..2_000 {
            let at = now + Duration::from_millis(key);
            fuses.settle(FuseKey(key), CallId(key), Verdict::Bad, at);
        }
        assert_eq!(fuses.len(), MAX_FUSES);
        for _ in 0..2 {
            fuses.settle(FuseKey(1_999), CallId(1), Verdict::Bad, now);
        }
        assert_eq!(fuses.closed_for(FuseKey(1_999), now), Some(COOLDOWN));
        assert_eq!(fuses.closed_for(FuseKey(1_998), now), None, "another's");
        fuses.settle(FuseKey(1_999), CallId(1), Verdict::Good, now);
        assert_eq!(fuses.len(), MAX_FUSES - 1);
        fuses.settle(FuseKey(7_000), CallId(1), Verdict::Nothing, now);
        assert_eq!(fuses.len(), MAX_FUSES - 1, "nothing to remember");
    }
}
