//! Making pictures ready, in worker processes that stay: ours, Pillow's and sharp's, so that no
//! start of a process is measured and all get the same bytes from memory.

mod goals;
mod worker;

pub use goals::{Build, Goals, of as goals_of};
pub use worker::{Measured, Way, Worker, serve};

/// Characters of data URL.
pub const BUDGET: usize = 262_144;
/// Longest side.
pub const MAX_SIDE: u32 = 1_568;
