//! Credentials in a server's own words (specification 6.4).

use std::borrow::Cow;

pub(crate) const REDACTED: &str = "[REDACTED]";
/// How much of one credential is looked at.
const MAX_VALUE_CHARACTERS: usize = 255;
const ASSIGNMENTS: &[&str] = &["token=", "api_key=", "key=", "password=", "secret="];

/// Where a credential may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// Anywhere, as Hermes does it: `task-list` loses its end.
    Anywhere,
    /// Only where a word begins.
    Word,
}

/// Replaces GitHub tokens, `sk-` keys, bearer tokens and assigned secrets in the words of a
/// server that failed.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_at(text, Boundary::Anywhere)
}

pub(crate) fn redact_at(text: &str, boundary: Boundary) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(offset) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(may_begin))
    {
        at += offset;
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let is_inside = before.is_some_and(u8::is_ascii_alphanumeric);
        let length = match (boundary, is_inside) {
            (Boundary::Word, true) => None,
            (Boundary::Word, false) | (Boundary::Anywhere, _) => {
                text.get(at..).and_then(credential)
            }
        };
        match length {
            None => at += 1,
            Some(length) => {
                let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
                out.push_str(text.get(copied..at).unwrap_or_default());
                out.push_str(REDACTED);
                at += length;
                copied = at;
            }
        }
    }
    match out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(text.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// The first letters of everything that is looked for.
const fn may_begin(byte: &u8) -> bool {
    matches!(
        byte.to_ascii_lowercase(),
        b'g' | b's' | b'b' | b't' | b'k' | b'a' | b'p'
    )
}

/// The length of the credential the text begins with.
fn credential(text: &str) -> Option<usize> {
    if let Some(rest) = after(text, "ghp_") {
        let value = run(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        return (value > 0).then_some("ghp_".len() + value);
    }
    if let Some(rest) = after(text, "sk-") {
        let value = dotted_run(rest);
        return if value > 0 {
            Some("sk-".len() + value)
        } else {
            assigned(text)
        };
    }
    if let Some(rest) = after(text, "bearer") {
        let token = rest.trim_start();
        let blanks = rest.len() - token.len();
        if blanks == 0 {
            // Looking for the end of a word that is no token would make `bearerbearer…` quadratic.
            return None;
        }
        let value = token.find(char::is_whitespace).unwrap_or(token.len());
        return (value > 0).then_some("bearer".len() + blanks + value);
    }
    assigned(text)
}

fn assigned(text: &str) -> Option<usize> {
    let name = ASSIGNMENTS
        .iter()
        .find(|name| after(text, name).is_some())?;
    let value: usize = text
        .get(name.len()..)?
        .chars()
        .take_while(|character| !character.is_whitespace() && !"&,;\"'".contains(*character))
        .take(MAX_VALUE_CHARACTERS)
        .map(char::len_utf8)
        .sum();
    (value > 0).then_some(name.len() + value)
}

fn after<'a>(text: &'a str, lower: &str) -> Option<&'a str> {
    let start = text.as_bytes().get(..lower.len())?;
    start
        .eq_ignore_ascii_case(lower.as_bytes())
        .then(|| text.get(lower.len()..))
        .flatten()
}

fn run(text: &str, fits: impl Fn(u8) -> bool) -> usize {
    text.bytes()
        .take(MAX_VALUE_CHARACTERS)
        .take_while(|byte| fits(*byte))
        .count()
}

/// Letters, digits, `_` and `-`, with single dots between them.
fn dotted_run(text: &str) -> usize {
    let is_key = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let bytes = text.as_bytes();
    let mut length = 0;
    for _ in 0..MAX_VALUE_CHARACTERS {
        if is_key(bytes.get(length)) {
            length += 1;
        } else if length > 0 && bytes.get(length) == Some(&b'.') && is_key(bytes.get(length + 1)) {
            length += 2;
        } else {
            break;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::{Boundary, redact, redact_at};

    #[test]
    fn s02_replaces_credentials() {
        for (text, expected) in [
            ("bad key ghp_abcDEF_123 here", "bad key [REDACTED] here"),
            ("bad key sk-abc123", "bad key [REDACTED]"),
            ("sk-proj.a.b. end", "[REDACTED]. end"),
            (
                "Authorization: Bearer abc.def!",
                "Authorization: [REDACTED]",
            ),
            ("url?token=x&api_key=y;z", "url?[REDACTED]&[REDACTED];z"),
            ("PASSWORD=hünter2, secret='x'", "[REDACTED], secret='x'"),
            ("key= and Bearer", "key= and Bearer"),
            ("nothing to see", "nothing to see"),
            ("é key=é", "é [REDACTED]"),
        ] {
            assert_eq!(redact(text), expected, "{text}");
        }
    }

    #[test]
    fn leaves_words_that_only_end_alike() {
        assert_eq!(
            redact_at("disk-usage failed", Boundary::Word),
            "disk-usage failed"
        );
        assert_eq!(redact("disk-usage failed"), "di[REDACTED] failed");
        assert_eq!(
            redact_at("access_token=x monkey=y", Boundary::Word),
            "access_[REDACTED] monkey=y"
        );
    }
}
