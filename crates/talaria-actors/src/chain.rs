//! A failure as the log and an operator have it: the sentence, its causes, and the server's words
//! made harmless.

use std::error::Error;

use talaria_content::{redact, sanitise};
use talaria_types::Failure;

/// How much of a server's own words is shown.
const MAX_WORDS_BYTES: usize = 1000;
/// How much of a sentence is shown.
const MAX_DETAIL_BYTES: usize = 4000;

/// The whole chain in one line.
pub(crate) fn chain(failure: &Failure) -> String {
    let mut line = cleaned_detail(failure.detail());
    let mut cause = failure.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    if let Some(words) = failure.server_words() {
        line.push_str("; the server says: ");
        line.push_str(&cleaned_words(words));
    }
    line
}

/// The sentence for an operator, with what the server said.
pub(crate) fn reason(failure: &Failure) -> String {
    let words = failure.server_words().map(cleaned_words);
    match words.filter(|words| !words.is_empty()) {
        Some(words) => format!(
            "{}; the server says: {words}",
            cleaned_detail(failure.detail())
        ),
        None => cleaned_detail(failure.detail()),
    }
}

/// A server's own words on one line, without secrets or hidden characters, and capped.
///
/// Hidden characters go first: one inside a secret would keep it from being recognised.
#[must_use]
pub fn cleaned_words(words: &str) -> String {
    let visible = sanitise::model_text(words);
    one_line(&redact(&visible), MAX_WORDS_BYTES)
}

/// A sentence of ours, which may quote what somebody sent, on one line and capped.
#[must_use]
pub fn cleaned_detail(detail: &str) -> String {
    one_line(&sanitise::model_text(detail), MAX_DETAIL_BYTES)
}

fn one_line(text: &str, most_bytes: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > most_bytes {
            line.truncate(line.floor_char_boundary(most_bytes));
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use talaria_types::ErrorCode;

    use super::*;

    #[test]
    fn causes_follow_the_sentence_and_secrets_do_not() {
        let failure = Failure::new(ErrorCode::ConnectFailed, "the handshake failed")
            .caused_by(std::io::Error::other("broken pipe"))
            .with_server_words(format!("token=abcdef123456 {}", "x".repeat(2_000)));
        let line = chain(&failure);
        assert!(
            line.starts_with("the handshake failed: broken pipe; the server says: "),
            "{line}"
        );
        assert!(!line.contains("abcdef123456"), "{line}");
        assert!(line.len() < 1100, "{}", line.len());
        let reason = reason(&failure);
        assert!(
            reason.starts_with("the handshake failed; the server says: "),
            "{reason}"
        );
        assert!(!reason.contains("abcdef123456"), "{reason}");
    }

    #[test]
    fn recognises_a_secret_that_is_pulled_apart_and_caps_the_rest() {
        let apart = cleaned_words("tok\u{e0041}en=hun\u{e0042}ter2");
        assert_eq!(apart, "[REDACTED]");
        let long = cleaned_words(&"é".repeat(5000));
        assert!(long.len() <= MAX_WORDS_BYTES + '…'.len_utf8() && long.ends_with('…'));
    }
}
