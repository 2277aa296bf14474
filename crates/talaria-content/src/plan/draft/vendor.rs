//! The vendor's `_meta` of a result.

use serde_json::Value;
use talaria_types::NoticeCode;

use crate::meta::{MAX_META_BYTES, Meta, vendor_keys};
use crate::notices::Notices;

/// Vendor `_meta`, or the line that says why it is not there.
pub(super) struct VendorMeta {
    pub(super) kept: Option<Value>,
    pub(super) line: Option<String>,
}

pub(super) fn vendor_meta(meta: Option<Value>, notices: &mut Notices) -> VendorMeta {
    match meta.map_or(Meta::Nothing, vendor_keys) {
        Meta::Nothing => VendorMeta {
            kept: None,
            line: None,
        },
        Meta::Kept(kept) => VendorMeta {
            kept: Some(kept),
            line: None,
        },
        Meta::NoObject => {
            notices.add(
                NoticeCode::MalformedBlock,
                None,
                "the result's _meta is no object",
            );
            VendorMeta {
                kept: None,
                line: None,
            }
        }
        Meta::TooLarge { bytes } => {
            let code = NoticeCode::MetaTooLarge;
            let message =
                format!("MCP _meta dropped: {bytes} bytes, the limit is {MAX_META_BYTES}");
            notices.add(code, None, message.as_str());
            VendorMeta {
                kept: None,
                line: Some(format!("[{message} ({})]", code.as_str())),
            }
        }
    }
}
