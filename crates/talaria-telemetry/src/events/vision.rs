//! Descriptions of pictures: attempts, hops, breakers, what was shared.

use std::time::Duration;

use crate::events::gauge_value;
use crate::metrics::{
    VISION_ANALYSIS, VISION_ATTEMPT, VISION_BREAKER, VISION_BUDGET_LEFT, VISION_FALLBACKS,
    VISION_HEDGES, VISION_RUNNING, VISION_SHARED,
};
use crate::recorder::installed;
use crate::recorder::series::{counter, gauge, histogram, label_text};

/// States of a breaker, as `talaria_vision_breaker_state` names them.
pub const BREAKER_STATES: &[&str] = &["closed", "half_open", "open"];

/// One attempt at a link of the chain.
#[derive(Clone, Copy, Debug)]
pub struct VisionAttempt<'a> {
    /// The link, one of those that are configured.
    pub backend: &'a str,
    /// `primary`, `fallback` or `mcp`.
    pub stage: &'static str,
    /// `answered`, `reasoned`, `cancelled`, or the kind of fault.
    pub outcome: &'static str,
    /// From its start to its end.
    pub took: Duration,
    /// Words of the fault, cleaned.
    pub detail: &'a str,
}

/// An attempt ended, or a link was passed over.
pub fn vision_attempt_ended(attempt: &VisionAttempt<'_>) {
    // A link that was passed over is no news: what made it so was told before.
    if attempt.took.is_zero() || matches!(attempt.outcome, "answered" | "cancelled") {
        tracing::debug!(
            backend = attempt.backend,
            stage = attempt.stage,
            outcome = attempt.outcome,
            seconds = attempt.took.as_secs_f64(),
            detail = attempt.detail,
            "vision attempt ended"
        );
    } else {
        tracing::warn!(
            backend = attempt.backend,
            stage = attempt.stage,
            outcome = attempt.outcome,
            seconds = attempt.took.as_secs_f64(),
            detail = attempt.detail,
            "vision attempt failed"
        );
    }
    if installed().is_some() {
        let backend = label_text(attempt.backend);
        let labels = [backend.into(), attempt.stage.into(), attempt.outcome.into()];
        histogram(&VISION_ATTEMPT, labels).record(attempt.took);
    }
}

/// A link is asked because of another one. `reason` is the kind of fault, or `hedge`.
pub fn vision_fell_back(from: &str, to: &str, reason: &'static str) {
    // Once for a request; what went wrong was told with the attempt.
    tracing::debug!(from, to, reason, "vision fell back");
    if installed().is_some() {
        let labels = [
            label_text(from).into(),
            label_text(to).into(),
            reason.into(),
        ];
        counter(&VISION_FALLBACKS, labels).increment(1);
    }
}

/// What a link's breaker lets through now: one of [`BREAKER_STATES`].
pub fn vision_breaker(backend: &str, state: &'static str) {
    if installed().is_none() {
        return;
    }
    let backend = label_text(backend);
    for known in BREAKER_STATES {
        let value = u64::from(*known == state);
        let labels = [backend.clone().into(), (*known).into()];
        gauge(&VISION_BREAKER, labels).set(gauge_value(value));
    }
}

/// A link's breaker changed.
pub fn vision_breaker_changed(backend: &str, state: &'static str) {
    if state == "open" {
        tracing::warn!(backend, state, "vision breaker changed");
    } else {
        tracing::info!(backend, state, "vision breaker changed");
    }
    vision_breaker(backend, state);
}

/// A link that was asked because another was slow came to this: `won` or `wasted`.
pub fn vision_hedge_ended(outcome: &'static str) {
    if installed().is_some() {
        counter(&VISION_HEDGES, [outcome.into()]).increment(1);
    }
}

/// A description was given that was made for another request: `coalesced` or `cached`.
pub fn vision_shared(source: &'static str) {
    tracing::debug!(source, "description shared");
    if installed().is_some() {
        counter(&VISION_SHARED, [source.into()]).increment(1);
    }
}

/// A description ended: `answered`, `reasoned`, `failed`, `timeout`, `refused` or `cancelled`.
pub fn vision_analysis_ended(outcome: &'static str, took: Duration, budget_left: Duration) {
    tracing::debug!(
        outcome,
        seconds = took.as_secs_f64(),
        budget_left = budget_left.as_secs_f64(),
        "description ended"
    );
    if installed().is_some() {
        histogram(&VISION_ANALYSIS, [outcome.into()]).record(took);
        histogram(&VISION_BUDGET_LEFT, []).record(budget_left);
    }
}

/// How many descriptions are being made.
pub fn vision_running(running: usize) {
    if installed().is_some() {
        gauge(&VISION_RUNNING, []).set(gauge_value(crate::events::step(running)));
    }
}
