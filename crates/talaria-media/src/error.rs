//! Why the store could not do something, in words for the caller.

use std::io;

use talaria_telemetry::events;
use talaria_types::{ErrorCode, PayloadError};

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
    pub source: Option<io::Error>,
}

impl StoreError {
    /// No artifact has that id.
    pub(crate) fn unknown() -> Self {
        Self {
            code: ErrorCode::UnknownArtifact,
            detail: "No artifact has this id, or it has expired.".to_owned(),
            source: None,
        }
    }

    /// A wish of the caller that is not granted.
    pub(crate) const fn of_caller(code: ErrorCode, detail: String) -> Self {
        Self {
            code,
            detail,
            source: None,
        }
    }

    /// Logs and counts a file that could not be handled, its cause included.
    pub(crate) fn report(&self) {
        match &self.source {
            Some(source) => events::media_failed(self.code, &format!("{self} ({source})")),
            None => events::media_failed(self.code, &self.detail),
        }
    }

    /// A wish that does not fit under the quota.
    pub(crate) fn over_quota(bytes: u64, max_bytes: u64) -> Self {
        Self {
            code: ErrorCode::MediaUnavailable,
            detail: format!(
                "The file of {bytes} bytes could not be stored: the media store is at its quota \
                 of {max_bytes} bytes and holds nothing old enough to be removed."
            ),
            source: None,
        }
    }

    /// The disk refused while the store was doing `what` (`stored`, `read`, `removed`).
    pub(crate) fn disk(what: &'static str, source: io::Error) -> Self {
        Self {
            code: ErrorCode::MediaUnavailable,
            detail: format!("The file could not be {what}: {}.", reason(&source)),
            source: Some(source),
        }
    }

    /// The file is there but is not what was stored.
    pub(crate) fn changed() -> Self {
        Self {
            code: ErrorCode::MediaUnavailable,
            detail: "The file of this artifact was changed after it was stored.".to_owned(),
            source: None,
        }
    }

    /// A staged payload that is not in this store's staging area.
    pub(crate) fn foreign_payload() -> Self {
        Self {
            code: ErrorCode::Internal,
            detail: "The payload was not staged in this media store.".to_owned(),
            source: None,
        }
    }
}

impl From<StoreError> for PayloadError {
    fn from(error: StoreError) -> Self {
        Self {
            code: error.code,
            detail: error.detail,
        }
    }
}

/// What an operator would call the fault.
fn reason(error: &io::Error) -> &'static str {
    // The kinds are an open set, so a guard chain says it better than a match.
    let kind = error.kind();
    if kind == io::ErrorKind::StorageFull {
        "the disk of the media store is full"
    } else if kind == io::ErrorKind::QuotaExceeded {
        "the disk quota of the media store is used up"
    } else if kind == io::ErrorKind::FileTooLarge {
        "it is larger than the system lets a file be"
    } else if kind == io::ErrorKind::ReadOnlyFilesystem {
        "the disk of the media store is read-only"
    } else if kind == io::ErrorKind::PermissionDenied {
        "the media store has no permission to use its directory"
    } else if kind == io::ErrorKind::NotFound {
        "the directory of the media store is missing"
    } else if kind == io::ErrorKind::CrossesDevices {
        "the folders of the media store are on different file systems"
    } else if kind == io::ErrorKind::NotADirectory || kind == io::ErrorKind::InvalidInput {
        "a part of the media store was replaced by something of another kind"
    } else {
        "the disk of the media store does not answer as it should"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expected_disk_fault_has_its_own_sentence() {
        let faults = [
            (nix::Error::ENOSPC, "is full"),
            (nix::Error::EDQUOT, "quota"),
            (nix::Error::EFBIG, "larger"),
            (nix::Error::EROFS, "read-only"),
            (nix::Error::EACCES, "no permission"),
            (nix::Error::EPERM, "no permission"),
            (nix::Error::ENOENT, "is missing"),
            (nix::Error::EXDEV, "different file systems"),
            (nix::Error::ENOTDIR, "of another kind"),
            (nix::Error::EIO, "does not answer"),
        ];
        for (fault, words) in faults {
            let error = StoreError::disk("stored", fault.into());
            assert_eq!(error.code, ErrorCode::MediaUnavailable);
            assert!(error.detail.contains(words), "{fault}: {}", error.detail);
            assert!(!error.detail.contains('/'), "{}", error.detail);
        }
    }
}
