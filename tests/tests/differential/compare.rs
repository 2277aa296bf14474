//! Compares two renderings part by part.

use serde_json::{Map, Value};

use crate::generate::{Case, ErrorLine, Kind};
use crate::reference::Rendered;

/// One part of a rendered text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Media(String),
    Saved(String),
    Marker,
}

impl Part {
    fn read(line: &str) -> Self {
        if let Some(digest) = line.strip_prefix("MEDIA:file:") {
            return Self::Media(digest.to_owned());
        }
        if line.starts_with('[') {
            return line.split_once("file:").map_or(Self::Marker, |(_, rest)| {
                Self::Saved(rest.chars().take_while(char::is_ascii_hexdigit).collect())
            });
        }
        Self::Text(line.to_owned())
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Media(_) => Kind::Media,
            Self::Saved(_) => Kind::Saved,
            Self::Marker => Kind::Marker,
        }
    }
}

/// The rules by which the two differ; an error where they differ without one.
pub(crate) fn compare(
    case: &Case,
    reference: &Rendered,
    ours: &str,
) -> Result<Vec<&'static str>, String> {
    let theirs: Map<String, Value> =
        serde_json::from_str(&reference.rendered).map_err(|e| e.to_string())?;
    let ours: Map<String, Value> = serde_json::from_str(ours)
        .map_err(|error| format!("ours is not a JSON object: {error}"))?;
    if case.is_error {
        return compare_errors(case, &theirs, &ours);
    }

    let text = ours_text(&ours);
    let mut rules = compare_blocks(case, reference, text)?;
    let changed = !rules.is_empty();
    if let Some(rule) = case.structured.rule
        && structured(&theirs) != structured(&ours)
    {
        rules.push(rule);
    } else if !changed && structured(&theirs) != structured(&ours) {
        return Err("structured content differs".to_owned());
    }
    if theirs.get("_meta") != ours.get("_meta") {
        rules.push(case.meta.rule.ok_or("_meta differs")?);
    }
    check_shape(&theirs, &ours, !rules.is_empty(), text)?;
    Ok(rules)
}

/// The text parts, wherever the shape table puts them: `result` when it is a string.
fn ours_text(ours: &Map<String, Value>) -> &str {
    ours.get("result")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The structured value, wherever the shape table puts it.
fn structured(object: &Map<String, Value>) -> Option<&Value> {
    object
        .get("structuredContent")
        .or_else(|| object.get("result").filter(|value| !value.is_string()))
}

fn compare_blocks(
    case: &Case,
    reference: &Rendered,
    text: &str,
) -> Result<Vec<&'static str>, String> {
    let mut rules = Vec::new();
    let mut ours = if text.is_empty() {
        Vec::new()
    } else {
        text.split('\n').map(Part::read).collect()
    };
    ours.reverse();
    for (index, (block, theirs)) in case.blocks.iter().zip(&reference.blocks).enumerate() {
        let theirs: Vec<Part> = theirs.iter().map(|part| Part::read(part)).collect();
        let next: Vec<Part> = ours.iter().rev().take(theirs.len()).cloned().collect();
        if let Some((rule, kinds)) = block.rule {
            let next: Vec<Part> = ours.iter().rev().take(kinds.len()).cloned().collect();
            if next.iter().map(Part::kind).ne(kinds.iter().copied()) {
                return Err(format!(
                    "block {index} ({rule}): wanted {kinds:?}, found {next:?}"
                ));
            }
            ours.truncate(ours.len() - kinds.len());
            if next != theirs {
                rules.push(rule);
            }
        } else if next == theirs {
            ours.truncate(ours.len() - theirs.len());
        } else {
            return Err(format!("block {index}: theirs {theirs:?}, ours {next:?}"));
        }
    }
    let dropped = case.structured.markers + case.meta.markers;
    if ours.len() == dropped && ours.iter().all(|part| *part == Part::Marker) {
        Ok(rules)
    } else {
        Err(format!("parts without a block: {ours:?}"))
    }
}

/// Key order as the table of specification 1.9, checked against the reference where no rule
/// changed which of its rows applies.
fn check_shape(
    theirs: &Map<String, Value>,
    ours: &Map<String, Value>,
    changed: bool,
    text: &str,
) -> Result<(), String> {
    let keys = |object: &Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
    if keys(theirs) == keys(ours) {
        return Ok(());
    }
    if !changed {
        return Err(format!(
            "keys differ: theirs {:?}, ours {:?}",
            keys(theirs),
            keys(ours)
        ));
    }
    let has_meta = ours.contains_key("_meta");
    let wanted: Vec<&str> = match (text.is_empty(), structured(ours).is_some(), has_meta) {
        (false, true, true) => vec!["result", "structuredContent", "_meta"],
        (false, true, false) => vec!["result", "structuredContent"],
        (true, false, true) => vec!["_meta", "result"],
        (false, false, true) | (true, true, true) => vec!["result", "_meta"],
        (_, _, false) => vec!["result"],
    };
    if keys(ours) == wanted {
        Ok(())
    } else {
        Err(format!("keys {:?}, the table says {wanted:?}", keys(ours)))
    }
}

fn compare_errors(
    case: &Case,
    theirs: &Map<String, Value>,
    ours: &Map<String, Value>,
) -> Result<Vec<&'static str>, String> {
    if ours.keys().ne(["error"]) {
        return Err("a failed result is an object with the one key `error`".to_owned());
    }
    if theirs.get("error") == ours.get("error") {
        return Ok(Vec::new());
    }
    let lines: Vec<ErrorLine> = case
        .blocks
        .iter()
        .filter_map(|block| block.error_line)
        .collect();
    if lines.is_empty() {
        return Ok(vec!["1.14: the sentence for an error without text is ours"]);
    }
    let ours = ours
        .get("error")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let found: Vec<&str> = ours.split('\n').collect();
    let agree = found.len() == lines.len()
        && lines.iter().zip(&found).all(|(line, found)| match line {
            ErrorLine::Exactly(text) => text == found,
            ErrorLine::Ruled => !found.is_empty(),
        });
    if agree {
        return Ok(vec![
            "C44, decisions 6 and 8: error texts joined by newline and cleaned",
        ]);
    }
    Err(format!(
        "error text differs, wanted {lines:?}, found {found:?}"
    ))
}
