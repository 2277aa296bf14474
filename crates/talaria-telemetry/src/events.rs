//! Event functions: one call where something happened, which logs and counts together.
//!
//! Every label is a closed set, a configured server name or a capped tool name; words of
//! servers and callers go to the log only.

mod care;
mod delivery;
mod gate;
mod http;
mod image;
mod load;
mod reload;
mod server;
mod vision;
mod wire;

pub use care::{circuit_refused, keepalive_ended, list_refreshed, server_breaker_changed};
pub use delivery::{
    blocks_received, blocks_settled, delivery_made, media_failed, media_removed, media_saved,
    media_usage,
};
pub use gate::{gate_decided, images_settled, pixels_kept_out};
pub use http::{ActiveRequest, http_request_began, http_request_ended};
pub use image::{ImageJob, image_job_ended, image_job_refused, image_thread_failed};
pub use load::{deadline_exceeded, queue_depth, queue_refused, server_load, server_queue_waited};
pub use reload::{ReloadOutcome, config_read, config_reloaded};
pub use server::{
    ArgumentOutcome, McpOperation, arguments_checked, catalogue_changed, mcp_operation_ended,
    mcp_session_ended, server_reconnect, server_removed, server_state_changed, steering_counted,
    steering_told,
};
pub use vision::{
    BREAKER_STATES, VisionAttempt, vision_analysis_ended, vision_attempt_ended, vision_breaker,
    vision_breaker_changed, vision_fell_back, vision_hedge_ended, vision_running, vision_shared,
};
pub use wire::{wire_fault, wire_mended, wire_noise, wire_received};

/// A count as a gauge value; exact up to 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "no gauge of ours comes near 2^53"
)]
const fn gauge_value(count: u64) -> f64 {
    count as f64
}

/// A length as a counter step.
fn step(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
