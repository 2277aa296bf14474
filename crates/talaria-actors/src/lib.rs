//! Supervisor and server actors, the delivery pipeline, placement on arbiters.
//!
//! Others hold handles; the actors are private. Messages carry their deadline.

pub mod deliver;
pub mod directory;
pub mod supervisor;

mod backoff;
mod catalogue;
#[cfg(test)]
mod fake;
mod paging;
mod server;
mod tokens;
mod upstream;
mod utility;

pub use deliver::{DeliverOptions, DeliveryService};
pub use directory::{PublicTool, ToolTarget, Utility};
pub use supervisor::{
    Placement, ServerStatus, Supervisor, SupervisorHandle, SupervisorOptions, ToolAnswer,
};
