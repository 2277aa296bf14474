//! One rule per kind of sentence.

mod files;
mod pictures;
mod vision;
mod words;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{FieldCase, Observed};

use files::Saved;

/// The verdict of a rule; `None` where the sentence is of another kind.
type Verdict = Option<Result<(), String>>;

/// What a rule looks at.
struct Scene<'a> {
    case: &'a FieldCase,
    observed: &'a [Observed<'a>],
    /// The result a sentence is about: the first, if it names none.
    one: &'a Observed<'a>,
    text: &'a str,
    files: Vec<Saved>,
}

pub(super) fn run(case: &FieldCase, must: &str, observed: &[Observed<'_>]) -> Result<(), String> {
    let (one, sentence) = match must.split_once(" of result ") {
        Some((subject, rest)) => {
            let (number, rest) = rest.split_once(' ').ok_or("no number of the result")?;
            let number: usize = number
                .parse()
                .map_err(|error| format!("number of the result: {error}"))?;
            (number.checked_sub(1), format!("{subject} {rest}"))
        }
        None => (Some(0), must.to_owned()),
    };
    let one = one
        .and_then(|index| observed.get(index))
        .ok_or("nothing was delivered")?;
    let text = one.delivery["text"]
        .as_str()
        .ok_or("the delivery has no text")?;
    let files = files::saved(one)?;
    let scene = Scene {
        case,
        observed,
        one,
        text,
        files,
    };
    [
        vision::judge,
        flag,
        conduct,
        pictures::judge,
        words::judge,
        files::judge,
    ]
    .into_iter()
    .find_map(|rule| rule(&scene, &sentence))
    .unwrap_or_else(|| Err("there is no rule for this sentence".to_owned()))
}

fn flag(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let wanted = match sentence {
        "the failure flag is true" => true,
        "the failure flag is false" => false,
        _ => return None,
    };
    let is = &scene.one.delivery["is_error"];
    Some(expect(*is == Value::Bool(wanted), || format!("it is {is}")))
}

/// Sentences about how the result was handled.
fn conduct(scene: &Scene<'_>, sentence: &str) -> Verdict {
    if sentence.starts_with("no panic") || sentence == "the call does not fail" {
        // There is a delivery, so that nothing panicked and no call failed.
        return Some(expect(scene.one.delivery.is_object(), || {
            "nothing was delivered".to_owned()
        }));
    }
    if sentence.starts_with("no network request is made") {
        let requests: usize = scene
            .observed
            .iter()
            .map(|observed| observed.requests)
            .sum();
        return Some(expect(requests == 0, || format!("{requests} were made")));
    }
    if let Some(limit) = sentence.strip_prefix("handling takes less than ") {
        let seconds: f64 = limit.strip_suffix(" s")?.parse().ok()?;
        let took = scene.one.took;
        return Some(expect(took.as_secs_f64() < seconds, || {
            format!("it took {took:?}")
        }));
    }
    if sentence == "no more than a few hundred parts are handed to the model" {
        let attached = scene.one.delivery["attachments"]
            .as_array()
            .map_or(0, Vec::len);
        return Some(expect(attached < 300, || {
            format!("{attached} images and one text")
        }));
    }
    None
}

fn expect(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// The words in single quotes. A quote inside a word is part of it.
pub(super) fn quoted(sentence: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('\'') {
        let opens = before
            .chars()
            .next_back()
            .is_none_or(|last| !last.is_alphanumeric());
        match after.split_once('\'') {
            Some((word, behind)) if opens => {
                words.push(word);
                rest = behind;
            }
            Some(_) | None => rest = after,
        }
    }
    words
}

/// Every payload of the case's results, decoded.
fn payloads(case: &FieldCase) -> Vec<Vec<u8>> {
    fn collect(value: &Value, found: &mut Vec<Vec<u8>>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    if let ("blob" | "data", Some(text)) = (key.as_str(), member.as_str()) {
                        let solid: String = text.split_whitespace().collect();
                        found.extend(
                            STANDARD
                                .decode(solid)
                                .ok()
                                .filter(|bytes| !bytes.is_empty()),
                        );
                    }
                    collect(member, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    collect(&case.input, &mut found);
    found
}
