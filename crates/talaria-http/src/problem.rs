//! Failures as RFC 9457 problem details (design decision 24).

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talaria_actors::{cleaned_detail, cleaned_words};
use talaria_types::{ErrorClass, ErrorCode, Failure};

/// Media type of problem details.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";
/// What callers learn of a defect; the log has the rest under the request id.
const INTERNAL_DETAIL: &str = "something broke inside talaria; its log has the request id";

/// Why a request was not answered with what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// A URN made from `code`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status again.
    pub status: u16,
    /// Permanent code.
    pub code: ErrorCode,
    /// What went wrong with this request.
    pub detail: String,
    /// Whether the same request may be sent again without risk of running a tool twice.
    pub retryable: bool,
    /// When a retry makes sense.
    pub retry_after_ms: Option<u64>,
    /// Whether the tool may have run although no result came back.
    pub outcome_uncertain: bool,
    /// The MCP server concerned.
    pub server: Option<String>,
    /// A line an agent may show its model.
    pub model_text: String,
    /// The request, as the `x-request-id` header names it.
    pub request_id: String,
}

impl Problem {
    /// Tells a failure to the caller. Internals stay behind.
    pub(crate) fn new(failure: &Failure, status: StatusCode, request_id: &str) -> Self {
        let code = failure.code();
        let words = failure
            .server_words()
            .map(cleaned_words)
            .filter(|words| !words.is_empty());
        let detail = public_detail(failure);
        Self {
            kind: format!("urn:talaria:error:{code}"),
            title: title(code),
            status: status.as_u16(),
            code,
            model_text: model_text(failure, &detail, words.as_deref()),
            detail: match words {
                Some(words) => format!("{detail}; it said: {words}"),
                None => detail,
            },
            retryable: failure.retryable(),
            retry_after_ms: failure.retry_hint().map(milliseconds),
            outcome_uncertain: failure.is_outcome_uncertain(),
            server: failure.server().map(ToString::to_string),
            request_id: request_id.to_owned(),
        }
    }
}

/// A failure on its way out, with what only HTTP needs to know of it.
#[derive(Debug)]
pub(crate) struct Rejection {
    failure: Box<Failure>,
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// What this kind of problem says besides.
    members: Map<String, Value>,
}

impl Rejection {
    /// Refuses a request because of how it is written.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Failure::new(ErrorCode::InvalidRequest, detail).into()
    }

    /// Answers with a more precise status than the class of the code has.
    pub(crate) const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Marks that the call ran although its result does not arrive (design decision 21).
    pub(crate) fn outcome_uncertain(mut self) -> Self {
        self.failure = Box::new(self.failure.outcome_uncertain());
        self
    }

    /// Adds a header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds members to the problem; none of those that every problem has is replaced.
    pub(crate) fn with_members(mut self, members: Map<String, Value>) -> Self {
        self.members.extend(members);
        self
    }

    pub(crate) fn failure(&self) -> &Failure {
        &self.failure
    }

    /// The response.
    pub(crate) fn respond(&self, request_id: &str) -> HttpResponse {
        let problem = Problem::new(&self.failure, self.status, request_id);
        let mut response = HttpResponse::build(self.status);
        response.insert_header((header::CONTENT_TYPE, PROBLEM_JSON));
        for header in &self.headers {
            response.insert_header(header.clone());
        }
        if let Some(wait) = self.failure.retry_hint() {
            response.insert_header((header::RETRY_AFTER, whole_seconds(wait)));
        }
        match serde_json::to_value(&problem) {
            Ok(Value::Object(mut body)) => {
                for (name, member) in &self.members {
                    body.entry(name).or_insert_with(|| member.clone());
                }
                response.body(Value::Object(body).to_string())
            }
            Ok(_) | Err(_) => response.finish(),
        }
    }
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Self {
        let status = StatusCode::from_u16(failure.code().class().status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self {
            failure: Box::new(failure),
            status,
            headers: Vec::new(),
            members: Map::new(),
        }
    }
}

/// The code in words: `server_busy` is "Server busy".
fn title(code: ErrorCode) -> String {
    if code == ErrorCode::Internal {
        return "Internal error".to_owned();
    }
    let words = code.as_str().replace('_', " ");
    let mut characters = words.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().chain(characters).collect())
        .unwrap_or_default()
}

fn public_detail(failure: &Failure) -> String {
    if failure.code().class() == ErrorClass::Internal {
        return INTERNAL_DETAIL.to_owned();
    }
    cleaned_detail(failure.detail())
        .trim_end_matches('.')
        .to_owned()
}

fn model_text(failure: &Failure, detail: &str, words: Option<&str>) -> String {
    let mut text = format!("The call failed: {detail}.");
    if let Some(words) = words {
        text.push_str(&format!(" The server said: {words}"));
        if !words.ends_with(['.', '!', '?']) {
            text.push('.');
        }
    }
    if failure.is_outcome_uncertain() {
        text.push_str(" It may have been carried out all the same; check before repeating it.");
    } else if failure.retryable() {
        text.push_str(" Trying again later may work.");
    }
    text
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `Retry-After` knows only whole seconds; rounds up so that nobody comes early.
fn whole_seconds(duration: Duration) -> String {
    duration.as_millis().div_ceil(1000).to_string()
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use serde_json::{Value, json};
    use talaria_types::ServerName;

    use super::*;

    fn told(failure: Failure) -> Value {
        let rejection = Rejection::from(failure);
        let problem = Problem::new(rejection.failure(), rejection.status, "req_1");
        serde_json::to_value(problem).unwrap()
    }

    #[test]
    fn tells_a_busy_server_and_when_to_come_back() {
        let failure = Failure::new(
            ErrorCode::ServerBusy,
            "64 calls wait at this server already",
        )
        .on_server(&ServerName::from("slack"))
        .retry_after(Duration::from_millis(1200));
        assert_eq!(
            told(failure.clone()),
            json!({
                "type": "urn:talaria:error:server_busy",
                "title": "Server busy",
                "status": 429,
                "code": "server_busy",
                "detail": "64 calls wait at this server already",
                "retryable": true,
                "retry_after_ms": 1200,
                "outcome_uncertain": false,
                "server": "slack",
                "model_text": "The call failed: 64 calls wait at this server already. \
                               Trying again later may work.",
                "request_id": "req_1",
            })
        );
        let response = Rejection::from(failure).respond("req_1");
        assert_eq!(response.headers().get("retry-after").unwrap(), "2");
        assert_eq!(
            response.headers().get("content-type").unwrap(),
            PROBLEM_JSON
        );
    }

    #[test]
    fn warns_of_a_call_that_may_have_run() {
        let failure = Failure::new(
            ErrorCode::ConnectionLost,
            "the server ended during the call",
        )
        .on_server(&ServerName::from("slack"))
        .outcome_uncertain();
        let problem = told(failure);
        assert_eq!(problem["status"], 502);
        assert_eq!(problem["retryable"], false);
        assert_eq!(problem["outcome_uncertain"], true);
        assert_eq!(
            problem["model_text"],
            "The call failed: the server ended during the call. \
             It may have been carried out all the same; check before repeating it."
        );
    }

    #[test]
    fn a_result_that_is_lost_on_the_way_is_never_asked_for_again() {
        let busy = Failure::new(ErrorCode::Busy, "no worker came free");
        assert!(busy.retryable());
        let lost = Rejection::from(busy).outcome_uncertain();
        assert_eq!(lost.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(lost.failure().is_outcome_uncertain() && !lost.failure().retryable());
    }

    #[test]
    fn shows_a_servers_words_redacted_and_on_one_line() {
        let words = "bad request:\n  token=hunter2\u{e0041} \u{1b}[31msk-abcdefgh\u{1b}[0m\u{7}";
        let failure = Failure::new(ErrorCode::ServerError, "the server answered with an error")
            .with_server_words(words);
        let problem = told(failure);
        assert_eq!(
            problem["detail"],
            "the server answered with an error; it said: bad request: [REDACTED] [REDACTED]"
        );
        assert_eq!(
            problem["model_text"],
            "The call failed: the server answered with an error. \
             The server said: bad request: [REDACTED] [REDACTED]."
        );
    }

    #[actix_web::test]
    async fn members_of_its_own_replace_nothing() {
        let members = json!({ "attempts": [1], "code": "other" });
        let failure = Failure::new(ErrorCode::VisionFailed, "nobody could describe the picture");
        let rejection = Rejection::from(failure).with_members(members.as_object().unwrap().clone());
        let body = to_bytes(rejection.respond("req_1").into_body())
            .await
            .unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["attempts"], json!([1]));
        assert_eq!(problem["code"], "vision_failed");
        assert_eq!(problem["status"], 502);
    }

    #[test]
    fn keeps_internals_behind() {
        let cause = std::io::Error::other("/etc/talaria/secret.key: permission denied");
        let failure =
            Failure::new(ErrorCode::Internal, "worker 3 panicked at src/x.rs:12").caused_by(cause);
        let problem = told(failure).to_string();
        for inside in ["worker 3", "src/x.rs", "secret.key", "permission denied"] {
            assert!(!problem.contains(inside), "{problem}");
        }
    }

    #[test]
    fn has_a_title_and_a_valid_status_for_every_code() {
        for code in ErrorCode::ALL {
            let problem = told(Failure::new(*code, "detail"));
            let title = problem["title"].as_str().unwrap();
            assert!(
                title.starts_with(|first: char| first.is_ascii_uppercase()),
                "{title}"
            );
            assert_eq!(problem["status"], code.class().status());
        }
    }
}
