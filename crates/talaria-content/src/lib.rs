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
pub mod describe;
mod fields;
pub mod injection;
mod masking;
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
pub mod tools;
mod untrusted;

pub use attach::{AttachOutcome, Attaching, Candidate, ImageNote, ReadyImage, ReadyPicture};
pub use delivery::{
    Area, Artifact, ArtifactKind, Attachment, BlockFate, BlockRecord, Delivery, DescriptionError,
    Gate, ImageDescription, Link, Notice, Vision,
};
pub use describe::{
    DescribeOutcome, MAX_ANALYSIS_CHARACTERS, ShownDescription, ToDescribe, backend_words,
    description_text,
};
pub use masking::Masker;
pub use plan::{
    Draft, FileBody, FileOutcome, FileRequest, NoAnswer, Plan, PlanRequest, ReaderTool, ResultKind,
    TextToRead, plan, tool_answer_text,
};
pub use redact::redact;
pub use render::{
    Format, ImageDelivery, ImageLimits, MAX_ATTACHED, RenderOptions, Rendered, render,
};
pub use sanitise::visible_line;
pub use sniff::is_picture;
pub use text_only::{ForeignBody, strip_images, text_only};
