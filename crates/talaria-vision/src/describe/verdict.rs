//! What one attempt at a description came to.

use std::fmt;
use std::time::Duration;

/// Most bytes of words kept with a [`Fault`].
pub const MAX_WORDS_BYTES: usize = 1_000;

/// What one attempt came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// A description.
    Answer(String),
    /// Nothing but a model's reasoning. It is no description, but may stand in for one where
    /// every link failed, and is then said to be reasoning.
    Reasoned(String),
    /// No description.
    Failed(Fault),
}

impl Verdict {
    /// A failure with a sentence of ours.
    #[must_use]
    pub fn failed(kind: FaultKind, words: &str) -> Self {
        Self::Failed(Fault::new(kind, words))
    }
}

/// Why an attempt gave no description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What decides what happens next.
    pub kind: FaultKind,
    /// Status of the HTTP answer, where there was one.
    pub status: Option<u16>,
    /// The provider's own code of the error, where it gave one.
    pub provider_code: Option<String>,
    /// The provider's words, or a sentence of ours. Untrusted: whoever shows them cleans them.
    pub words: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// Who says so.
    pub origin: Origin,
}

/// Who says that an attempt failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A status, a code, an error, or we ourselves.
    #[default]
    Told,
    /// The words of an answer that is good otherwise. A picture can put words into a model's
    /// mouth, so they say nothing of the link.
    Words,
    /// We ourselves, because of us: a queue of ours was full, or too long. The link was not asked.
    Queue,
}

impl Fault {
    /// A fault of this kind with these words, which are cut to [`MAX_WORDS_BYTES`].
    #[must_use]
    pub fn new(kind: FaultKind, words: &str) -> Self {
        Self {
            kind,
            status: None,
            provider_code: None,
            words: cut(words, MAX_WORDS_BYTES).to_owned(),
            retry_after: None,
            origin: Origin::Told,
        }
    }

    /// Says who says so.
    #[must_use]
    pub const fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Says that the link was not asked, because of a queue of ours.
    #[must_use]
    pub const fn in_our_queue(self) -> Self {
        self.with_origin(Origin::Queue)
    }

    /// Adds the status of the HTTP answer.
    #[must_use]
    pub const fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds the provider's own code.
    #[must_use]
    pub fn with_provider_code(mut self, code: Option<String>) -> Self {
        self.provider_code = code;
        self
    }

    /// Adds how long the provider asks to wait.
    #[must_use]
    pub const fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }
}

impl fmt::Display for Fault {
    /// One line for an operator: the kind, the status, the words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.sentence())?;
        match (self.status, &self.provider_code) {
            (Some(status), Some(code)) => write!(f, " (status {status}, code {code})")?,
            (Some(status), None) => write!(f, " (status {status})")?,
            (None, Some(code)) => write!(f, " (code {code})")?,
            (None, None) => {}
        }
        if self.words.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.words)
    }
}

macro_rules! fault_kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $sentence:literal;)*) => {
        /// The kinds of faults. The set is closed: it is a label of metrics and goes over the
        /// wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FaultKind {
            $($(#[$doc])* $variant,)*
        }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The permanent snake-case text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// What it means, as the beginning of a line for an operator.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)* }
            }
        }
    };
}

fault_kinds! {
    /// No connection: refused, reset, no such name, no TLS.
    Unreachable = "unreachable", "the backend cannot be reached";
    /// No answer in time.
    Timeout = "timeout", "no answer in time";
    /// A 5xx answer, or an error that the provider calls its own.
    ServerError = "server_error", "the backend failed";
    /// Too many requests.
    RateLimited = "rate_limited", "the backend limits requests";
    /// No credit or quota left.
    Quota = "quota", "no credit or quota is left";
    /// The key is missing, wrong or may not do this.
    Auth = "auth", "authentication failed";
    /// There is no such model.
    UnknownModel = "unknown_model", "the backend does not know the model";
    /// The model, as it is served, takes no pictures.
    CannotSee = "cannot_see", "the model takes no pictures";
    /// The picture or the request is too large.
    TooLarge = "too_large", "the picture is too large for the backend";
    /// The request was refused for another reason; the same one will be refused again.
    BadRequest = "bad_request", "the backend refused the request";
    /// An answer without text that anybody can see.
    Empty = "empty", "the answer was empty";
    /// Reasoning and no answer, cut off before it was complete.
    ReasoningOnly = "reasoning_only", "the answer held nothing but cut-off reasoning";
    /// The model refused and said nothing else.
    RefusalOnly = "refusal_only", "the model refused";
    /// A status of success around an error.
    ErrorInside = "error_inside", "the answer held an error";
    /// The answer is not JSON, or was cut.
    NotJson = "not_json", "the answer is not JSON";
    /// JSON in which there is no place for an answer.
    Malformed = "malformed", "the answer has no known shape";
    /// The answer is over the bound.
    Oversize = "oversize", "the answer is too large";
    /// The link's entry in the configuration cannot be used.
    Misconfigured = "misconfigured", "the link is misconfigured";
    /// The MCP server is not connected.
    NotConnected = "not_connected", "the server is not connected";
    /// The MCP server has no such tool.
    UnknownTool = "unknown_tool", "the server has no such tool";
    /// The MCP tool failed.
    ToolError = "tool_error", "the tool failed";
    /// The MCP tool's answer is a failure in disguise.
    PatternMatched = "pattern_matched", "the tool told a failure as its answer";
    /// The picture cannot be put into the form that the link takes.
    Unsendable = "unsendable", "the picture cannot be sent over this link";
    /// The link failed often and is left alone for a while.
    CircuitOpen = "circuit_open", "the link failed often and is left alone for a while";
    /// The catalogue knows that the model cannot see.
    Skipped = "skipped", "the model is known not to see";
    /// The time of the whole description ran out before this link had its turn.
    NoTime = "no_time", "no time was left";
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The beginning of a text, at most this many bytes and no half character.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = text.floor_char_boundary(most);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        let words: BTreeSet<_> = FaultKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(words.len(), FaultKind::ALL.len());
        let snake = |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(words.iter().all(snake));
    }

    #[test]
    fn words_are_cut_between_characters() {
        let fault = Fault::new(FaultKind::NotJson, &"ä".repeat(100_000));
        assert_eq!(fault.words.len(), MAX_WORDS_BYTES);
        let fault = Fault::new(FaultKind::NotJson, &"語".repeat(100_000));
        assert_eq!(fault.words.len(), MAX_WORDS_BYTES - MAX_WORDS_BYTES % 3);
    }

    #[test]
    fn a_fault_reads_as_one_line() {
        let fault = Fault::new(FaultKind::Auth, "bad key")
            .with_status(401)
            .with_provider_code(Some("invalid_api_key".to_owned()));
        let line = "authentication failed (status 401, code invalid_api_key): bad key";
        assert_eq!(fault.to_string(), line);
        let fault = Fault::new(FaultKind::Timeout, "");
        assert_eq!(fault.to_string(), "no answer in time");
    }

    /// The table in `docs/vision.md`.
    fn table() -> String {
        let besides = [
            ("answered", "a description"),
            ("reasoned", "reasoning and no answer, complete"),
            (
                "cancelled",
                "given up: another one answered first, or nobody waited any more",
            ),
        ];
        let kinds = FaultKind::ALL
            .iter()
            .map(|kind| (kind.as_str(), kind.sentence()));
        let rows: String = besides
            .into_iter()
            .chain(kinds)
            .map(|(code, meaning)| format!("| `{code}` | {meaning} |\n"))
            .collect();
        format!("\n| Outcome | What the attempt came to |\n|---|---|\n{rows}\n")
    }

    #[test]
    fn every_outcome_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vision.md");
        let page = std::fs::read_to_string(path).unwrap();
        let marks = ("<!-- outcomes: begin -->\n", "<!-- outcomes: end -->");
        let (head, rest) = page.split_once(marks.0).unwrap();
        let (written, tail) = rest.split_once(marks.1).unwrap();
        if talaria_types::runtime::environment().contains_key("UPDATE_DOCS") {
            let page = format!("{head}{}{}{}{tail}", marks.0, table(), marks.1);
            std::fs::write(path, page).unwrap();
        } else {
            assert_eq!(written, table(), "run the test with UPDATE_DOCS=1");
        }
    }
}
