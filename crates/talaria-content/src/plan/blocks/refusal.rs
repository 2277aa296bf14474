//! Refused payloads in words.

use talaria_types::{NoticeCode, PayloadRefusal};

use crate::base64_guard::MAX_PAYLOAD_BYTES;
use crate::sanitise::{address, field};

/// The notice code of a refusal.
pub(in crate::plan) const fn refusal_code(refusal: &PayloadRefusal) -> NoticeCode {
    match refusal {
        PayloadRefusal::Empty => NoticeCode::EmptyBlock,
        PayloadRefusal::NotBase64 { .. } => NoticeCode::NotBase64,
        PayloadRefusal::Address { .. } => NoticeCode::AddressInsteadOfData,
        PayloadRefusal::TooLarge { .. } => NoticeCode::PayloadTooLarge,
        PayloadRefusal::NotStored { .. } => NoticeCode::NotStored,
    }
}

/// The reason of a refusal as a fragment.
pub(in crate::plan) fn reason(refusal: &PayloadRefusal) -> String {
    match refusal {
        PayloadRefusal::Empty => "it is empty".to_owned(),
        PayloadRefusal::NotBase64 { reason } => format!("it is not base64, {}", field(reason)),
        PayloadRefusal::Address { url } => {
            format!("it is an address instead of data, {}", address(url))
        }
        PayloadRefusal::TooLarge { bytes, exact } => format!(
            "it has {}{bytes} bytes, over the limit of {MAX_PAYLOAD_BYTES}",
            if *exact { "" } else { "about " }
        ),
        PayloadRefusal::NotStored { detail, .. } => {
            format!("it could not be stored, {}", field(detail))
        }
    }
}

/// The whole message about a refused payload. `what` names the kind of block, `label` the block
/// itself, `uri` where it says it comes from.
pub(super) fn message(
    what: &str,
    label: &str,
    uri: Option<&str>,
    refusal: &PayloadRefusal,
) -> String {
    match refusal {
        PayloadRefusal::Empty | PayloadRefusal::NotBase64 { .. } => format!(
            "MCP {what} could not be decoded: {label} — unusable data, {}",
            reason(refusal)
        ),
        PayloadRefusal::Address { url } => format!(
            "MCP {what} holds an address instead of data: {} — it was not fetched",
            address(url)
        ),
        PayloadRefusal::TooLarge { bytes, exact } => {
            let about = if *exact { "" } else { "~" };
            let uri = uri
                .map(|uri| format!(", uri={}", address(uri)))
                .unwrap_or_default();
            format!(
                "MCP {what} too large to cache: {about}{bytes} bytes{uri} — the limit is \
                 {MAX_PAYLOAD_BYTES} bytes"
            )
        }
        PayloadRefusal::NotStored { detail, .. } => {
            format!(
                "MCP {what} could not be cached: {label} — {}",
                field(detail)
            )
        }
    }
}
