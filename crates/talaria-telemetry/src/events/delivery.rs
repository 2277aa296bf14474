//! Blocks, deliveries and the media store.

use std::time::Duration;

use talaria_types::{ErrorCode, NoticeCode};

use crate::events::{gauge_value, step};
use crate::metrics::{
    BLOCKS_RECEIVED, BLOCKS_SETTLED, DELIVERY_DURATION, DELIVERY_TEXT, MEDIA_FAILURES,
    MEDIA_REMOVED_BYTES, MEDIA_REMOVED_FILES, MEDIA_SAVED_BYTES, MEDIA_SAVED_FILES,
};
use crate::recorder::installed;
use crate::recorder::series::{counter, histogram};

/// Blocks of a result met their fate. `fate`: `delivered`, `saved`, `spilled`, `refused`.
pub fn blocks_settled(
    kind: &'static str,
    fate: &'static str,
    code: Option<NoticeCode>,
    blocks: usize,
) {
    let code = code.map_or("", NoticeCode::as_str);
    tracing::debug!(kind, fate, code, blocks, "blocks settled");
    if installed().is_some() {
        counter(&BLOCKS_SETTLED, [kind.into(), fate.into(), code.into()]).increment(step(blocks));
    }
}

/// Blocks counted as they came in, before any rule ran.
pub fn blocks_received(kind: &'static str, blocks: usize) {
    if installed().is_some() {
        counter(&BLOCKS_RECEIVED, [kind.into()]).increment(step(blocks));
    }
}

/// A delivery was made.
pub fn delivery_made(format: &'static str, text_bytes: usize, took: Duration, is_error: bool) {
    tracing::debug!(
        format,
        text_bytes,
        is_error,
        seconds = took.as_secs_f64(),
        "delivery made"
    );
    if installed().is_none() {
        return;
    }
    let is_error = if is_error { "true" } else { "false" };
    histogram(&DELIVERY_DURATION, [format.into(), is_error.into()]).record(took);
    counter(&DELIVERY_TEXT, [format.into()]).increment(step(text_bytes));
}

/// A file was stored.
pub fn media_saved(kind: &'static str, bytes: u64) {
    tracing::debug!(kind, bytes, "file saved");
    if installed().is_none() {
        return;
    }
    counter(&MEDIA_SAVED_FILES, [kind.into()]).increment(1);
    counter(&MEDIA_SAVED_BYTES, [kind.into()]).increment(bytes);
}

/// A file could not be stored.
pub fn media_failed(code: ErrorCode, detail: &str) {
    tracing::warn!(code = code.as_str(), detail, "file not saved");
    if installed().is_some() {
        counter(&MEDIA_FAILURES, [code.as_str().into()]).increment(1);
    }
}

/// Files were removed. `reason`: `expired`, `quota`, `deleted`.
pub fn media_removed(reason: &'static str, files: usize, bytes: u64) {
    tracing::info!(reason, files, bytes, "files removed");
    if installed().is_none() {
        return;
    }
    counter(&MEDIA_REMOVED_FILES, [reason.into()]).increment(step(files));
    counter(&MEDIA_REMOVED_BYTES, [reason.into()]).increment(bytes);
}

/// What the store holds.
pub fn media_usage(files: usize, bytes: u64) {
    let Some(series) = installed() else { return };
    series.media_files.set(gauge_value(step(files)));
    series.media_bytes.set(gauge_value(bytes));
}
