//! Big pictures take turns, so that memory stays bounded whatever arrives at once.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::PoolRefusal;

/// How often one that waits for its turn looks whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(50);
/// How many may pass one that waits, because they are smaller.
const MOST_OVERTAKEN: u32 = 16;

/// Pixels in work, and who waits for more.
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
    most: u64,
}

#[derive(Default)]
struct State {
    used: u64,
    waiting: VecDeque<u64>,
    next_ticket: u64,
    /// Times somebody passed the first one that waits.
    overtaken: u32,
}

impl State {
    fn admits(&self, ticket: u64, pixels: u64, most: u64) -> bool {
        let fits = self.used == 0 || self.used.saturating_add(pixels) <= most;
        let is_first = self.waiting.front() == Some(&ticket);
        fits && (is_first || self.overtaken < MOST_OVERTAKEN)
    }

    fn leave(&mut self, ticket: u64) {
        if self.waiting.front() == Some(&ticket) {
            self.overtaken = 0;
        }
        self.waiting.retain(|waiting| *waiting != ticket);
    }
}

/// A share of the pixels, given back when it is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    pixels: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        state.used = state.used.saturating_sub(self.pixels);
        drop(state);
        self.turns.changed.notify_all();
    }
}

impl Turns {
    pub(super) fn new(most: u64) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            most,
        }
    }

    /// Waits for a share of the pixels, as long as `still_wanted` says so.
    ///
    /// One picture that is larger than the whole share runs alone.
    pub(super) fn take(
        &self,
        pixels: u64,
        still_wanted: impl Fn() -> Result<(), PoolRefusal>,
    ) -> Result<Turn<'_>, PoolRefusal> {
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        while !state.admits(ticket, pixels, self.most) {
            self.changed.wait_for(&mut state, PATIENCE);
            if let Err(refusal) = still_wanted() {
                state.leave(ticket);
                self.changed.notify_all();
                return Err(refusal);
            }
        }
        if state.waiting.front() != Some(&ticket) {
            state.overtaken += 1;
        }
        state.leave(ticket);
        state.used = state.used.saturating_add(pixels);
        Ok(Turn {
            turns: self,
            pixels,
        })
    }
}
