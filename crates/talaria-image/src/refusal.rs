//! Why a picture was not made ready.

use serde::{Deserialize, Serialize};

/// A picture that stays out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{detail}")]
pub struct Refusal {
    /// Which.
    pub kind: RefusalKind,
    /// A sentence for a model and its operator, with the figures.
    pub detail: String,
}

/// The kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Hash)]
pub enum RefusalKind {
    /// The bytes are no picture.
    NotAnImage,
    /// A picture of a format that this build does not decode, such as AVIF or HEIC.
    Unsupported,
    /// Over a limit of pixels, sides, frames or decoder memory, by its header.
    TooLarge,
    /// It does not decode.
    Damaged,
    /// A drawing (SVG) that costs too much to draw.
    TooComplex,
    /// The region lies outside of the picture or is empty.
    BadRegion,
    /// Nothing that fits the budget would show anything.
    OverBudget,
    /// The deadline passed or the caller went away before it was done.
    Abandoned,
    /// A step of ours failed on pixels of ours; no fault of the picture.
    Failed,
}

impl RefusalKind {
    /// The word used in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAnImage => "not_an_image",
            Self::Unsupported => "unsupported",
            Self::TooLarge => "too_large",
            Self::Damaged => "damaged",
            Self::TooComplex => "too_complex",
            Self::BadRegion => "bad_region",
            Self::OverBudget => "over_budget",
            Self::Abandoned => "abandoned",
            Self::Failed => "failed",
        }
    }
}
