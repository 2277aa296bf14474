//! File names for people: what a server's address suggests, made safe on every platform
//! (specification 1.6, design decision 5).

mod address;
mod characters;

use crate::media_types;
use crate::sanitise::opens_marker;

pub(crate) use address::last_segment;
#[cfg(test)]
use characters::is_bidi;
pub(crate) use characters::is_invisible;

/// Longest name in characters.
pub const MAX_NAME_CHARACTERS: usize = 150;
/// Longest name in bytes, so that a prefix on disk stays under 255.
pub const MAX_NAME_BYTES: usize = 200;

/// The longest extension that is worth keeping when a name is cut, in characters.
const MAX_EXTENSION_CHARACTERS: usize = 12;

/// Stems that Windows keeps for devices.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];

/// The name of a file that came from an address: its last segment made safe, or `resource` with
/// the extension of the type where the address names nothing.
///
/// The result never is empty, never is longer than [`MAX_NAME_CHARACTERS`] and
/// [`MAX_NAME_BYTES`], and holds no separator, control, bidi or TAG character.
#[must_use]
pub fn safe_name(uri: &str, media_type: Option<&str>) -> String {
    match hinted_name(uri) {
        Some(name) => name,
        None => format!("resource.{}", fallback_extension(media_type)),
    }
}

/// The last segment of an address, made safe; `None` where nothing of it is left.
pub(crate) fn hinted_name(uri: &str) -> Option<String> {
    tidy(&last_segment(uri)?)
}

/// The same name ending in an extension of the type the bytes prove. An extension that may stand
/// for that type stays, one that stands for another is replaced, and one that nobody knows is
/// part of the name.
pub(crate) fn with_extension(name: &str, media_type: &str) -> String {
    let Some(wanted) = media_types::extension_of(media_type) else {
        return name.to_owned();
    };
    let (stem, current) = split(name);
    let stem = match current {
        Some(current) if media_types::extension_fits(current, media_type) => {
            return name.to_owned();
        }
        Some(current) if media_types::type_of(current).is_some() => stem,
        Some(_) | None => name,
    };
    if split(stem)
        .1
        .is_some_and(|inner| media_types::extension_fits(inner, media_type))
    {
        return tidy(stem).unwrap_or_else(|| format!("resource.{wanted}"));
    }
    let named = format!("{stem}.{wanted}");
    tidy(&named).unwrap_or_else(|| format!("resource.{wanted}"))
}

/// What stands before the last dot and what behind it, where both are something.
pub(crate) fn split(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && !extension.is_empty() => {
            (stem, Some(extension))
        }
        Some(_) | None => (name, None),
    }
}

fn fallback_extension(media_type: Option<&str>) -> &'static str {
    media_type
        .and_then(media_types::extension_of)
        .unwrap_or("bin")
}

/// A name as it is, made safe; `None` where nothing of it is left.
pub(crate) fn tidy(raw: &str) -> Option<String> {
    let kept: String = raw.chars().filter_map(characters::allowed).collect();
    let mut name = shorten(trim(&without_markers(kept)));
    if is_device(&name) {
        name = shorten(&format!("_{name}"));
    }
    (!name.is_empty()).then_some(name)
}

/// A name stands in lines of ours, so that it opens no marker of ours.
fn without_markers(mut name: String) -> String {
    let markers: Vec<usize> = name
        .match_indices('[')
        .map(|(at, _)| at)
        .filter(|at| name.get(*at..).is_some_and(opens_marker))
        .collect();
    for at in markers {
        name.replace_range(at..=at, "_");
    }
    name
}

fn trim(name: &str) -> &str {
    name.trim_matches(|character: char| character == '.' || character.is_whitespace())
}

/// Cuts between characters, before the extension where there is one worth keeping.
fn shorten(name: &str) -> String {
    if fits(name.chars().count(), name.len()) {
        return name.to_owned();
    }
    let (stem, extension) = split(name);
    let extension = extension
        .filter(|extension| extension.chars().count() <= MAX_EXTENSION_CHARACTERS)
        .map(|extension| format!(".{extension}"));
    let (stem, extension) = match &extension {
        Some(extension) => (stem, extension.as_str()),
        None => (name, ""),
    };
    let mut characters = extension.chars().count();
    let mut bytes = extension.len();
    let mut cut = String::with_capacity(MAX_NAME_BYTES);
    for character in stem.chars() {
        characters += 1;
        bytes += character.len_utf8();
        if !fits(characters, bytes) {
            break;
        }
        cut.push(character);
    }
    let cut = cut.trim_end_matches(characters::joins);
    trim(&format!("{}{extension}", trim(cut))).to_owned()
}

const fn fits(characters: usize, bytes: usize) -> bool {
    characters <= MAX_NAME_CHARACTERS && bytes <= MAX_NAME_BYTES
}

/// Windows looks at what stands before the first dot, without blanks and case.
fn is_device(name: &str) -> bool {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_lowercase();
    if DEVICES.contains(&stem.as_str()) {
        return true;
    }
    let mut characters = stem.chars();
    let port: String = characters.by_ref().take(3).collect();
    let number = characters.next();
    matches!(port.as_str(), "com" | "lpt")
        && number.is_some_and(|number| number.is_ascii_digit() || "¹²³".contains(number))
        && characters.next().is_none()
}

#[cfg(test)]
mod tests;
