//! The pixel gate and what became of pictures behind it.

use talaria_types::NoticeCode;

use crate::events::step;
use crate::metrics::{GATE_DECISIONS, IMAGE_ATTACHMENTS};
use crate::recorder::installed;
use crate::recorder::series::counter;

/// The gate was asked for a delivery. `cause` and `source` are words of closed sets, `reason` is
/// for operators.
pub fn gate_decided(open: bool, cause: &'static str, source: &'static str, reason: &str) {
    tracing::debug!(open, cause, source, reason, "gate decided");
    if installed().is_some() {
        let open = if open { "true" } else { "false" };
        counter(&GATE_DECISIONS, [open.into(), cause.into(), source.into()]).increment(1);
    }
}

/// Pictures stay out although pixels were wanted: an operator may want to know why.
pub fn pixels_kept_out(cause: &'static str, reason: &str, images: usize) {
    tracing::info!(cause, reason, images, "pixels kept out");
}

/// What became of pictures behind an open gate. `outcome`: `attached`, `refused`, `duplicate`,
/// `left_out`.
pub fn images_settled(outcome: &'static str, code: Option<NoticeCode>, images: usize) {
    if images == 0 {
        return;
    }
    let code = code.map_or("", NoticeCode::as_str);
    tracing::debug!(outcome, code, images, "images settled");
    if installed().is_some() {
        counter(&IMAGE_ATTACHMENTS, [outcome.into(), code.into()]).increment(step(images));
    }
}
