//! The actors together, on one paused clock, against scripted servers.

mod calls;
mod catalogue;
mod faults;
mod health;
mod lifecycle;
mod recycling;
mod reload;
mod stage;
