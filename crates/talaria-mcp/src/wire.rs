//! From message bytes to small JSON plus payload handles.

use talaria_types::{Failure, PayloadSink, RawResult};

/// Reads one JSON text tolerantly: base64 payloads at block positions go to the sink, faults
/// that cost only a value are mended and noted.
///
/// `result_at` is the RFC 6901 pointer of the result inside the text: `/result` for a JSON-RPC
/// response and for the body of `/v1/results/deliver`, empty when the text is the result.
/// Pointers in [`RawResult::payloads`] are relative to it, and [`Scrubbed::rest`] is the text
/// without it.
///
/// # Errors
/// `malformed_message` when the text is not JSON at all.
pub fn scrub(text: &[u8], result_at: &str, sink: &dyn PayloadSink) -> Result<Scrubbed, Failure> {
    let _ = (text, result_at, sink);
    todo!()
}

/// A message split in two.
#[derive(Debug)]
pub struct Scrubbed {
    /// Everything but the result, with null in its place.
    pub rest: serde_json::Value,
    /// The result, or `None` where there is none.
    pub result: Option<RawResult>,
}
