//! One request and its answer: name it, check it, run it, answer it, count it.
//!
//! The future of a request is dropped when its caller closes the connection (the server is set
//! up so that a half-closed connection counts as closed). Everything that must happen then hangs
//! on drop: the call's cancellation token fires, and the exchange is counted as cancelled.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::FutureExt;
use talaria_telemetry::events;
use talaria_types::{
    CallContext, Deadline, ErrorClass, ErrorCode, Failure, RequestId, Route, SessionKey, runtime,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::auth::Caller;
use crate::operation::{self, Target};
use crate::problem::Rejection;
use crate::routes;
use crate::state::AppState;

/// Names a request, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Longest request id taken over from a caller.
const MAX_CALLER_ID: usize = 128;

/// A request that is being answered.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Our id, in logs and spans.
    request_id: RequestId,
    /// What the caller knows the request by: its own id if it sent a sane one.
    shown_id: String,
    started: Instant,
    span: Span,
    cancel: CancellationToken,
}

/// Answers a request, whatever happens.
pub(crate) async fn answer(
    target: Target,
    request: HttpRequest,
    mut payload: web::Payload,
) -> HttpResponse {
    let exchange = Exchange::begin(target, &request);
    let mut record = Record::begin(target, request.method(), exchange.started);
    let caller_gone = exchange.cancel.clone().drop_guard();
    let running = run(target, &exchange, &request, &mut payload).instrument(exchange.span.clone());
    // A defect of ours costs its own request an honest answer, never the connection or more.
    let outcome = AssertUnwindSafe(running)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(panicked(&*panic)));
    // From here on the caller has its answer; there is nothing left to cancel.
    caller_gone.disarm();
    let (mut response, code) = match outcome {
        Ok(response) => (response, None),
        Err(rejection) => {
            exchange.span.in_scope(|| log(&rejection));
            (
                rejection.respond(&exchange.shown_id),
                Some(rejection.failure().code()),
            )
        }
    };
    exchange.sign(response.headers_mut());
    record.end(response.status(), code);
    if request.headers().contains_key(header::TRANSFER_ENCODING) {
        return response.map_body(|_, body| {
            BoxBody::new(Unread {
                body,
                _payload: payload,
            })
        });
    }
    response
}

/// An answer that outlives the body of its request.
///
/// Once a chunked body is dropped before its end, actix reads on and discards, without a limit
/// in time. While the body is there, actix sees that it was not read and closes the connection
/// after the answer, as it does for a body of known length.
struct Unread {
    body: BoxBody,
    _payload: web::Payload,
}

impl MessageBody for Unread {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<web::Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

async fn run(
    target: Target,
    exchange: &Exchange,
    request: &HttpRequest,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    let Some(state) = request.app_data::<web::Data<AppState>>() else {
        return Err(Failure::new(ErrorCode::Internal, "the application has no state").into());
    };
    state.hosts.check(request)?;
    match target {
        Target::Operation(operation) => {
            let caller = state.authenticator.admit(operation.access(), request)?;
            let asked = Asked {
                state,
                exchange,
                caller: &caller,
                request,
            };
            routes::run(operation, &asked, payload).await
        }
        Target::WrongMethod(path) => Err(wrong_method(path)),
        Target::Nothing => Err(Failure::new(
            ErrorCode::NotFound,
            "there is no such route; /openapi.json lists them",
        )
        .into()),
    }
}

/// What a route works with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) state: &'a AppState,
    pub(crate) exchange: &'a Exchange,
    pub(crate) caller: &'a Caller,
    pub(crate) request: &'a HttpRequest,
}

impl Exchange {
    fn begin(target: Target, request: &HttpRequest) -> Self {
        let sent = request.headers().get(REQUEST_ID).and_then(sane_id);
        let request_id = sent
            .and_then(RequestId::parse)
            .unwrap_or_else(RequestId::generate);
        let shown_id = sent.unwrap_or(request_id.as_str()).to_owned();
        let span = tracing::info_span!(
            "http_request",
            request_id = %request_id,
            caller_request_id = tracing::field::Empty,
            http_request_method = method_label(request.method()),
            http_route = target.label(),
            trace_id = tracing::field::Empty,
            parent_span_id = tracing::field::Empty,
        );
        if shown_id != request_id.as_str() {
            span.record("caller_request_id", &shown_id);
        }
        if let Some(parent) = trace_parent(request.headers()) {
            span.record("trace_id", parent.trace_id);
            span.record("parent_span_id", parent.span_id);
        }
        Self {
            request_id,
            shown_id,
            started: runtime::now(),
            span,
            cancel: CancellationToken::new(),
        }
    }

    /// The context of the call this request makes.
    pub(crate) fn call_context(
        &self,
        caller: &Caller,
        route: Option<Route>,
        session: Option<SessionKey>,
        budget: Duration,
    ) -> CallContext {
        CallContext {
            request_id: self.request_id.clone(),
            session,
            token: caller.name(),
            route,
            approved: false,
            deadline: Deadline::at(self.started + budget),
            cancel: self.cancel.clone(),
            span: self.span.clone(),
        }
    }

    /// Milliseconds since the request began.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(runtime::now().duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    fn sign(&self, headers: &mut HeaderMap) {
        if let Ok(id) = HeaderValue::from_str(&self.shown_id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
    }
}

/// Counts an exchange once, also when it is dropped before its answer.
#[derive(Debug)]
struct Record {
    method: &'static str,
    route: &'static str,
    started: Instant,
    ended: bool,
    _active: events::ActiveRequest,
}

impl Record {
    fn begin(target: Target, method: &Method, started: Instant) -> Self {
        Self {
            method: method_label(method),
            route: target.label(),
            started,
            ended: false,
            _active: events::http_request_began(),
        }
    }

    fn end(&mut self, status: StatusCode, code: Option<ErrorCode>) {
        self.ended = true;
        let took = runtime::now().duration_since(self.started);
        events::http_request_ended(self.method, self.route, status.as_u16(), took, code);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.ended {
            let status = StatusCode::from_u16(ErrorClass::Cancelled.status());
            self.end(
                status.unwrap_or(StatusCode::BAD_REQUEST),
                Some(ErrorCode::Cancelled),
            );
        }
    }
}

/// Logs a failure once, here where it ends, with the whole chain of its causes.
fn log(rejection: &Rejection) {
    let failure = rejection.failure();
    let code = failure.code().as_str();
    let server = failure.server().map(tracing::field::display);
    let mut causes = String::new();
    let mut next = std::error::Error::source(failure);
    while let Some(cause) = next {
        causes.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    let detail = failure.detail();
    match failure.code().class() {
        ErrorClass::Internal => {
            tracing::error!(code, server, detail, causes, "request failed");
        }
        ErrorClass::Upstream | ErrorClass::Unavailable | ErrorClass::Timeout | ErrorClass::Busy => {
            tracing::warn!(code, server, detail, causes, "request failed");
        }
        ErrorClass::BadRequest
        | ErrorClass::TooLarge
        | ErrorClass::Unauthorized
        | ErrorClass::Forbidden
        | ErrorClass::NotFound
        | ErrorClass::MethodNotAllowed
        | ErrorClass::Conflict
        | ErrorClass::Cancelled => {
            tracing::debug!(code, server, detail, causes, "request refused");
        }
    }
}

/// A panic as a failure. Nothing of a request outlives it, so nothing is left half done.
fn panicked(panic: &(dyn Any + Send)) -> Rejection {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic");
    Failure::new(ErrorCode::Internal, format!("the request panicked: {said}")).into()
}

fn wrong_method(path: &str) -> Rejection {
    let allowed = operation::allowed_methods(path);
    let detail = format!("this route takes {allowed}");
    let rejection = Rejection::from(Failure::new(ErrorCode::MethodNotAllowed, detail));
    match HeaderValue::from_str(&allowed) {
        Ok(allowed) => rejection.with_header(header::ALLOW, allowed),
        Err(_) => rejection,
    }
}

/// A caller's request id, if it is short and printable.
fn sane_id(value: &HeaderValue) -> Option<&str> {
    let id = value.to_str().ok()?;
    let sane = !id.is_empty()
        && id.len() <= MAX_CALLER_ID
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&byte));
    sane.then_some(id)
}

/// The caller's place in a trace (W3C Trace Context, version 00).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TraceParent<'a> {
    trace_id: &'a str,
    span_id: &'a str,
}

fn trace_parent(headers: &HeaderMap) -> Option<TraceParent<'_>> {
    let mut fields = headers.get(TRACEPARENT)?.to_str().ok()?.split('-');
    let (version, trace_id, span_id, flags) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let hex = |text: &str, length: usize| {
        text.len() == length
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let well_formed = hex(version, 2)
        && version != "ff"
        && hex(trace_id, 32)
        && hex(span_id, 16)
        && hex(flags, 2)
        && (version != "00" || fields.next().is_none())
        && trace_id.bytes().any(|byte| byte != b'0')
        && span_id.bytes().any(|byte| byte != b'0');
    well_formed.then_some(TraceParent { trace_id, span_id })
}

/// The method as a label: a closed set, with OpenTelemetry's word for the rest.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "_OTHER",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_over_only_short_printable_request_ids() {
        for (id, sane) in [
            ("req_01J0000000000000000000000", true),
            ("8f14e45f-ceea-4f6a-9fef-3d4d3e0d6b1a", true),
            ("a b", false),
            ("", false),
            ("<script>", false),
            ("a\"b", false),
        ] {
            let value = HeaderValue::from_str(id).unwrap();
            assert_eq!(sane_id(&value), sane.then_some(id), "{id:?}");
        }
        assert_eq!(
            sane_id(&HeaderValue::from_str(&"a".repeat(129)).unwrap()),
            None
        );
        assert_eq!(sane_id(&HeaderValue::from_bytes(b"\xff").unwrap()), None);
    }

    #[test]
    fn reads_a_trace_parent_of_any_version() {
        const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        const SPAN: &str = "00f067aa0ba902b7";
        for (value, valid) in [
            (format!("00-{TRACE}-{SPAN}-01"), true),
            (format!("cc-{TRACE}-{SPAN}-01-what-the-future-brings"), true),
            (format!("00-{TRACE}-{SPAN}-01-more"), false),
            (format!("ff-{TRACE}-{SPAN}-01"), false),
            (format!("00-{}-{SPAN}-01", "0".repeat(32)), false),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), false),
            (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), false),
            (format!("00-{TRACE}-{SPAN}"), false),
            ("".to_owned(), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(TRACEPARENT, HeaderValue::from_str(&value).unwrap());
            let expected = valid.then_some(TraceParent {
                trace_id: TRACE,
                span_id: SPAN,
            });
            assert_eq!(trace_parent(&headers), expected, "{value}");
        }
    }
}
