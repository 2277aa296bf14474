//! Inspection of sound files, broken files and files that are not where they should be.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use talaria_content::{Artifact, ArtifactKind};
use talaria_types::ArtifactId;
use tempfile::TempDir;

use super::{Details, inspect};
use crate::demo_server::assets::{self, Asset};

fn artifact(path: PathBuf, media_type: &str, bytes: &[u8]) -> Artifact {
    Artifact {
        id: ArtifactId::generate(),
        kind: ArtifactKind::Document,
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        path,
        url: None,
        media_type: media_type.to_owned(),
        declared_type: None,
        bytes: bytes.len().try_into().unwrap(),
        sha256: hex::encode(Sha256::digest(bytes)),
        source_uri: None,
    }
}

fn stored(folder: &Path, name: &str, media_type: &str, bytes: &[u8]) -> Artifact {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    artifact(path, media_type, bytes)
}

fn shipped(folder: &Path, asset: Asset) -> Artifact {
    stored(folder, asset.name, asset.media_type, asset.bytes)
}

#[test]
fn sound_files_tell_their_metadata() {
    let folder = TempDir::new().unwrap();
    let expected = [
        (assets::REPORT, "PDF, 3 pages"),
        (assets::NOTES, "Word, 17 parts"),
        (assets::ORDERS, "Excel, 2 sheets"),
        (
            assets::BUNDLE,
            "ZIP, 3 entries: README.txt, data/orders.csv, data/settings.json",
        ),
        (assets::CHIME, "WAV, 1.000 s, 1 channel, 8000 Hz"),
        (assets::SCREENSHOT, "image, 1280 × 800 px"),
        (assets::README, "text, 3 lines, 61 characters"),
    ];
    for (asset, summary) in expected {
        let inspection = inspect(&shipped(folder.path(), asset));
        assert_eq!(
            (inspection.summary().as_str(), inspection.is_sound()),
            (summary, true)
        );
    }
}

#[test]
fn utf_16_text_is_text() {
    let folder = TempDir::new().unwrap();
    let bytes: Vec<u8> = [0xFEFF_u16]
        .into_iter()
        .chain("zwei\nZeilen".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let inspection = inspect(&stored(folder.path(), "a.txt", "text/plain", &bytes));
    assert_eq!(
        inspection.details,
        Some(Details::Text {
            lines: 2,
            characters: 11
        })
    );
}

#[test]
fn a_file_that_does_not_open_as_its_type_is_a_problem() {
    let folder = TempDir::new().unwrap();
    for (name, media_type) in [
        ("a.pdf", "application/pdf"),
        ("a.zip", "application/zip"),
        ("a.docx", super::readers::WORD),
        ("a.xlsx", super::readers::WORKBOOK),
        ("a.png", "image/png"),
        ("a.wav", "audio/wav"),
    ] {
        let inspection = inspect(&stored(folder.path(), name, media_type, b"not at all"));
        assert!(!inspection.is_sound(), "{media_type}");
        assert!(
            inspection.summary().starts_with("does not open as"),
            "{}",
            inspection.summary()
        );
    }
}

#[test]
fn a_plain_archive_is_no_word_document() {
    let folder = TempDir::new().unwrap();
    let bytes = assets::BUNDLE.bytes;
    let inspection = inspect(&stored(
        folder.path(),
        "a.docx",
        super::readers::WORD,
        bytes,
    ));
    assert!(
        inspection
            .summary()
            .ends_with("it has no word/document.xml")
    );
}

#[test]
fn a_damaged_archive_fails_its_checksum() {
    let folder = TempDir::new().unwrap();
    let mut bytes = assets::BUNDLE.bytes.to_vec();
    bytes[45] ^= 0xFF;
    assert!(!inspect(&stored(folder.path(), "a.zip", "application/zip", &bytes)).is_sound());
}

#[test]
fn a_wrong_place_is_a_problem() {
    let folder = TempDir::new().unwrap();
    let relative = artifact(PathBuf::from("a.txt"), "text/plain", b"x");
    let missing = artifact(folder.path().join("b.txt"), "text/plain", b"x");
    let directory = artifact(folder.path().to_owned(), "text/plain", b"x");
    let empty = stored(folder.path(), "c.txt", "text/plain", b"");
    let mut longer = stored(folder.path(), "d.txt", "text/plain", b"xyz");
    longer.bytes = 2;
    let starts = [
        (relative, "the path is not absolute"),
        (missing, "the file is not there"),
        (directory, "the path is no regular file"),
        (empty, "the file is empty"),
        (longer, "the file has 3 bytes, not 2"),
    ];
    for (artifact, start) in starts {
        assert!(inspect(&artifact).summary().starts_with(start), "{start}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_is_no_regular_file() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("a.txt")).unwrap();
    let linked = artifact(folder.path().join("a.txt"), "text/plain", b"x");
    assert_eq!(inspect(&linked).summary(), "the path is no regular file");
}

#[test]
fn other_bytes_are_a_problem() {
    let folder = TempDir::new().unwrap();
    let mut stored = stored(folder.path(), "a.txt", "text/plain", b"abc");
    stored.sha256 = "00".repeat(32);
    assert!(inspect(&stored).problems[0].starts_with("the file has SHA-256 ba7816bf"));
}

#[test]
fn an_extension_of_another_type_is_a_problem() {
    let folder = TempDir::new().unwrap();
    let mislabelled = stored(
        folder.path(),
        "a.exe",
        "application/pdf",
        assets::REPORT.bytes,
    );
    assert_eq!(
        inspect(&mislabelled).problems,
        ["the extension is \"exe\" though the type is application/pdf"]
    );
}

#[test]
fn a_type_the_server_got_wrong_is_only_a_remark() {
    let folder = TempDir::new().unwrap();
    let mut picture = shipped(folder.path(), assets::SCREENSHOT);
    picture.declared_type = Some("image/jpeg; q=1".to_owned());
    let inspection = inspect(&picture);
    assert!(inspection.is_sound());
    assert_eq!(inspection.remarks, ["the server called it image/jpeg"]);
}
