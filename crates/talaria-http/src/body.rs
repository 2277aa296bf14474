//! Reading request bodies: bounded in size, in time and in memory, and only JSON.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::web;
use actix_web::web::Bytes;
use futures_util::{Stream, StreamExt};
use serde::de::DeserializeOwned;
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, Failure, runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::exchange::Asked;
use crate::json_text::{JsonFault, look_over};
use crate::problem::Rejection;
use crate::query::unknown_key;

/// A body above this size needs one of the few places for large bodies.
const LARGE_BODY: usize = 4 * 1024 * 1024;
/// Large bodies that may be in memory at a time.
const LARGE_BODIES: usize = 8;
/// What the metrics call these places.
const LARGE_BODY_QUEUE: &str = "large_bodies";
/// JSON above this size is parsed and rendered off the event loop.
pub(crate) const LARGE_JSON: usize = 64 * 1024;
/// The longest pause between two pieces of a body.
const PIECE_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest a whole body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);

/// How large a body may be and how many large ones there may be.
#[derive(Debug)]
pub(crate) struct BodyBounds {
    bytes: usize,
    places: Arc<Semaphore>,
}

impl BodyBounds {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            places: Arc::new(Semaphore::new(LARGE_BODIES)),
        }
    }

    fn large_place(&self) -> Result<LargePlace, Rejection> {
        let permit = Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_full| {
                events::queue_refused(LARGE_BODY_QUEUE);
                let detail = "too many large bodies are being received; try again shortly";
                Failure::new(ErrorCode::Busy, detail).retry_after(Duration::from_secs(1))
            })?;
        report_depth(&self.places);
        Ok(LargePlace {
            permit: Some(permit),
            places: Arc::clone(&self.places),
        })
    }
}

/// One of the places for large bodies; free again when dropped.
#[derive(Debug)]
pub(crate) struct LargePlace {
    permit: Option<OwnedSemaphorePermit>,
    places: Arc<Semaphore>,
}

impl Drop for LargePlace {
    fn drop(&mut self) {
        drop(self.permit.take());
        report_depth(&self.places);
    }
}

fn report_depth(places: &Semaphore) {
    let depth = LARGE_BODIES.saturating_sub(places.available_permits());
    events::queue_depth(LARGE_BODY_QUEUE, depth, LARGE_BODIES);
}

/// A whole body. Large ones hold their place until dropped.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) place: Option<LargePlace>,
}

/// A JSON object that names the keys it knows and collects the others.
pub(crate) trait JsonRequest: DeserializeOwned + Send + 'static {
    /// Keys of this request alone.
    const OWN_KEYS: &'static [&'static str];
    /// Keys it has in common with others.
    const SHARED_KEYS: &'static [&'static str] = &[];

    /// The first key nobody knows.
    fn unknown(&self) -> Option<&str>;

    /// Every key.
    fn keys() -> Vec<&'static str> {
        [Self::OWN_KEYS, Self::SHARED_KEYS].concat()
    }
}

/// Reads a body that must be JSON.
pub(crate) async fn read(asked: &Asked<'_>, payload: &mut web::Payload) -> Result<Body, Rejection> {
    check_type(asked.request)?;
    collect(&asked.state.bodies, asked.request, payload).await
}

/// Reads and parses a body. The place of a large one stays taken until it is dropped, because
/// what was parsed is as large as the body.
pub(crate) async fn read_json<T: JsonRequest>(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<(T, Option<LargePlace>), Rejection> {
    let begun = runtime::now();
    let Body { bytes, place } = read(asked, payload).await?;
    if bytes.len() <= LARGE_JSON {
        return Ok((parse(&bytes)?, place));
    }
    let deadline = Deadline::at(begun + BODY_TIMEOUT);
    let parsing = asked.state.blocking.run(deadline, move || parse(&bytes));
    Ok((parsing.await??, place))
}

/// Refuses a body where none belongs; an empty object is as good as none.
pub(crate) async fn read_nothing(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<(), Rejection> {
    let body = collect(&asked.state.bodies, asked.request, payload).await?;
    let text = body.bytes.trim_ascii();
    if text.is_empty() || text == b"{}" {
        return Ok(());
    }
    Err(Rejection::invalid("this route takes no body"))
}

/// Checks that a parsed request has no key that nobody knows.
pub(crate) fn known_only<T: JsonRequest>(request: T) -> Result<T, Rejection> {
    if let Some(key) = request.unknown() {
        return Err(Rejection::invalid(unknown_key("key", key, &T::keys())));
    }
    Ok(request)
}

fn parse<T: JsonRequest>(bytes: &[u8]) -> Result<T, Rejection> {
    look_over(bytes).map_err(|fault| unfit(&fault))?;
    let request = serde_json::from_slice(bytes).map_err(|error| not_readable(&error))?;
    known_only(request)
}

/// The sentence for a body that is not what the route takes; names line and column.
pub(crate) fn not_readable(error: &serde_json::Error) -> Rejection {
    let what = match error.classify() {
        serde_json::error::Category::Data => "does not fit this route",
        serde_json::error::Category::Eof => "ends too early",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
            "is not valid JSON"
        }
    };
    Rejection::invalid(format!("the body {what}: {error}"))
}

/// A body that is not made into values.
fn unfit(fault: &JsonFault) -> Rejection {
    let code = match fault {
        JsonFault::TooMany => ErrorCode::BodyTooLarge,
        JsonFault::HugeInteger { .. } => ErrorCode::InvalidRequest,
    };
    Failure::new(code, format!("the body holds {fault}")).into()
}

fn check_type(request: &HttpRequest) -> Result<(), Rejection> {
    let sent = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = sent
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim();
    let json = essence.eq_ignore_ascii_case("application/json")
        || (essence.len() > 5 && essence.to_ascii_lowercase().ends_with("+json"));
    if !json {
        return Err(unsupported(
            "the body must be JSON: send `Content-Type: application/json`",
        ));
    }
    let coded = request.headers().get(header::CONTENT_ENCODING);
    if coded.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(unsupported(
            "a compressed body is not accepted; send it as it is",
        ));
    }
    Ok(())
}

async fn collect(
    bounds: &BodyBounds,
    request: &HttpRequest,
    mut pieces: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin,
) -> Result<Body, Rejection> {
    let limit = bounds.bytes;
    let announced = announced_length(request);
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let expected = announced.unwrap_or(0);
    let mut place = None;
    if expected > LARGE_BODY {
        place = Some(bounds.large_place()?);
    }
    let ends = Deadline::after(BODY_TIMEOUT);
    let mut bytes = Vec::with_capacity(expected);
    loop {
        let piece = timeout(PIECE_TIMEOUT.min(ends.remaining()), pieces.next()).await;
        let piece = match piece {
            Ok(Some(piece)) => piece.map_err(|error| interrupted(&error))?,
            Ok(None) => break,
            Err(_) => return Err(too_slow()),
        };
        if piece.len() > limit - bytes.len() {
            return Err(too_large(limit));
        }
        if place.is_none() && bytes.len() + piece.len() > LARGE_BODY {
            place = Some(bounds.large_place()?);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Body { bytes, place })
}

fn announced_length(request: &HttpRequest) -> Option<usize> {
    request
        .headers()
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn too_large(limit: usize) -> Rejection {
    let detail =
        format!("the body is larger than {limit} bytes, the value of `talaria.limits.body_bytes`");
    Failure::new(ErrorCode::BodyTooLarge, detail).into()
}

fn too_slow() -> Rejection {
    Rejection::invalid("the body arrived too slowly").with_status(StatusCode::REQUEST_TIMEOUT)
}

fn unsupported(detail: &str) -> Rejection {
    Rejection::invalid(detail).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

fn interrupted(error: &PayloadError) -> Rejection {
    Failure::new(
        ErrorCode::InvalidRequest,
        "the body could not be received whole",
    )
    .caused_by(std::io::Error::other(error.to_string()))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use futures_util::stream;

    /// A body that arrives piece by piece with a pause before each.
    async fn arriving(
        bounds: &BodyBounds,
        announced: Option<usize>,
        pieces: usize,
        size: usize,
        pause: Duration,
    ) -> Result<Body, Rejection> {
        let mut request = TestRequest::post();
        if let Some(length) = announced {
            request = request.insert_header((header::CONTENT_LENGTH, length));
        }
        let request = request.to_http_request();
        let piece = Bytes::from(vec![b' '; size]);
        let arriving = stream::unfold(0, move |sent| {
            let piece = piece.clone();
            async move {
                tokio::time::sleep(pause).await;
                (sent < pieces).then_some((Ok(piece), sent + 1))
            }
        });
        collect(bounds, &request, Box::pin(arriving)).await
    }

    #[tokio::test(start_paused = true)]
    async fn waits_for_a_slow_body_but_not_for_a_stalled_one() {
        let bounds = BodyBounds::new(1000);
        let slow = arriving(&bounds, None, 3, 10, Duration::from_secs(14))
            .await
            .unwrap();
        assert_eq!(slow.bytes.len(), 30);
        let begun = runtime::now();
        let stalled = arriving(&bounds, None, 3, 10, Duration::from_secs(60))
            .await
            .unwrap_err();
        assert_eq!(stalled.failure().code(), ErrorCode::InvalidRequest);
        assert_eq!(begun.elapsed(), PIECE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_on_a_body_that_drips_for_ever() {
        let bounds = BodyBounds::new(1000);
        let begun = runtime::now();
        let dripping = arriving(&bounds, None, 1000, 1, Duration::from_secs(10)).await;
        assert_eq!(
            dripping.unwrap_err().failure().code(),
            ErrorCode::InvalidRequest
        );
        assert_eq!(begun.elapsed(), BODY_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn takes_a_body_up_to_the_limit_and_no_byte_more() {
        let bounds = BodyBounds::new(100);
        let full = arriving(&bounds, None, 10, 10, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(full.bytes.len(), 100);
        for (announced, size) in [(None, 11), (Some(101), 1), (Some(10), 11)] {
            let over = arriving(&bounds, announced, 10, size, Duration::ZERO)
                .await
                .unwrap_err();
            assert_eq!(
                over.failure().code(),
                ErrorCode::BodyTooLarge,
                "{announced:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn holds_few_large_bodies_at_a_time() {
        let bounds = BodyBounds::new(2 * LARGE_BODY);
        let mut held = Vec::new();
        for _ in 0..LARGE_BODIES {
            let large = arriving(&bounds, None, 2, LARGE_BODY, Duration::ZERO)
                .await
                .unwrap();
            held.push(large);
        }
        for announced in [None, Some(LARGE_BODY + 1)] {
            let refused = arriving(&bounds, announced, 2, LARGE_BODY, Duration::ZERO).await;
            let refused = refused.unwrap_err();
            assert_eq!(refused.failure().code(), ErrorCode::Busy);
            assert!(refused.failure().retry_hint().is_some());
        }
        let small = arriving(&bounds, Some(10), 1, 10, Duration::ZERO)
            .await
            .unwrap();
        assert!(small.place.is_none());
        held.pop();
        assert!(
            arriving(&bounds, None, 2, LARGE_BODY, Duration::ZERO)
                .await
                .is_ok()
        );
    }
}
