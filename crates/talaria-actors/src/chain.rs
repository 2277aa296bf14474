//! A failure as the log has it: the sentence, its causes, and the server's words made harmless.

use std::error::Error;

use talaria_content::{redact, sanitise};
use talaria_types::Failure;

/// Characters of the server's own words.
const MAX_WORDS: usize = 500;

/// The whole chain in one line.
pub(crate) fn chain(failure: &Failure) -> String {
    let mut line = failure.detail().to_owned();
    let mut cause = failure.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    if let Some(words) = failure.server_words() {
        let clean = sanitise::model_text(words);
        let kept: String = redact(&clean).chars().take(MAX_WORDS).collect();
        line.push_str("; the server says: ");
        line.push_str(kept.trim());
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
        assert!(line.len() < 700, "{}", line.len());
    }
}
