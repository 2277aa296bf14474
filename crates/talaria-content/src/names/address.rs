//! The last segment of an address of any scheme, also of one that is no valid URI.

use percent_encoding::percent_decode_str;

/// The last segment of the path: percent escapes decoded once, then split at `/`. `None` where
/// the address has no path or cannot be read.
pub(crate) fn last_segment(uri: &str) -> Option<String> {
    let path = path(uri.trim())?;
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let segment = decoded
        .split('/')
        .rfind(|segment| !matches!(*segment, "" | "."))?;
    (segment != "..").then(|| segment.to_owned())
}

/// The path without scheme, authority, query and fragment.
fn path(uri: &str) -> Option<&str> {
    let rest = match uri.split_once(':') {
        // What such an address holds is no path.
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("data") => return None,
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        Some(_) | None => uri,
    };
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            // Only an address of version 6 has brackets, and it has both.
            if authority.contains('[') != authority.contains(']') {
                return None;
            }
            path
        }
        None => rest,
    };
    path.split(['?', '#']).next()
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}
