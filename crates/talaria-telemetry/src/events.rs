//! Event functions: one call where something happened, which logs and counts together.

use std::time::Duration;

use talaria_types::{ErrorCode, NoticeCode, ServerName, WireNote};

/// An RPC to an MCP server ended. `error_type` is an [`ErrorCode`] text, `tool_error`, or `None`.
pub fn mcp_operation_ended(operation: &McpOperation<'_>, took: Duration, error_type: Option<&str>) {
    let _ = (operation, took, error_type);
}

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

/// A session with a server ended.
pub fn mcp_session_ended(server: &ServerName, transport: &'static str, lasted: Duration, cause: &'static str) {
    let _ = (server, transport, lasted, cause);
}

/// A server changed state. `state` is one of the closed set of state names.
pub fn server_state_changed(server: &ServerName, from: &'static str, to: &'static str, reason: &str) {
    let _ = (server, from, to, reason);
}

/// A server went away for good; its series end.
pub fn server_removed(server: &ServerName) {
    let _ = server;
}

/// A reconnect was started.
pub fn server_reconnect(server: &ServerName, cause: &'static str) {
    let _ = (server, cause);
}

/// The tool list of a server changed.
pub fn catalogue_changed(server: &ServerName, added: usize, removed: usize) {
    let _ = (server, added, removed);
}

/// Depth of the RPC lock of a server.
pub fn server_load(server: &ServerName, in_flight: usize, pending: usize) {
    let _ = (server, in_flight, pending);
}

/// A call waited at a server's RPC lock.
pub fn server_queue_waited(server: &ServerName, waited: Duration) {
    let _ = (server, waited);
}

/// A bounded queue's depth changed.
pub fn queue_depth(queue: &'static str, depth: usize, capacity: usize) {
    let _ = (queue, depth, capacity);
}

/// A bounded queue refused an entry.
pub fn queue_refused(queue: &'static str) {
    let _ = queue;
}

/// A deadline ran out at a stage: `connect`, `queue`, `rpc`, `delivery`, `drain`.
pub fn deadline_exceeded(stage: &'static str) {
    let _ = stage;
}

/// A message of a server failed a call or was dropped.
pub fn wire_fault(server: &ServerName, code: ErrorCode, detail: &str) {
    let _ = (server, code, detail);
}

/// A fault of a message was mended.
pub fn wire_mended(server: &ServerName, note: WireNote) {
    let _ = (server, note);
}

/// Bytes of one message read from a server.
pub fn wire_received(server: &ServerName, bytes: u64) {
    let _ = (server, bytes);
}

/// A block of a result met its fate. `fate`: `delivered`, `saved`, `spilled`, `refused`.
pub fn block_settled(kind: &'static str, fate: &'static str, code: Option<NoticeCode>) {
    let _ = (kind, fate, code);
}

/// Blocks counted as they came in, before any rule ran.
pub fn block_received(kind: &'static str) {
    let _ = kind;
}

/// A delivery was made.
pub fn delivery_made(format: &'static str, text_bytes: usize, took: Duration, is_error: bool) {
    let _ = (format, text_bytes, took, is_error);
}

/// A file was stored.
pub fn media_saved(kind: &'static str, bytes: u64) {
    let _ = (kind, bytes);
}

/// A file could not be stored.
pub fn media_failed(code: ErrorCode, detail: &str) {
    let _ = (code, detail);
}

/// Files were removed. `reason`: `expired`, `quota`, `deleted`.
pub fn media_removed(reason: &'static str, files: usize, bytes: u64) {
    let _ = (reason, files, bytes);
}

/// What the store holds.
pub fn media_usage(files: usize, bytes: u64) {
    let _ = (files, bytes);
}

/// An HTTP request was answered.
pub fn http_request_ended(method: &str, route: &'static str, status: u16, took: Duration, error_type: Option<ErrorCode>) {
    let _ = (method, route, status, took, error_type);
}

/// Counts a request as running until dropped.
#[derive(Debug)]
pub struct ActiveRequest(());

/// An HTTP request began.
#[must_use]
pub fn http_request_began() -> ActiveRequest {
    ActiveRequest(())
}
