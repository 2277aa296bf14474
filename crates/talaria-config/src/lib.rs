//! The YAML tree of Talaria: Hermes-compatible sections, our own section, defaults,
//! interpolation and validation.
//!
//! [`load`] turns text and an environment map into a [`Config`] in which every value is typed
//! and checked. All problems are collected, each with its key path.

mod tree;

pub use tree::*;
