//! Queues, waiting and deadlines.

use std::time::Duration;

use talaria_types::ServerName;

use crate::events::{gauge_value, step};
use crate::metrics::{DEADLINE_EXCEEDED, QUEUE_CAPACITY, QUEUE_DEPTH, QUEUE_REFUSED};
use crate::recorder::installed;
use crate::recorder::series::{counter, gauge};

/// Depth of the RPC lock of a server.
pub fn server_load(server: &ServerName, in_flight: usize, pending: usize) {
    let Some(series) = installed() else { return };
    let server = series.server(server);
    server.in_flight.set(gauge_value(step(in_flight)));
    server.pending.set(gauge_value(step(pending)));
}

/// A call waited at a server's RPC lock.
pub fn server_queue_waited(server: &ServerName, waited: Duration) {
    let Some(series) = installed() else { return };
    series.server(server).queue_wait.record(waited);
}

/// A bounded queue's depth changed.
pub fn queue_depth(queue: &'static str, depth: usize, capacity: usize) {
    if installed().is_none() {
        return;
    }
    gauge(&QUEUE_DEPTH, [queue.into()]).set(gauge_value(step(depth)));
    gauge(&QUEUE_CAPACITY, [queue.into()]).set(gauge_value(step(capacity)));
}

/// A bounded queue refused an entry.
pub fn queue_refused(queue: &'static str) {
    tracing::debug!(queue, "queue full");
    if installed().is_some() {
        counter(&QUEUE_REFUSED, [queue.into()]).increment(1);
    }
}

/// A deadline ran out at a stage: `connect`, `queue`, `rpc`, `vision`, `fetch`, `delivery`,
/// `drain`.
pub fn deadline_exceeded(stage: &'static str) {
    tracing::debug!(stage, "deadline exceeded");
    if installed().is_some() {
        counter(&DEADLINE_EXCEEDED, [stage.into()]).increment(1);
    }
}
