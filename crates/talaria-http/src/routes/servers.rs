//! `/v1/servers`: what is known of the servers, and their life cycle.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::Serialize;
use talaria_actors::ServerStatus;
use talaria_types::{Deadline, ErrorCode, Failure};

use crate::body;
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;
use crate::routes::{json, parameter};
use crate::tagged::Tagged;

/// Added to a server's `connect_timeout` for ending the old session and listing the tools.
const LIFE_CYCLE_MARGIN: Duration = Duration::from_secs(15);
/// How long a life-cycle operation takes at most on a server whose entry is not usable.
const UNKNOWN_CONNECT: Duration = Duration::from_secs(60);

/// Answer of `GET /v1/servers`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerList {
    /// Rises with every change of the tools.
    version: u64,
    /// The servers the caller may use, by name.
    servers: Vec<ServerStatus>,
}

/// Answer of `POST /v1/servers/{name}/test`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerTest {
    /// Whether the server is ready and its tools are known.
    ok: bool,
    /// What is known of the server after the test.
    server: ServerStatus,
    /// Public names of its tools.
    tools: Vec<String>,
}

/// Lists the servers the caller may use.
pub(super) fn list(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    query::read(asked.request, &[])?;
    let version = asked.state.supervisor.version();
    let mut servers = asked.state.supervisor.servers();
    servers.retain(|server| asked.caller.may_use(&server.name));
    let body = serde_json::to_vec(&ServerList { version, servers }).map_err(|error| {
        Failure::new(ErrorCode::Internal, "writing the list of servers").caused_by(error)
    })?;
    Ok(Tagged::new(body).answer(asked.request))
}

/// Tells what is known of a server.
pub(super) fn get(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    let name = permitted(asked)?;
    json(&asked.state.supervisor.server(&name)?)
}

/// Connects if need be and lists the tools.
pub(super) async fn test(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    let name = commanded(asked, payload).await?;
    let supervisor = &asked.state.supervisor;
    let deadline = life_cycle_deadline(asked, &name);
    let mut server = supervisor.server(&name)?;
    if !server.is_up() {
        server = supervisor.reconnect(&name, deadline).await?;
    }
    let mut tools = supervisor.tools();
    tools.retain(|tool| tool.server.as_str() == name);
    let tools = tools.into_iter().map(|tool| tool.name).collect();
    json(&ServerTest {
        ok: server.is_up(),
        server,
        tools,
    })
}

/// Ends the session and starts a new one.
pub(super) async fn reconnect(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    let name = commanded(asked, payload).await?;
    let deadline = life_cycle_deadline(asked, &name);
    json(&asked.state.supervisor.reconnect(&name, deadline).await?)
}

/// Starts a disabled server.
pub(super) async fn enable(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    let name = commanded(asked, payload).await?;
    let deadline = life_cycle_deadline(asked, &name);
    json(&asked.state.supervisor.enable(&name, deadline).await?)
}

/// Stops a server until it is enabled again.
pub(super) async fn disable(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    let name = commanded(asked, payload).await?;
    let deadline = life_cycle_deadline(asked, &name);
    json(&asked.state.supervisor.disable(&name, deadline).await?)
}

/// The server of a command: named in the path, permitted, and nothing in the body.
async fn commanded(asked: &Asked<'_>, payload: &mut web::Payload) -> Result<String, Rejection> {
    let name = permitted(asked)?;
    body::read_nothing(asked, payload).await?;
    asked.state.accept_work()?;
    Ok(name)
}

fn permitted(asked: &Asked<'_>) -> Result<String, Rejection> {
    query::read(asked.request, &[])?;
    let name = parameter(asked)?;
    asked.caller.need_server(&name)?;
    Ok(name)
}

fn life_cycle_deadline(asked: &Asked<'_>, name: &str) -> Deadline {
    let connect = asked.state.supervisor.connect_timeout(name);
    Deadline::after(connect.unwrap_or(UNKNOWN_CONNECT) + LIFE_CYCLE_MARGIN)
}
