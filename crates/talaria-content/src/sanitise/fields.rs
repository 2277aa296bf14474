//! Single values of a server inside a line of ours.

use std::borrow::Cow;

use crate::names::is_invisible;

use super::{strip_tags, strip_terminal};

/// How long a name or a type may be inside a line.
const MAX_FIELD_CHARACTERS: usize = 300;
/// How long an address may be inside a line.
const MAX_ADDRESS_CHARACTERS: usize = 4096;

/// A value on one line: newlines and brackets escaped, so that it can neither end the marker it
/// stands in nor begin another.
pub(crate) fn field(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let cleaned = one_line(text);
    for (count, character) in cleaned.chars().enumerate() {
        if count == MAX_FIELD_CHARACTERS {
            line.push('…');
            break;
        }
        if matches!(character, '[' | ']') {
            line.push('\\');
        }
        line.push(character);
    }
    line
}

/// Words without TAG characters, escape sequences and control characters, with line breaks
/// spelled out.
pub(crate) fn one_line(text: &str) -> String {
    let tagless = strip_tags(text);
    let cleaned = strip_terminal(&tagless);
    let trimmed = cleaned.trim();
    if !trimmed.contains(['\n', '\t', '\u{2028}', '\u{2029}']) {
        return trimmed.to_owned();
    }
    let mut line = String::with_capacity(trimmed.len() + 8);
    for character in trimmed.chars() {
        match character {
            '\n' | '\u{2028}' | '\u{2029}' => line.push_str("\\n"),
            '\t' => line.push(' '),
            _ => line.push(character),
        }
    }
    line
}

/// The same without any character that cannot be seen: for names that somebody reads and compares.
#[must_use]
pub fn visible_line(text: &str) -> String {
    one_line(text)
        .chars()
        .filter(|character| !is_invisible(*character))
        .collect()
}

/// An address inside a line: what would end the line or the marker is percent-encoded, which
/// leaves it an address.
pub(crate) fn address(uri: &str) -> String {
    let tagless: Cow<'_, str> = strip_tags(uri);
    let trimmed = tagless.trim();
    let mut line = String::with_capacity(trimmed.len());
    for (count, character) in trimmed.chars().enumerate() {
        if count == MAX_ADDRESS_CHARACTERS {
            line.push('…');
            break;
        }
        match character {
            '[' | ']' | '\u{2028}' | '\u{2029}' => escape(character, &mut line),
            _ if character.is_control() => escape(character, &mut line),
            _ => line.push(character),
        }
    }
    line
}

fn escape(character: char, line: &mut String) {
    let mut buffer = [0; 4];
    for byte in character.encode_utf8(&mut buffer).bytes() {
        line.push_str(percent_encoding::percent_encode_byte(byte));
    }
}
