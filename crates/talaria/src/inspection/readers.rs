//! Opens a file as its type and reads basic metadata.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::base_type;
use super::details::Details;

/// Media type of `.docx`.
pub(super) const WORD: &str =
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
/// Media type of `.xlsx`.
pub(super) const WORKBOOK: &str =
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
/// Media type of `.pptx`.
pub(super) const SLIDES: &str =
    "application/vnd.openxmlformats-officedocument.presentationml.presentation";

/// Unpacked bytes of an archive that are checked against their checksums; a small file may claim
/// to unpack to terabytes.
const MAX_UNPACKED: u64 = 256 * 1024 * 1024;
/// Largest text that is counted.
const MAX_TEXT: u64 = 256 * 1024 * 1024;

/// Reads a file as its type; the error says why it is not one.
pub(super) fn read(path: &Path, media_type: &str) -> Result<Details, String> {
    match base_type(media_type) {
        "application/pdf" => pdf(path),
        "application/zip" => Ok(Details::Archive {
            entries: archive(path)?,
        }),
        WORD => document(path),
        WORKBOOK => workbook(path),
        SLIDES => presentation(path),
        "audio/wav" | "audio/x-wav" | "audio/vnd.wave" => wave(path),
        "image/svg+xml" | "application/json" => text(path),
        other if other.starts_with("image/") => image(path),
        other if other.starts_with("text/") => text(path),
        _ => Ok(Details::Opaque),
    }
}

fn pdf(path: &Path) -> Result<Details, String> {
    let document = lopdf::Document::load(path).map_err(|error| error.to_string())?;
    match document.get_pages().len() {
        0 => Err("it has no page".to_owned()),
        pages => Ok(Details::Pdf { pages }),
    }
}

/// Names of the entries, each of which unpacks with the right checksum.
fn archive(path: &Path) -> Result<Vec<String>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut archive =
        zip::ZipArchive::new(BufReader::new(file)).map_err(|error| error.to_string())?;
    let mut names = Vec::new();
    let mut left = MAX_UNPACKED;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| error.to_string())?;
        let name = entry
            .name()
            .map_err(|error| error.to_string())?
            .into_owned();
        let unpacked = io::copy(&mut entry.take(left), &mut io::sink())
            .map_err(|error| format!("{name}: {error}"))?;
        left = left.saturating_sub(unpacked);
        names.push(name);
    }
    Ok(names)
}

fn document(path: &Path) -> Result<Details, String> {
    let parts = archive(path)?;
    if !parts.iter().any(|part| part == "word/document.xml") {
        return Err("it has no word/document.xml".to_owned());
    }
    Ok(Details::Document { parts: parts.len() })
}

fn workbook(path: &Path) -> Result<Details, String> {
    let parts = archive(path)?;
    match numbered_parts(&parts, "xl/worksheets/") {
        0 => Err("it has no sheet".to_owned()),
        sheets => Ok(Details::Workbook { sheets }),
    }
}

fn presentation(path: &Path) -> Result<Details, String> {
    let parts = archive(path)?;
    if !parts.iter().any(|part| part == "ppt/presentation.xml") {
        return Err("it has no ppt/presentation.xml".to_owned());
    }
    Ok(Details::Presentation {
        slides: numbered_parts(&parts, "ppt/slides/"),
    })
}

/// XML parts directly in a folder of an Office package.
fn numbered_parts(parts: &[String], folder: &str) -> usize {
    parts
        .iter()
        .filter_map(|part| part.strip_prefix(folder))
        .filter(|part| !part.contains('/') && part.ends_with(".xml"))
        .count()
}

fn image(path: &Path) -> Result<Details, String> {
    let size = imagesize::size(path).map_err(|error| error.to_string())?;
    if size.width == 0 || size.height == 0 {
        return Err("it has no pixels".to_owned());
    }
    Ok(Details::Image {
        width: size.width,
        height: size.height,
    })
}

fn wave(path: &Path) -> Result<Details, String> {
    let reader = hound::WavReader::open(path).map_err(|error| error.to_string())?;
    let spec = reader.spec();
    let milliseconds = u64::from(reader.duration())
        .saturating_mul(1000)
        .checked_div(u64::from(spec.sample_rate))
        .ok_or("it has a sample rate of zero")?;
    Ok(Details::Wave {
        milliseconds,
        channels: spec.channels,
        sample_rate: spec.sample_rate,
    })
}

fn text(path: &Path) -> Result<Details, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_TEXT)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    let text = decode_text(&bytes)?;
    Ok(Details::Text {
        lines: text.lines().count(),
        characters: text.chars().count(),
    })
}

/// UTF-8, or UTF-16 with its byte-order mark.
fn decode_text(bytes: &[u8]) -> Result<String, String> {
    let units = |decode: fn([u8; 2]) -> u16, rest: &[u8]| {
        let (pairs, tail) = rest.as_chunks::<2>();
        if !tail.is_empty() {
            return Err("it ends in half a character".to_owned());
        }
        char::decode_utf16(pairs.iter().map(|pair| decode(*pair)))
            .collect::<Result<String, _>>()
            .map_err(|error| error.to_string())
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => units(u16::from_le_bytes, rest),
        [0xFE, 0xFF, rest @ ..] => units(u16::from_be_bytes, rest),
        _ => std::str::from_utf8(bytes)
            .map(str::to_owned)
            .map_err(|error| error.to_string()),
    }
}
