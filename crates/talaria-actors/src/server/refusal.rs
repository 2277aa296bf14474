//! Why a call was not made, in words that help its caller.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use talaria_telemetry::events;
use talaria_types::{ErrorCode, Failure, ServerName};

use crate::chain::cleaned_words;
use crate::server::messages::Ticket;
use crate::server::snapshot::{Snapshot, StateName};
use crate::server::state::Refusal;

/// The cause of a failure that is the queue's, and not the server's: the call was not sent.
#[derive(Clone, Copy, Debug)]
struct NotSent;

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call waited for earlier calls and was not sent")
    }
}

impl Error for NotSent {}

/// Whether a call failed for our own queue alone.
pub(crate) fn is_the_queues(failure: &Failure) -> bool {
    let was_late = failure.source().is_some_and(|cause| cause.is::<NotSent>());
    was_late || matches!(failure.code(), ErrorCode::ServerBusy | ErrorCode::Busy)
}

/// The failure for a refused call; counts it.
pub(crate) fn failure(
    refusal: Refusal,
    server: &ServerName,
    snapshot: &Snapshot,
    ticket: &Ticket,
) -> Failure {
    match refusal {
        Refusal::Busy => busy(server),
        Refusal::Share => share(server),
        Refusal::ServerCircuit(wait) => server_circuit(server, wait),
        Refusal::ToolCircuit(wait) => tool_circuit(server, ticket, wait),
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
            .caused_by(NotSent)
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

/// The token has its half of the waiting places.
fn share(server: &ServerName) -> Failure {
    events::queue_refused("server_share");
    Failure::new(
        ErrorCode::Busy,
        format!(
            "as many calls of this token wait at server '{server}' as one token may have waiting; \
             the other places are for others, try again later"
        ),
    )
    .on_server(server)
    .retry_after(Duration::from_secs(1))
}

/// The last calls got no answer, whoever made them.
fn server_circuit(server: &ServerName, wait: Duration) -> Failure {
    events::circuit_refused(server, "server");
    let seconds = wait.as_secs_f64().ceil();
    Failure::new(
        ErrorCode::CircuitOpen,
        format!(
            "server '{server}' is unreachable: its last calls got no answer, so none is sent for \
             another {seconds} s; the call was not sent"
        ),
    )
    .on_server(server)
    .retry_after(wait)
}

/// The tool answered this session with errors only.
fn tool_circuit(server: &ServerName, ticket: &Ticket, wait: Duration) -> Failure {
    events::circuit_refused(server, "tool");
    let tool = cleaned_words(ticket.target.raw_name());
    let seconds = wait.as_secs_f64().ceil();
    Failure::new(
        ErrorCode::CircuitOpen,
        format!(
            "server '{server}' is reachable, but its tool '{tool}' keeps rejecting the calls of \
             this session, so none is sent for another {seconds} s; look at its errors and call \
             it another way, or use another tool"
        ),
    )
    .on_server(server)
    .retry_after(wait)
}

/// The server takes no new calls.
pub(crate) fn draining(code: ErrorCode, server: &ServerName) -> Failure {
    let restarting = code == ErrorCode::ServerUnavailable;
    let detail = if code == ErrorCode::ServerDisabled {
        format!("server '{server}' is disabled; an operator can enable it")
    } else if restarting {
        format!(
            "server '{server}' is restarting with a changed configuration; try again in a moment"
        )
    } else if code == ErrorCode::UnknownServer {
        format!("server '{server}' was removed from the configuration")
    } else {
        "Talaria is shutting down and takes no new calls; try again in a moment".to_owned()
    };
    let failure = Failure::new(code, detail).on_server(server);
    if restarting {
        failure.retry_after(Duration::from_secs(1))
    } else {
        failure
    }
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
    if snapshot.needs_reauth && snapshot.state == StateName::Parked {
        return wants_credentials(server, snapshot);
    }
    let state = match snapshot.state {
        StateName::Configured | StateName::Connecting | StateName::Ready | StateName::Degraded => {
            "is still starting"
        }
        StateName::Backoff => "has lost its connection and is being restarted",
        StateName::Parked => "is down and is tried again from time to time",
        StateName::Failed => "cannot be used as it is configured",
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

/// Nothing but other credentials helps.
fn wants_credentials(server: &ServerName, snapshot: &Snapshot) -> Failure {
    let failure = Failure::new(
        ErrorCode::ServerUnauthorized,
        format!(
            "server '{server}' refuses the credentials it was given: somebody has to sign in \
             again or change its headers; the call was not sent (state: {})",
            snapshot.state.as_str()
        ),
    );
    failure.on_server(server)
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
