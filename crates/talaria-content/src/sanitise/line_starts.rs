//! Lines that open like a line of ours.

use std::borrow::Cow;

use crate::names::is_invisible;

/// What stands before a line that is not ours, so that people and programs see it.
const OURS_NOT: &str = "(server text) ";

/// Characters beside the newline that readers cut lines at, and their first byte.
const SEPARATORS: &[char] = &['\u{2028}', '\u{2029}'];
const SEPARATOR_LEAD: u8 = 0xe2;

/// What quotes, lists, headings, elements and tables begin their lines with, what sets words
/// off, and the blank of Braille.
const DECORATION: &str = "`\"'*_<>(){}-+~#|–—•‣◦·▪●\u{2800}";

/// Whether a text begins a line or goes on with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineStart {
    /// Its first character is the first of a line.
    Yes,
    /// Something stands before it on its line.
    No,
}

/// Marks every line that opens with `MEDIA:` or like a marker of ours, also behind blanks,
/// quotes, bullets, numbers and characters that cannot be seen: our own notes are list items.
pub(super) fn neutralise(text: &str, start: LineStart) -> Cow<'_, str> {
    let mut changed: Option<String> = None;
    let mut copied = 0;
    let mut is_first = start == LineStart::No;
    for line in lines(text) {
        let skip = std::mem::take(&mut is_first);
        let Some(forgery) = (if skip { None } else { forgery(line.words) }) else {
            continue;
        };
        let out = changed.get_or_insert_with(|| String::with_capacity(text.len() + 64));
        out.push_str(text.get(copied..line.at).unwrap_or_default());
        out.push_str(OURS_NOT);
        copied = line.at;
        if let Some(colon) = forgery.colon {
            out.push_str(text.get(copied..line.at + colon).unwrap_or_default());
            out.push('\\');
            copied = line.at + colon;
        }
    }
    match changed {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(text.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

struct Line<'a> {
    at: usize,
    words: &'a str,
}

/// Lines as any reader may cut them: at newlines and at the two separators of Unicode.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let has_separators = text.as_bytes().contains(&SEPARATOR_LEAD);
    let mut at = 0;
    text.split('\n').flat_map(move |line| {
        let mut within = at;
        at += line.len() + 1;
        let separators = if has_separators { SEPARATORS } else { &[] };
        line.split(separators).map(move |words| {
            let at = within;
            within += words.len() + '\u{2028}'.len_utf8();
            Line { at, words }
        })
    })
}

struct Forgery {
    /// Where the colon of a `MEDIA:` stands, to be set apart from its word.
    colon: Option<usize>,
}

fn forgery(line: &str) -> Option<Forgery> {
    let first = line.bytes().next()?;
    if first.is_ascii_alphabetic() && !first.eq_ignore_ascii_case(&b'm') {
        return None;
    }
    let word = behind_decoration(line);
    let offset = line.len() - word.len();
    if !word.starts_with(['M', 'm', '[']) {
        return None;
    }
    if let Some(colon) = after(word, "MEDIA") {
        let behind = word.get(colon..)?.strip_prefix(':')?;
        // The elements of feeds have such names; a path begins with no letter.
        let is_element = line.get(..offset)?.ends_with('<')
            && behind.starts_with(|next: char| next.is_ascii_alphabetic());
        return (!is_element).then_some(Forgery {
            colon: Some(offset + colon),
        });
    }
    opens_marker(word).then_some(Forgery { colon: None })
}

/// Whether a text opens like a marker of ours: `[MCP`, however spaced and spelled.
pub(crate) fn opens_marker(text: &str) -> bool {
    let inside = text.strip_prefix('[').unwrap_or_default();
    let inside = inside.trim_start_matches(is_blank);
    after(inside, "MCP").is_some_and(|end| {
        let behind = inside.get(end..).and_then(|behind| behind.chars().next());
        behind.is_none_or(|next| !next.is_alphanumeric())
    })
}

/// The line from its first word on, whatever list or quote it is part of.
fn behind_decoration(line: &str) -> &str {
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(|character: char| {
            is_blank(character) || DECORATION.contains(character)
        });
        let behind = rest.trim_start_matches(|character: char| character.is_ascii_digit());
        if behind.len() == rest.len() {
            return rest;
        }
        match behind.strip_prefix(['.', ')']) {
            Some(item) => rest = item,
            None => return rest,
        }
    }
}

fn is_blank(character: char) -> bool {
    character.is_whitespace() || is_invisible(character)
}

/// Where the word ends that the text opens with, in any case and with unseen characters inside.
fn after(text: &str, word: &str) -> Option<usize> {
    let mut wanted = word.chars().peekable();
    for (at, character) in text.char_indices() {
        if is_invisible(character) {
            continue;
        }
        match wanted.next() {
            None => return Some(at),
            Some(letter) if letter.eq_ignore_ascii_case(&character) => {}
            Some(_) => return None,
        }
    }
    wanted.peek().is_none().then_some(text.len())
}
