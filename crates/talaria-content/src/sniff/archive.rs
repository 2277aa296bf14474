//! Archives, and the office formats that are archives inside.

use super::{Sniffed, document};

/// How far into a ZIP file the names of its entries are looked for.
const ZIP_SCAN_BYTES: usize = 64 * 1024;

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";

pub(super) fn by_signature(head: &[u8]) -> Option<Sniffed> {
    match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] | [b'P', b'K', 7, 8, ..] => {
            document(zip_content(head))
        }
        [0x1f, 0x8b, 8, ..] => document("application/gzip"),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => document("application/x-7z-compressed"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => document("application/x-xz"),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => {
            document("application/x-bzip2")
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => document("application/zstd"),
        [b'R', b'a', b'r', b'!', 0x1a, 7, 0 | 1, ..] => document("application/vnd.rar"),
        [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, ..] => {
            document("application/x-ole-storage")
        }
        _ if head.get(257..262) == Some(b"ustar") => document("application/x-tar"),
        _ => None,
    }
}

/// What a ZIP file holds, by the names of its first entries.
fn zip_content(head: &[u8]) -> &'static str {
    let scanned = head.get(..ZIP_SCAN_BYTES).unwrap_or(head);
    if let Some(declared) = declared_in_first_entry(scanned) {
        return declared;
    }
    let mut rest = scanned;
    while let Some(at) = rest.windows(4).position(|window| window == b"PK\x03\x04") {
        rest = rest.get(at + 4..).unwrap_or_default();
        let name = entry_name(rest);
        if name.starts_with(b"word/") {
            return DOCX;
        }
        if name.starts_with(b"xl/") {
            return XLSX;
        }
        if name.starts_with(b"ppt/") {
            return PPTX;
        }
        if name == b"AndroidManifest.xml" {
            return "application/vnd.android.package-archive";
        }
        if name == b"META-INF/MANIFEST.MF" {
            return "application/java-archive";
        }
    }
    "application/zip"
}

/// The name of the entry whose local header, behind its signature, starts here.
fn entry_name(header: &[u8]) -> &[u8] {
    let Some([low, high]) = header.get(22..24) else {
        return &[];
    };
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    header.get(26..26 + length).unwrap_or_default()
}

/// OpenDocument and EPUB store their type uncompressed as the first entry.
fn declared_in_first_entry(head: &[u8]) -> Option<&'static str> {
    let header = head.get(4..)?;
    if entry_name(header) != b"mimetype" {
        return None;
    }
    let extra = header.get(24..26)?;
    let extra = usize::from(u16::from_le_bytes([*extra.first()?, *extra.get(1)?]));
    let content = header.get(26 + 8 + extra..)?;
    [
        "application/epub+zip",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.presentation",
    ]
    .into_iter()
    .find(|declared| content.starts_with(declared.as_bytes()))
}
