//! `Range` and the conditions that go with it (RFC 9110 §13 and §14).

use actix_web::http::header::{self, HeaderMap};

/// What a request asks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// One part: first byte and length.
    Part {
        /// First byte.
        start: u64,
        /// Bytes; never zero.
        length: u64,
    },
    /// A part that lies outside.
    Outside,
    /// Nothing, the caller has it already.
    NotModified,
}

/// Decides what to send of a file of `size` bytes with the strong entity tag `etag`.
///
/// A range that is malformed, of another unit or of several parts is ignored, as the RFC allows.
pub(crate) fn wanted(headers: &HeaderMap, etag: &str, size: u64) -> Wanted {
    if let Some(known) = text(headers, header::IF_NONE_MATCH)
        && known.split(',').any(|tag| same_weakly(tag.trim(), etag))
    {
        return Wanted::NotModified;
    }
    // `If-Range` needs a strong match; a date never matches, because files carry no date here.
    if text(headers, header::IF_RANGE).is_some_and(|condition| condition.trim() != etag) {
        return Wanted::Whole;
    }
    text(headers, header::RANGE)
        .and_then(|range| single_range(range, size))
        .unwrap_or(Wanted::Whole)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Compares entity tags as `If-None-Match` does.
pub(crate) fn same_weakly(tag: &str, etag: &str) -> bool {
    tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
}

fn single_range(range: &str, size: u64) -> Option<Wanted> {
    let (unit, spec) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = spec.trim().split_once('-')?;
    if first.is_empty() {
        let suffix = number(last)?;
        let length = suffix.min(size);
        return Some(part(size - length, length));
    }
    let first = number(first)?;
    let last = match last {
        "" => u64::MAX,
        last => number(last)?,
    };
    if last < first {
        return None;
    }
    let end = last.saturating_add(1).min(size);
    Some(part(first, end.saturating_sub(first)))
}

const fn part(start: u64, length: u64) -> Wanted {
    if length == 0 {
        Wanted::Outside
    } else {
        Wanted::Part { start, length }
    }
}

/// Digits only; more of them than fit mean "beyond any file".
fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    const ETAG: &str = "\"abc\"";

    fn asked(pairs: &[(header::HeaderName, &str)]) -> Wanted {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        wanted(&headers, ETAG, 10)
    }

    #[test]
    fn reads_single_and_suffix_ranges() {
        for (range, expected) in [
            (
                "bytes=0-0",
                Wanted::Part {
                    start: 0,
                    length: 1,
                },
            ),
            (
                "bytes=2-5",
                Wanted::Part {
                    start: 2,
                    length: 4,
                },
            ),
            (
                "bytes=7-",
                Wanted::Part {
                    start: 7,
                    length: 3,
                },
            ),
            (
                "bytes=7-99",
                Wanted::Part {
                    start: 7,
                    length: 3,
                },
            ),
            (
                "bytes=0-18446744073709551615",
                Wanted::Part {
                    start: 0,
                    length: 10,
                },
            ),
            (
                "bytes=0-99999999999999999999999",
                Wanted::Part {
                    start: 0,
                    length: 10,
                },
            ),
            (
                "bytes=-3",
                Wanted::Part {
                    start: 7,
                    length: 3,
                },
            ),
            (
                "bytes=-99",
                Wanted::Part {
                    start: 0,
                    length: 10,
                },
            ),
            (
                "Bytes=1-1",
                Wanted::Part {
                    start: 1,
                    length: 1,
                },
            ),
            ("bytes=10-", Wanted::Outside),
            ("bytes=10-12", Wanted::Outside),
            ("bytes=99999999999999999999999-", Wanted::Outside),
            ("bytes=-0", Wanted::Outside),
            ("bytes=5-2", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("garbage", Wanted::Whole),
        ] {
            assert_eq!(asked(&[(header::RANGE, range)]), expected, "{range}");
        }
    }

    #[test]
    fn has_no_part_of_an_empty_file() {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-0"));
        assert_eq!(wanted(&headers, ETAG, 0), Wanted::Outside);
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=-5"));
        assert_eq!(wanted(&headers, ETAG, 0), Wanted::Outside);
    }

    #[test]
    fn honours_a_range_only_while_the_file_is_the_same() {
        let range = (header::RANGE, "bytes=1-2");
        let part = Wanted::Part {
            start: 1,
            length: 2,
        };
        assert_eq!(asked(&[range.clone(), (header::IF_RANGE, ETAG)]), part);
        for other in ["\"xyz\"", "W/\"abc\"", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(
                asked(&[range.clone(), (header::IF_RANGE, other)]),
                Wanted::Whole,
                "{other}"
            );
        }
    }

    #[test]
    fn sends_nothing_to_whom_has_it() {
        for known in ["\"abc\"", "W/\"abc\"", "*", "\"x\", \"abc\""] {
            let asked = asked(&[(header::IF_NONE_MATCH, known), (header::RANGE, "bytes=0-1")]);
            assert_eq!(asked, Wanted::NotModified, "{known}");
        }
        assert_eq!(asked(&[(header::IF_NONE_MATCH, "\"x\"")]), Wanted::Whole);
    }
}
