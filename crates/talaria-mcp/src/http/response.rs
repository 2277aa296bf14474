//! What the head of a response, the body of an HTTP error, or their absence says.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use talaria_types::{ErrorCode, Failure};

/// What is read of the body of an HTTP error.
const ERROR_BODY_BYTES: usize = 64 * 1024;

/// Words by which servers say that they do not know a session, beside status 404.
const EXPIRED_WORDS: [&str; 6] = [
    "invalid",
    "expired",
    "not found",
    "unknown",
    "no valid",
    "terminated",
];

pub(super) fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

pub(super) async fn prefix(mut response: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < ERROR_BODY_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        let room = ERROR_BODY_BYTES - body.len();
        body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
    }
    body
}

/// Whether a response says that the session is not known: nothing was executed then.
pub(super) fn is_expired(status: StatusCode, words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    // Newer servers say with 404 that they do not know a method.
    status == StatusCode::NOT_FOUND && !words.contains("-32601")
        || status == StatusCode::BAD_REQUEST
            && words.contains("session")
            && EXPIRED_WORDS.iter().any(|word| words.contains(word))
}

/// Credentials were refused.
pub(super) fn unauthorized(status: StatusCode) -> Failure {
    let detail = format!(
        "it refuses the credentials it was given (HTTP {}); check its authorization headers or \
         sign in again",
        status.as_u16()
    );
    Failure::new(ErrorCode::ServerUnauthorized, detail)
}

/// Something answers that does not speak MCP at all.
pub(crate) fn not_mcp(media_type: &str) -> Failure {
    let what = if media_type.is_empty() {
        "content of no type"
    } else {
        media_type
    };
    let detail = format!("its url is not an MCP endpoint: it answers with {what}");
    Failure::new(ErrorCode::ServerMisconfigured, detail)
}

/// The connection broke after the request had left.
pub(super) fn lost() -> Failure {
    Failure::new(
        ErrorCode::ConnectionLost,
        "the connection broke during the call",
    )
}

/// Why there was no connection, in words.
pub(super) fn unreachable(error: &reqwest::Error) -> String {
    format!("it cannot be reached ({})", innermost(error))
}

/// What lies at the bottom of an error, for example `Connection refused (os error 111)`.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

pub(super) fn status_failure(
    status: StatusCode,
    words: String,
    location: Option<String>,
    retry_after: Option<String>,
) -> Failure {
    let number = status.as_u16();
    // A gateway that lost patience does not know what became of the call.
    let is_lost = matches!(number, 500 | 502..=504);
    let code = if is_lost {
        ErrorCode::ConnectionLost
    } else {
        ErrorCode::ServerError
    };
    let (detail, words) = match location.filter(|_| status.is_redirection()) {
        Some(to) => (
            format!("it moved to another address (HTTP {number}); set its url to that"),
            format!("Location: {to}\n{words}").trim_end().to_owned(),
        ),
        None => (format!("it answered HTTP {number}"), words),
    };
    let mut failure = Failure::new(code, detail);
    if let Some(seconds) = retry_after.and_then(|text| text.trim().parse().ok()) {
        failure = failure.retry_after(Duration::from_secs(seconds));
    }
    if words.is_empty() {
        failure
    } else {
        failure.with_server_words(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_session_is_told_from_other_refusals() {
        for (status, words, expected) in [
            (404, "", true),
            (404, "Session not found", true),
            (
                404,
                r#"{"error":{"code":-32601,"message":"Method not found"}}"#,
                false,
            ),
            (400, "Bad Request: No valid session ID provided", true),
            (
                400,
                r#"{"error":{"message":"Invalid or expired session"}}"#,
                true,
            ),
            (400, "invalid arguments", false),
            (400, "session limit", false),
            (500, "session expired", false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_expired(status, words), expected, "{status} {words}");
        }
    }

    #[test]
    fn media_types_are_compared_without_parameters_and_case() {
        let mut headers = HeaderMap::new();
        assert_eq!(media_type(&headers), "");
        headers.insert(
            CONTENT_TYPE,
            "Text/Event-Stream ; charset=utf-8".parse().unwrap(),
        );
        assert_eq!(media_type(&headers), "text/event-stream");
    }
}
