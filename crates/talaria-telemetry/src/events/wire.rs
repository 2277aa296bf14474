//! Messages of MCP servers on the wire.

use talaria_types::{ErrorCode, ServerName, WireNote};

use crate::metrics::{WIRE_FAULTS, WIRE_MENDED};
use crate::recorder::installed;
use crate::recorder::series::counter;

/// A message of a server failed a call or was dropped.
pub fn wire_fault(server: &ServerName, code: ErrorCode, detail: &str) {
    tracing::warn!(
        server = server.as_str(),
        code = code.as_str(),
        detail,
        "bad message"
    );
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    counter(&WIRE_FAULTS, [label, code.as_str().into()]).increment(1);
}

/// A further line of a server was no message. Counted like a fault, but not worth a line of ours.
pub fn wire_noise(server: &ServerName) {
    tracing::trace!(server = server.as_str(), "noise");
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    let code = ErrorCode::MalformedMessage;
    counter(&WIRE_FAULTS, [label, code.as_str().into()]).increment(1);
}

/// A fault of a message was mended.
pub fn wire_mended(server: &ServerName, note: WireNote) {
    let fault = fault_label(note);
    tracing::debug!(server = server.as_str(), fault, "message mended");
    let Some(series) = installed() else { return };
    let label = series.server(server).label.clone();
    counter(&WIRE_MENDED, [label, fault.into()]).increment(1);
}

/// Bytes of one message read from a server.
pub fn wire_received(server: &ServerName, bytes: u64) {
    let Some(series) = installed() else { return };
    series.server(server).wire_received.increment(bytes);
}

const fn fault_label(note: WireNote) -> &'static str {
    match note {
        WireNote::LoneSurrogate => "lone_surrogate",
        WireNote::InvalidUtf8 => "invalid_utf8",
        WireNote::TooDeep => "too_deep",
        WireNote::HugeNumber => "huge_number",
        WireNote::RawControl => "raw_control",
        WireNote::ListCut => "list_cut",
    }
}
