//! What a caller gets: the description, and everybody who was asked for it.

use std::time::Duration;

use serde::Serialize;
use talaria_content::backend_words;
use talaria_vision::describe::{Fault, FaultKind, Outcome, Record};

/// What came of a question about a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// The description; none where everybody failed.
    pub answer: Option<Description>,
    /// Everybody who was asked, in order.
    pub attempts: Vec<AnalysisAttempt>,
    /// Whether it was made before, for another request.
    pub cached: bool,
    /// Whether another request was already waiting for it.
    pub coalesced: bool,
    /// From the question to the answer.
    pub elapsed_ms: u64,
}

/// A picture in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The words, as they came; nobody has cleaned them.
    pub text: String,
    /// Who gave them.
    pub via: String,
    /// How to map coordinates in the words back to the original.
    pub scale_note: Option<String>,
    /// Whether they are what a model thought on its way to no answer.
    pub is_reasoning: bool,
}

/// One attempt at a description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnalysisAttempt {
    /// Who was asked.
    pub via: String,
    /// `answered`, `reasoned`, `cancelled`, or the code of the failure.
    pub outcome: &'static str,
    /// How long it took.
    pub ms: u64,
    /// Code of the failure.
    pub code: Option<&'static str>,
    /// Status of the backend's HTTP answer.
    pub status: Option<u16>,
    /// The failure in words, cleaned.
    pub detail: Option<String>,
}

impl Analysis {
    /// Nothing but attempts.
    pub(super) const fn of(attempts: Vec<AnalysisAttempt>) -> Self {
        Self {
            answer: None,
            attempts,
            cached: false,
            coalesced: false,
            elapsed_ms: 0,
        }
    }

    /// Why the first link failed: what is wrong with the one that was meant to answer.
    #[must_use]
    pub fn first_error(&self) -> Option<&AnalysisAttempt> {
        self.failures().next()
    }

    /// Why the last link failed; the first one where there was no other.
    #[must_use]
    pub fn last_error(&self) -> Option<&AnalysisAttempt> {
        self.failures().next_back()
    }

    /// Whether time ran out before everybody was asked.
    #[must_use]
    pub fn ran_out_of_time(&self) -> bool {
        let late = [FaultKind::Timeout, FaultKind::NoTime].map(FaultKind::as_str);
        let last = self.last_error().and_then(|attempt| attempt.code);
        self.answer.is_none() && last.is_some_and(|code| late.contains(&code))
    }

    /// Why there is no description, in one line: the first failure, and the last.
    #[must_use]
    pub fn failure_line(&self) -> String {
        match (self.first_error(), self.last_error()) {
            (Some(first), Some(last)) if first != last => {
                format!("{}; at last {}", first.line(), last.line())
            }
            (Some(only), _) => only.line(),
            (None, _) => "nobody was asked".to_owned(),
        }
    }

    fn failures(&self) -> impl DoubleEndedIterator<Item = &AnalysisAttempt> {
        self.attempts
            .iter()
            .filter(|attempt| attempt.code.is_some())
    }
}

impl AnalysisAttempt {
    /// An attempt as it is told.
    pub(super) fn of(record: &Record, via: &str) -> Self {
        let (outcome, fault) = match &record.outcome {
            Outcome::Answered => ("answered", None),
            Outcome::Cancelled => ("cancelled", None),
            Outcome::Reasoned => {
                let words = "the model thought aloud and gave no answer";
                (
                    "reasoned",
                    Some(Fault::new(FaultKind::ReasoningOnly, words)),
                )
            }
            Outcome::Failed(fault) => (fault.kind.as_str(), Some(fault.clone())),
        };
        Self {
            via: via.to_owned(),
            outcome,
            ms: milliseconds(record.took),
            code: fault.as_ref().map(|fault| fault.kind.as_str()),
            status: fault.as_ref().and_then(|fault| fault.status),
            detail: fault.map(|fault| backend_words(&fault.to_string())),
        }
    }

    fn line(&self) -> String {
        let words = self.detail.as_deref().unwrap_or(self.outcome);
        format!("{}: {words}", self.via)
    }
}

pub(super) fn milliseconds(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(link: usize, kind: FaultKind, words: &str) -> AnalysisAttempt {
        let record = Record {
            link,
            size: talaria_vision::describe::Size::Full,
            took: Duration::from_millis(7),
            is_hedge: false,
            outcome: Outcome::Failed(Fault::new(kind, words).with_status(401)),
        };
        AnalysisAttempt::of(&record, &format!("link {link}"))
    }

    #[test]
    fn v08_the_first_failure_and_the_last_are_told() {
        let first = failed(0, FaultKind::Auth, "Bearer sk-abcdefghijklmnop is wrong");
        let middle = failed(1, FaultKind::Empty, "");
        let last = failed(2, FaultKind::NoTime, "");
        assert_eq!(
            (first.code, first.status, first.ms),
            (Some("auth"), Some(401), 7)
        );
        let analysis = Analysis::of(vec![first.clone(), middle, last]);
        let line = analysis.failure_line();
        assert!(
            line.starts_with("link 0: authentication failed (status 401)"),
            "{line}"
        );
        assert!(
            line.ends_with("at last link 2: no time was left (status 401)"),
            "{line}"
        );
        assert!(!line.contains("sk-abcdefghijklmnop"), "{line}");
        assert!(analysis.ran_out_of_time());
        let alone = Analysis::of(vec![first.clone()]);
        assert_eq!(alone.failure_line(), first.line());
        assert!(!alone.ran_out_of_time());
        assert_eq!(Analysis::of(Vec::new()).failure_line(), "nobody was asked");
    }
}
