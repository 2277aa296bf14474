//! The actors together, on one paused clock, against scripted servers.

mod calls;
mod catalogue;
mod faults;
mod lifecycle;
mod stage;
