//! The media store: names, atomic writes, quota, expiry, an index that survives restart.
//!
//! Every method may block on the disk; callers run them on a blocking pool.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use talaria_content::{Artifact, FileRequest};
use talaria_types::{ArtifactId, ErrorCode, PayloadError, PayloadSink, PayloadWriter, TokenName};

/// How a store is set up.
#[derive(Clone, Debug)]
pub struct MediaOptions {
    /// `<home>/cache`; made when missing.
    pub root: PathBuf,
    /// Quota.
    pub max_bytes: u64,
    /// Age at which a file expires.
    pub ttl: Duration,
    /// A file younger than this is never removed.
    pub grace: Duration,
    /// Whether files are flushed before they are named.
    pub fsync: bool,
    /// Base of artifact URLs, for example `http://127.0.0.1:8700`.
    pub base_url: Option<String>,
}

/// A handle to the store; cheap to clone.
#[derive(Clone, Debug)]
pub struct MediaStore {
    _inner: Arc<()>,
}

/// Why the store could not do something.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub struct StoreError {
    /// `media_unavailable`, `unknown_artifact` …
    pub code: ErrorCode,
    /// A sentence for the caller; names no path outside the store.
    pub detail: String,
    /// The cause.
    #[source]
    pub source: Option<std::io::Error>,
}

/// An artifact and what only the store knows of it.
#[derive(Clone, Debug)]
pub struct ArtifactRecord {
    /// What the agent was told.
    pub artifact: Artifact,
    /// Whose call made it.
    pub owner: Option<TokenName>,
    /// When.
    pub created: SystemTime,
}

/// An artifact open for reading; the file is not removed while this lives.
#[derive(Debug)]
pub struct OpenArtifact {
    /// The file.
    pub file: File,
    /// What it is.
    pub record: ArtifactRecord,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Files removed because of age.
    pub expired: usize,
    /// Files removed to keep the quota.
    pub evicted: usize,
    /// Bytes freed.
    pub bytes: u64,
}

impl MediaStore {
    /// Opens the store and reads its index. A root that cannot be made or written is not fatal:
    /// each save then fails with a clear error.
    #[must_use]
    pub fn open(options: MediaOptions) -> Self {
        let _ = options;
        todo!()
    }

    /// Stores a file: never outside the root, complete before it is named.
    ///
    /// # Errors
    /// The disk refuses; nothing remains.
    pub fn save(&self, request: FileRequest, owner: Option<&TokenName>) -> Result<Artifact, StoreError> {
        let _ = (request, owner);
        todo!()
    }

    /// Looks an artifact up.
    ///
    /// # Errors
    /// `unknown_artifact`.
    pub fn find(&self, id: &ArtifactId) -> Result<ArtifactRecord, StoreError> {
        let _ = id;
        todo!()
    }

    /// Opens an artifact for reading and keeps it from being removed meanwhile.
    ///
    /// # Errors
    /// `unknown_artifact`, or the file cannot be read.
    pub fn read(&self, id: &ArtifactId) -> Result<OpenArtifact, StoreError> {
        let _ = id;
        todo!()
    }

    /// Removes an artifact at the caller's wish.
    ///
    /// # Errors
    /// `unknown_artifact`, or the file cannot be removed.
    pub fn delete(&self, id: &ArtifactId) -> Result<(), StoreError> {
        let _ = id;
        todo!()
    }

    /// Removes what is expired or over the quota, oldest first.
    pub fn sweep(&self, now: SystemTime) -> SweepReport {
        let _ = now;
        todo!()
    }
}

impl PayloadSink for MediaStore {
    fn begin(&self) -> Result<Box<dyn PayloadWriter>, PayloadError> {
        todo!()
    }
}
