//! Every metric, span and log name of Talaria, and the recorder behind them.
//!
//! Other crates never touch the `metrics` crate: they call the event functions of [`events`],
//! which log and count together.

pub mod events;
pub mod metrics;
