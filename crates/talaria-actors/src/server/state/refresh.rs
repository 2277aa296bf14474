//! When the tool list is read again: storms of changes are one change, failures are retried. Pure.

use std::time::{Duration, Instant};

use crate::backoff::{Backoff, Jitter};

/// How long a change may be followed by others before the list is read.
const QUIET: Duration = Duration::from_millis(50);
/// Least pause between two readings, whatever the server announces.
const GAP: Duration = Duration::from_secs(1);
/// Pauses before a reading that failed is tried again.
const RETRY: Backoff = Backoff {
    quick: None,
    base: Duration::from_secs(5),
    ceiling: Duration::from_secs(300),
};

/// The tool list of one session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refresh {
    due: Option<Instant>,
    running: bool,
    not_before: Option<Instant>,
    failures: u32,
}

impl Refresh {
    /// The server says that its tools changed.
    pub(super) fn announced(&mut self, now: Instant) {
        let quiet = now + QUIET;
        let at = self
            .not_before
            .map_or(quiet, |earliest| earliest.max(quiet));
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// When the list is to be read.
    pub(super) const fn due(&self) -> Option<Instant> {
        if self.running { None } else { self.due }
    }

    /// It waits for its turn.
    pub(super) const fn queued(&mut self) {
        self.due = None;
    }

    /// It is being read.
    pub(super) const fn started(&mut self) {
        self.running = true;
    }

    /// Whether it is being read.
    pub(super) const fn is_running(&self) -> bool {
        self.running
    }

    /// It was read, or not.
    pub(super) fn ended(&mut self, read: bool, now: Instant, jitter: &mut Jitter) {
        self.running = false;
        self.not_before = Some(now + GAP);
        if read {
            self.failures = 0;
            self.due = self.due.map(|due| due.max(now + GAP));
        } else {
            self.failures = self.failures.saturating_add(1);
            self.due = Some(now + RETRY.delay(self.failures, jitter));
        }
    }

    /// Whether the list may be out of date.
    pub(super) const fn is_stale(&self) -> bool {
        self.failures > 0
    }

    /// The session is over, and what it was asked with it.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_of_changes_is_read_once_and_then_once_more() {
        let mut now = talaria_types::runtime::now().into_std();
        let mut jitter = Jitter::seeded(1);
        let mut refresh = Refresh::default();
        let mut readings = 0;
        for _ in 0..10_000 {
            refresh.announced(now);
            if refresh.due().is_some_and(|due| due <= now) {
                refresh.queued();
                refresh.started();
                refresh.announced(now);
                assert_eq!(refresh.due(), None, "one at a time");
                refresh.ended(true, now, &mut jitter);
                readings += 1;
            }
            now += Duration::from_millis(1);
        }
        assert!((9..=11).contains(&readings), "{readings} in ten seconds");
    }

    #[test]
    fn fr_159_a_failed_reading_is_tried_again_with_growing_pauses() {
        let mut now = talaria_types::runtime::now().into_std();
        let mut jitter = Jitter::seeded(1);
        let mut refresh = Refresh::default();
        refresh.announced(now);
        for seconds in [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0] {
            refresh.queued();
            refresh.started();
            refresh.ended(false, now, &mut jitter);
            assert!(refresh.is_stale());
            let wait = refresh.due().unwrap() - now;
            assert!(
                (0.8 * seconds..=1.2 * seconds).contains(&wait.as_secs_f64()),
                "{wait:?}"
            );
            now += wait;
        }
        refresh.queued();
        refresh.started();
        refresh.ended(true, now, &mut jitter);
        assert_eq!((refresh.is_stale(), refresh.due()), (false, None));
    }
}
