//! Why a decision came out as it did, step by step.

use serde::Serialize;
use talaria_config::ImageInputMode;

use crate::{ApiShape, Decision, RouteClass};

/// The answer of one step of the look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The model sees pictures.
    Yes,
    /// It does not.
    No,
    /// The step has no answer.
    Unknown,
    /// An earlier step has answered.
    NotAsked,
}

impl Answer {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
            Self::NotAsked => "not asked",
        }
    }

    pub(crate) const fn opinion(self) -> Option<bool> {
        match self {
            Self::Yes => Some(true),
            Self::No => Some(false),
            Self::Unknown | Self::NotAsked => None,
        }
    }
}

impl From<Option<bool>> for Answer {
    fn from(opinion: Option<bool>) -> Self {
        match opinion {
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None => Self::Unknown,
        }
    }
}

/// One step of the look-up (specification 2.3), in its order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Who is asked.
    pub source: &'static str,
    /// What it says.
    pub answer: Answer,
    /// Where exactly, or why there is no answer.
    pub detail: String,
}

/// A decision with everything that led to it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Provider of the route.
    pub provider: String,
    /// Model of the route.
    pub model: String,
    /// API shape, as far as it is known.
    pub api: Option<ApiShape>,
    /// Whether the configuration's main model stood in for a route.
    pub is_stand_in: bool,
    /// The mode that counts.
    pub mode: ImageInputMode,
    /// Whether a vision backend is configured.
    pub explicit_aux: bool,
    /// Whether models that see are preferred to it.
    pub prefer_native: bool,
    /// The look-up.
    pub steps: Vec<Step>,
    /// Class of the route, and why; none without a route.
    pub class: Option<(RouteClass, String)>,
    /// What follows.
    pub decision: Decision,
}
