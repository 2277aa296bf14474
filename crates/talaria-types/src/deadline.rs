//! Points in time by which an answer is owed.

use std::time::Duration;

use tokio::time::Instant;

/// The moment after which nobody waits any more. Travels inside every message.
///
/// Built on the tokio clock, so a paused test clock reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline `budget` from now.
    #[must_use]
    pub fn after(budget: Duration) -> Self {
        Self(crate::runtime::now() + budget)
    }

    /// The deadline at a given instant.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// The instant itself, for `tokio::time::timeout_at`.
    #[must_use]
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// The time left; zero once it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(crate::runtime::now())
    }

    /// Whether it has passed.
    #[must_use]
    pub fn expired(self) -> bool {
        self.remaining().is_zero()
    }

    /// The earlier of two deadlines.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        self.min(other)
    }
}
