//! Checks a delivered file from outside: that it is where the delivery says, holds the bytes it
//! says, and opens as the type it says.
//!
//! Everything here blocks on the disk; callers run it on a blocking pool.

mod details;
mod readers;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};
use talaria_content::Artifact;

pub use details::Details;

/// What was found out about one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Basic metadata, when the file could be read as its type.
    pub details: Option<Details>,
    /// What is wrong; empty when all is well.
    pub problems: Vec<String>,
    /// What an operator may want to know.
    pub remarks: Vec<String>,
}

impl Inspection {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Problems, then details, then remarks, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut parts = self.problems.clone();
        parts.extend(self.details.as_ref().map(Details::to_string));
        parts.extend(self.remarks.iter().cloned());
        parts.join("; ")
    }
}

/// Inspects a file.
#[must_use]
pub fn inspect(artifact: &Artifact) -> Inspection {
    let mut inspection = Inspection {
        details: None,
        problems: Vec::new(),
        remarks: remarks(artifact),
    };
    inspection.problems.extend(place_problems(artifact));
    if !inspection.is_sound() {
        return inspection;
    }
    inspection.problems.extend(content_problem(artifact));
    inspection.problems.extend(extension_problem(artifact));
    match readers::read(&artifact.path, &artifact.media_type) {
        Ok(details) => inspection.details = Some(details),
        Err(reason) => inspection.problems.push(format!(
            "does not open as {}: {reason}",
            artifact.media_type
        )),
    }
    inspection
}

/// What is wrong with where the file is and how long it is.
fn place_problems(artifact: &Artifact) -> Option<String> {
    if !artifact.path.is_absolute() {
        return Some("the path is not absolute".to_owned());
    }
    let metadata = match artifact.path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Some(format!("the file is not there: {error}")),
    };
    if !metadata.is_file() {
        return Some("the path is no regular file".to_owned());
    }
    if metadata.len() == 0 {
        return Some("the file is empty".to_owned());
    }
    (metadata.len() != artifact.bytes).then(|| {
        format!(
            "the file has {} bytes, not {}",
            metadata.len(),
            artifact.bytes
        )
    })
}

fn content_problem(artifact: &Artifact) -> Option<String> {
    match sha256(&artifact.path) {
        Ok(found) if found == artifact.sha256 => None,
        Ok(found) => Some(format!(
            "the file has SHA-256 {found}, not {}",
            artifact.sha256
        )),
        Err(error) => Some(format!("the file cannot be read: {error}")),
    }
}

/// SHA-256 of a file, in lower-case hex.
///
/// # Errors
/// The file cannot be read.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut hasher = Sha256::new();
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            return Ok(hex::encode(hasher.finalize()));
        }
        hasher.update(piece);
        let length = piece.len();
        reader.consume(length);
    }
}

fn extension_problem(artifact: &Artifact) -> Option<String> {
    let expected = extensions(base_type(&artifact.media_type))?;
    let extension = artifact
        .path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    (!expected.contains(&extension.as_str())).then(|| {
        format!(
            "the extension is {extension:?} though the type is {}",
            artifact.media_type
        )
    })
}

fn remarks(artifact: &Artifact) -> Vec<String> {
    let declared = artifact.declared_type.as_deref().map(base_type);
    match declared {
        Some(declared) if !declared.eq_ignore_ascii_case(base_type(&artifact.media_type)) => {
            vec![format!("the server called it {declared}")]
        }
        Some(_) | None => Vec::new(),
    }
}

/// A media type without its parameters.
fn base_type(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Extensions that go with a type; none for types this program has no opinion of.
fn extensions(media_type: &str) -> Option<&'static [&'static str]> {
    let extensions: &[&str] = match media_type {
        "application/pdf" => &["pdf"],
        "application/zip" => &["zip"],
        "image/png" => &["png"],
        "image/jpeg" => &["jpg", "jpeg"],
        "image/gif" => &["gif"],
        "image/webp" => &["webp"],
        "image/bmp" => &["bmp"],
        "audio/wav" | "audio/x-wav" | "audio/vnd.wave" => &["wav"],
        readers::WORD => &["docx"],
        readers::WORKBOOK => &["xlsx"],
        readers::SLIDES => &["pptx"],
        _ => return None,
    };
    Some(extensions)
}

#[cfg(test)]
mod tests;
