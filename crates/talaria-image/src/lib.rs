//! Pictures a model can read: bytes that nobody trusts in, pictures within a budget out.

mod apart;
mod bytes;
mod choose;
mod colour;
mod decode;
mod encode;
mod fit;
mod grain;
mod header;
mod legible;
mod limits;
mod notes;
mod orient;
mod palette;
mod pool;
mod prepare;
mod prepared;
mod raster;
mod refusal;
mod scratch;
mod sniff;
mod svg;
mod target;
mod tiles;
mod watch;

pub use apart::{DRAW_SUBCOMMAND, draw};
pub use pool::{DEFAULT_PIXELS, ImagePool, Input, PoolOptions, PoolRefusal};
pub use prepare::{inspect, prepare};
pub use prepared::{
    Area, Note, NoteKind, Picture, PictureFormat, Prepared, SourceFacts, SourceFormat,
};
pub use refusal::{Refusal, RefusalKind};
pub use target::{DEFAULT_BUDGET, DEFAULT_MAX_SIDE, Region, Target, Tiling};
pub use watch::Watch;
