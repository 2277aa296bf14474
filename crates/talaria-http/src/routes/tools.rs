//! `POST /v1/tools/call` and `GET /v1/tools`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use talaria_actors::{DeliverOptions, Outage, PublicTool, ToolAnswer, ToolListing};
use talaria_content::tools::{ToolFormat, render_tools};
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, ServerName};

use crate::body::{self, JsonRequest};
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;
use crate::routes::{deliver, soon, vision_tool};
use crate::tagged::Tagged;
use crate::wishes::Wishes;

/// How long past its deadline a call may take to say that it timed out. The supervisor answers
/// in time by itself; this only bounds a defect there.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

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

impl Named {
    /// Whether the tool meant is the one that belongs to no server.
    fn means_vision_analyze(&self, asked: &Asked<'_>) -> bool {
        let is_public = self.server.is_none() && self.name.is_none();
        let tool = self.tool.as_deref().filter(|_| is_public);
        tool.is_some_and(|tool| vision_tool::is_meant(asked.state, tool))
    }
}

/// Answer of `GET /v1/tools?format=mcp`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolList {
    /// Rises with every change of the tools.
    version: u64,
    /// Definitions under their public names. In the shape of MCP's `tools/list`, those of a server
    /// that is down have `stale: true` and `down_since`; the other shapes are ready to be handed
    /// to the provider.
    tools: Value,
    /// Servers that are down; their tools are listed as they were.
    stale: Vec<Outage>,
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
    let arguments = request.arguments.unwrap_or_default();
    if named.means_vision_analyze(asked) {
        return Box::pin(vision_tool::call(asked, granted, arguments)).await;
    }
    let tool = choose(asked, named, granted.context.deadline).await?;
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
    let format = list_format(parameters.get("format").map(String::as_str))?;
    let server = parameters.get("server").cloned();
    if let Some(server) = &server {
        asked.caller.need_server(server)?;
        asked.state.supervisor.server(server)?;
    }
    // It belongs to no server, so that a list of one does not have it.
    let own =
        (server.is_none() && vision_tool::is_offered(asked.state)).then(vision_tool::definition);
    let caller = asked.caller.clone();
    let supervisor = asked.state.supervisor.clone();
    let listed = asked.state.blocking.run(soon(), move || {
        let wanted = |tool: &PublicTool| {
            caller.may_use(tool.server.as_str())
                && server
                    .as_deref()
                    .is_none_or(|server| server == tool.server.as_str())
        };
        let ToolListing {
            version,
            mut tools,
            mut down,
        } = supervisor.listing();
        tools.retain(&wanted);
        let with_tools: BTreeSet<_> = tools.iter().map(|tool| tool.server.as_str()).collect();
        down.retain(|outage| with_tools.contains(outage.server.as_str()));
        let tools = match format {
            ToolFormat::Mcp => {
                let tools = tools.into_iter().map(|tool| definition(tool, &down));
                tools.chain(own).collect()
            }
            // Providers refuse keys they do not know, so nothing is marked.
            ToolFormat::Openai
            | ToolFormat::OpenaiResponses
            | ToolFormat::Anthropic
            | ToolFormat::Gemini => {
                let own = own.map(|own| Arc::new(render_tools([&own], format)));
                gather(supervisor.rendered(format, wanted).into_iter().chain(own))
            }
        };
        let list = ToolList {
            version,
            tools,
            stale: down,
        };
        serde_json::to_vec(&list).map(Tagged::new)
    });
    let tagged = listed.await?.map_err(|error| {
        Failure::new(ErrorCode::Internal, "writing the tool list").caused_by(error)
    })?;
    Ok(tagged.answer(asked.request))
}

/// Puts lists of one tool each together. Gemini's are lists within a list.
fn gather(lists: impl Iterator<Item = Arc<Value>>) -> Value {
    const WITHIN: &str = "functionDeclarations";
    let mut all = Vec::new();
    let mut within = Vec::new();
    for list in lists {
        for tool in list.as_array().into_iter().flatten() {
            match tool.get(WITHIN).and_then(Value::as_array) {
                Some(declarations) => within.extend_from_slice(declarations),
                None => all.push(tool.clone()),
            }
        }
    }
    if !within.is_empty() {
        all.push(json!({ WITHIN: within }));
    }
    Value::Array(all)
}

/// A tool's definition, marked where its server is down.
fn definition(tool: PublicTool, down: &[Outage]) -> Value {
    let outage = down
        .iter()
        .find(|outage| outage.server == tool.server.as_str());
    let mut definition = tool.definition;
    if let (Some(outage), Value::Object(fields)) = (outage, &mut definition) {
        fields.insert("stale".to_owned(), Value::Bool(true));
        fields.insert("down_since".to_owned(), json!(outage.down_since));
    }
    definition
}

fn list_format(word: Option<&str>) -> Result<ToolFormat, Rejection> {
    let Some(word) = word else {
        return Ok(ToolFormat::default());
    };
    ToolFormat::from_word(word).ok_or_else(|| {
        let known = ToolFormat::ALL.map(ToolFormat::as_str);
        Rejection::invalid(query::unknown_key("tool list format", word, &known))
    })
}
