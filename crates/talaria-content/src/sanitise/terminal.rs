//! Escape sequences and control characters, which move cursors and ring bells but say nothing.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

use crate::scan;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{07}';

/// Removes escape sequences of every kind and control characters other than newline and tab.
/// Carriage returns, form feeds and their like become newlines, so that words stay apart.
#[must_use]
pub fn strip_terminal(text: &str) -> Cow<'_, str> {
    if !scan::any(text.as_bytes(), may_be_control) || !text.chars().any(is_unwanted) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            ESCAPE => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            '\r' => {
                if rest.peek() != Some(&'\n') {
                    kept.push('\n');
                }
            }
            '\u{0b}' | '\u{0c}' | '\u{85}' => kept.push('\n'),
            _ if is_unwanted(character) => {}
            _ => kept.push(character),
        }
    }
    Cow::Owned(kept)
}

/// Whether a byte is a control character or the lead byte of one.
const fn may_be_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f || byte == 0xc2
}

fn is_unwanted(character: char) -> bool {
    character.is_control() && character != '\n' && character != '\t'
}

/// Skips what follows an escape character.
fn skip_escape(rest: &mut Peekable<Chars<'_>>) {
    let Some(next) = rest.peek().copied() else {
        return;
    };
    match next {
        '[' => {
            rest.next();
            skip_control_sequence(rest);
        }
        ']' | 'P' | 'X' | '^' | '_' => {
            rest.next();
            skip_string(rest);
        }
        ' '..='/' => {
            while rest
                .next_if(|character| (' '..='/').contains(character))
                .is_some()
            {}
            rest.next_if(|character| ('0'..='~').contains(character));
        }
        '0'..='~' => {
            rest.next();
        }
        _ => {}
    }
}

/// Skips parameters, intermediates and the final character; a character that does not belong
/// ends the sequence and stays.
fn skip_control_sequence(rest: &mut Peekable<Chars<'_>>) {
    while rest
        .next_if(|character| ('0'..='?').contains(character))
        .is_some()
    {}
    while rest
        .next_if(|character| (' '..='/').contains(character))
        .is_some()
    {}
    rest.next_if(|character| ('@'..='~').contains(character));
}

/// Skips a title, an address or another string up to its end. A string without an end ends with
/// its line, so that it cannot take the rest of a text with it.
fn skip_string(rest: &mut Peekable<Chars<'_>>) {
    while let Some(character) = rest.peek().copied() {
        match character {
            '\n' | '\r' => return,
            ESCAPE => {
                rest.next();
                if rest.next_if_eq(&'\\').is_none() {
                    skip_escape(rest);
                }
                return;
            }
            BELL | '\u{9c}' | '\u{18}' | '\u{1a}' => {
                rest.next();
                return;
            }
            _ => {
                rest.next();
            }
        }
    }
}
