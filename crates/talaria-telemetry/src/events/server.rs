//! Life and operations of MCP servers.

use std::time::Duration;

use talaria_types::{ErrorCode, ServerName};

use crate::events::step;
use crate::metrics::{
    ARGUMENT_CHECKS, CATALOGUE_CHANGES, CATALOGUE_TOOLS, MCP_CLIENT_OPERATION, MCP_CLIENT_SESSION,
    OTHER, SERVER_RECONNECTS, STATE_REASONS, STEERING_FOUND,
};
use crate::recorder::installed;
use crate::recorder::series::{counter, histogram};

/// Labels of an MCP client operation.
#[derive(Clone, Copy, Debug)]
pub struct McpOperation<'a> {
    /// Configured server.
    pub server: &'a ServerName,
    /// JSON-RPC method, for example `tools/call`.
    pub method: &'static str,
    /// Raw tool name for `tools/call`.
    pub tool: Option<&'a str>,
    /// `pipe` or `tcp`.
    pub transport: &'static str,
}

/// An RPC to an MCP server ended. `error_type` is an [`ErrorCode`] text, `tool_error`, or `None`.
pub fn mcp_operation_ended(operation: &McpOperation<'_>, took: Duration, error_type: Option<&str>) {
    tracing::debug!(
        server = operation.server.as_str(),
        method = operation.method,
        tool = operation.tool,
        error_type,
        seconds = took.as_secs_f64(),
        "rpc ended"
    );
    let Some(series) = installed() else { return };
    let server = series.server(operation.server);
    let tool = operation
        .tool
        .map_or_else(|| "".into(), |tool| series.tool_label(&server, tool));
    histogram(
        &MCP_CLIENT_OPERATION,
        [
            server.label.clone(),
            operation.method.into(),
            tool,
            operation.transport.into(),
            error_label(error_type).into(),
        ],
    )
    .record(took);
}

/// A session with a server ended.
pub fn mcp_session_ended(
    server: &ServerName,
    transport: &'static str,
    lasted: Duration,
    cause: &'static str,
) {
    tracing::info!(
        server = server.as_str(),
        transport,
        cause,
        seconds = lasted.as_secs_f64(),
        "session ended"
    );
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    histogram(&MCP_CLIENT_SESSION, [label, transport.into(), cause.into()]).record(lasted);
}

/// A server changed state. `state` is one of [`crate::metrics::SERVER_STATES`]; `reason` is an
/// [`ErrorCode`] text or one of [`crate::metrics::STATE_REASONS`], anything else counts as
/// `other` and stands in the log only.
pub fn server_state_changed(
    server: &ServerName,
    from: &'static str,
    to: &'static str,
    reason: &str,
) {
    if matches!(to, "degraded" | "backoff" | "parked" | "failed") {
        tracing::warn!(
            server = server.as_str(),
            from,
            to,
            reason,
            "server changed state"
        );
    } else {
        tracing::info!(
            server = server.as_str(),
            from,
            to,
            reason,
            "server changed state"
        );
    }
    let Some(series) = installed() else { return };
    series
        .server(server)
        .state_changed(to, reason_label(reason));
}

/// A server that a reload removed has ended.
pub fn server_removed(server: &ServerName) {
    let Some(series) = installed() else { return };
    series.server(server).removed();
}

/// A reconnect was started.
pub fn server_reconnect(server: &ServerName, cause: &'static str) {
    tracing::info!(server = server.as_str(), cause, "reconnecting");
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    counter(&SERVER_RECONNECTS, [label, cause.into()]).increment(1);
}

/// The tool list of a server changed.
pub fn catalogue_changed(server: &ServerName, added: usize, removed: usize) {
    tracing::info!(
        server = server.as_str(),
        added,
        removed,
        "tool list changed"
    );
    let Some(series) = installed() else { return };
    let label = &series.server(server).label;
    counter(&CATALOGUE_CHANGES, [label.clone()]).increment(1);
    counter(&CATALOGUE_TOOLS, [label.clone(), "added".into()]).increment(step(added));
    counter(&CATALOGUE_TOOLS, [label.clone(), "removed".into()]).increment(step(removed));
}

/// What a check of arguments came to, where that is worth counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentOutcome {
    /// They do not fit the tool's input schema.
    Refused,
    /// The schema cannot be enforced.
    UnusableSchema,
    /// The check was given up.
    TooCostly,
}

impl ArgumentOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::UnusableSchema => "unusable_schema",
            Self::TooCostly => "too_costly",
        }
    }
}

/// A call's arguments were checked against the tool's input schema.
pub fn arguments_checked(server: &ServerName, outcome: ArgumentOutcome) {
    let word = outcome.as_str();
    tracing::debug!(
        server = server.as_str(),
        outcome = word,
        "arguments checked"
    );
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    counter(&ARGUMENT_CHECKS, [label, word.into()]).increment(1);
}

/// Words meant to steer a model stand in a server's instructions, or in a tool of it.
/// `pattern` is of a closed set.
pub fn steering_counted(server: &ServerName, pattern: &str) {
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    counter(&STEERING_FOUND, [label, pattern.to_owned().into()]).increment(1);
}

/// Says where such words stand.
pub fn steering_told(server: &ServerName, tool: Option<&str>, pattern: &str, excerpt: &str) {
    let server = server.as_str();
    tracing::warn!(
        server,
        tool,
        pattern,
        excerpt,
        "words that may steer the model"
    );
}

fn reason_label(reason: &str) -> &'static str {
    ErrorCode::ALL
        .iter()
        .map(|code| code.as_str())
        .chain(STATE_REASONS.iter().copied())
        .find(|known| *known == reason)
        .unwrap_or(if reason.is_empty() { "" } else { OTHER })
}

fn error_label(error_type: Option<&str>) -> &'static str {
    let Some(error_type) = error_type else {
        return "";
    };
    ErrorCode::ALL
        .iter()
        .map(|code| code.as_str())
        .chain(["tool_error"])
        .find(|known| *known == error_type)
        .unwrap_or(OTHER)
}
