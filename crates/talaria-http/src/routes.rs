//! The routes: one function per operation.

mod artifacts;
mod downgrade;
mod events;
mod images;
mod reload;
mod results;
mod servers;
mod service;
mod tools;
mod vision;
mod vision_tool;

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, web};
use serde::Serialize;
use talaria_actors::{DeliverOptions, Delivered, DeliveryService};
use talaria_content::{RenderOptions, render};
use talaria_types::{Deadline, ErrorCode, Failure, RawResult};

pub(crate) use artifacts::ArtifactMeta;
pub(crate) use downgrade::DowngradeRequest;
pub(crate) use events::EventData;
pub(crate) use images::ImageRequest;
pub(crate) use reload::ReloadProblems;
pub(crate) use results::DeliverRequest;
pub(crate) use servers::{ServerList, ServerTest};
pub(crate) use service::{Liveness, Readiness};
pub(crate) use tools::{CallRequest, ToolList};
pub(crate) use vision::{AnalyzeAnswer, AnalyzeRequest, VisionFailure};

use crate::body::LARGE_JSON;
use crate::exchange::Asked;
use crate::operation::Operation;
use crate::problem::Rejection;
use crate::wishes::Granted;

/// Runs an operation for an admitted caller.
pub(crate) async fn run(
    operation: Operation,
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    match operation {
        // What carries a delivery is boxed: it is too large to lie on the stack of all the others.
        Operation::CallTool => Box::pin(tools::call(asked, payload)).await,
        Operation::ListTools => tools::list(asked).await,
        Operation::DeliverResult => Box::pin(results::deliver(asked, payload)).await,
        Operation::DowngradeResult => Box::pin(downgrade::downgrade(asked, payload)).await,
        Operation::DeliverImage => Box::pin(images::deliver(asked, payload)).await,
        Operation::AnalyzeImage => Box::pin(vision::analyze(asked, payload)).await,
        Operation::ListServers => servers::list(asked),
        Operation::GetServer => servers::get(asked),
        Operation::TestServer => servers::test(asked, payload).await,
        Operation::ReconnectServer => servers::reconnect(asked, payload).await,
        Operation::EnableServer => servers::enable(asked, payload).await,
        Operation::DisableServer => servers::disable(asked, payload).await,
        Operation::ReloadConfiguration => reload::reload(asked, payload).await,
        Operation::ListenToEvents => events::listen(asked),
        Operation::ReadArtifact => artifacts::read(asked).await,
        Operation::DescribeArtifact => artifacts::describe(asked).await,
        Operation::DeleteArtifact => artifacts::delete(asked).await,
        Operation::Liveness => service::liveness(asked),
        Operation::Readiness => service::readiness(asked).await,
        Operation::Metrics => service::metrics(asked).await,
        Operation::OpenApi => service::openapi(asked),
    }
}

/// Delivers a raw result and renders it.
async fn deliver(
    asked: &Asked<'_>,
    granted: Granted,
    raw: RawResult,
    options: DeliverOptions,
    tool_name: Option<String>,
) -> Result<HttpResponse, Rejection> {
    let is_large = raw.wire_bytes > LARGE_JSON as u64;
    let delivered = asked
        .state
        .delivery
        .deliver(&granted.context, raw, options)
        .await?;
    answer(asked, granted, delivered, tool_name, is_large).await
}

/// Renders a delivery, off the loop where it is large.
async fn answer(
    asked: &Asked<'_>,
    granted: Granted,
    delivered: Delivered,
    tool_name: Option<String>,
    is_large: bool,
) -> Result<HttpResponse, Rejection> {
    let Delivered {
        mut delivery,
        image_delivery,
    } = delivered;
    delivery.elapsed_ms = asked.exchange.elapsed_ms();
    let options = RenderOptions {
        call_id: granted.call_id,
        tool_name: tool_name.or_else(|| delivery.tool.clone()),
        image_delivery,
    };
    let format = granted.format;
    let rendered = if is_large || !delivery.attachments.is_empty() {
        let deadline = DeliveryService::patience(&granted.context);
        asked
            .state
            .blocking
            .run(deadline, move || render(&delivery, format, &options))
            .await?
    } else {
        render(&delivery, format, &options)
    };
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, rendered.content_type));
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(response.body(rendered.body))
}

/// A small JSON answer.
fn json<T: Serialize>(value: &T) -> Result<HttpResponse, Rejection> {
    let body = serde_json::to_vec(value)
        .map_err(|error| Failure::new(ErrorCode::Internal, "writing an answer").caused_by(error))?;
    let mut response = HttpResponse::Ok();
    response.insert_header((
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    ));
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(response.body(body))
}

/// A path parameter, with its escapes decoded.
fn parameter(asked: &Asked<'_>) -> Result<String, Rejection> {
    asked
        .request
        .match_info()
        .load::<String>()
        .map_err(|_not_text| {
            Rejection::invalid("the path is not UTF-8 once its escapes are decoded")
        })
}

/// The deadline of a question to the supervisor that costs it no work.
fn soon() -> Deadline {
    Deadline::after(std::time::Duration::from_secs(5))
}
