//! Why a picture could not be fetched.

use std::fmt;

use talaria_types::{ErrorCode, Failure};

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchCode {
    /// It is no URL.
    BadUrl,
    /// The rules against requests into other networks forbid it.
    Blocked,
    /// Nobody answers, or not with a file.
    Unreachable,
    /// The file is over the limit.
    TooLarge,
    /// What came is no picture.
    NotAnImage,
    /// It took too long.
    Timeout,
    /// Too many pictures are being fetched.
    Busy,
    /// The file could not be stored.
    NotStored(ErrorCode),
}

impl FetchCode {
    /// The code that the caller gets.
    #[must_use]
    pub const fn error_code(self) -> ErrorCode {
        match self {
            Self::BadUrl | Self::TooLarge => ErrorCode::InvalidRequest,
            Self::Blocked => ErrorCode::UrlBlocked,
            Self::Unreachable => ErrorCode::UrlUnreachable,
            Self::NotAnImage => ErrorCode::NotAnImage,
            Self::Timeout => ErrorCode::Timeout,
            Self::Busy => ErrorCode::Busy,
            Self::NotStored(code) => code,
        }
    }
}

/// A picture could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    /// The kind.
    pub code: FetchCode,
    /// A sentence for the caller. It names no address that a name has, and nothing of what an
    /// answer held.
    pub detail: String,
}

impl FetchError {
    pub(super) const fn new(code: FetchCode, detail: String) -> Self {
        Self { code, detail }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for FetchError {}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::new(error.code.error_code(), error.detail)
    }
}
