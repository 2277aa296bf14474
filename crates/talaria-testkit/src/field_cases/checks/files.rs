//! Sentences about the saved files.

use std::path::{Path, PathBuf};

use super::super::Observed;
use super::{Scene, Verdict, expect, payloads, quoted};

/// A saved file as the delivery tells of it, with its bytes from the disk.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    resolved: PathBuf,
}

/// Reads every file the delivery names.
pub(super) fn saved(observed: &Observed<'_>) -> Result<Vec<Saved>, String> {
    let artifacts = observed.delivery["artifacts"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    artifacts
        .iter()
        .map(|artifact| {
            let path = artifact["path"].as_str().ok_or("an artifact has no path")?;
            if !Path::new(path).is_absolute() {
                return Err(format!("{path} is not absolute"));
            }
            let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
            let resolved =
                std::fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))?;
            let name = artifact["name"]
                .as_str()
                .ok_or("an artifact has no name")?
                .to_owned();
            Ok(Saved {
                path: path.to_owned(),
                name,
                bytes,
                resolved,
            })
        })
        .collect()
}

pub(super) fn judge(scene: &Scene<'_>, sentence: &str) -> Verdict {
    count(scene, sentence)
        .or_else(|| bytes(scene, sentence))
        .or_else(|| names(scene, sentence))
        .or_else(|| places(scene, sentence))
        .or_else(|| across_results(scene, sentence))
}

fn count(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let files = &scene.files;
    let (number, rest) = sentence.trim_start_matches("exactly ").split_once(' ')?;
    let number: usize = number.parse().ok()?;
    let rest = rest
        .strip_prefix("files ")
        .or_else(|| rest.strip_prefix("file "))?;
    let counted = expect(files.len() == number, || {
        format!("{} are saved", files.len())
    });
    if rest == "with different paths are saved" {
        let mut paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        let distinct = paths.len() == number;
        return Some(counted.and_then(|()| expect(distinct, || format!("{paths:?}"))));
    }
    let rest = rest
        .strip_prefix("is saved")
        .or_else(|| rest.strip_prefix("are saved"))?;
    let detail = rest
        .trim_start_matches(" and ")
        .trim_start_matches(" with ");
    if detail.is_empty() {
        return Some(counted);
    }
    Some(counted.and_then(|()| {
        bytes(scene, detail)
            .or_else(|| names(scene, detail))
            .or_else(|| places(scene, detail))
            .unwrap_or_else(|| Err(format!("there is no rule for `{detail}`")))
    }))
}

fn bytes(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let files = &scene.files;
    let inputs = payloads(scene.case);
    let every = |holds: &dyn Fn(&Saved) -> bool| !files.is_empty() && files.iter().all(holds);
    let equals_input =
        |kind: &[u8]| every(&|file| inputs.contains(&file.bytes) && file.bytes.starts_with(kind));
    match sentence {
        "its bytes equal the PDF" | "the PDF's bytes" => {
            Some(expect(equals_input(b"%PDF"), || {
                "they are others".to_owned()
            }))
        }
        "saved bytes equal the input bytes"
        | "saved bytes are identical to the decoded input bytes" => {
            Some(expect(equals_input(b""), || "they are others".to_owned()))
        }
        "saved bytes equal 0..255 repeated twice (512 bytes)" => {
            let wanted: Vec<u8> = (0..=255).chain(0..=255).collect();
            Some(expect(every(&|file| file.bytes == wanted), || {
                "they are others".to_owned()
            }))
        }
        "one equals the ZIP bytes, the other the PDF bytes" => {
            let has = |kind: &[u8]| {
                files
                    .iter()
                    .any(|file| file.bytes.starts_with(kind) && inputs.contains(&file.bytes))
            };
            Some(expect(has(b"PK") && has(b"%PDF"), || {
                "they are others".to_owned()
            }))
        }
        _ => {
            if let Some(size) = sentence.strip_prefix("the saved file has ") {
                let size: usize = size.strip_suffix(" bytes")?.replace(',', "").parse().ok()?;
                let sizes: Vec<usize> = files.iter().map(|file| file.bytes.len()).collect();
                return Some(expect(sizes == [size], || format!("{sizes:?}")));
            }
            let size = sentence.strip_prefix("those ")?.strip_suffix(" bytes")?;
            let size: usize = size.parse().ok()?;
            let is_input = files.iter().all(|file| file.bytes.len() == size) && equals_input(b"");
            Some(expect(is_input, || "they are others".to_owned()))
        }
    }
}

fn names(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let names: Vec<&str> = scene.files.iter().map(|file| file.name.as_str()).collect();
    let every = |holds: &dyn Fn(&str) -> bool| {
        Some(expect(
            !names.is_empty() && names.iter().all(|name| holds(name)),
            || format!("the names are {names:?}"),
        ))
    };
    match sentence {
        "its name has at most 150 characters and at most 255 bytes" => {
            let on_disk = |path: &Path| path.file_name().map_or(0, std::ffi::OsStr::len);
            let fits_disk = scene
                .files
                .iter()
                .all(|file| on_disk(&file.resolved) <= 255);
            every(&|name| fits_disk && name.chars().count() <= 150 && name.len() <= 255)
        }
        "the name is valid UTF-8 without U+FFFD" => every(&|name| !name.contains('\u{fffd}')),
        "no saved name contains a backslash, NUL, U+0080-U+009F or U+0000-U+001F" => {
            every(&|name| !name.contains('\\') && !name.contains(char::is_control))
        }
        _ if sentence.starts_with("the saved name contains neither ") => {
            let words = quoted(sentence);
            every(&|name| !words.is_empty() && !words.iter().any(|word| name.contains(word)))
        }
        "no saved name starts with a dot" => every(&|name| !name.starts_with('.')),
        _ => {
            let subject = [
                "its name ",
                "the name ",
                "the saved file ",
                "the saved file's extension ",
            ]
            .into_iter()
            .find_map(|subject| sentence.strip_prefix(subject))
            .or_else(|| sentence.starts_with("ends in ").then_some(sentence))?;
            let (part, ending) = match subject.split_once(" and ends in ") {
                Some((part, ending)) => (part, ending),
                None => (
                    "",
                    subject
                        .strip_prefix("ends in ")
                        .or_else(|| subject.strip_prefix("is "))?,
                ),
            };
            let parts = quoted(part);
            let endings: Vec<&str> = ending.split(" or ").collect();
            every(&|name| {
                let has_part = parts.is_empty() || parts.iter().any(|part| name.contains(part));
                has_part && endings.iter().any(|ending| name.ends_with(ending))
            })
        }
    }
}

fn places(scene: &Scene<'_>, sentence: &str) -> Verdict {
    if sentence == "both paths appear in model text" {
        let missing = scene
            .files
            .iter()
            .find(|file| !scene.text.contains(&file.path));
        return Some(expect(missing.is_none() && !scene.files.is_empty(), || {
            format!("{missing:?} does not")
        }));
    }
    if !sentence.contains("inside the cache folder") {
        return None;
    }
    let cache = match std::fs::canonicalize(scene.one.cache) {
        Ok(cache) => cache,
        Err(error) => return Some(Err(format!("{}: {error}", scene.one.cache.display()))),
    };
    let outside = scene
        .files
        .iter()
        .find(|file| !file.resolved.starts_with(&cache));
    Some(expect(outside.is_none() && !scene.files.is_empty(), || {
        format!("{outside:?} does not")
    }))
}

/// Sentences about two calls, one after the other.
fn across_results(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let all: Result<Vec<Vec<Saved>>, String> = scene.observed.iter().map(saved).collect();
    let all = match all {
        Ok(all) => all,
        Err(problem) => return Some(Err(problem)),
    };
    let words: Vec<Vec<u8>> = quoted(sentence)
        .iter()
        .map(|word| [b"\0", word.as_bytes()].concat())
        .collect();
    if sentence.starts_with("after both calls 2 distinct files exist with the bytes") {
        let files: Vec<&Saved> = all.iter().flatten().collect();
        let holds = files.len() == 2
            && files.first().map(|file| &file.resolved) != files.last().map(|file| &file.resolved)
            && words
                .iter()
                .all(|bytes| files.iter().any(|file| file.bytes == *bytes));
        return Some(expect(holds, || format!("{files:?}")));
    }
    if sentence.starts_with("the path given for the first call still holds") {
        let first = all.first().and_then(|files| files.first());
        let holds = first.is_some_and(|file| words.first() == Some(&file.bytes));
        return Some(expect(holds, || format!("{first:?}")));
    }
    None
}
