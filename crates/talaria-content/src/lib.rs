//! Pure rules from content blocks to a delivery and its rendered formats. No I/O, no async,
//! no clock.
//!
//! A result becomes a delivery in three steps, so that the effects between them can live
//! elsewhere: [`plan`] reads the blocks and says which files are wanted, the caller stores them,
//! [`Plan::finish`] turns the outcomes into a [`Draft`], and [`Draft::settle`] bounds the text
//! once the spill file, if one is wanted, is stored too.

pub mod base64_guard;
pub mod delivery;
pub mod plan;
pub mod render;

pub use delivery::{
    Artifact, ArtifactKind, Attachment, BlockFate, BlockRecord, Delivery, Gate, Link, Notice,
};
pub use plan::{
    Draft, FileBody, FileOutcome, FileRequest, Plan, PlanRequest, ReaderTool, ResultKind, plan,
};
pub use render::{Format, render};
