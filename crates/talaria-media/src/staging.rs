//! The staging area: files being written, complete before anything has a name.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use talaria_types::payload::HEAD_BYTES;
use talaria_types::{PayloadError, PayloadWriter, StagedPayload};
use ulid::Ulid;

use crate::directory::Directory;
use crate::error::StoreError;
use crate::root::OpenRoot;

/// Folder of files being written.
pub(crate) const STAGING: &str = "staging";

const PREFIX: &str = "stage_";
const BUFFER_BYTES: usize = 64 * 1024;

/// Whether a name in the staging folder is one of ours.
pub(crate) fn is_staging_name(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|ulid| Ulid::from_string(ulid).is_ok())
}

/// A file of the staging area being written. Dropping it unfinished removes the file.
#[derive(Debug)]
pub(crate) struct StagingFile {
    directory: Directory,
    name: String,
    path: PathBuf,
    writer: BufWriter<File>,
    fsync: bool,
    hasher: Sha256,
    head: Vec<u8>,
    bytes: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Writing,
    /// A write failed part way; what is in the file is unknown.
    Broken,
    Finished,
}

impl StagingFile {
    /// Makes a new staging file.
    pub(crate) fn create(root: &OpenRoot<'_>, fsync: bool) -> io::Result<Self> {
        let directory = root.directory.make_folder(STAGING)?;
        let name = format!("{PREFIX}{}", Ulid::generate());
        let writer = BufWriter::with_capacity(BUFFER_BYTES, directory.create(&name)?);
        Ok(Self {
            path: root.path.join(STAGING).join(&name),
            directory,
            name,
            writer,
            fsync,
            hasher: Sha256::new(),
            head: Vec::new(),
            bytes: 0,
            state: State::Writing,
        })
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, decoded: &[u8]) -> io::Result<()> {
        if self.state == State::Broken {
            return Err(io::Error::other("an earlier write failed"));
        }
        self.writer
            .write_all(decoded)
            .inspect_err(|_| self.state = State::Broken)?;
        self.hasher.update(decoded);
        let missing = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend(decoded.iter().take(missing));
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(decoded.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Completes the file and describes it.
    pub(crate) fn complete(mut self) -> io::Result<StagedPayload> {
        self.append(&[])?;
        self.writer.flush()?;
        if self.fsync {
            self.writer.get_ref().sync_all()?;
        }
        self.state = State::Finished;
        let sha256 = std::mem::take(&mut self.hasher).finalize().into();
        let head = std::mem::take(&mut self.head);
        Ok(StagedPayload::new(
            std::mem::take(&mut self.path),
            self.bytes,
            sha256,
            head,
        ))
    }
}

impl Drop for StagingFile {
    fn drop(&mut self) {
        if self.state != State::Finished {
            // What cannot be removed here is removed by the sweep.
            drop(self.directory.remove(&self.name));
        }
    }
}

impl PayloadWriter for StagingFile {
    fn write(&mut self, decoded: &[u8]) -> Result<(), PayloadError> {
        self.append(decoded).map_err(staging_failed)
    }

    fn finish(self: Box<Self>) -> Result<StagedPayload, PayloadError> {
        self.complete().map_err(staging_failed)
    }
}

/// Reports a payload that could not be staged.
pub(crate) fn staging_failed(error: io::Error) -> PayloadError {
    let error = StoreError::disk("stored", error);
    error.report();
    error.into()
}
