//! From message bytes to small JSON plus payload handles.
//!
//! One linear pass over the bytes builds the JSON value. Base64 payloads never enter it: they
//! are decoded straight out of the message buffer into the [`PayloadSink`]. Faults that cost
//! only a value are mended and noted.

mod anchored;
mod number;
mod payload;
mod position;
mod reader;
mod text;

use serde_json::Value;
use talaria_config::defaults::MAX_JSON_VALUES;
use talaria_types::{ErrorCode, Failure, PayloadSink, RawResult, WireNote};

pub(crate) use anchored::{Anchor, anchor};
pub(crate) use payload::MIN_PAYLOAD_BYTES;
pub(crate) use reader::Malformed;

use reader::{Reader, Unread};

/// Reads one JSON text tolerantly: base64 payloads at block positions go to the sink, faults
/// that cost only a value are mended and noted.
///
/// `result_at` is the RFC 6901 pointer of the result inside the text: `/result` for a JSON-RPC
/// response and for the body of `/v1/results/deliver`, empty when the text is the result.
/// Pointers in [`RawResult::payloads`] are relative to it, and [`Scrubbed::rest`] is the text
/// without it.
///
/// # Errors
/// `malformed_message` when the text is not JSON at all, `message_too_large` when it holds more
/// than [`MAX_JSON_VALUES`] values.
pub fn scrub(text: &[u8], result_at: &str, sink: &dyn PayloadSink) -> Result<Scrubbed, Failure> {
    let mut messages = Messages::new(text, result_at, sink);
    let first = messages.next().unwrap_or(Err(Malformed {
        at: 0,
        problem: "it is empty",
        kind: Unread::NotJson,
    }));
    let scrubbed = first.map_err(Failure::from)?;
    match messages.next() {
        None => Ok(scrubbed),
        Some(_) => Err(Malformed {
            at: messages.at,
            problem: "something follows the value",
            kind: Unread::NotJson,
        }
        .into()),
    }
}

/// A message split in two.
#[derive(Debug)]
pub struct Scrubbed {
    /// Everything but the result, with null in its place.
    pub rest: Value,
    /// The result, or `None` where there is none.
    pub result: Option<RawResult>,
    /// Faults that were mended anywhere in the text; the result carries them too.
    pub notes: Vec<WireNote>,
}

/// The JSON values of one frame, one after another: a single message as a rule, several where
/// a server forgot the line break, the elements of a batch where it sent one.
#[derive(Debug)]
pub(crate) struct Messages<'a> {
    text: &'a [u8],
    at: usize,
    /// Where the value read last begins.
    began: usize,
    result_at: &'a str,
    sink: &'a dyn PayloadSink,
    /// How many more values are read, of all messages together.
    room: usize,
}

impl<'a> Messages<'a> {
    pub(crate) const fn new(text: &'a [u8], result_at: &'a str, sink: &'a dyn PayloadSink) -> Self {
        Self {
            text,
            at: 0,
            began: 0,
            result_at,
            sink,
            room: MAX_JSON_VALUES,
        }
    }

    fn skip(&mut self, is_between: impl Fn(u8) -> bool) {
        while self.text.get(self.at).is_some_and(|byte| is_between(*byte)) {
            self.at += 1;
        }
    }

    /// The text from the beginning of the value read last.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.text.get(self.began..).unwrap_or_default()
    }

    /// Steps over the bracket that opens a batch, if one does.
    pub(crate) fn enter_batch(&mut self) -> bool {
        self.skip_blank();
        let opens = self.text.get(self.at) == Some(&b'[');
        if opens {
            self.at += 1;
        }
        opens
    }

    /// The next element of a batch; `None` at its closing bracket.
    pub(crate) fn next_of_batch(&mut self) -> Option<Result<Scrubbed, Malformed>> {
        self.skip(|byte| byte.is_ascii_whitespace() || byte == b',');
        match self.text.get(self.at) {
            Some(b']') => {
                self.at += 1;
                None
            }
            Some(_) => Some(self.read()),
            None => Some(Err(Malformed {
                at: self.at,
                problem: "the batch has no end",
                kind: Unread::NotJson,
            })),
        }
    }

    fn skip_blank(&mut self) {
        if self.at == 0 && self.text.starts_with(b"\xEF\xBB\xBF") {
            self.at = 3;
        }
        self.skip(|byte| byte.is_ascii_whitespace());
    }

    fn read(&mut self) -> Result<Scrubbed, Malformed> {
        let start = self.at;
        self.began = start;
        let mut reader = Reader::new(self.text, start, self.result_at, self.sink, self.room);
        let outcome = reader.message();
        self.room = reader.room();
        self.at = match outcome {
            Ok(_) => reader.position(),
            Err(_) => self.text.len(),
        };
        let rest = outcome?;
        Ok(reader.finish(rest, self.at - start))
    }
}

impl Iterator for Messages<'_> {
    type Item = Result<Scrubbed, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blank();
        (self.at < self.text.len()).then(|| self.read())
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        malformed.failure("the text")
    }
}

impl Malformed {
    /// What it costs; `whose` begins the sentence.
    pub(crate) fn failure(self, whose: &str) -> Failure {
        let Self { at, problem, kind } = self;
        match kind {
            Unread::NotJson => Failure::new(
                ErrorCode::MalformedMessage,
                format!("{whose} is not valid JSON: {problem} at byte {at}"),
            ),
            Unread::TooMany => Failure::new(
                ErrorCode::MessageTooLarge,
                format!("{whose} holds more than {MAX_JSON_VALUES} JSON values"),
            ),
        }
    }
}

#[cfg(test)]
mod tests;
