//! A server's result before anybody has interpreted it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Payload;

/// The `result` of a JSON-RPC response: small JSON plus payload handles.
///
/// A payload string that left the JSON is an empty string there; its handle stands under the
/// RFC 6901 pointer of that string within `json`, for example `/content/0/resource/blob`.
/// A server cannot forge a handle, because pointers are kept outside its JSON.
#[derive(Debug, Default)]
pub struct RawResult {
    /// The result, of any shape the server chose.
    pub json: Value,
    /// Payloads by JSON pointer.
    pub payloads: BTreeMap<String, Payload>,
    /// Faults of the message that were mended on the way.
    pub notes: Vec<WireNote>,
    /// Length of the message on the wire.
    pub wire_bytes: u64,
}

impl RawResult {
    /// A result that is only JSON.
    #[must_use]
    pub const fn from_json(json: Value) -> Self {
        Self {
            json,
            payloads: BTreeMap::new(),
            notes: Vec::new(),
            wire_bytes: 0,
        }
    }
}

/// A fault of a message that was mended instead of failing the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WireNote {
    /// A lone surrogate escape became U+FFFD.
    LoneSurrogate,
    /// Bytes that are not UTF-8 became U+FFFD.
    InvalidUtf8,
    /// A value nested deeper than the limit became null.
    TooDeep,
    /// A number that no 64-bit type holds was kept as a string of its digits.
    HugeNumber,
    /// A raw control character inside a string was escaped.
    RawControl,
    /// A list is longer than is read of it; what follows was left out.
    ListCut,
}
