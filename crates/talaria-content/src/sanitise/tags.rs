//! TAG characters, U+E0000 to U+E007F: invisible to people, legible to models.

use std::borrow::Cow;

/// The base of a flag made of TAG characters.
const BLACK_FLAG: char = '\u{1f3f4}';
const CANCEL: char = '\u{e007f}';
const TAGS: std::ops::RangeInclusive<char> = '\u{e0000}'..='\u{e007f}';
/// The first byte of every TAG character in UTF-8.
const LEAD: u8 = 0xf3;

/// Removes TAG characters. A flag stays whole when what it spells has the shape of a subdivision
/// code, which the three flags in general use have: `gbeng`, `gbsct`, `gbwls`.
#[must_use]
pub fn strip_tags(text: &str) -> Cow<'_, str> {
    if !text.as_bytes().contains(&LEAD) || !text.contains(|character| TAGS.contains(&character)) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (one, behind) = rest.split_at(character.len_utf8());
        rest = behind;
        if TAGS.contains(&character) {
            continue;
        }
        kept.push_str(one);
        if character == BLACK_FLAG
            && let Some(length) = subdivision(rest)
        {
            let (flag, behind) = rest.split_at(length);
            kept.push_str(flag);
            rest = behind;
        }
    }
    Cow::Owned(kept)
}

/// The bytes of the TAG characters that complete a flag: two letters, one to four letters or
/// digits, and the mark of the end.
fn subdivision(text: &str) -> Option<usize> {
    let mut length = 0;
    for (at, character) in text.chars().enumerate() {
        length += character.len_utf8();
        if character == CANCEL {
            return (3..=6).contains(&at).then_some(length);
        }
        let is_letter = ('\u{e0061}'..='\u{e007a}').contains(&character);
        let is_digit = ('\u{e0030}'..='\u{e0039}').contains(&character);
        if at > 5 || !(is_letter || (at >= 2 && is_digit)) {
            return None;
        }
    }
    None
}
