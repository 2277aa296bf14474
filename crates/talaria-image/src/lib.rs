//! Pictures a model can read: bytes that nobody trusts in, pictures within a budget out.

mod prepared;
mod raster;
mod refusal;
mod target;
mod watch;

pub use prepared::{
    Area, Note, NoteKind, Picture, PictureFormat, Prepared, SourceFacts, SourceFormat,
};
pub use refusal::{Refusal, RefusalKind};
pub use target::{Region, Target, Tiling};
pub use watch::Watch;
