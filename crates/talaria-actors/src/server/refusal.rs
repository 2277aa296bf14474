//! Why a call was not made, in words that help its caller.

use std::time::Duration;

use talaria_telemetry::events;
use talaria_types::{ErrorCode, Failure, ServerName};

use crate::chain::cleaned_words;
use crate::server::messages::Ticket;
use crate::server::snapshot::{Snapshot, StateName};
use crate::server::state::Refusal;

/// The failure for a refused call; counts it.
pub(crate) fn failure(
    refusal: Refusal,
    server: &ServerName,
    snapshot: &Snapshot,
    ticket: &Ticket,
) -> Failure {
    match refusal {
        Refusal::Busy => busy(server),
        Refusal::ExpiredInQueue => {
            events::deadline_exceeded("queue");
            let waited = ticket.since.elapsed().as_secs_f64();
            Failure::new(
                ErrorCode::Timeout,
                format!(
                    "the call to server '{server}' timed out after {waited:.1} s while it waited \
                     for earlier calls; it was not sent"
                ),
            )
            .on_server(server)
        }
        Refusal::ExpiredConnecting => {
            events::deadline_exceeded("connect");
            not_ready(server, snapshot)
        }
        Refusal::NotReady => not_ready(server, snapshot),
        Refusal::Draining(code) => draining(code, server),
    }
}

/// Too many calls wait already.
pub(crate) fn busy(server: &ServerName) -> Failure {
    events::queue_refused("server_pending");
    Failure::new(
        ErrorCode::ServerBusy,
        format!("server '{server}' has too many calls waiting already; try again later"),
    )
    .on_server(server)
    .retry_after(Duration::from_secs(1))
}

/// The server takes no new calls.
pub(crate) fn draining(code: ErrorCode, server: &ServerName) -> Failure {
    let detail = if code == ErrorCode::ServerDisabled {
        format!("server '{server}' is disabled; an operator can enable it")
    } else {
        "Talaria is shutting down and takes no new calls; try again in a moment".to_owned()
    };
    Failure::new(code, detail).on_server(server)
}

/// The server is not trusted, and the caller did not approve a tool that may write.
pub(crate) fn not_approved(server: &ServerName) -> Failure {
    Failure::new(
        ErrorCode::Forbidden,
        format!(
            "server '{server}' is not trusted, so a tool that does not declare itself read-only \
             needs an approval: a person looks at the call, and it is sent again with \
             `approve: true`; nothing was sent to the server"
        ),
    )
    .on_server(server)
}

/// There is no session; names the state.
pub(crate) fn not_ready(server: &ServerName, snapshot: &Snapshot) -> Failure {
    let state = match snapshot.state {
        StateName::Starting | StateName::Ready => "is still starting",
        StateName::Backoff => "has lost its connection and is being restarted",
        StateName::Failed => "has failed and is tried again from time to time",
        StateName::Disabled => return draining(ErrorCode::ServerDisabled, server),
        StateName::Draining | StateName::Stopped => {
            let code = snapshot.refusal.unwrap_or(ErrorCode::ShuttingDown);
            return draining(code, server);
        }
    };
    let reason = snapshot
        .reason
        .as_deref()
        .map(|reason| format!(" ({reason})"));
    let detail = format!(
        "server '{server}' {state}{}; the call was not sent (state: {})",
        reason.unwrap_or_default(),
        snapshot.state.as_str()
    );
    let failure = Failure::new(ErrorCode::ServerUnavailable, detail).on_server(server);
    match snapshot.time_to_next_attempt() {
        Some(wait) => failure.retry_after(wait),
        None => failure,
    }
}

/// The connection went away while the call ran.
pub(crate) fn connection_lost(server: &ServerName) -> Failure {
    Failure::new(
        ErrorCode::ConnectionLost,
        format!("the connection to server '{server}' was lost while the call ran"),
    )
    .on_server(server)
}

/// The call ran longer than it may; names the server's limit and the call's own.
pub(crate) fn timed_out(ticket: &Ticket, server: &ServerName, idle: Duration) -> Failure {
    let limit = ticket
        .ctx
        .deadline
        .instant()
        .saturating_duration_since(ticket.since);
    let detail = format!(
        "'{}' on server '{server}' timed out after {:.1} s (the server's timeout is {} s without \
         an answer or progress, this call's own limit was {:.1} s)",
        cleaned_words(ticket.target.raw_name()),
        ticket.since.elapsed().as_secs_f64(),
        idle.as_secs_f64(),
        limit.as_secs_f64(),
    );
    Failure::new(ErrorCode::Timeout, detail).on_server(server)
}

/// Something broke while the call ran.
pub(crate) fn broken(server: &ServerName) -> Failure {
    Failure::new(
        ErrorCode::Internal,
        format!("something broke inside Talaria while it called server '{server}'"),
    )
    .on_server(server)
}

/// The caller went away.
pub(crate) fn cancelled(server: &ServerName) -> Failure {
    Failure::new(ErrorCode::Cancelled, "the caller cancelled the call").on_server(server)
}
