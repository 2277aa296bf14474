//! `POST /v1/tools/call` and `GET /v1/tools`.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talaria_actors::{DeliverOptions, PublicTool, ToolAnswer};
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, ServerName};

use crate::body::{self, JsonRequest};
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;
use crate::routes::{deliver, soon};
use crate::wishes::Wishes;

/// How long past its deadline a call may take to say that it timed out. The supervisor answers
/// in time by itself; this only bounds a defect there.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);
/// The tool list formats of design §7 that this version does not make yet.
const LATER_LIST_FORMATS: &[&str] = &["openai", "anthropic", "gemini"];

/// Body of `POST /v1/tools/call`. Names the tool by `tool`, its public name, or by `server` and
/// `name`, the names the server itself uses.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct CallRequest {
    /// Public name, as `GET /v1/tools` lists it.
    #[serde(default)]
    tool: Option<String>,
    /// Configured name of a server.
    #[serde(default)]
    server: Option<String>,
    /// The tool's own name on that server.
    #[serde(default)]
    name: Option<String>,
    /// The tool's arguments.
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
    #[serde(flatten)]
    wishes: Wishes,
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: BTreeMap<String, IgnoredAny>,
}

impl JsonRequest for CallRequest {
    const OWN_KEYS: &'static [&'static str] = &["tool", "server", "name", "arguments"];
    const SHARED_KEYS: &'static [&'static str] = Wishes::KEYS;

    fn unknown(&self) -> Option<&str> {
        self.unknown.keys().next().map(String::as_str)
    }
}

/// How a caller names a tool.
struct Named {
    tool: Option<String>,
    server: Option<String>,
    name: Option<String>,
}

/// Answer of `GET /v1/tools?format=mcp`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolList {
    /// Definitions in the shape of MCP's `tools/list`, under their public names.
    tools: Vec<Value>,
}

/// Calls a tool and delivers its result.
pub(super) async fn call(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    asked.state.accept_work()?;
    query::read(asked.request, &[])?;
    // Its place, if it is large, is held until the answer is made.
    let (request, _large) = body::read_json::<CallRequest>(asked, payload).await?;
    let granted = request.wishes.grant(asked)?;
    let named = Named {
        tool: request.tool,
        server: request.server,
        name: request.name,
    };
    let tool = choose(asked, named, granted.context.deadline).await?;
    let arguments = request.arguments.unwrap_or_default();
    let answer = ask(asked, &granted.context, &tool, arguments).await?;
    let options = DeliverOptions {
        kind: answer.kind,
        server: Some(answer.server),
        tool: Some(answer.tool),
        reader: answer.reader,
        format: granted.format,
        images: granted.images,
    };
    // The tool has run: whatever fails now, the same call must not be made again.
    deliver(asked, granted, answer.raw, options, Some(tool))
        .await
        .map_err(Rejection::outcome_uncertain)
}

async fn ask(
    asked: &Asked<'_>,
    context: &CallContext,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<ToolAnswer, Rejection> {
    let call = asked
        .state
        .supervisor
        .call_tool(context.clone(), tool, arguments);
    match tokio::time::timeout_at(context.deadline.instant() + ANSWER_MARGIN, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(
            Failure::new(ErrorCode::Timeout, "the call did not end in time")
                .outcome_uncertain()
                .into(),
        ),
    }
}

/// The public name of the tool a caller means and may use.
async fn choose(asked: &Asked<'_>, named: Named, deadline: Deadline) -> Result<String, Rejection> {
    match (named.tool, named.server, named.name) {
        (Some(tool), None, None) => choose_public(asked, tool, deadline).await,
        (None, Some(server), Some(name)) => {
            // The server is judged before it is looked up, so the answer tells nothing of it.
            asked.caller.need_server(&server)?;
            let supervisor = &asked.state.supervisor;
            Ok(supervisor
                .resolve_when_listed(&server, &name, deadline)
                .await?
                .name)
        }
        (Some(_), _, _) | (None, _, _) => Err(Rejection::invalid(
            "name the tool either by `tool`, its public name, or by `server` and `name`",
        )),
    }
}

/// A token that may not use every server learns nothing of the others' tools: theirs are as
/// unknown to it as those that do not exist.
async fn choose_public(
    asked: &Asked<'_>,
    tool: String,
    deadline: Deadline,
) -> Result<String, Rejection> {
    if asked.caller.may_use_all() {
        return Ok(tool);
    }
    let found = asked
        .state
        .supervisor
        .find_tool_when_listed(&tool, deadline)
        .await;
    let permitted = |server: &ServerName| asked.caller.may_use(server.as_str());
    match found {
        Ok(found) if permitted(&found.server) => Ok(tool),
        Err(failure) if failure.server().is_some_and(permitted) => Err(failure.into()),
        Ok(_) | Err(_) => Err(Failure::new(
            ErrorCode::UnknownTool,
            "no tool that this token may use has that name; GET /v1/tools lists them",
        )
        .into()),
    }
}

/// Lists the tools the caller may use.
pub(super) async fn list(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    let parameters = query::read(asked.request, &["format", "server"])?;
    check_list_format(parameters.get("format").map_or("mcp", String::as_str))?;
    let server = parameters.get("server").cloned();
    if let Some(server) = &server {
        asked.caller.need_server(server)?;
        asked.state.supervisor.server(server)?;
    }
    let caller = asked.caller.clone();
    let supervisor = asked.state.supervisor.clone();
    let listed = asked.state.blocking.run(soon(), move || {
        let wanted = |tool: &PublicTool| {
            caller.may_use(tool.server.as_str())
                && server
                    .as_deref()
                    .is_none_or(|server| server == tool.server.as_str())
        };
        let tools = supervisor.tools().into_iter().filter(wanted);
        serde_json::to_vec(&ToolList {
            tools: tools.map(|tool| tool.definition).collect(),
        })
    });
    let body = listed.await?.map_err(|error| {
        Failure::new(ErrorCode::Internal, "writing the tool list").caused_by(error)
    })?;
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "application/json"));
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(response.body(body))
}

fn check_list_format(word: &str) -> Result<(), Rejection> {
    if word == "mcp" {
        return Ok(());
    }
    let detail = if LATER_LIST_FORMATS.contains(&word) {
        format!("tool list format `{word}` is not available in this version; available is mcp")
    } else {
        query::unknown_key("tool list format", word, &["mcp"])
    };
    Err(Rejection::invalid(detail))
}
