//! One MCP server: the actor that owns its session, its RPC lock and its life.
//!
//! Others hold a [`ServerHandle`]; the actor itself is private to this crate.

pub(crate) mod actor;
mod effects;
pub(crate) mod handle;
mod handlers;
mod job;
pub(crate) mod messages;
mod probe;
pub(crate) mod refusal;
pub(crate) mod schemas;
pub(crate) mod snapshot;
pub(crate) mod state;

pub(crate) use handle::ServerHandle;
