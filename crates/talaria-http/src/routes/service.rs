//! The service about itself: probes, metrics and its contract.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::{StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use talaria_types::{Deadline, ErrorCode, Failure};

use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::routes::json;

/// How long the supervisor may take to answer a readiness probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long rendering the metrics may wait for a worker.
const METRICS_TIMEOUT: Duration = Duration::from_secs(10);
/// The text format of Prometheus.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answer of `GET /healthz`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Liveness {
    /// Always `alive`.
    status: &'static str,
}

/// Answer of `GET /readyz`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Readiness {
    /// Always `ready`; what is not ready answers with a problem.
    status: &'static str,
    /// Servers that are configured.
    servers: usize,
    /// Servers that take calls. None needs to.
    servers_ready: usize,
}

/// The process answers, and its supervisor is there unless it is being stopped.
pub(super) fn liveness(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    if !asked.state.is_draining() && !asked.state.supervisor.is_alive() {
        let detail = "the supervisor has ended by itself";
        return Err(unfit(Failure::new(ErrorCode::Internal, detail)));
    }
    json(&Liveness { status: "alive" })
}

/// A defect that a restart or another replica mends: probes expect 503 of it.
fn unfit(failure: Failure) -> Rejection {
    Rejection::from(failure).with_status(StatusCode::SERVICE_UNAVAILABLE)
}

/// Calls are taken. Never waits for a server.
pub(super) async fn readiness(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    asked.state.accept_work()?;
    let supervisor = &asked.state.supervisor;
    supervisor
        .probe(Deadline::after(PROBE_TIMEOUT))
        .await
        .map_err(unfit)?;
    let servers = supervisor.servers();
    let servers_ready = servers.iter().filter(|server| server.is_usable()).count();
    json(&Readiness {
        status: "ready",
        servers: servers.len(),
        servers_ready,
    })
}

/// The metrics in Prometheus' text format.
pub(super) async fn metrics(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    let metrics = asked.state.metrics;
    let deadline = Deadline::after(METRICS_TIMEOUT);
    let text = asked
        .state
        .blocking
        .run(deadline, move || metrics.render())
        .await?;
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, PROMETHEUS_TEXT));
    Ok(response.body(text))
}

/// The contract.
#[expect(clippy::unnecessary_wraps, reason = "every route has one signature")]
pub(super) fn openapi(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "application/json"));
    Ok(response.body(asked.state.openapi.clone()))
}
