//! Who waits for one description, and until when.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use talaria_types::{Deadline, runtime};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::analysis::{Analysis, milliseconds};
use super::messages::Reply;

/// How long after its deadline a waiter is answered with what there is, so that a description
/// that ends on time comes first.
const GRACE: Duration = Duration::from_millis(20);

/// One request that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) reply: oneshot::Sender<Reply>,
    pub(super) deadline: Deadline,
    /// Cancelled when its caller leaves.
    pub(super) gone: CancellationToken,
    pub(super) since: Instant,
    /// Whether the description was already under way.
    pub(super) is_joiner: bool,
}

impl Waiter {
    /// Answers.
    pub(super) fn answer(self, reply: Reply) {
        let reply = reply.map(|analysis| Analysis {
            coalesced: self.is_joiner,
            elapsed_ms: milliseconds(self.since.elapsed()),
            ..analysis
        });
        // Nobody waits any more: then nobody misses it.
        drop(self.reply.send(reply));
    }
}

/// Everybody who waits for one description.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: BTreeMap<usize, Waiter>,
    events: FuturesUnordered<LocalBoxFuture<'static, (usize, Parting)>>,
    next: usize,
}

/// How somebody stops waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// The caller left.
    Gone,
    /// The deadline passed.
    Overdue,
}

impl Waiters {
    pub(super) fn add(&mut self, waiter: Waiter) {
        let id = self.next;
        self.next += 1;
        let (gone, overdue) = (waiter.gone.clone(), waiter.deadline.instant() + GRACE);
        self.events.push(Box::pin(async move {
            let parting = tokio::select! {
                biased;
                () = gone.cancelled() => Parting::Gone,
                () = tokio::time::sleep_until(overdue) => Parting::Overdue,
            };
            (id, parting)
        }));
        self.waiting.insert(id, waiter);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next one that stops waiting; never, where nobody waits.
    pub(super) async fn parting(&mut self) -> (Waiter, Parting) {
        loop {
            let Some((id, parting)) = self.events.next().await else {
                return std::future::pending().await;
            };
            if let Some(waiter) = self.waiting.remove(&id) {
                return (waiter, parting);
            }
        }
    }

    /// Answers everybody.
    pub(super) fn answer(self, reply: &Reply) {
        for waiter in self.waiting.into_values() {
            waiter.answer(reply.clone());
        }
    }
}

impl Waiter {
    /// A request that waits from now on.
    pub(super) fn new(
        reply: oneshot::Sender<Reply>,
        deadline: Deadline,
        gone: CancellationToken,
    ) -> Self {
        Self {
            reply,
            deadline,
            gone,
            since: runtime::now(),
            is_joiner: false,
        }
    }
}
