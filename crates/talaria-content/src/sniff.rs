//! What bytes are, by looking at their beginning.
//!
//! The checks are strict where a wrong answer would rename a file of somebody else's format, and
//! they claim nothing that only plausible text could be.

mod archive;
mod audio;
mod markup;
mod text;

pub(crate) use audio::container_extension;
pub(crate) use text::{Whole, decode_text};

/// How many bytes are looked at.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// What kind of thing the bytes are to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A picture made of pixels.
    Raster,
    /// A picture made of shapes.
    Vector,
    /// Sound.
    Audio,
    /// Anything else.
    Document,
}

/// A type that the bytes themselves prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sniffed {
    pub(crate) media_type: &'static str,
    pub(crate) class: Class,
}

const fn raster(media_type: &'static str) -> Option<Sniffed> {
    Some(Sniffed {
        media_type,
        class: Class::Raster,
    })
}

const fn document(media_type: &'static str) -> Option<Sniffed> {
    Some(Sniffed {
        media_type,
        class: Class::Document,
    })
}

const fn audio(media_type: &'static str) -> Option<Sniffed> {
    Some(Sniffed {
        media_type,
        class: Class::Audio,
    })
}

/// Looks at the beginning of a file.
pub(crate) fn sniff(head: &[u8]) -> Option<Sniffed> {
    let head = head.get(..HEAD_BYTES).unwrap_or(head);
    picture(head)
        .or_else(|| base_media(head))
        .or_else(|| riff(head))
        .or_else(|| audio::by_signature(head))
        .or_else(|| archive::by_signature(head))
        .or_else(|| other(head))
        .or_else(|| markup::by_first_tag(head))
        .or_else(|| rare(head))
}

/// Whether the beginning of a file is that of a picture, be it one that is decoded or not.
#[must_use]
pub fn is_picture(head: &[u8]) -> bool {
    sniff(head).is_some_and(|sniffed| match sniffed.class {
        Class::Raster | Class::Vector => true,
        Class::Audio | Class::Document => false,
    })
}

fn picture(head: &[u8]) -> Option<Sniffed> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => raster("image/png"),
        [0xff, 0xd8, 0xff, ..] => raster("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => raster("image/gif"),
        [b'I', b'I', 0x2a | 0x2b, 0, ..] | [b'M', b'M', 0, 0x2a | 0x2b, ..] => raster("image/tiff"),
        [0xff, 0x0a, ..] if head.len() > 12 => raster("image/jxl"),
        [
            0,
            0,
            0,
            0x0c,
            b'J',
            b'X',
            b'L',
            b' ',
            0x0d,
            0x0a,
            0x87,
            0x0a,
            ..,
        ] => raster("image/jxl"),
        [
            0,
            0,
            0,
            0x0c,
            b'j',
            b'P',
            b' ',
            b' ',
            0x0d,
            0x0a,
            0x87,
            0x0a,
            ..,
        ] => raster("image/jp2"),
        [b'8', b'B', b'P', b'S', 0, 1 | 2, ..] => document("image/vnd.adobe.photoshop"),
        [b'B', b'M', ..] if is_bitmap(head) => raster("image/bmp"),
        [0, 0, 1, 0, count, 0, rest @ ..] if *count > 0 && is_icon_entry(rest) => {
            raster("image/vnd.microsoft.icon")
        }
        _ => None,
    }
}

/// `BM` alone could start a sentence; the size of the second header settles it.
fn is_bitmap(head: &[u8]) -> bool {
    let Some([a, b, c, d]) = head.get(14..18) else {
        return false;
    };
    let header = u32::from_le_bytes([*a, *b, *c, *d]);
    matches!(header, 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124) && head.get(6..10) == Some(&[0; 4])
}

fn is_icon_entry(entry: &[u8]) -> bool {
    let Some([.., reserved, planes_low, planes_high, _, _]) = entry.get(..8) else {
        return false;
    };
    *reserved == 0 && *planes_low <= 1 && *planes_high == 0 && entry.len() >= 16
}

/// ISO base media: the brands tell pictures, sound and film apart.
fn base_media(head: &[u8]) -> Option<Sniffed> {
    let [a, b, c, d, b'f', b't', b'y', b'p', rest @ ..] = head else {
        return None;
    };
    let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
    let end = length.saturating_sub(8).clamp(4, 256).min(rest.len());
    let brands = rest.get(..end).unwrap_or_default();
    let major = brands.get(..4).unwrap_or_default();
    let compatible = brands.get(8..).unwrap_or_default();
    let has = |wanted: &[&[u8]]| {
        wanted.contains(&major) || compatible.chunks(4).any(|brand| wanted.contains(&brand))
    };
    if has(&[b"avif", b"avis"]) {
        return raster("image/avif");
    }
    if has(&[b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis"]) {
        return raster("image/heic");
    }
    if has(&[b"mif1", b"msf1"]) {
        return raster("image/heif");
    }
    match major.to_ascii_lowercase().as_slice() {
        b"m4a " | b"m4b " | b"m4p " => audio("audio/mp4"),
        b"qt  " => document("video/quicktime"),
        _ => document("video/mp4"),
    }
}

fn riff(head: &[u8]) -> Option<Sniffed> {
    let [b'R', b'I', b'F', b'F', _, _, _, _, form @ ..] = head else {
        return None;
    };
    match form.get(..4)? {
        b"WEBP" => raster("image/webp"),
        b"WAVE" => audio("audio/wav"),
        b"AVI " => document("video/x-msvideo"),
        _ => None,
    }
}

fn other(head: &[u8]) -> Option<Sniffed> {
    let trimmed = markup::after_blanks(head);
    if trimmed.starts_with(b"%PDF-") {
        return document("application/pdf");
    }
    if trimmed.starts_with(b"{\\rtf") {
        return document("application/rtf");
    }
    if head.starts_with(b"%!PS-Adobe") {
        return document("application/postscript");
    }
    if head.starts_with(&[0x1a, 0x45, 0xdf, 0xa3]) {
        let doctype = head.get(..64).unwrap_or(head);
        let is_matroska = doctype.windows(8).any(|window| window == b"matroska");
        return document(if is_matroska {
            "video/x-matroska"
        } else {
            "video/webm"
        });
    }
    None
}

/// Formats that the sniffing crate knows by a signature long enough to be believed.
fn rare(head: &[u8]) -> Option<Sniffed> {
    const BELIEVED: &[&str] = &[
        "application/wasm",
        "application/x-executable",
        "application/vnd.sqlite3",
        "application/x-rpm",
        "application/vnd.debian.binary-package",
        "application/x-unix-archive",
        "application/vnd.ms-cab-compressed",
        "application/x-lzip",
        "application/dicom",
        "image/vnd.djvu",
        "video/x-flv",
        "video/x-ms-wmv",
    ];
    let found = infer::get(head)?;
    let media_type = found.mime_type();
    match media_type {
        "application/font-woff" => match found.extension() {
            "woff2" => document("font/woff2"),
            _ => document("font/woff"),
        },
        "application/font-sfnt" => match found.extension() {
            "otf" => document("font/otf"),
            _ => document("font/ttf"),
        },
        _ if BELIEVED.contains(&media_type) => document(media_type),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
