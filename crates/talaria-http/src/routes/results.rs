//! `POST /v1/results/deliver`: the delivery of a result somebody else got.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use talaria_actors::DeliverOptions;
use talaria_content::{ReaderTool, ResultKind};
use talaria_types::{ErrorCode, Failure, ServerName};

use crate::body::{self, JsonRequest};
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;
use crate::routes::deliver as finish;
use crate::wishes::Wishes;

/// Body of `POST /v1/results/deliver`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false, "required" = ["result"]))]
pub(crate) struct DeliverRequest {
    /// A `CallToolResult`, as the server sent it.
    #[serde(rename = "result", default)]
    _result: Value,
    /// Configured name of the server it came from, if it is one of ours.
    #[serde(default)]
    server: Option<String>,
    /// The tool's own name on that server.
    #[serde(default)]
    tool: Option<String>,
    #[serde(flatten)]
    wishes: Wishes,
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: BTreeMap<String, IgnoredAny>,
}

impl JsonRequest for DeliverRequest {
    const OWN_KEYS: &'static [&'static str] = &["result", "server", "tool"];
    const SHARED_KEYS: &'static [&'static str] = Wishes::KEYS;

    fn unknown(&self) -> Option<&str> {
        self.unknown.keys().next().map(String::as_str)
    }
}

/// Delivers a result that came with the request.
pub(super) async fn deliver(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    asked.state.accept_work()?;
    query::read(asked.request, &[])?;
    let body = body::read(asked, payload).await?;
    let _large = body.place;
    // The deadline the request asks for stands inside the body, so reading it has the default.
    let reading = Wishes::default().grant(asked)?.context;
    let scrubbed = asked
        .state
        .delivery
        .read_body(&reading, body.bytes, "/result")
        .await
        .map_err(callers_fault)?;
    let request: DeliverRequest =
        serde_json::from_value(scrubbed.rest).map_err(|error| body::not_readable(&error))?;
    let request = body::known_only(request)?;
    let granted = request.wishes.grant(asked)?;
    let Some(raw) = scrubbed.result else {
        return Err(Rejection::invalid("the body has no `result`"));
    };
    if granted.format.requires_tool_name() && request.tool.is_none() {
        let format = granted.format.as_str();
        let detail =
            format!("format `{format}` needs `tool`, the name of the tool that was called");
        return Err(Rejection::invalid(detail));
    }
    let reader = match &request.server {
        Some(server) => {
            asked.caller.need_server(server)?;
            asked.state.supervisor.reader_tool(server)
        }
        None => ReaderTool::Missing,
    };
    let options = DeliverOptions {
        kind: ResultKind::ToolCall,
        server: request.server.map(ServerName::from),
        tool: request.tool,
        reader,
        format: granted.format,
        images: granted.images,
    };
    finish(asked, granted, raw, options, None).await
}

/// A body that is no JSON, or holds too much, is the caller's fault here, not a server's.
fn callers_fault(failure: Failure) -> Rejection {
    let code = failure.code();
    if code == ErrorCode::MalformedMessage {
        return Failure::new(ErrorCode::InvalidRequest, failure.detail()).into();
    }
    if code == ErrorCode::MessageTooLarge {
        return Failure::new(ErrorCode::BodyTooLarge, failure.detail()).into();
    }
    failure.into()
}
