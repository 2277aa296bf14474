//! Pictures a model can read: bytes that nobody trusts in, pictures within a budget out.

#![expect(
    dead_code,
    reason = "the preparation that calls the decoders is not here yet"
)]

mod bytes;
mod colour;
mod decode;
mod header;
mod limits;
mod orient;
mod prepared;
mod raster;
mod refusal;
mod sniff;
mod svg;
mod target;
mod watch;

pub use prepared::{
    Area, Note, NoteKind, Picture, PictureFormat, Prepared, SourceFacts, SourceFormat,
};
pub use refusal::{Refusal, RefusalKind};
pub use target::{Region, Target, Tiling};
pub use watch::Watch;
