//! Sentences about the model text.

use super::{Scene, Verdict, expect, quoted};

/// Words by which a note about an unusable part may be known.
const UNUSABLE: &[&str] = &[
    "unusable",
    "could not be decoded",
    "not an image",
    "no image",
    "damaged",
    "unsupported",
    "empty",
];

pub(super) fn judge(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let text = scene.text;
    if let Some(rest) = sentence.strip_prefix("model text ") {
        return contains(scene, rest)
            .or_else(|| says(scene, rest))
            .or_else(|| measures(text, rest));
    }
    if let Some(rest) = sentence.strip_prefix("no line of model text starts with ") {
        let words = quoted(rest);
        let line = text
            .lines()
            .find(|line| words.iter().any(|word| line.trim_start().starts_with(word)));
        return Some(expect(line.is_none() && !words.is_empty(), || {
            format!("{line:?} does")
        }));
    }
    if sentence == "no part handed to the model is blank" {
        let is_blank = text.trim().is_empty() || text.lines().any(|line| line.trim().is_empty());
        return Some(expect(!is_blank, || format!("the text is {text:?}")));
    }
    if sentence == "every tool name mentioned in model text is a registered tool" {
        let unknown = tool_names(text).find(|name| Some(*name) != scene.case.read_tool());
        return Some(expect(unknown.is_none(), || format!("{unknown:?} is none")));
    }
    if sentence.ends_with(" occurs at least once") {
        let missing = quoted(sentence)
            .into_iter()
            .find(|word| !text.contains(word));
        return Some(expect(missing.is_none(), || {
            format!("{missing:?} does not")
        }));
    }
    None
}

/// Whether a line about such a thing says that it cannot be used.
pub(super) fn is_about_unusable(text: &str, what: &str) -> bool {
    text.to_lowercase()
        .lines()
        .any(|line| line.contains(what) && UNUSABLE.iter().any(|word| line.contains(word)))
}

/// Sentences that begin with `contains` or `does not contain`.
fn contains(scene: &Scene<'_>, rest: &str) -> Verdict {
    let text = scene.text;
    if let Some(rest) = rest.strip_prefix("does not contain ") {
        if rest.starts_with("a run of 60 or more base64") {
            let run = longest_base64_run(text);
            return Some(expect(run < 60, || format!("a run has {run}")));
        }
        return Some(lacks(text, &quoted(rest)));
    }
    let rest = rest.strip_prefix("contains ")?;
    if let Some(rest) = rest.strip_prefix("none of ") {
        return Some(lacks(
            text,
            &series(rest)?.iter().map(String::as_str).collect::<Vec<_>>(),
        ));
    }
    if let Some(rest) = rest.strip_prefix("no ") {
        return without(text, rest);
    }
    if rest.contains("its path") || rest.contains("the absolute path") {
        let missing = scene.files.iter().find(|file| !text.contains(&file.path));
        let words = quoted(rest);
        let has_words = words.iter().all(|word| text.contains(word));
        return Some(expect(
            missing.is_none() && has_words && !scene.files.is_empty(),
            || format!("the text is {text:?}"),
        ));
    }
    if rest.contains("U+") {
        let missing = sequences(rest)
            .into_iter()
            .find(|sequence| !text.contains(sequence));
        return Some(expect(missing.is_none(), || {
            format!("{missing:?} is missing")
        }));
    }
    let (wanted, unwanted) = match rest.split_once(" and not ") {
        Some((wanted, unwanted)) => (quoted(wanted), quoted(unwanted)),
        None => (quoted(rest), Vec::new()),
    };
    let wanted = if wanted.is_empty() {
        rest.split(" and ").collect()
    } else {
        wanted
    };
    let missing = wanted.iter().find(|word| !text.contains(**word));
    Some(
        expect(missing.is_none(), || {
            format!("{missing:?} is missing in {text:?}")
        })
        .and_then(|()| lacks(text, &unwanted)),
    )
}

fn lacks(text: &str, words: &[&str]) -> Result<(), String> {
    let found = words.iter().find(|word| text.contains(**word));
    expect(found.is_none(), || format!("{found:?} is in {text:?}"))
}

/// Kinds of characters that must not be there.
fn without(text: &str, rest: &str) -> Verdict {
    let is_unwanted: Box<dyn Fn(char) -> bool> =
        if rest.starts_with("control characters other than newline and tab") {
            Box::new(|character| character.is_control() && character != '\n' && character != '\t')
        } else if let Some(range) = rest.strip_prefix("code point in ") {
            let (first, last) = range.split_once('-')?;
            let (first, last) = (code_point(first)?, code_point(last)?);
            Box::new(move |character| (first..=last).contains(&character))
        } else {
            let mut unwanted: Vec<char> = code_points(rest);
            if rest.contains("NUL") {
                unwanted.push('\0');
            }
            if unwanted.is_empty() {
                return None;
            }
            Box::new(move |character| unwanted.contains(&character))
        };
    let found = text.chars().find(|character| is_unwanted(*character));
    Some(expect(found.is_none(), || format!("{found:?} is there")))
}

/// Sentences that begin with `mentions`, `says` or `gives`.
fn says(scene: &Scene<'_>, rest: &str) -> Verdict {
    let text = scene.text;
    if rest == "gives the path" {
        let missing = scene.files.iter().find(|file| !text.contains(&file.path));
        return Some(expect(missing.is_none() && !scene.files.is_empty(), || {
            text.to_owned()
        }));
    }
    if let Some(rest) = rest.strip_prefix("mentions ") {
        let mut words = rest.split(' ');
        let (count, unusable, what) = (words.next()?, words.next(), words.next());
        if let (Ok(count), Some("unusable"), Some(what)) = (count.parse::<usize>(), unusable, what)
        {
            let what = what.trim_end_matches('s');
            let notes = text.lines().filter(|line| {
                line.contains(what) && UNUSABLE.iter().any(|word| line.contains(word))
            });
            let notes = notes.count();
            return Some(expect(notes == count, || {
                format!("{notes} notes in {text:?}")
            }));
        }
        return Some(expect(text.contains(rest), || {
            format!("the text is {text:?}")
        }));
    }
    if rest == "says it was truncated and gives path and original size" {
        let file = scene.files.iter().find(|file| text.contains(&file.path));
        let size = file.map(|file| file.bytes.len().to_string());
        let has_size = size.is_some_and(|size| text.contains(&size));
        return Some(expect(text.contains("truncated") && has_size, || {
            text.chars()
                .rev()
                .take(400)
                .collect::<String>()
                .chars()
                .rev()
                .collect()
        }));
    }
    None
}

fn measures(text: &str, rest: &str) -> Verdict {
    if rest == "is non-empty after trimming" {
        return Some(expect(!text.trim().is_empty(), || {
            format!("it is {text:?}")
        }));
    }
    let limit = rest
        .strip_prefix("is at most ")?
        .strip_suffix(" characters")?;
    let limit: usize = limit.replace(',', "").parse().ok()?;
    let count = text.chars().count();
    Some(expect(count <= limit, || format!("it has {count}")))
}

/// `LEAK1..LEAK5` written out.
fn series(text: &str) -> Option<Vec<String>> {
    let (first, last) = text.split_once("..")?;
    let stem = first.trim_end_matches(|character: char| character.is_ascii_digit());
    let from: u32 = first.strip_prefix(stem)?.parse().ok()?;
    let to: u32 = last.strip_prefix(stem)?.parse().ok()?;
    Some(
        (from..=to)
            .map(|number| format!("{stem}{number}"))
            .collect(),
    )
}

/// Runs of `U+…` as strings; `'e' followed by U+0301` is one run.
fn sequences(text: &str) -> Vec<String> {
    let text = text.replace("followed by ", "");
    let mut sequences = vec![String::new()];
    for word in text
        .split([' ', '(', ')', ','])
        .filter(|word| !word.is_empty())
    {
        let quoted = word
            .strip_prefix('\'')
            .and_then(|word| word.strip_suffix('\''));
        match (code_point(word), quoted, sequences.last_mut()) {
            (Some(character), _, Some(last)) => last.push(character),
            (None, Some(quoted), Some(last)) => last.push_str(quoted),
            _ => sequences.push(String::new()),
        }
    }
    sequences.retain(|sequence| !sequence.is_empty());
    sequences
}

fn code_points(text: &str) -> Vec<char> {
    text.split([' ', ',']).filter_map(code_point).collect()
}

fn code_point(word: &str) -> Option<char> {
    char::from_u32(u32::from_str_radix(word.trim().strip_prefix("U+")?, 16).ok()?)
}

fn tool_names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.split(move |character: char| !is_part(character))
        .filter(|word| word.starts_with("mcp__"))
}

pub(super) fn longest_base64_run(text: &str) -> usize {
    let is_symbol =
        |character: char| character.is_ascii_alphanumeric() || "+/=".contains(character);
    text.split(|character: char| !is_symbol(character))
        .map(str::len)
        .max()
        .unwrap_or(0)
}
