//! Base64 of a payload that is delivered as a file and stands in a text once more
//! (design decision 9).

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::base64_guard::decode;
use crate::plan::FileBody;
use crate::source::sha256;

/// Encoded characters that a repeat is recognised by. Shorter payloads are left alone: they could
/// be words.
const PREFIX_CHARACTERS: usize = 32;
/// The bytes those characters stand for.
const PREFIX_BYTES: usize = PREFIX_CHARACTERS / 4 * 3;
/// Characters that may be compared for each character of a text. A hostile text could look like the
/// beginning of a large payload in every line.
const EFFORT: usize = 8;
/// How long the media type of a `data:` URL before a repeat may be.
const MAX_URL_PREFIX: usize = 256;

/// A text cut where something of ours has to be put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Words of the server.
    Words(String),
    /// The payload of this file stood here, which is delivered elsewhere.
    Repeat(usize),
    /// A payload stood here and became this file.
    Moved(usize),
    /// A payload stood here that cannot be used, with the reason.
    Refused(String),
}

/// The symbols that a repeat is recognised by.
type Prefix = [u8; PREFIX_CHARACTERS];

/// The payloads of one result by the beginning of their base64.
#[derive(Debug, Default)]
pub(crate) struct Repeats<'a> {
    by_prefix: HashMap<Prefix, Vec<Known<'a>>>,
}

#[derive(Debug)]
struct Known<'a> {
    file: usize,
    body: &'a FileBody,
    /// Encoded characters without padding.
    characters: usize,
}

impl<'a> Repeats<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    /// Remembers the payload of a file.
    pub(crate) fn learn(&mut self, file: usize, body: &'a FileBody) {
        let (head, length) = match body {
            FileBody::Bytes(bytes) => (bytes, bytes.len()),
            FileBody::Staged(staged) => (
                &staged.head,
                usize::try_from(staged.bytes).unwrap_or(usize::MAX),
            ),
        };
        let encoded = STANDARD.encode(head.get(..PREFIX_BYTES).unwrap_or_default());
        let Ok(prefix) = Prefix::try_from(encoded.as_bytes()) else {
            return;
        };
        let known = Known {
            file,
            body,
            characters: (length.saturating_mul(4)).div_ceil(3),
        };
        self.by_prefix.entry(prefix).or_default().push(known);
    }

    /// Cuts a text where it repeats a payload; `None` where it does not.
    pub(crate) fn cut(&self, text: &str) -> Option<Vec<Piece>> {
        let bytes = text.as_bytes();
        let mut pieces = Vec::new();
        let mut copied = 0;
        let mut at = 0;
        let mut effort = text.len().saturating_mul(EFFORT);
        while let Some(start) = next_run(bytes, at) {
            let Some((file, end)) = self.repeat_at(text, start, &mut effort) else {
                at = start + 1;
                // The rest of this run begins no repeat.
                while bytes.get(at).is_some_and(is_symbol) {
                    at += 1;
                }
                continue;
            };
            let from = url_prefix(text.get(copied..start).unwrap_or_default())
                .map_or(start, |length| start - length);
            push_words(&mut pieces, text.get(copied..from));
            pieces.push(Piece::Repeat(file));
            copied = end;
            at = end;
        }
        if pieces.is_empty() {
            return None;
        }
        push_words(&mut pieces, text.get(copied..));
        Some(pieces)
    }

    /// The file whose payload is encoded from here on, and where the encoding ends.
    fn repeat_at(&self, text: &str, start: usize, effort: &mut usize) -> Option<(usize, usize)> {
        let prefix = Symbols::new(text, start).prefix()?;
        let candidates = self.by_prefix.get(&prefix)?;
        candidates.iter().find_map(|known| {
            let mut symbols = Symbols::new(text, start);
            *effort = effort.checked_sub(known.characters.min(text.len()))?;
            let encoded = symbols.collect_exactly(known.characters)?;
            let end = symbols.end()?;
            let (bytes, _) = decode(&encoded).ok()?;
            let is_same = match known.body {
                FileBody::Bytes(payload) => *payload == bytes,
                FileBody::Staged(staged) => staged.sha256 == sha256(&bytes),
            };
            is_same.then_some((known.file, end))
        })
    }
}

fn push_words(pieces: &mut Vec<Piece>, words: Option<&str>) {
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        pieces.push(Piece::Words(words.to_owned()));
    }
}

/// Where the next run of base64 symbols begins.
fn next_run(bytes: &[u8], from: usize) -> Option<usize> {
    let offset = bytes.get(from..)?.iter().position(is_symbol)?;
    Some(from + offset)
}

const fn is_symbol(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// The length of a `data:…;base64,` that the text ends with.
fn url_prefix(before: &str) -> Option<usize> {
    let window =
        before.get(before.floor_char_boundary(before.len().saturating_sub(MAX_URL_PREFIX))..)?;
    let lower = window.to_ascii_lowercase();
    if !lower.ends_with(";base64,") {
        return None;
    }
    let start = lower.rfind("data:")?;
    let is_one = !window.get(start..)?.contains(|character: char| {
        character.is_whitespace() || matches!(character, '"' | '\'' | '(' | ')' | '<' | '>')
    });
    is_one.then_some(window.len() - start)
}

/// The base64 symbols of a text from a place on, in the standard alphabet, across the line breaks
/// and the JSON escapes that may stand between them.
struct Symbols<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Symbols<'a> {
    const fn new(text: &'a str, at: usize) -> Self {
        Self {
            bytes: text.as_bytes(),
            at,
        }
    }

    fn prefix(&mut self) -> Option<Prefix> {
        let mut prefix = [0; PREFIX_CHARACTERS];
        for symbol in &mut prefix {
            *symbol = self.next()?;
        }
        Some(prefix)
    }

    fn collect_exactly(&mut self, count: usize) -> Option<String> {
        // What is left of the text bounds the count, not the other way round.
        if count > self.bytes.len().saturating_sub(self.at) {
            return None;
        }
        let mut symbols = String::with_capacity(count);
        while symbols.len() < count {
            symbols.push(char::from(self.next()?));
        }
        Some(symbols)
    }

    fn next(&mut self) -> Option<u8> {
        self.skip_breaks();
        if self.peek(0) == Some(b'\\') && self.peek(1) == Some(b'/') {
            self.at += 1;
        }
        let byte = self.peek(0).filter(is_symbol)?;
        self.at += 1;
        Some(match byte {
            b'-' => b'+',
            b'_' => b'/',
            _ => byte,
        })
    }

    /// Steps over line breaks, also over those that are spelled out.
    fn skip_breaks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'\r' | b'\n'), _) => self.at += 1,
                (Some(b'\\'), Some(b'r' | b'n')) => self.at += 2,
                _ => return,
            }
        }
    }

    /// Where the encoding ends, with its padding; `None` where it goes on on the same line.
    fn end(&mut self) -> Option<usize> {
        if self.peek(0).as_ref().is_some_and(is_symbol)
            || (self.peek(0) == Some(b'\\') && self.peek(1) == Some(b'/'))
        {
            return None;
        }
        let mut end = self.at;
        for _ in 0..2 {
            self.skip_breaks();
            if self.peek(0) != Some(b'=') {
                break;
            }
            self.at += 1;
            end = self.at;
        }
        Some(end)
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, Repeats};
    use crate::plan::FileBody;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    fn payload() -> Vec<u8> {
        (0..=255).cycle().take(610).collect()
    }

    fn words(text: &str) -> Piece {
        Piece::Words(text.to_owned())
    }

    fn cut(text: &str) -> Option<Vec<Piece>> {
        let body = FileBody::Bytes(payload());
        let mut repeats = Repeats::default();
        repeats.learn(3, &body);
        repeats.cut(text)
    }

    #[test]
    fn finds_a_repeat_in_every_spelling() {
        let encoded = STANDARD.encode(payload());
        let lines: Vec<&str> = encoded
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        for spelling in [
            encoded.clone(),
            lines.join("\n"),
            lines.join("\r\n"),
            lines.join("\\n"),
            encoded.replace('/', "\\/"),
            URL_SAFE_NO_PAD.encode(payload()),
            format!("data:image/png;base64,{encoded}"),
        ] {
            assert_eq!(cut(&spelling), Some(vec![Piece::Repeat(3)]), "{spelling}");
            assert_eq!(
                cut(&format!("{{\"data\":\"{spelling}\"}} and {spelling}.")),
                Some(vec![
                    words("{\"data\":\""),
                    Piece::Repeat(3),
                    words("\"} and "),
                    Piece::Repeat(3),
                    words("."),
                ])
            );
        }
    }

    #[test]
    fn leaves_everything_else() {
        let encoded = STANDARD.encode(payload());
        let mut other = payload();
        other[600] = 1;
        for text in [
            "no base64 at all in here, only words and words and words and words".to_owned(),
            STANDARD.encode(other),
            encoded.chars().take(400).collect(),
            format!("{}AAAA", encoded.trim_end_matches('=')),
        ] {
            assert_eq!(cut(&text), None, "{text}");
        }
    }

    #[test]
    fn a_hostile_text_costs_no_more_than_its_length() {
        let body = FileBody::Bytes(vec![0; 3_000_000]);
        let mut repeats = Repeats::default();
        repeats.learn(0, &body);
        let text = format!("{}\n", "A".repeat(63)).repeat(64_000);
        assert!(repeats.cut(&text).is_none_or(|pieces| pieces.len() < 3));
    }

    #[test]
    fn leaves_payloads_that_could_be_words() {
        let body = FileBody::Bytes(b"hello".to_vec());
        let mut repeats = Repeats::default();
        repeats.learn(0, &body);
        assert!(repeats.is_empty());
        assert_eq!(repeats.cut("aGVsbG8="), None);
    }
}
