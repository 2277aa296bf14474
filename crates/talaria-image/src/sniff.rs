//! What a file is, by its bytes alone.

use crate::bytes::be32;
use crate::prepared::SourceFormat;

/// How far into a text an SVG's first element is looked for.
const PROLOGUE: usize = 64 * 1024;

/// The format of `bytes`; names and declared types never count.
pub(crate) fn format(bytes: &[u8]) -> SourceFormat {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if starts(b"\x89PNG\r\n\x1a\n") {
        SourceFormat::Png
    } else if starts(b"\xff\xd8\xff") {
        SourceFormat::Jpeg
    } else if starts(b"GIF87a") || starts(b"GIF89a") {
        SourceFormat::Gif
    } else if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        SourceFormat::WebP
    } else if starts(b"BM") && bytes.len() >= 26 {
        SourceFormat::Bmp
    } else if starts(b"II*\0") || starts(b"MM\0*") || starts(b"II+\0") || starts(b"MM\0+") {
        SourceFormat::Tiff
    } else if is_icon(bytes) {
        SourceFormat::Ico
    } else if let Some(format) = brand(bytes) {
        format
    } else if is_svg(bytes) {
        SourceFormat::Svg
    } else {
        SourceFormat::Unknown
    }
}

/// The name of a picture format that is known but never decoded.
pub(crate) fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if starts(b"\xff\x0a") || starts(b"\0\0\0\x0cJXL \r\n\x87\n") {
        Some("JPEG XL")
    } else if starts(b"\0\0\0\x0cjP  \r\n\x87\n") || starts(b"\xff\x4f\xff\x51") {
        Some("JPEG 2000")
    } else if starts(b"8BPS") {
        Some("Photoshop")
    } else if starts(b"qoif") {
        Some("QOI")
    } else if starts(b"\x1f\x8b") {
        Some("gzip (perhaps a compressed SVG)")
    } else if starts(b"v/1\x01") {
        Some("OpenEXR")
    } else if starts(b"DDS ") {
        Some("DDS")
    } else {
        None
    }
}

/// An icon or a cursor: type, a count that the entries can hold, a reserved zero.
fn is_icon(bytes: &[u8]) -> bool {
    matches!(bytes, [0, 0, 1 | 2, 0, low, high, ..] if (*low, *high) != (0, 0))
        && bytes.len() >= 6 + 16
        && bytes.get(9) == Some(&0)
}

/// AVIF and HEIC by the brands of their `ftyp` box, which ends the search.
fn brand(bytes: &[u8]) -> Option<SourceFormat> {
    if bytes.get(4..8) != Some(b"ftyp") {
        return None;
    }
    let end = usize::try_from(be32(bytes, 0)?).ok()?.min(bytes.len());
    let brands = bytes.get(8..end)?;
    // The second four bytes are a version, not a brand.
    brands
        .chunks_exact(4)
        .enumerate()
        .filter(|(index, _)| *index != 1)
        .find_map(|(_, brand)| match brand {
            b"avif" | b"avis" => Some(SourceFormat::Avif),
            b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" | b"mif1" | b"msf1" => {
                Some(SourceFormat::Heic)
            }
            _ => None,
        })
        .map(|first| {
            // `mif1` is a container of both; the AVIF brand may come after it.
            if brands.chunks_exact(4).any(|brand| brand == b"avif") {
                SourceFormat::Avif
            } else {
                first
            }
        })
}

/// Whether the first element of an XML text is `svg`.
fn is_svg(bytes: &[u8]) -> bool {
    let head = bytes.get(..PROLOGUE).unwrap_or(bytes);
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut rest = head;
    loop {
        rest = rest.trim_ascii_start();
        if let Some(comment) = rest.strip_prefix(b"<!--") {
            let Some(after) = skip_past(comment, b"-->") else {
                return false;
            };
            rest = after;
        } else if let Some(instruction) = rest.strip_prefix(b"<?") {
            let Some(after) = skip_past(instruction, b"?>") else {
                return false;
            };
            rest = after;
        } else if rest.starts_with(b"<!DOCTYPE") || rest.starts_with(b"<!doctype") {
            let Some(after) = skip_doctype(rest) else {
                return false;
            };
            rest = after;
        } else {
            return is_svg_element(rest);
        }
    }
}

fn is_svg_element(rest: &[u8]) -> bool {
    let Some(tag) = rest.strip_prefix(b"<") else {
        return false;
    };
    let end = tag
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'));
    let name = end.and_then(|end| tag.get(..end)).unwrap_or_default();
    // A prefix such as `svg:svg` is allowed.
    name.rsplit(|byte| *byte == b':').next() == Some(b"svg")
}

/// Past a document type, whose internal subset stands in brackets.
fn skip_doctype(rest: &[u8]) -> Option<&[u8]> {
    let close = rest.iter().position(|byte| *byte == b'>')?;
    let open = rest.iter().position(|byte| *byte == b'[');
    match open {
        Some(open) if open < close => {
            let inside = rest.get(open..)?;
            let end = inside.iter().position(|byte| *byte == b']')?;
            skip_past(inside.get(end..)?, b">")
        }
        _ => rest.get(close + 1..),
    }
}

fn skip_past<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let at = bytes.windows(mark.len()).position(|part| part == mark)?;
    bytes.get(at + mark.len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_formats_by_their_bytes() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], SourceFormat::Png),
            (b"\xff\xd8\xff\xe0", SourceFormat::Jpeg),
            (b"GIF89a", SourceFormat::Gif),
            (b"RIFF\0\0\0\0WEBPVP8 ", SourceFormat::WebP),
            (b"RIFF\0\0\0\0WAVE", SourceFormat::Unknown),
            (b"MM\0*\0\0\0\x08", SourceFormat::Tiff),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", SourceFormat::Heic),
            (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif", SourceFormat::Avif),
            (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", SourceFormat::Unknown),
            // The brand scan ends with the box.
            (b"\0\0\0\x10ftypmp42\0\0\0\0avifavif", SourceFormat::Unknown),
            (b"", SourceFormat::Unknown),
            (b"Screenshot saved. Share it", SourceFormat::Unknown),
        ] {
            assert_eq!(format(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn tells_svg_from_pages_that_hold_one() {
        for text in [
            "<svg xmlns='http://www.w3.org/2000/svg'/>",
            "\u{feff}<?xml version='1.0'?>\n<!-- made by hand -->\n<svg>",
            "<!DOCTYPE svg PUBLIC 'x' 'y'><svg width='1'>",
            "<!DOCTYPE svg [ <!ENTITY a 'b>'> ]>\n<svg:svg>",
        ] {
            assert_eq!(format(text.as_bytes()), SourceFormat::Svg, "{text}");
        }
        for text in [
            "<html><body><svg/></body></html>",
            "<!doctype html><svg",
            "<svgfoo>",
            "<!-- <svg>",
            "svg",
        ] {
            assert_eq!(format(text.as_bytes()), SourceFormat::Unknown, "{text}");
        }
    }
}
