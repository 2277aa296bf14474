//! Pure rules from content blocks to a delivery and its rendered formats. No I/O, no async,
//! no clock.
//!
//! A result becomes a delivery in three steps, so that the effects between them can live
//! elsewhere: [`plan()`] reads the blocks and says which files are wanted, the caller stores them,
//! [`Plan::finish`] turns the outcomes into a [`Draft`], and [`Draft::settle`] bounds the text
//! once the spill file, if one is wanted, is stored too.

pub mod attach;
pub mod base64_guard;
pub mod delivery;
mod fields;
mod media_types;
mod meta;
pub mod names;
mod notices;
pub mod plan;
pub mod redact;
pub mod render;
mod repeats;
pub mod sanitise;
mod scan;
mod sniff;
mod source;
mod structured;
pub mod text_only;

pub use attach::{AttachOutcome, Attaching, Candidate, ImageNote, ReadyImage, ReadyPicture};
pub use delivery::{
    Area, Artifact, ArtifactKind, Attachment, BlockFate, BlockRecord, Delivery, Gate, Link, Notice,
};
pub use plan::{
    Draft, FileBody, FileOutcome, FileRequest, Plan, PlanRequest, ReaderTool, ResultKind,
    TextToRead, plan,
};
pub use redact::redact;
pub use render::{
    Format, ImageDelivery, ImageLimits, MAX_ATTACHED, RenderOptions, Rendered, render,
};
pub use sanitise::visible_line;
pub use text_only::{ForeignBody, strip_images, text_only};
