//! Descriptions of pictures: one actor on its own loop asks the links of the vision chain until
//! one answers.
//!
//! Others hold a [`VisionHandle`]. The policy is `talaria_vision::describe`; here are the parts
//! that wait: questions and who waits for them, pictures made ready, backends and tools asked.

mod actor;
mod analysis;
mod arguments;
mod cache;
mod handle;
mod job;
mod messages;
mod picture;
mod progress;
mod tool;
mod waiters;
mod workshop;

#[cfg(test)]
pub(crate) mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use talaria_config::Config;
use talaria_image::{ImagePool, Region};
use talaria_media::MediaStore;
use talaria_types::ArtifactId;
use talaria_types::runtime::BlockingPool;
use talaria_vision::describe::Chain;

use crate::supervisor::SupervisorHandle;

pub use analysis::{Analysis, AnalysisAttempt, Description};
pub use handle::VisionHandle;
pub(crate) use handle::not_configured;
pub(crate) use messages::Unmade;

/// What descriptions are made with.
#[derive(Clone, Debug)]
pub struct VisionParts {
    /// The configuration.
    pub config: Arc<Config>,
    /// Who may be asked.
    pub chain: Chain,
    /// Makes pictures ready.
    pub pool: ImagePool,
    /// Where tools find pictures.
    pub store: MediaStore,
    /// Workers for files.
    pub blocking: BlockingPool,
    /// Calls tools of MCP servers.
    pub supervisor: SupervisorHandle,
}

/// A picture that lies in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureFile {
    /// Where; the file stays as long as somebody waits for the description.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
    /// Its artifact, where the media store has it.
    pub artifact: Option<ArtifactId>,
}

/// What is asked about a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The picture.
    pub picture: PictureFile,
    /// The question; everything that is to be seen where absent or blank.
    pub prompt: Option<String>,
    /// The part that is wanted, in pixels of the upright original.
    pub region: Option<Region>,
}
