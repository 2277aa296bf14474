//! Where in a result the protocol puts binary payloads.

/// Whether a pointer, relative to the result, is the place of a payload by the protocol:
/// content blocks, resource contents and prompt messages, also in the old `toolResult` wrapper
/// and where a server forgot the list around a single block.
pub(super) fn is_block(pointer: &str) -> bool {
    let pointer = pointer.strip_prefix("/toolResult").unwrap_or(pointer);
    let mut segments = pointer.split('/').skip(1);
    match segments.next() {
        Some("content") => is_in_block(without_index(segments)),
        Some("contents") => without_index(segments).eq(["blob"]),
        Some("messages") => {
            let mut segments = without_index(segments);
            segments.next() == Some("content") && is_in_block(without_index(segments))
        }
        Some(_) | None => false,
    }
}

fn is_in_block<'a>(mut segments: impl Iterator<Item = &'a str>) -> bool {
    match segments.next() {
        Some("data") => segments.next().is_none(),
        Some("resource") => segments.eq(["blob"]),
        Some(_) | None => false,
    }
}

fn without_index<'a>(segments: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let mut segments = segments.peekable();
    let is_index =
        |segment: &&str| !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    if segments.peek().is_some_and(is_index) {
        segments.next();
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::is_block;

    #[test]
    fn knows_the_places_of_the_protocol() {
        for pointer in [
            "/content/0/data",
            "/content/17/resource/blob",
            "/contents/3/blob",
            "/messages/0/content/data",
            "/messages/0/content/resource/blob",
            "/messages/2/content/1/data",
            "/messages/2/content/1/resource/blob",
            "/toolResult/content/0/data",
            "/toolResult/contents/0/blob",
            "/content/data",
            "/contents/blob",
        ] {
            assert!(is_block(pointer), "{pointer}");
        }
    }

    #[test]
    fn knows_nothing_else() {
        for pointer in [
            "",
            "/",
            "/content",
            "/content/0",
            "/content/0/data/0",
            "/content/0/text",
            "/content/0/resource/data",
            "/content/x/data",
            "/structuredContent/content/0/data",
            "/_meta/data",
            "/messages/0/data",
            "/contents/0/data",
        ] {
            assert!(!is_block(pointer), "{pointer}");
        }
    }
}
