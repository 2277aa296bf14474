//! Streaming base64 decoder with the rules of design decisions 1 and 2.
//!
//! Blanks are dropped first. What is left is an optional `data:…;base64,` prefix and characters of
//! the standard or the url-safe alphabet, not of both, with correct padding or none. How the string
//! is cut into pieces changes neither the bytes nor the refusal.

mod prefix;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use talaria_types::PayloadRefusal;

use self::prefix::{Opening, Prefix};

/// Decoded size limit of every binary: 50 MiB.
pub const MAX_PAYLOAD_BYTES: u64 = 52_428_800;
/// Data characters that may be decoded at all (specification 1.5).
pub const MAX_PAYLOAD_CHARACTERS: u64 = 69_905_070;

/// Characters that stand for three bytes.
const QUAD: usize = 4;

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::RequireNone);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);

/// Bytes in the standard alphabet, padded.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes one payload string piece by piece.
#[derive(Debug)]
pub struct Base64Guard {
    opening: Opening,
    body: Body,
}

impl Base64Guard {
    /// A decoder for a new payload.
    #[must_use]
    pub fn new() -> Self {
        Self {
            opening: Opening::default(),
            body: Body::default(),
        }
    }

    /// Decodes the next piece and appends the bytes to `out`.
    ///
    /// # Errors
    /// The payload is refused; nothing decoded so far may be used.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), PayloadRefusal> {
        match self.opening.feed(piece)? {
            None => Ok(()),
            Some(body) => {
                self.body.blanks |= body.blanks;
                if !body.held.is_empty() {
                    self.body.push(&body.held, out)?;
                }
                self.body.push(body.rest, out)
            }
        }
    }

    /// Ends the payload, appending what was held back.
    ///
    /// # Errors
    /// The payload is refused.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Decoded, PayloadRefusal> {
        let (prefix, held) = self.opening.finish()?;
        self.body.blanks |= prefix.blanks;
        self.body.push(&held, out)?;
        self.body.finish(prefix, out)
    }
}

impl Default for Base64Guard {
    fn default() -> Self {
        Self::new()
    }
}

/// What a finished decoder knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Media type of a `data:` prefix.
    pub data_url_type: Option<String>,
    /// Whether encoding the bytes again gives exactly the string that was read.
    pub canonical: bool,
    /// Decoded length.
    pub bytes: u64,
}

/// Decodes a whole string. A string with too many data characters is refused before it is decoded.
///
/// # Errors
/// The payload is refused.
pub fn decode(text: &str) -> Result<(Vec<u8>, Decoded), PayloadRefusal> {
    if length(text.len()) > MAX_PAYLOAD_CHARACTERS {
        let characters = text.bytes().filter(|byte| !is_blank(*byte)).count();
        let prefix = text.find(',').map_or(0, |comma| comma + 1);
        let at_least = length(characters.saturating_sub(prefix));
        if at_least > MAX_PAYLOAD_CHARACTERS && Opening::accepts(text) {
            return Err(PayloadRefusal::TooLarge {
                bytes: at_least / 4 * 3,
                exact: false,
            });
        }
    }
    let mut out = Vec::with_capacity(text.len() / QUAD * 3 + 3);
    let mut guard = Base64Guard::new();
    guard.push(text.as_bytes(), &mut out)?;
    let decoded = guard.finish(&mut out)?;
    Ok((out, decoded))
}

/// The five characters that base64 may be wrapped with.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c)
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn not_base64(reason: impl Into<String>) -> PayloadRefusal {
    PayloadRefusal::NotBase64 {
        reason: reason.into(),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Alphabet {
    /// Nothing seen yet that only one of them has.
    #[default]
    Either,
    Standard,
    UrlSafe,
}

/// The data characters and their padding.
#[derive(Debug, Default)]
struct Body {
    alphabet: Alphabet,
    /// Data characters that do not fill a quad yet.
    carry: Vec<u8>,
    /// Data characters without blanks of the piece at work.
    scratch: Vec<u8>,
    data: u64,
    padding: u64,
    bytes: u64,
    blanks: bool,
}

impl Body {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), PayloadRefusal> {
        if !crate::scan::any(piece, is_blank) {
            return self.push_solid(piece, out);
        }
        self.blanks = true;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        for run in piece.split(|byte| is_blank(*byte)) {
            scratch.extend_from_slice(run);
        }
        let outcome = self.push_solid(&scratch, out);
        self.scratch = scratch;
        outcome
    }

    fn push_solid(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), PayloadRefusal> {
        let (data, padding) = match piece.contains(&b'=') {
            false => (piece, &[][..]),
            true => {
                let end = piece.iter().position(|byte| *byte == b'=');
                piece.split_at(end.unwrap_or(piece.len()))
            }
        };
        if data.is_empty() {
            return self.pad(padding);
        }
        let crosses = self.data.saturating_add(length(data.len())) > MAX_PAYLOAD_CHARACTERS;
        let settled = self.padding == 0 && !crosses && self.settle_alphabet(data);
        if !settled || !self.decode(data, out) {
            return Err(self.first_fault(data));
        }
        self.data += length(data.len());
        self.pad(padding)
    }

    /// Learns which alphabet is used from the characters that only one of them has. Once that is
    /// known, the decoder finds the characters of the other.
    fn settle_alphabet(&mut self, data: &[u8]) -> bool {
        if self.alphabet != Alphabet::Either {
            return true;
        }
        let standard = data.contains(&b'+') || data.contains(&b'/');
        let url_safe = data.contains(&b'-') || data.contains(&b'_');
        match (standard, url_safe) {
            (false, false) => {}
            (true, false) => self.alphabet = Alphabet::Standard,
            (false, true) => self.alphabet = Alphabet::UrlSafe,
            (true, true) => return false,
        }
        true
    }

    /// Decodes whole quads and keeps the rest; false where a character does not belong.
    fn decode(&mut self, mut data: &[u8], out: &mut Vec<u8>) -> bool {
        if !self.carry.is_empty() {
            let (head, rest) = data.split_at(data.len().min(QUAD - self.carry.len()));
            self.carry.extend_from_slice(head);
            data = rest;
            if self.carry.len() < QUAD {
                return self.belong(head);
            }
            let quad = std::mem::take(&mut self.carry);
            if !self.decode_quads(&quad, out) {
                return false;
            }
        }
        let (quads, tail) = data.split_at(data.len() / QUAD * QUAD);
        self.carry.extend_from_slice(tail);
        self.decode_quads(quads, out) && self.belong(tail)
    }

    fn decode_quads(&mut self, quads: &[u8], out: &mut Vec<u8>) -> bool {
        let engine = match self.alphabet {
            Alphabet::Either | Alphabet::Standard => &STANDARD,
            Alphabet::UrlSafe => &URL_SAFE,
        };
        let before = out.len();
        let is_decoded = engine.decode_vec(quads, out).is_ok();
        self.bytes += length(out.len().saturating_sub(before));
        is_decoded
    }

    /// Whether characters that are not decoded yet are of the alphabet.
    fn belong(&self, data: &[u8]) -> bool {
        data.iter().all(|byte| match byte {
            b'+' | b'/' => self.alphabet != Alphabet::UrlSafe,
            b'-' | b'_' => self.alphabet != Alphabet::Standard,
            byte => byte.is_ascii_alphanumeric(),
        })
    }

    fn pad(&mut self, padding: &[u8]) -> Result<(), PayloadRefusal> {
        for byte in padding {
            if *byte != b'=' {
                return Err(not_base64("data after the padding"));
            }
            self.padding += 1;
            if self.data + self.padding > MAX_PAYLOAD_CHARACTERS {
                return Err(too_many_characters());
            }
        }
        Ok(())
    }

    /// The refusal that reading character by character meets first.
    fn first_fault(&self, data: &[u8]) -> PayloadRefusal {
        if self.padding > 0 {
            return not_base64("data after the padding");
        }
        let mut alphabet = self.alphabet;
        for (offset, byte) in data.iter().enumerate() {
            if let Err(refusal) = check(std::slice::from_ref(byte)) {
                return refusal;
            }
            let seen = match byte {
                b'+' | b'/' => Alphabet::Standard,
                b'-' | b'_' => Alphabet::UrlSafe,
                _ => alphabet,
            };
            if alphabet != Alphabet::Either && alphabet != seen {
                return not_base64("the standard and the url-safe alphabet are mixed");
            }
            alphabet = seen;
            if self.data + length(offset) >= MAX_PAYLOAD_CHARACTERS {
                break;
            }
        }
        too_many_characters()
    }

    fn finish(mut self, prefix: Prefix, out: &mut Vec<u8>) -> Result<Decoded, PayloadRefusal> {
        if self.data == 0 && self.padding == 0 {
            return Err(PayloadRefusal::Empty);
        }
        let over = self.data % length(QUAD);
        let owed = match over {
            0 => 0,
            1 => return Err(not_base64("one character is left over at the end")),
            over => length(QUAD) - over,
        };
        if self.padding != 0 && self.padding != owed {
            return Err(not_base64("the padding is wrong"));
        }
        let tail = std::mem::take(&mut self.carry);
        let held_bits = tail
            .last()
            .map_or(0, |last| sextet(*last) & trailing_mask(over));
        if !self.decode_quads(&tail, out) {
            return Err(not_base64("it cannot be decoded"));
        }
        if self.bytes > MAX_PAYLOAD_BYTES {
            return Err(PayloadRefusal::TooLarge {
                bytes: self.bytes,
                exact: true,
            });
        }
        Ok(Decoded {
            canonical: !self.blanks
                && !prefix.present
                && self.alphabet != Alphabet::UrlSafe
                && self.padding == owed
                && held_bits == 0,
            data_url_type: prefix.media_type,
            bytes: self.bytes,
        })
    }
}

/// A piece never shows how long the rest is, so the estimate is what was read up to the limit.
fn too_many_characters() -> PayloadRefusal {
    PayloadRefusal::TooLarge {
        bytes: MAX_PAYLOAD_CHARACTERS / 4 * 3,
        exact: false,
    }
}

/// Refuses the first character that is in neither alphabet.
fn check(data: &[u8]) -> Result<(), PayloadRefusal> {
    let stranger = data
        .iter()
        .find(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')));
    match stranger {
        None => Ok(()),
        Some(byte) if byte.is_ascii_graphic() => Err(not_base64(format!(
            "it holds the character `{}`",
            char::from(*byte)
        ))),
        Some(byte) if byte.is_ascii() => Err(not_base64(format!(
            "it holds the control character U+{byte:04X}"
        ))),
        Some(_) => Err(not_base64("it holds a character that is not ASCII")),
    }
}

const fn sextet(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    }
}

/// The bits of the last character that stand for no byte.
const fn trailing_mask(over: u64) -> u8 {
    match over {
        2 => 0b1111,
        3 => 0b11,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
