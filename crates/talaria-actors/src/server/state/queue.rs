//! The waiting calls of one server: in turn over the callers, first in, first out within each.
//! Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use super::breaker::FuseKey;
use super::inputs::{CallId, Lane};

/// A call between its acceptance and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    /// Order of acceptance, kept when a lost call goes back to the queue.
    pub(super) turn: u64,
    pub(super) deadline: Instant,
    /// When it stops waiting for a session; none while there is one.
    pub(super) ready_by: Option<Instant>,
    pub(super) read_only: bool,
    /// How often its connection was lost.
    pub(super) losses: u8,
    /// Whose it is.
    pub(super) lane: Lane,
    /// What remembers its tool's errors.
    pub(super) fuse: Option<FuseKey>,
}

impl Accepted {
    pub(super) fn give_up_at(&self) -> Instant {
        self.ready_by
            .map_or(self.deadline, |ready_by| ready_by.min(self.deadline))
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Call(CallId, Accepted),
    Refresh,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Lane(Lane),
    /// Our own: the tool list.
    Refresh,
}

/// The queue.
#[derive(Clone, Debug, Default)]
pub(super) struct FairQueue {
    /// Lost calls that go before all others, by their order of acceptance.
    again: VecDeque<(CallId, Accepted)>,
    lanes: BTreeMap<Lane, VecDeque<(CallId, Accepted)>>,
    /// Each lane with something in it once.
    turns: VecDeque<Turn>,
    calls: usize,
}

impl FairQueue {
    /// Calls that wait.
    pub(super) const fn calls(&self) -> usize {
        self.calls
    }

    /// Whether nothing at all waits.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.again.is_empty()
    }

    /// Calls of one caller that wait.
    pub(super) fn calls_of(&self, lane: Lane) -> usize {
        let again = self.again.iter().filter(|(_, call)| call.lane == lane);
        self.lanes.get(&lane).map_or(0, VecDeque::len) + again.count()
    }

    /// Puts a new call behind those of its caller.
    pub(super) fn push(&mut self, id: CallId, call: Accepted) {
        let waiting = self.lanes.entry(call.lane).or_default();
        if waiting.is_empty() {
            self.turns.push_back(Turn::Lane(call.lane));
        }
        waiting.push_back((id, call));
        self.calls += 1;
    }

    /// Puts a lost call back: it had its turn, so it is next.
    pub(super) fn put_back(&mut self, id: CallId, call: Accepted) {
        let later = self
            .again
            .iter()
            .position(|(_, other)| other.turn > call.turn);
        let place = later.unwrap_or(self.again.len());
        self.again.insert(place, (id, call));
        self.calls += 1;
    }

    /// Has the tool list read in its turn.
    pub(super) fn want_refresh(&mut self) {
        if !self.turns.contains(&Turn::Refresh) {
            self.turns.push_back(Turn::Refresh);
        }
    }

    /// Does not have it read.
    pub(super) fn forget_refresh(&mut self) {
        self.turns.retain(|turn| *turn != Turn::Refresh);
    }

    /// Takes what is next.
    pub(super) fn pop(&mut self) -> Option<Work> {
        if let Some((id, call)) = self.again.pop_front() {
            self.calls -= 1;
            return Some(Work::Call(id, call));
        }
        let lane = match self.turns.pop_front()? {
            Turn::Refresh => return Some(Work::Refresh),
            Turn::Lane(lane) => lane,
        };
        let waiting = self.lanes.get_mut(&lane)?;
        let (id, call) = waiting.pop_front()?;
        self.calls -= 1;
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        } else {
            self.turns.push_back(Turn::Lane(lane));
        }
        Some(Work::Call(id, call))
    }

    /// Takes one call out.
    pub(super) fn remove(&mut self, id: CallId) -> Option<Accepted> {
        self.take(|other, _| other == id)
            .pop()
            .map(|(_, call)| call)
    }

    /// Takes every call out that fits, in the order of their acceptance.
    pub(super) fn take(
        &mut self,
        fits: impl Fn(CallId, &Accepted) -> bool,
    ) -> Vec<(CallId, Accepted)> {
        let mut taken = Vec::new();
        let again = std::iter::once(&mut self.again);
        for waiting in again.chain(self.lanes.values_mut()) {
            waiting.retain(|(id, call)| {
                let goes = fits(*id, call);
                if goes {
                    taken.push((*id, *call));
                }
                !goes
            });
        }
        if !taken.is_empty() {
            self.lanes.retain(|_, waiting| !waiting.is_empty());
            let lanes = &self.lanes;
            self.turns.retain(|turn| match turn {
                Turn::Lane(lane) => lanes.contains_key(lane),
                Turn::Refresh => true,
            });
            self.calls -= taken.len();
            taken.sort_by_key(|(_, call)| call.turn);
        }
        taken
    }

    /// Every call that waits.
    pub(super) fn each(&self) -> impl Iterator<Item = &Accepted> {
        let lanes = self.lanes.values().flatten();
        self.again.iter().chain(lanes).map(|(_, call)| call)
    }

    /// Every call that waits, to change it.
    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut Accepted> {
        let lanes = self.lanes.values_mut().flatten();
        self.again.iter_mut().chain(lanes).map(|(_, call)| call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(turn: u64, lane: u64) -> (CallId, Accepted) {
        let call = Accepted {
            turn,
            deadline: talaria_types::runtime::now().into_std(),
            ready_by: None,
            read_only: false,
            losses: 0,
            lane: Lane(lane),
            fuse: None,
        };
        (CallId(turn), call)
    }

    fn queue(calls: &[(u64, u64)]) -> FairQueue {
        let mut queue = FairQueue::default();
        for (turn, lane) in calls {
            let (id, call) = call(*turn, *lane);
            queue.push(id, call);
        }
        queue
    }

    fn order(queue: &mut FairQueue) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some(work) = queue.pop() {
            order.push(match work {
                Work::Call(id, _) => id.0,
                Work::Refresh => 0,
            });
        }
        assert_eq!((queue.calls(), queue.is_empty()), (0, true));
        order
    }

    #[test]
    fn callers_take_turns_and_keep_their_order() {
        let mut queue = queue(&[(1, 7), (2, 7), (3, 7), (4, 8), (5, 9), (6, 8)]);
        assert_eq!(order(&mut queue), [1, 4, 5, 2, 6, 3]);
    }

    #[test]
    fn lost_calls_are_next_in_the_order_they_came() {
        let mut queue = queue(&[(3, 8), (4, 7)]);
        for turn in [2, 1] {
            let (id, call) = call(turn, 7);
            queue.put_back(id, call);
        }
        assert_eq!((queue.calls(), queue.calls_of(Lane(7))), (4, 3));
        assert_eq!(order(&mut queue), [1, 2, 3, 4]);
    }

    #[test]
    fn the_tool_list_takes_its_turn_once() {
        let mut queue = queue(&[(1, 7), (2, 7), (3, 8)]);
        queue.want_refresh();
        queue.want_refresh();
        assert_eq!(order(&mut queue), [1, 3, 0, 2]);
    }

    #[test]
    fn what_is_taken_out_leaves_no_turn_behind() {
        let mut queue = queue(&[(1, 7), (2, 8), (3, 7)]);
        assert!(queue.remove(CallId(2)).is_some());
        assert!(queue.remove(CallId(2)).is_none());
        assert_eq!((queue.calls(), queue.calls_of(Lane(7))), (2, 2));
        let taken = queue.take(|_, call| call.lane == Lane(7));
        assert_eq!(taken.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [1, 3]);
        assert!(queue.is_empty() && queue.pop().is_none());
    }
}
