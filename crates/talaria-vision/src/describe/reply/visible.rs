//! What of a text somebody can see.

use crate::describe::verdict::{MAX_WORDS_BYTES, cut};

/// Shortest word that may be encoded data, and how much of it is a flood.
const DATA_WORD_BYTES: usize = 60;
const DATA_FLOOD_BYTES: usize = 1_000;
/// What stands where encoded data was.
const DATA_NOTE: &str = "[encoded data left out]";
/// How much of a page is looked through for its title.
const TITLE_BYTES: usize = 16 * 1024;

/// Whether somebody can see a character.
fn is_visible(c: char) -> bool {
    let is_blank = c.is_whitespace() || c.is_control();
    let is_hidden = matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    !is_blank && !is_hidden
}

/// Whether there is nothing to see.
pub(super) fn is_blank(text: &str) -> bool {
    !text.chars().any(is_visible)
}

/// The answer and the thoughts that stand in it between marks.
pub(super) fn without_thinking(text: &str) -> (String, String) {
    let (mut answer, mut thoughts) = (String::new(), String::new());
    let mut rest = text;
    // The opening mark is part of some templates, so that an answer begins in mid-thought.
    if let Some((before, after)) = split_at_first(rest, &CLOSING)
        && split_at_first(before, &OPENING).is_none()
    {
        thoughts.push_str(before);
        rest = after;
    }
    while let Some((before, after)) = split_at_first(rest, &OPENING) {
        answer.push_str(before);
        match split_at_first(after, &CLOSING) {
            Some((thought, after)) => {
                thoughts.push_str(thought);
                rest = after;
            }
            None => {
                thoughts.push_str(after);
                rest = "";
            }
        }
    }
    answer.push_str(rest);
    (answer, thoughts)
}

const OPENING: [&str; 2] = ["<think>", "<thinking>"];
const CLOSING: [&str; 2] = ["</think>", "</thinking>"];

/// Splits where the first of some marks stands, and looks no further: to search all of the text
/// for each mark takes hours where one of them is missing and the other one comes often.
fn split_at_first<'a>(text: &'a str, marks: &[&str]) -> Option<(&'a str, &'a str)> {
    text.match_indices('<').find_map(|(at, _)| {
        let (before, from) = text.split_at_checked(at)?;
        let after = marks.iter().find_map(|mark| from.strip_prefix(mark))?;
        Some((before, after))
    })
}

/// The text without floods of encoded data, and whether there was one.
pub(super) fn without_data(text: &str) -> (String, bool) {
    if text.len() < DATA_FLOOD_BYTES {
        return (text.to_owned(), false);
    }
    let mut kept = String::new();
    let mut held: Vec<&str> = Vec::new();
    let mut had_flood = false;
    let mut flush = |held: &mut Vec<&str>, kept: &mut String| {
        let bytes: usize = held.iter().map(|word| word.trim().len()).sum();
        if bytes >= DATA_FLOOD_BYTES {
            had_flood = true;
            kept.push_str(DATA_NOTE);
            kept.push('\n');
        } else {
            held.iter().for_each(|word| kept.push_str(word));
        }
        held.clear();
    };
    for word in text.split_inclusive(char::is_whitespace) {
        if is_data(word.trim()) {
            held.push(word);
        } else {
            flush(&mut held, &mut kept);
            kept.push_str(word);
        }
    }
    flush(&mut held, &mut kept);
    if had_flood && is_blank(&kept.replace(DATA_NOTE, "")) {
        kept.clear();
    }
    (kept, had_flood)
}

fn is_data(word: &str) -> bool {
    let data = match word.split_once(";base64,") {
        Some((head, data)) if head.contains("data:") => data,
        Some(_) | None => word,
    };
    let data = data.trim_end_matches([')', '"', '\'', '>', '.', ',']);
    let (mut upper, mut lower, mut digit) = (false, false, false);
    for byte in data.bytes() {
        match byte {
            b'A'..=b'Z' => upper = true,
            b'a'..=b'z' => lower = true,
            b'0'..=b'9' => digit = true,
            b'+' | b'/' | b'=' | b'-' | b'_' => {}
            _ => return false,
        }
    }
    data.len() >= DATA_WORD_BYTES && upper && lower && (digit || data.len() >= DATA_FLOOD_BYTES)
}

/// A text as one bounded line without what nobody sees and without encoded data.
pub(in crate::describe) fn one_line(text: &str) -> String {
    // Enough for the words that are kept however much of it is dropped.
    let (text, _) = without_data(cut(text, 64 * MAX_WORDS_BYTES));
    let mut line = String::new();
    let mut is_open = false;
    for c in text.chars() {
        if is_visible(c) {
            if is_open && !line.is_empty() {
                line.push(' ');
            }
            is_open = false;
            line.push(c);
            if line.len() > MAX_WORDS_BYTES {
                break;
            }
        } else {
            is_open |= c.is_whitespace() || c.is_control();
        }
    }
    cut(&line, MAX_WORDS_BYTES).to_owned()
}

/// The title of a page, or its first words.
pub(super) fn title(page: &[u8]) -> String {
    let head = page.get(..page.len().min(TITLE_BYTES)).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let lower = head.to_ascii_lowercase();
    let titled = lower.find("<title").and_then(|start| {
        let after = head.get(start..)?.split_once('>')?.1;
        let (title, _) = after.split_once('<')?;
        Some(one_line(title))
    });
    titled.filter(|title| !title.is_empty()).unwrap_or_else(|| {
        let mut words = String::new();
        for part in head.split('<') {
            if let Some((_, text)) = part.split_once('>') {
                words.push_str(text);
                words.push(' ');
            }
        }
        cut(&one_line(&words), MAX_WORDS_BYTES / 5).to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_nobody_sees_are_nothing() {
        for text in [
            "",
            " \n\t\u{a0}\u{3000}",
            "\u{200b}\u{200d}\u{feff}",
            "\u{2063}\u{e0041}\u{e007f}\u{fe0f}",
            "\u{3164}\u{2800}\u{115f}\u{ad}",
            "\u{0}\u{1b}\u{202e}",
        ] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["a", ".", "猫", "🙂", "\u{200b}x"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }

    #[test]
    fn thoughts_are_taken_out() {
        for (text, answer, thoughts) in [
            ("a", "a", ""),
            ("<think>b</think>a", "a", "b"),
            ("a<think>b</think>c<thinking>d</thinking>e", "ace", "bd"),
            ("b</think>a", "a", "b"),
            ("<think>b", "", "b"),
            ("a <think>b", "a ", "b"),
        ] {
            let (found, thought) = without_thinking(text);
            assert_eq!(
                (found.as_str(), thought.as_str()),
                (answer, thoughts),
                "{text}"
            );
        }
    }

    #[test]
    fn many_thoughts_take_one_pass() {
        let text = format!("A cat. {}", "<think>a</think>".repeat(60_000));
        let (answer, thoughts) = without_thinking(&text);
        assert_eq!((answer.as_str(), thoughts.len()), ("A cat. ", 60_000));
    }

    #[test]
    fn floods_of_encoded_data_are_left_out() {
        let flood = "iVBORw0KGgoAAAANSUhEUgAA".repeat(500);
        let (kept, had) = without_data(&flood);
        assert!(had && kept.is_empty());
        let (kept, had) = without_data(&format!("A cat. data:image/png;base64,{flood} And a dog."));
        assert!(had);
        assert_eq!(kept, "A cat. [encoded data left out]\nAnd a dog.");
        let lines = flood
            .as_bytes()
            .chunks(76)
            .map(|line| String::from_utf8_lossy(line));
        let lines = lines.collect::<Vec<_>>().join("\n");
        assert!(without_data(&lines).1);
        for text in ["=".repeat(5_000), "word ".repeat(5_000), "a".repeat(5_000)] {
            assert_eq!(without_data(&text), (text.clone(), false));
        }
    }

    #[test]
    fn lines_and_titles_are_short() {
        assert_eq!(one_line(" a\n\u{200b}b\u{0}\tc "), "a b c");
        assert!(one_line(&"x y".repeat(1_000_000)).len() <= MAX_WORDS_BYTES);
        let page = b"<html><head><TITLE lang=x>502\n Bad Gateway</TITLE></head>";
        assert_eq!(title(page), "502 Bad Gateway");
        assert_eq!(title(b"<html><p>gateway</p>"), "gateway");
        let flood = "<p>bad gateway</p>".repeat(300_000);
        assert!(title(flood.as_bytes()).len() <= 200);
    }
}
