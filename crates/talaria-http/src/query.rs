//! Query strings: known keys, each at most once.

use std::collections::BTreeMap;

use actix_web::HttpRequest;

use crate::problem::Rejection;

/// Likeness above which a wrong key counts as a slip of a known one.
const LIKELY_SLIP: f64 = 0.8;

/// The parameters of a request, all of them among `known`.
pub(crate) fn read(
    request: &HttpRequest,
    known: &[&str],
) -> Result<BTreeMap<String, String>, Rejection> {
    let mut parameters = BTreeMap::new();
    for (key, value) in url::form_urlencoded::parse(request.query_string().as_bytes()) {
        if !known.contains(&key.as_ref()) {
            return Err(Rejection::invalid(unknown_key(
                "query parameter",
                &key,
                known,
            )));
        }
        if parameters
            .insert(key.to_string(), value.into_owned())
            .is_some()
        {
            let detail = format!("the query parameter `{key}` stands more than once");
            return Err(Rejection::invalid(detail));
        }
    }
    Ok(parameters)
}

/// The sentence for a key nobody knows, with the key that was probably meant.
pub(crate) fn unknown_key(what: &str, key: &str, known: &[&str]) -> String {
    let shown: String = key
        .chars()
        .filter(|character| !character.is_control())
        .take(64)
        .collect();
    let likeness = |candidate: &str| strsim::jaro_winkler(key, candidate);
    let closest = known
        .iter()
        .copied()
        .map(|candidate| (candidate, likeness(candidate)))
        .filter(|(_, likeness)| *likeness > LIKELY_SLIP)
        .max_by(|one, other| one.1.total_cmp(&other.1));
    match closest {
        Some((meant, _)) => format!("unknown {what} `{shown}`; did you mean `{meant}`?"),
        None if known.is_empty() => format!("unknown {what} `{shown}`; there is none"),
        None => format!("unknown {what} `{shown}`; known are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn decodes_known_parameters() {
        let request = TestRequest::with_uri("/v1/tools?format=mcp&server=a%20b").to_http_request();
        let parameters = read(&request, &["format", "server"]).unwrap();
        assert_eq!(parameters["format"], "mcp");
        assert_eq!(parameters["server"], "a b");
    }

    #[test]
    fn refuses_unknown_and_repeated_parameters() {
        for (uri, expected) in [
            (
                "/x?fromat=mcp",
                "unknown query parameter `fromat`; did you mean `format`?",
            ),
            (
                "/x?zzz=1",
                "unknown query parameter `zzz`; known are format, server",
            ),
            (
                "/x?format=a&format=b",
                "the query parameter `format` stands more than once",
            ),
        ] {
            let request = TestRequest::with_uri(uri).to_http_request();
            let rejection = read(&request, &["format", "server"]).unwrap_err();
            assert_eq!(rejection.failure().detail(), expected);
        }
    }
}
