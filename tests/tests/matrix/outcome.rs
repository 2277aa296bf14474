//! What a fault must come to.

use std::time::Duration;

use serde_json::Value;
use talaria_testkit::{Action, Answer};

/// The limit of calls to which no answer comes.
pub const SHORT: Duration = Duration::from_millis(1_500);
/// The limit of all others; none of them may come near it.
pub const LONG: Duration = Duration::from_secs(20);
/// How late a machine under load may be.
const LATE: Duration = Duration::from_secs(4);

/// What the server does in place of a right answer, and what must come of it.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What it does.
    pub actions: Vec<Action>,
    /// What the caller of the faulty call learns.
    pub outcome: Outcome,
    /// Whether a new process or session takes the place of the one that had the fault.
    pub replaced: bool,
    /// Whether it is replaced when the fault comes while nothing is asked.
    pub replaced_idle: bool,
    /// A counter that rises with every such fault.
    pub counted: Option<(&'static str, &'static [(&'static str, &'static str)])>,
}

/// The end of a call.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// A delivery with this text.
    Text(&'static str),
    /// A problem with one of these codes.
    Fails {
        /// Codes that tell the truth.
        codes: &'static [&'static str],
        /// Whether the call may have run.
        is_uncertain: bool,
    },
    /// No answer until the limit.
    TimesOut,
}

impl Fault {
    /// A fault that costs nothing.
    pub fn harmless(actions: Vec<Action>, text: &'static str) -> Self {
        Self {
            actions,
            outcome: Outcome::Text(text),
            replaced: false,
            replaced_idle: false,
            counted: None,
        }
    }

    /// A fault that costs the call, which may have run, and not the server.
    pub fn costs_the_call(actions: Vec<Action>, codes: &'static [&'static str]) -> Self {
        Self {
            outcome: Outcome::Fails {
                codes,
                is_uncertain: true,
            },
            ..Self::harmless(actions, "")
        }
    }

    /// A fault that leaves the caller without an answer and costs the server nothing.
    pub fn silence(actions: Vec<Action>) -> Self {
        Self {
            outcome: Outcome::TimesOut,
            ..Self::harmless(actions, "")
        }
    }

    /// A fault after which there is a new process or session.
    pub fn replaced(mut self) -> Self {
        self.replaced = true;
        self.replaced_idle = true;
        self
    }

    /// What was asked and answered is certain: the server itself said that it did nothing.
    pub fn certain(mut self) -> Self {
        if let Outcome::Fails { is_uncertain, .. } = &mut self.outcome {
            *is_uncertain = false;
        }
        self
    }

    /// A counter that tells of it.
    pub fn counted(
        mut self,
        name: &'static str,
        labels: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.counted = Some((name, labels));
        self
    }

    /// The limit of the faulty call.
    pub const fn limit(&self) -> Duration {
        match self.outcome {
            Outcome::TimesOut => SHORT,
            Outcome::Text(_) | Outcome::Fails { .. } => LONG,
        }
    }

    /// The value of `error_type` with which the operation is counted; none for a success.
    pub fn error_types(&self) -> &'static [&'static str] {
        match self.outcome {
            Outcome::Text(_) => &[],
            Outcome::Fails { codes, .. } => codes,
            Outcome::TimesOut => &["timeout"],
        }
    }

    /// Judges the answer to the faulty call.
    pub fn judge(&self, answer: &Answer, took: Duration) {
        match self.outcome {
            Outcome::Text(text) => {
                let delivery = answer.ok().unwrap();
                assert_eq!(delivery["text"], text, "{delivery}");
                assert!(took < LATE, "it took {took:?}");
            }
            Outcome::Fails {
                codes,
                is_uncertain,
            } => {
                let problem = about_s(answer);
                let code = problem["code"].as_str().unwrap();
                assert!(codes.contains(&code), "{codes:?} wanted: {problem}");
                assert_eq!(problem["outcome_uncertain"], is_uncertain, "{problem}");
                assert!(took < LATE, "it took {took:?}");
            }
            Outcome::TimesOut => {
                let problem = about_s(answer);
                assert_eq!(problem["code"], "timeout", "{problem}");
                assert_eq!(problem["outcome_uncertain"], true, "{problem}");
                assert!(took >= SHORT && took < SHORT + LATE, "it took {took:?}");
            }
        }
    }
}

/// The problem, which names the server.
fn about_s(answer: &Answer) -> Value {
    let problem = answer.problem().unwrap();
    assert_eq!(problem["server"], "s", "{problem}");
    problem
}
