//! The tolerant JSON reader.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Number, Value};
use talaria_types::{Payload, PayloadRefusal, PayloadSink, RawResult, WireNote};

use super::number::{fits, is_number};
use super::payload::{MIN_PAYLOAD_BYTES, stage};
use super::position::is_block;
use super::{Scrubbed, text};

/// Values nested deeper than this become null.
const MAX_DEPTH: usize = 128;

/// Payloads below a longer pointer stay in the JSON. Every payload keeps its pointer, so one key
/// of megabytes around many payloads would multiply. The places of the protocol are short.
pub(super) const MAX_POINTER_BYTES: usize = 4096;

/// Why a text is not read, as a clause, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) at: usize,
    pub(crate) problem: &'static str,
    pub(crate) kind: Unread,
}

/// What is wrong with a text that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is not JSON.
    NotJson,
    /// It holds more values than are read.
    TooMany,
}

/// Reads one value and takes the payloads out of its result on the way.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    result_at: &'a str,
    sink: &'a dyn PayloadSink,
    /// Pointer of the value being read.
    pointer: String,
    /// Whether that value is inside the result.
    inside: bool,
    result: Option<Value>,
    payloads: BTreeMap<String, Payload>,
    notes: BTreeSet<WireNote>,
    /// How many more values may be read.
    room: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(
        text: &'a [u8],
        at: usize,
        result_at: &'a str,
        sink: &'a dyn PayloadSink,
        room: usize,
    ) -> Self {
        Self {
            text,
            at,
            room,
            depth: 0,
            result_at,
            sink,
            pointer: String::new(),
            inside: false,
            result: None,
            payloads: BTreeMap::new(),
            notes: BTreeSet::new(),
        }
    }

    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// How many values are left of what may be read.
    pub(super) const fn room(&self) -> usize {
        self.room
    }

    /// Reads the value; the result stays behind in the reader.
    pub(super) fn message(&mut self) -> Result<Value, Malformed> {
        self.value("")
    }

    pub(super) fn finish(self, rest: Value, bytes: usize) -> Scrubbed {
        let notes: Vec<_> = self.notes.into_iter().collect();
        let result = self.result.map(|json| RawResult {
            json,
            payloads: self.payloads,
            notes: notes.clone(),
            wire_bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        });
        Scrubbed {
            rest,
            result,
            notes,
        }
    }

    /// Reads the value at the current pointer; `key` is its name in the object around it.
    fn value(&mut self, key: &str) -> Result<Value, Malformed> {
        if self.inside || self.pointer != self.result_at {
            return self.plain_value(key);
        }
        self.inside = true;
        let value = self.plain_value("");
        self.inside = false;
        self.result = Some(value?);
        Ok(Value::Null)
    }

    fn plain_value(&mut self, key: &str) -> Result<Value, Malformed> {
        let Some(room) = self.room.checked_sub(1) else {
            return Err(Malformed {
                kind: Unread::TooMany,
                ..self.malformed("too many values")
            });
        };
        self.room = room;
        self.blank();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => {
                let raw = self.raw_string()?;
                self.string_value(key, raw)
            }
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => self.number(),
            Some(b't') => self.word(b"true", Value::Bool(true)),
            Some(b'f') => self.word(b"false", Value::Bool(false)),
            Some(b'n') => self.word(b"null", Value::Null),
            Some(_) => Err(self.malformed("no value begins")),
            None => Err(self.malformed("it ends too early")),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value, Malformed>,
    ) -> Result<Value, Malformed> {
        if self.depth == MAX_DEPTH {
            self.notes.insert(WireNote::TooDeep);
            return self.skip_nested().map(|()| Value::Null);
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, Malformed> {
        let mut map = Map::new();
        self.blank();
        if self.step(b'}') {
            return Ok(Value::Object(map));
        }
        loop {
            self.blank();
            let key = self.key()?;
            self.blank();
            if !self.step(b':') {
                return Err(self.malformed("a colon is missing"));
            }
            let outer = self.pointer.len();
            self.push_key(&key);
            if map.contains_key(&key) {
                self.forget();
            }
            let value = self.value(&key)?;
            self.pointer.truncate(outer);
            map.insert(key, value);
            self.blank();
            if self.step(b'}') {
                return Ok(Value::Object(map));
            }
            if !self.step(b',') {
                return Err(self.malformed("an object has no end"));
            }
        }
    }

    fn array(&mut self) -> Result<Value, Malformed> {
        let mut list = Vec::new();
        self.blank();
        if self.step(b']') {
            return Ok(Value::Array(list));
        }
        loop {
            let outer = self.pointer.len();
            self.pointer.push('/');
            self.pointer.push_str(&list.len().to_string());
            let value = self.value("")?;
            self.pointer.truncate(outer);
            list.push(value);
            self.blank();
            if self.step(b']') {
                return Ok(Value::Array(list));
            }
            if !self.step(b',') {
                return Err(self.malformed("a list has no end"));
            }
        }
    }

    fn key(&mut self) -> Result<String, Malformed> {
        if self.peek() != Some(b'"') {
            return Err(self.malformed("a key is missing"));
        }
        let raw = self.raw_string()?;
        self.read_text(raw)
    }

    /// The inside of the string that begins here, without its quotes.
    fn raw_string(&mut self) -> Result<&'a [u8], Malformed> {
        let text: &'a [u8] = self.text;
        let start = self.at + 1;
        let mut end = start;
        loop {
            let rest = text.get(end..).unwrap_or_default();
            let Some(found) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
                return Err(self.malformed("a string has no end"));
            };
            end += found;
            if text.get(end) == Some(&b'"') {
                break;
            }
            end += 2;
        }
        self.at = end + 1;
        Ok(text.get(start..end).unwrap_or_default())
    }

    fn read_text(&mut self, raw: &[u8]) -> Result<String, Malformed> {
        let notes = &mut self.notes;
        let read = text::read(raw, |note| {
            notes.insert(note);
        });
        read.ok_or_else(|| self.malformed("a string has an unknown escape"))
    }

    fn string_value(&mut self, key: &str, raw: &[u8]) -> Result<Value, Malformed> {
        let may_leave = self.inside && matches!(key, "data" | "blob");
        if may_leave && raw.len() >= MIN_PAYLOAD_BYTES && self.has_short_pointer() {
            let pointer = self
                .pointer
                .get(self.result_at.len()..)
                .unwrap_or_default()
                .to_owned();
            if let Some(payload) = self.payload(&pointer, raw) {
                self.payloads.insert(pointer, payload);
                return Ok(Value::String(String::new()));
            }
        }
        self.read_text(raw).map(Value::String)
    }

    /// Decodes a payload; `None` where the string has to stay as it is.
    fn payload(&self, pointer: &str, raw: &[u8]) -> Option<Payload> {
        let staged = stage(raw, self.sink);
        if is_block(pointer) {
            return Some(match staged {
                Ok((staged, _)) => Payload::Staged(staged),
                Err(refusal) => Payload::Refused(refusal),
            });
        }
        match staged {
            // What stands elsewhere is a payload only if putting it back would give the same text.
            Ok((staged, decoded)) if decoded.canonical => Some(Payload::Staged(staged)),
            Err(refusal @ PayloadRefusal::TooLarge { .. }) => Some(Payload::Refused(refusal)),
            Ok(_)
            | Err(
                PayloadRefusal::Empty
                | PayloadRefusal::NotBase64 { .. }
                | PayloadRefusal::Address { .. }
                | PayloadRefusal::NotStored { .. },
            ) => None,
        }
    }

    fn number(&mut self) -> Result<Value, Malformed> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            self.at += 1;
        }
        let token = self.text.get(start..self.at).unwrap_or_default();
        let token = std::str::from_utf8(token).unwrap_or_default();
        if fits(token)
            && let Ok(number) = serde_json::from_str::<Number>(token)
        {
            return Ok(Value::Number(number));
        }
        if matches!(token, "NaN" | "Infinity" | "-Infinity") || is_number(token) {
            self.notes.insert(WireNote::HugeNumber);
            return Ok(Value::String(token.to_owned()));
        }
        self.at = start;
        Err(self.malformed("no value begins"))
    }

    fn word(&mut self, word: &[u8], value: Value) -> Result<Value, Malformed> {
        if !self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            return Err(self.malformed("no value begins"));
        }
        self.at += word.len();
        Ok(value)
    }

    /// Steps over a nested value without building it and without recursion.
    fn skip_nested(&mut self) -> Result<(), Malformed> {
        let mut open = 0_usize;
        loop {
            match self.peek() {
                Some(b'{' | b'[') => open += 1,
                Some(b'}' | b']') => open -= 1,
                Some(b'"') => {
                    self.raw_string()?;
                    continue;
                }
                Some(_) => {}
                None => return Err(self.malformed("it ends too early")),
            }
            self.at += 1;
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// Whether a payload may stand at the current pointer or below.
    const fn has_short_pointer(&self) -> bool {
        self.pointer.len() <= self.result_at.len() + MAX_POINTER_BYTES
    }

    fn push_key(&mut self, key: &str) {
        self.pointer.push('/');
        for character in key.chars() {
            match character {
                '~' => self.pointer.push_str("~0"),
                '/' => self.pointer.push_str("~1"),
                other => self.pointer.push(other),
            }
        }
    }

    /// Of a key that stands twice the last value counts; the payloads of the first go with it.
    fn forget(&mut self) {
        if !self.has_short_pointer() {
            return;
        }
        if let Some(pointer) = self.pointer.strip_prefix(self.result_at) {
            self.payloads.remove(pointer);
            // All that stands below it, and nothing else: `0` comes next after `/`.
            let below = format!("{pointer}/")..format!("{pointer}0");
            let below: Vec<_> = self
                .payloads
                .range(below)
                .map(|(known, _)| known.clone())
                .collect();
            for known in below {
                self.payloads.remove(&known);
            }
        }
    }

    fn blank(&mut self) {
        while self
            .peek()
            .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn step(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        if is_here {
            self.at += 1;
        }
        is_here
    }

    const fn malformed(&self, problem: &'static str) -> Malformed {
        Malformed {
            at: self.at,
            problem,
            kind: Unread::NotJson,
        }
    }
}
