//! What is done for the health of servers: breakers, signs of life, lists read again.

use talaria_types::ServerName;

use crate::events::gauge_value;
use crate::events::vision::BREAKER_STATES;
use crate::metrics::{CIRCUIT_REFUSED, KEEPALIVES, LIST_REFRESHES, SERVER_BREAKER};
use crate::recorder::installed;
use crate::recorder::series::{counter, gauge};

/// The breaker before a server changed; `state` is one of [`BREAKER_STATES`].
pub fn server_breaker_changed(server: &ServerName, state: &'static str) {
    if state == "open" {
        tracing::warn!(server = server.as_str(), state, "server breaker changed");
    } else {
        tracing::info!(server = server.as_str(), state, "server breaker changed");
    }
    let Some(series) = installed() else { return };
    let label = &series.server(server).label;
    for known in BREAKER_STATES {
        let value = u64::from(*known == state);
        gauge(&SERVER_BREAKER, [label.clone(), (*known).into()]).set(gauge_value(value));
    }
}

/// A breaker refused a call: that of the `server`, or the one of a `tool` in a session.
pub fn circuit_refused(server: &ServerName, scope: &'static str) {
    tracing::debug!(server = server.as_str(), scope, "circuit open");
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    counter(&CIRCUIT_REFUSED, [label, scope.into()]).increment(1);
}

/// A session was asked for a sign of life: `alive`, `refused`, `silent`, `lost`,
/// `unauthorized`, or `untold` where something of our own failed.
pub fn keepalive_ended(server: &ServerName, outcome: &'static str) {
    tracing::debug!(
        server = server.as_str(),
        outcome,
        "asked for a sign of life"
    );
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    counter(&KEEPALIVES, [label, outcome.into()]).increment(1);
}

/// A tool list that changed was read again, or not: `read` or `failed`.
pub fn list_refreshed(server: &ServerName, outcome: &'static str) {
    tracing::debug!(server = server.as_str(), outcome, "tool list read again");
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    counter(&LIST_REFRESHES, [label, outcome.into()]).increment(1);
}
