//! One delivery under examination.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use talaria_content::{Artifact, Delivery};
use talaria_types::NoticeCode;

use crate::check::Checks;
use crate::demo_server::assets::Asset;
use crate::inspection::inspect;
use crate::table::bytes;

/// Longest file name of common file systems, in bytes.
const MAX_FILE_NAME: usize = 255;
/// Longest artifact name, in characters and in bytes.
const MAX_NAME: (usize, usize) = (150, 200);

/// A delivery, where its files belong, and what was found so far.
#[derive(Debug)]
pub(super) struct Sight {
    tool: &'static str,
    pub(super) delivery: Delivery,
    cache: PathBuf,
    checks: Checks,
}

impl Sight {
    pub(super) fn new(tool: &'static str, delivery: Delivery, cache: PathBuf) -> Self {
        Self {
            tool,
            delivery,
            cache,
            checks: Checks::default(),
        }
    }

    pub(super) fn into_checks(self) -> Checks {
        self.checks
    }

    /// Notes a finding about this tool.
    pub(super) fn note(&mut self, what: &str, found: Result<String, String>) {
        self.checks.note(format!("{}: {what}", self.tool), found);
    }

    /// Notes whether something holds.
    pub(super) fn expect(&mut self, what: &str, holds: bool) {
        let found = if holds {
            Ok(String::new())
        } else {
            Err(self.excerpt())
        };
        self.note(what, found);
    }

    /// The model text is exactly this.
    pub(super) fn text_is(&mut self, expected: &str) {
        self.expect("the text as it was sent", self.delivery.text == expected);
    }

    /// The model text has this in it.
    pub(super) fn text_has(&mut self, expected: &str) {
        let what = format!("the text says {:?}", first_line(expected));
        self.expect(&what, self.delivery.text.contains(expected));
    }

    /// So many files came.
    pub(super) fn file_count(&mut self, expected: usize) {
        let found = self.delivery.artifacts.len();
        if found != expected {
            self.note(
                "files",
                Err(format!("{found} instead of {expected}; {}", self.excerpt())),
            );
        }
    }

    /// Exactly one file came, and it is this one.
    pub(super) fn only_file(&mut self, asset: Asset) {
        self.file_count(1);
        self.file(asset);
    }

    /// This file is among those that came: the bytes, the type, a real path, the text names it.
    pub(super) fn file(&mut self, asset: Asset) {
        let sha256 = hex::encode(Sha256::digest(asset.bytes));
        let artifacts = self.delivery.artifacts.clone();
        let Some(artifact) = artifacts.iter().find(|artifact| artifact.sha256 == sha256) else {
            self.note(asset.name, Err("no file has the shipped bytes".to_owned()));
            return;
        };
        self.sound(asset.name, artifact);
        if artifact.media_type != asset.media_type {
            self.note(
                asset.name,
                Err(format!("the type became {}", artifact.media_type)),
            );
        }
        let path = artifact.path.display().to_string();
        if !self.delivery.text.contains(&path) {
            self.note(asset.name, Err(format!("the text does not name {path}")));
        }
    }

    /// A file is where it should be, has a safe name and opens as its type.
    pub(super) fn sound(&mut self, what: &str, artifact: &Artifact) {
        let inspection = inspect(artifact);
        let mut problems = inspection.problems.clone();
        problems.extend(self.place_problem(artifact));
        problems.extend(name_problem(artifact));
        let found = if problems.is_empty() {
            Ok(format!(
                "{}, {}",
                bytes(artifact.bytes),
                inspection.summary()
            ))
        } else {
            Err(problems.join("; "))
        };
        self.note(what, found);
    }

    /// A line of the text is `MEDIA:` and the path of the file with these bytes.
    pub(super) fn media_line(&mut self, asset: Asset) {
        let sha256 = hex::encode(Sha256::digest(asset.bytes));
        let artifacts = &self.delivery.artifacts;
        let line = artifacts
            .iter()
            .find(|artifact| artifact.sha256 == sha256)
            .map(|artifact| format!("MEDIA:{}", artifact.path.display()));
        let has = line.is_some_and(|line| self.delivery.text.lines().any(|found| found == line));
        self.expect("a MEDIA: line", has);
    }

    /// A notice with this code is there.
    pub(super) fn notice(&mut self, code: NoticeCode) {
        let message = self
            .delivery
            .notices
            .iter()
            .find(|notice| notice.code == code)
            .map(|notice| notice.message.clone());
        let found = message.ok_or_else(|| format!("none in {:?}", self.delivery.notices));
        self.note(&format!("the notice {}", code.as_str()), found);
    }

    fn place_problem(&self, artifact: &Artifact) -> Option<String> {
        let cache = self.cache.canonicalize().ok()?;
        match artifact.path.canonicalize() {
            Ok(path) if path.starts_with(&cache) && path == artifact.path => None,
            Ok(path) => Some(format!(
                "{} is not inside {}",
                path.display(),
                cache.display()
            )),
            Err(error) => Some(error.to_string()),
        }
    }

    /// The beginning of the text, for a failed check.
    fn excerpt(&self) -> String {
        format!(
            "text: {:?}",
            self.delivery.text.chars().take(160).collect::<String>()
        )
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What is wrong with an artifact's name, on disk or in the delivery.
fn name_problem(artifact: &Artifact) -> Option<String> {
    let name = &artifact.name;
    let on_disk = artifact.path.file_name().map_or(0, std::ffi::OsStr::len);
    if on_disk == 0 || on_disk > MAX_FILE_NAME {
        return Some(format!("the file name has {on_disk} bytes"));
    }
    if name.chars().count() > MAX_NAME.0 || name.len() > MAX_NAME.1 {
        return Some(format!("the name has {} bytes", name.len()));
    }
    if name.is_empty() || name.starts_with('.') || name.chars().any(is_unsafe) {
        return Some(format!("the name is {name:?}"));
    }
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .to_ascii_uppercase();
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        .then(|| format!("{name:?} is the name of a device"))
}

/// Separators, controls, and characters that change the direction of text.
fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '/' | '\\' | ':' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
