//! Every metric, span and log name of Talaria, and the recorder behind them.
//!
//! Other crates never touch the `metrics` crate: they call the event functions of [`events`],
//! which log and count together. The binary calls [`install`] once and shows
//! [`MetricsHandle::render`] under `/metrics`; before that, events only log.

pub mod events;
pub mod logging;
pub mod metrics;
mod recorder;

pub use recorder::{InstallError, MetricsHandle, install};
