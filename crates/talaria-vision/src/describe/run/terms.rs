//! What a run is told and what it answers.

use std::time::{Duration, Instant};

use crate::describe::verdict::{Fault, FaultKind};

/// What the policy knows of a link.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The longest one attempt may take.
    pub timeout: Duration,
    /// Whether it may be asked twice. A tool of an MCP server may not.
    pub repeats: bool,
    /// Why it cannot be asked at all.
    pub unusable: Option<Fault>,
}

/// Which picture an attempt sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// The one within the usual budget.
    Full,
    /// One of fewer bytes, after the link called the first one too large.
    Smaller,
}

/// One attempt to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What [`super::Run::report`] wants back.
    pub id: usize,
    /// Whom to ask.
    pub link: usize,
    /// With what.
    pub size: Size,
    /// For how long.
    pub until: Instant,
    /// The link it stands in for, and why.
    pub after: Option<(usize, HopReason)>,
}

/// Why a link is asked after or beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HopReason {
    /// The other one failed.
    Fault(FaultKind),
    /// The other one is slow.
    Hedge,
}

impl HopReason {
    /// The word used in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fault(kind) => kind.as_str(),
            Self::Hedge => "hedge",
        }
    }
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Make an attempt, then ask for the next order.
    Ask(Attempt),
    /// Wait for a report, but not longer.
    Wait(Instant),
    /// It is over; see [`super::Run::finish`].
    Done,
}

/// One entry of the report about a description.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Whom it is about.
    pub link: usize,
    /// Which picture it was sent.
    pub size: Size,
    /// How long it took; zero where it was not asked.
    pub took: Duration,
    /// Whether it was started because another was slow.
    pub is_hedge: bool,
    /// What it came to.
    pub outcome: Outcome,
}

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The description.
    Answered,
    /// A model's reasoning and no description.
    Reasoned,
    /// No description.
    Failed(Fault),
    /// Another one was first, or nobody waited any more.
    Cancelled,
}

/// What a description came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A description.
    Answered {
        /// Who gave it.
        link: usize,
        /// The text.
        text: String,
    },
    /// Every link failed; one of them left its reasoning.
    Reasoned {
        /// Who left it.
        link: usize,
        /// The text.
        text: String,
    },
    /// Every link failed.
    Failed,
}
