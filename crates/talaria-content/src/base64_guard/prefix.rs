//! What may stand before the data: a `data:` prefix, or an address instead of data.

use std::borrow::Cow;

use talaria_types::PayloadRefusal;

use super::{is_blank, not_base64};

/// The longest `data:` prefix that is still one.
const MAX_PREFIX_BYTES: usize = 1024;
/// The longest address that is still shown.
const MAX_ADDRESS_BYTES: usize = 8192;

const DATA: &[u8] = b"data:";
const ADDRESSES: [&[u8]; 2] = [b"http://", b"https://"];

/// Reads the start of the string until it is clear what it is.
#[derive(Debug, Default)]
pub(super) struct Opening {
    state: State,
    held: Vec<u8>,
    prefix: Prefix,
}

/// A `data:` prefix, where there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) present: bool,
    pub(super) media_type: Option<String>,
    pub(super) blanks: bool,
}

/// The data that one piece holds.
#[derive(Debug)]
pub(super) struct BodyPiece<'a> {
    pub(super) held: Cow<'static, [u8]>,
    pub(super) rest: &'a [u8],
    pub(super) blanks: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It may still become a prefix or an address.
    #[default]
    Undecided,
    /// Inside a `data:` prefix, before its comma.
    Prefix,
    /// An address; everything is collected.
    Address,
    /// Past the opening.
    Data,
}

impl Opening {
    /// Whether the string is data, with or without a prefix.
    pub(super) fn accepts(text: &str) -> bool {
        let start = text
            .get(..text.floor_char_boundary(MAX_PREFIX_BYTES * 2))
            .unwrap_or(text);
        let mut opening = Self::default();
        matches!(opening.feed(start.as_bytes()), Ok(Some(_)))
    }

    /// Takes a piece and gives back what of it is data; `None` while that is not clear.
    pub(super) fn feed<'a>(
        &mut self,
        piece: &'a [u8],
    ) -> Result<Option<BodyPiece<'a>>, PayloadRefusal> {
        for (at, byte) in piece.iter().enumerate() {
            match self.state {
                State::Data => {
                    let rest = piece.get(at..).unwrap_or_default();
                    return Ok(Some(self.body(rest)));
                }
                State::Address => self.collect(*byte)?,
                State::Undecided | State::Prefix if is_blank(*byte) => self.prefix.blanks = true,
                State::Undecided => {
                    self.held.push(*byte);
                    self.decide();
                }
                State::Prefix => self.read_prefix(*byte)?,
            }
        }
        match self.state {
            State::Data => Ok(Some(self.body(&[]))),
            State::Undecided | State::Prefix | State::Address => Ok(None),
        }
    }

    /// Ends the opening: the prefix, and what was held back but is data.
    pub(super) fn finish(self) -> Result<(Prefix, Vec<u8>), PayloadRefusal> {
        match self.state {
            State::Undecided | State::Data => Ok((self.prefix, self.held)),
            State::Prefix => Err(no_base64_prefix()),
            State::Address => Err(address(&self.held)),
        }
    }

    fn body<'a>(&mut self, rest: &'a [u8]) -> BodyPiece<'a> {
        BodyPiece {
            held: Cow::Owned(std::mem::take(&mut self.held)),
            rest,
            blanks: self.prefix.blanks,
        }
    }

    fn decide(&mut self) {
        let begins = |whole: &[u8]| {
            let length = whole.len().min(self.held.len());
            self.held.get(..length).is_some_and(|held| {
                whole
                    .get(..length)
                    .is_some_and(|start| start.eq_ignore_ascii_case(held))
            })
        };
        if begins(DATA) {
            if self.held.len() == DATA.len() {
                self.state = State::Prefix;
            }
            return;
        }
        for scheme in ADDRESSES {
            if begins(scheme) {
                if self.held.len() == scheme.len() {
                    self.state = State::Address;
                }
                return;
            }
        }
        self.state = State::Data;
    }

    fn read_prefix(&mut self, byte: u8) -> Result<(), PayloadRefusal> {
        if byte != b',' {
            self.held.push(byte);
            return match self.held.len() > MAX_PREFIX_BYTES {
                true => Err(no_base64_prefix()),
                false => Ok(()),
            };
        }
        let held = std::mem::take(&mut self.held);
        let Ok(prefix) = String::from_utf8(held) else {
            return Err(no_base64_prefix());
        };
        let prefix = prefix.to_ascii_lowercase();
        let Some(description) = prefix
            .strip_prefix("data:")
            .and_then(|rest| rest.strip_suffix(";base64"))
        else {
            return Err(no_base64_prefix());
        };
        let media_type = description.split(';').next().unwrap_or_default();
        self.prefix.present = true;
        self.prefix.media_type = (!media_type.is_empty()).then(|| media_type.to_owned());
        self.state = State::Data;
        Ok(())
    }

    fn collect(&mut self, byte: u8) -> Result<(), PayloadRefusal> {
        if self.held.len() >= MAX_ADDRESS_BYTES {
            return Err(not_base64("it is an address that is too long to show"));
        }
        self.held.push(byte);
        Ok(())
    }
}

fn no_base64_prefix() -> PayloadRefusal {
    not_base64("it starts like a data: URL but `;base64,` is missing")
}

fn address(held: &[u8]) -> PayloadRefusal {
    let Ok(url) = std::str::from_utf8(held) else {
        return not_base64("it is an address that is not UTF-8");
    };
    let url = url.trim();
    if url.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return not_base64("it starts with an address and goes on as text");
    }
    PayloadRefusal::Address {
        url: url.to_owned(),
    }
}
