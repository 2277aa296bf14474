//! The seam through which binary payloads leave the wire layer (design decision 25).
//!
//! The wire layer decodes base64 as it reads and pushes bytes into a [`PayloadSink`]; what comes
//! back is a [`StagedPayload`], a finished file in the store's staging area that nobody has named
//! yet. Dropping it deletes the file.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::ErrorCode;

/// How many leading bytes of a payload travel with it, enough for every magic number.
pub const HEAD_BYTES: usize = 4096;

/// Takes decoded payloads. Implemented by the media store; calls may block on the disk.
pub trait PayloadSink: Send + Sync + fmt::Debug {
    /// Opens a new staging file.
    ///
    /// # Errors
    /// The staging area cannot be written.
    fn begin(&self) -> Result<Box<dyn PayloadWriter>, PayloadError>;
}

/// One payload being written. Dropping it without `finish` leaves no file.
pub trait PayloadWriter: Send {
    /// Appends decoded bytes.
    ///
    /// # Errors
    /// The bytes cannot be written.
    fn write(&mut self, decoded: &[u8]) -> Result<(), PayloadError>;

    /// Closes the file and describes it.
    ///
    /// # Errors
    /// The file cannot be completed.
    fn finish(self: Box<Self>) -> Result<StagedPayload, PayloadError>;
}

/// Why a payload could not be staged.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct PayloadError {
    /// `media_unavailable` unless the disk says something more precise.
    pub code: ErrorCode,
    /// A sentence for the caller.
    pub detail: String,
}

/// A complete payload in the staging area. Its file goes away with it unless taken.
#[derive(Debug)]
pub struct StagedPayload {
    path: Option<PathBuf>,
    /// Decoded length.
    pub bytes: u64,
    /// SHA-256 of the decoded bytes.
    pub sha256: [u8; 32],
    /// The first [`HEAD_BYTES`] bytes.
    pub head: Vec<u8>,
}

impl StagedPayload {
    /// Describes a finished staging file.
    #[must_use]
    pub const fn new(path: PathBuf, bytes: u64, sha256: [u8; 32], head: Vec<u8>) -> Self {
        Self {
            path: Some(path),
            bytes,
            sha256,
            head,
        }
    }

    /// Where the bytes are.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Takes the file over; the caller now owns its removal.
    #[must_use]
    pub fn take_path(&mut self) -> Option<PathBuf> {
        self.path.take()
    }
}

impl Drop for StagedPayload {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // The sweep of the staging area removes what cannot be removed here.
            drop(std::fs::remove_file(path));
        }
    }
}

/// What became of one payload string that left the JSON.
#[derive(Debug)]
pub enum Payload {
    /// Decoded and waiting in the staging area.
    Staged(StagedPayload),
    /// Not usable; the reason stands in for it.
    Refused(PayloadRefusal),
}

/// Why a payload was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadRefusal {
    /// Nothing was there.
    Empty,
    /// The string is not base64 by the rules of design decision 1.
    NotBase64 {
        /// What is wrong, as a fragment: `data after the padding`.
        reason: String,
    },
    /// The string is an address (`http` or `https`); it is shown, never fetched.
    Address {
        /// The address as received.
        url: String,
    },
    /// Over the limit.
    TooLarge {
        /// Decoded bytes: exact after decoding, an estimate before it.
        bytes: u64,
        /// Whether the size is exact.
        exact: bool,
    },
    /// Decoded but not stored.
    NotStored {
        /// Code of the store.
        code: ErrorCode,
        /// A sentence for the caller.
        detail: String,
    },
}
