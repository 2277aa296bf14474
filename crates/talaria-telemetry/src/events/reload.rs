//! Reading the configuration again.

use crate::metrics::{CONFIG_RELOAD_OK, CONFIG_RELOADS};
use crate::recorder::installed;
use crate::recorder::series::{counter, gauge};

/// What became of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// Servers changed.
    Applied,
    /// There was nothing to change.
    Unchanged,
    /// The file cannot be used; nothing changed.
    Refused,
}

impl ReloadOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
        }
    }
}

/// The configuration was read when the service started.
pub fn config_read() {
    if installed().is_some() {
        gauge(&CONFIG_RELOAD_OK, []).set(1.0);
    }
}

/// The configuration was read again; `trigger` is `http`, `signal` or `watch`.
pub fn config_reloaded(trigger: &'static str, outcome: ReloadOutcome) {
    let word = outcome.as_str();
    match outcome {
        ReloadOutcome::Applied => tracing::info!(trigger, "configuration read again"),
        ReloadOutcome::Unchanged => tracing::debug!(trigger, "configuration is what it was"),
        ReloadOutcome::Refused => tracing::warn!(trigger, "configuration refused"),
    }
    if installed().is_none() {
        return;
    }
    counter(&CONFIG_RELOADS, [trigger.into(), word.into()]).increment(1);
    let successful = outcome != ReloadOutcome::Refused;
    gauge(&CONFIG_RELOAD_OK, []).set(if successful { 1.0 } else { 0.0 });
}
