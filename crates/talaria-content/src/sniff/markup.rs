//! HTML, SVG and XML, which have no magic number but a first tag.

use super::{Class, Sniffed, document};

/// How much of comments and declarations may stand before the first tag.
const MAX_PREAMBLE_BYTES: usize = 16 * 1024;

pub(super) fn by_first_tag(head: &[u8]) -> Option<Sniffed> {
    let start = head.get(..MAX_PREAMBLE_BYTES).unwrap_or(head);
    let mut rest = after_blanks(start);
    if rest.first() != Some(&b'<') {
        return None;
    }
    let mut is_xml = false;
    loop {
        rest = after_blanks(rest);
        if begins(rest, b"<?xml") {
            is_xml = true;
            rest = after(rest, b"?>")?;
        } else if begins(rest, b"<?") {
            rest = after(rest, b"?>")?;
        } else if begins(rest, b"<!--") {
            rest = after(rest, b"-->")?;
        } else if begins(rest, b"<!doctype") {
            return Some(by_doctype(after_blanks(rest.get(9..).unwrap_or_default())));
        } else {
            return by_root(rest, is_xml);
        }
    }
}

fn by_doctype(name: &[u8]) -> Sniffed {
    if begins(name, b"svg") {
        return Sniffed {
            media_type: "image/svg+xml",
            class: Class::Vector,
        };
    }
    let media_type = if begins(name, b"html") {
        "text/html"
    } else {
        "application/xml"
    };
    Sniffed {
        media_type,
        class: Class::Document,
    }
}

fn by_root(tag: &[u8], is_xml: bool) -> Option<Sniffed> {
    let is = |name: &[u8]| {
        begins(tag, name)
            && tag
                .get(name.len())
                .is_none_or(|next| !next.is_ascii_alphanumeric() && *next != b'-')
    };
    if is(b"<svg") || is(b"<svg:svg") {
        return Some(Sniffed {
            media_type: "image/svg+xml",
            class: Class::Vector,
        });
    }
    if is(b"<html") || is(b"<head") || is(b"<body") {
        return document("text/html");
    }
    if is_xml {
        document("application/xml")
    } else {
        None
    }
}

/// What follows a byte-order mark and blanks.
pub(super) fn after_blanks(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(text)
        .trim_ascii_start()
}

fn begins(text: &[u8], lower: &[u8]) -> bool {
    text.get(..lower.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

fn after<'a>(text: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(end.len()).position(|window| window == end)?;
    text.get(at + end.len()..)
}
