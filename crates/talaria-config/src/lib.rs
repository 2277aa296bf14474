//! The YAML tree of Talaria: Hermes-compatible sections, our own section, defaults,
//! interpolation and validation.
//!
//! [`load`] turns text and an environment map into a [`Config`] in which every value is typed
//! and checked. All problems are collected, each with its key path. Nothing here reads files,
//! the environment or the clock.

mod gate;
mod images;
mod load;
mod own;
mod server;
mod vision;

pub mod defaults;
pub mod schema;
mod tree;

mod audit;
mod command_check;
mod difference;
mod interpolate;
mod problem;
mod secrets;
mod section;
mod show;
mod units;
mod yaml;

pub use load::{Source, load, load_default};
pub use problem::{ConfigErrors, Problem};
pub use secrets::SecretValues;
pub use tree::*;
