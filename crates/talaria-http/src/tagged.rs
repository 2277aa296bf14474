//! Answers that a caller may have already: an entity tag over the body, and 304.

use std::fmt::Write;

use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpRequest, HttpResponse};
use sha2::{Digest, Sha256};

use crate::range::same_weakly;

/// Bytes of the digest that make the tag.
const TAG_BYTES: usize = 16;

/// A JSON body and its tag.
#[derive(Debug)]
pub(crate) struct Tagged {
    body: Vec<u8>,
    tag: String,
}

impl Tagged {
    /// Makes the tag. Takes its time with a large body.
    pub(crate) fn new(body: Vec<u8>) -> Self {
        let mut tag = String::from("\"");
        for byte in Sha256::digest(&body).iter().take(TAG_BYTES) {
            // Writing to a text does not fail.
            write!(tag, "{byte:02x}").unwrap_or_default();
        }
        tag.push('"');
        Self { body, tag }
    }

    /// The body, or that the caller has it.
    pub(crate) fn answer(self, request: &HttpRequest) -> HttpResponse {
        let is_known = has(request.headers(), &self.tag);
        let mut response = if is_known {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        response.insert_header((header::ETAG, self.tag));
        // Another token sees other servers.
        response.insert_header((header::CACHE_CONTROL, "private, no-cache"));
        response.insert_header((header::VARY, "Authorization"));
        if is_known {
            return response.finish();
        }
        response.insert_header((header::CONTENT_TYPE, "application/json"));
        response.body(self.body)
    }
}

fn has(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| same_weakly(known.trim(), tag))
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;
    use actix_web::test::TestRequest;

    use super::*;

    fn asked(known: Option<&str>, body: &str) -> StatusCode {
        let mut request = TestRequest::get();
        if let Some(known) = known {
            request = request.insert_header((header::IF_NONE_MATCH, known));
        }
        let tagged = Tagged::new(body.as_bytes().to_vec());
        tagged.answer(&request.to_http_request()).status()
    }

    #[test]
    fn who_has_the_body_does_not_get_it_again() {
        let tag = Tagged::new(b"{}".to_vec()).tag;
        assert_eq!(tag.len(), 34);
        let both = format!("\"x\", W/{tag}");
        for known in [tag.as_str(), &both, "*"] {
            assert_eq!(
                asked(Some(known), "{}"),
                StatusCode::NOT_MODIFIED,
                "{known}"
            );
        }
        assert_eq!(asked(None, "{}"), StatusCode::OK);
        assert_eq!(asked(Some(&tag), "{ }"), StatusCode::OK);
    }
}
