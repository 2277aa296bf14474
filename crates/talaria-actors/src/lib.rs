//! Supervisor and server actors, the delivery pipeline, placement on arbiters.
//!
//! Others hold handles; the actors are private. Messages carry their deadline.
//!
//! | Part | What it does | Where it runs |
//! |---|---|---|
//! | [`SupervisorHandle`] | finds a tool in the directory and sends the call straight to its server | the caller's loop |
//! | supervisor actor | starts, restarts, switches and drains servers; never carries a call | its own arbiter |
//! | server actor | one MCP session, its RPC lock and its life | an arbiter each |
//! | vision actor | asks the links of the vision chain for descriptions of pictures | its own arbiter |
//! | [`DeliveryService`] | rules inline, files and big results as one blocking job | the caller's loop, the blocking pool |
//!
//! What an operator sees of a server is a snapshot that its actor publishes, so a status is
//! answered whatever the actor does. A call that an actor took and did not send survives the
//! actor; a call that may have been sent fails with `outcome_uncertain`.

pub mod deliver;
pub mod directory;
pub mod feed;
pub mod supervisor;
pub mod vision;

mod backoff;
mod catalogue;
mod chain;
#[cfg(test)]
mod fake;
mod masking;
mod paging;
mod server;
mod tokens;
mod upstream;
mod utility;

pub use chain::{cleaned_detail, cleaned_words};
pub use deliver::{
    DeliverOptions, Delivered, DeliveryParts, DeliveryService, ImageWishes, PictureInput,
    PictureRequest,
};
pub use directory::{PublicTool, ToolTarget, Utility};
pub use feed::{Event, EventId, Heard, Listener};
pub use masking::SharedMasker;
pub use supervisor::{
    BrokenServer, Outage, Placement, ReloadReport, ServerStatus, Supervisor, SupervisorHandle,
    SupervisorOptions, ToolAnswer, ToolListing,
};
pub use vision::{
    Analysis, AnalysisAttempt, Description, PictureFile, Question, VisionHandle, VisionParts,
};
