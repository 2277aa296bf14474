//! HTTP requests to Talaria.

use std::time::Duration;

use metrics::Gauge;
use talaria_types::ErrorCode;

use crate::metrics::HTTP_SERVER_REQUEST;
use crate::recorder::installed;
use crate::recorder::series::histogram;

/// OpenTelemetry's word for a method it does not know.
const OTHER_METHOD: &str = "_OTHER";

const METHODS: [&str; 9] = [
    "GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH", "CONNECT", "TRACE",
];

/// Counts a request as running until dropped.
#[derive(Debug)]
pub struct ActiveRequest(Option<Gauge>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if let Some(gauge) = &self.0 {
            gauge.decrement(1.0);
        }
    }
}

/// An HTTP request began.
#[must_use]
pub fn http_request_began() -> ActiveRequest {
    let gauge = installed().map(|series| series.http_active.clone());
    if let Some(gauge) = &gauge {
        gauge.increment(1.0);
    }
    ActiveRequest(gauge)
}

/// An HTTP request was answered.
pub fn http_request_ended(
    method: &str,
    route: &'static str,
    status: u16,
    took: Duration,
    error_type: Option<ErrorCode>,
) {
    let error_type = error_type.map_or("", ErrorCode::as_str);
    tracing::debug!(
        method,
        route,
        status,
        error_type,
        seconds = took.as_secs_f64(),
        "request answered"
    );
    if installed().is_none() {
        return;
    }
    let method = METHODS
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or(OTHER_METHOD);
    histogram(
        &HTTP_SERVER_REQUEST,
        [
            method.into(),
            route.into(),
            status.to_string().into(),
            error_type.into(),
        ],
    )
    .record(took);
}
