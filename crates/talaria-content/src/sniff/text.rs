//! Bytes that are clean text: UTF-8, or UTF-16 with its mark.

use std::borrow::Cow;

/// The text in the bytes without its byte-order mark, or `None` where they are no clean text.
/// `whole` says whether the bytes may end in the middle of a character.
pub(crate) fn decode_text(bytes: &[u8], whole: Whole) -> Option<Cow<'_, str>> {
    let text = match bytes {
        [0xff, 0xfe, units @ ..] => Cow::Owned(decode_units(units, whole, u16::from_le_bytes)?),
        [0xfe, 0xff, units @ ..] => Cow::Owned(decode_units(units, whole, u16::from_be_bytes)?),
        _ => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            Cow::Borrowed(decode_utf8(bytes, whole)?)
        }
    };
    (!text.as_bytes().contains(&0)).then_some(text)
}

/// Whether all of the text is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// All of it.
    Yes,
    /// Only its beginning.
    No,
}

fn decode_utf8(bytes: &[u8], whole: Whole) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if whole == Whole::No && error.error_len().is_none() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()
        }
        Err(_) => None,
    }
}

fn decode_units(bytes: &[u8], whole: Whole, unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if whole == Whole::Yes && !rest.is_empty() {
        return None;
    }
    let mut units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    if whole == Whole::No
        && units
            .last()
            .is_some_and(|last| (0xd800..0xdc00).contains(last))
    {
        units.pop();
    }
    String::from_utf16(&units).ok()
}
