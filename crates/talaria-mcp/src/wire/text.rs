//! JSON string escapes, unescaped tolerantly.

use talaria_types::WireNote;

/// What one escape sequence stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unescaped {
    /// A character.
    Char(char),
    /// Half of a surrogate pair on its own.
    LoneSurrogate,
}

/// Reads the escape that starts with the backslash at `at`; returns what it stands for and
/// where it ends, or `None` where JSON knows no such escape.
pub(super) fn unescape(raw: &[u8], at: usize) -> Option<(Unescaped, usize)> {
    let simple = match raw.get(at + 1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unescape_unicode(raw, at),
        _ => return None,
    };
    Some((Unescaped::Char(simple), at + 2))
}

fn unescape_unicode(raw: &[u8], at: usize) -> Option<(Unescaped, usize)> {
    let first = hex(raw, at + 2)?;
    if let Some(character) = char::from_u32(first) {
        return Some((Unescaped::Char(character), at + 6));
    }
    let lone = Some((Unescaped::LoneSurrogate, at + 6));
    if !(0xD800..0xDC00).contains(&first) || raw.get(at + 6..at + 8) != Some(b"\\u".as_slice()) {
        return lone;
    }
    let Some(second) = hex(raw, at + 8).filter(|second| (0xDC00..0xE000).contains(second)) else {
        return lone;
    };
    let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    char::from_u32(code).map_or(lone, |character| {
        Some((Unescaped::Char(character), at + 12))
    })
}

fn hex(raw: &[u8], at: usize) -> Option<u32> {
    let digits = raw.get(at..at + 4)?;
    digits.iter().try_fold(0, |code, digit| {
        char::from(*digit)
            .to_digit(16)
            .map(|value| (code << 4) | value)
    })
}

/// Reads the inside of a JSON string; `None` where it holds an escape that JSON does not know.
pub(super) fn read(raw: &[u8], mut note: impl FnMut(WireNote)) -> Option<String> {
    if raw.iter().any(|byte| *byte < 0x20) {
        note(WireNote::RawControl);
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
        let run = rest
            .iter()
            .position(|byte| *byte == b'\\')
            .unwrap_or(rest.len());
        bytes.extend_from_slice(rest.get(..run)?);
        at += run;
        if at == raw.len() {
            break;
        }
        let (unescaped, end) = unescape(raw, at)?;
        let character = match unescaped {
            Unescaped::Char(character) => character,
            Unescaped::LoneSurrogate => {
                note(WireNote::LoneSurrogate);
                char::REPLACEMENT_CHARACTER
            }
        };
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        at = end;
    }
    Some(String::from_utf8(bytes).unwrap_or_else(|error| {
        note(WireNote::InvalidUtf8);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    }))
}
