//! One request from sending to its result.

use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, Extensions,
    GetPromptRequest, GetPromptRequestParams, ListPromptsRequestMethod, ListResourcesRequestMethod,
    ListToolsRequestMethod, PaginatedRequestParams, PingRequest, ReadResourceRequest,
    ReadResourceRequestParams, RequestId, RequestOptionalParam, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde_json::Value;
use talaria_telemetry::events::{self, McpOperation};
use talaria_types::{ErrorCode, Failure, RawResult, ServerName, runtime};
use tokio::sync::oneshot;

use super::shared::Shared;
use super::{ClosedBy, Rpc, RpcLimits};
use crate::intake::calls::{Kind, number};

/// How long the message that cancels a call may take to leave; a wedged server reads nothing.
const CANCEL_WAIT: Duration = Duration::from_millis(500);

/// How long the cause of a lost connection may take to be known.
const CAUSE_WAIT: Duration = Duration::from_millis(700);

type Answer = Result<ServerResult, ServiceError>;

/// Performs the request and counts it.
pub(super) async fn perform(
    shared: &Shared,
    rpc: Rpc,
    limits: RpcLimits,
) -> Result<RawResult, Failure> {
    let began = runtime::now();
    let server = &shared.intake.server;
    let method = rpc.method();
    let is_ping = matches!(rpc, Rpc::Ping);
    let tool = if let Rpc::CallTool { name, .. } = &rpc {
        Some(name.clone())
    } else {
        None
    };
    let kind = if tool.is_some() {
        Kind::CallTool
    } else {
        Kind::Raw
    };
    let outcome = match send_and_wait(shared, rpc, &limits).await {
        Ok(result) => finished(result),
        Err(failure) if is_ping && failure.code() == ErrorCode::ServerError => {
            Ok(RawResult::default())
        }
        Err(Unfinished::Sent(failure)) => Err(kind.marked(failure)),
        Err(Unfinished::Settled(failure)) => Err(failure),
    };
    let outcome = outcome.map_err(|failure| about(server, failure));
    let error_type = match &outcome {
        Ok(result) if result.json.get("isError") == Some(&Value::Bool(true)) => Some("tool_error"),
        Ok(_) => None,
        Err(failure) => Some(failure.code().as_str()),
    };
    let operation = McpOperation {
        server,
        method,
        tool: tool.as_deref(),
        transport: shared.transport,
    };
    events::mcp_operation_ended(&operation, runtime::now().duration_since(began), error_type);
    outcome
}

/// Says whom a failure is about, in its sentence too: a model reads only that.
pub(super) fn about(server: &ServerName, failure: Failure) -> Failure {
    failure
        .with_context(format_args!("server '{server}'"))
        .on_server(server)
}

/// Why there is no result.
enum Unfinished {
    /// Given up after sending: a tool call may have run.
    Sent(Failure),
    /// Final as it is: never sent, or judged by the transport.
    Settled(Failure),
}

impl Unfinished {
    const fn code(&self) -> ErrorCode {
        match self {
            Self::Sent(failure) | Self::Settled(failure) => failure.code(),
        }
    }
}

/// A result that asks for input ends the call: nobody here can be asked.
fn finished(result: RawResult) -> Result<RawResult, Failure> {
    if result.json.get("resultType").and_then(Value::as_str) == Some("input_required") {
        let detail = "it asks for input in the middle of the call, which is not offered";
        return Err(Failure::new(ErrorCode::ServerError, detail));
    }
    Ok(result)
}

async fn send_and_wait(
    shared: &Shared,
    rpc: Rpc,
    limits: &RpcLimits,
) -> Result<RawResult, Unfinished> {
    if let Some(cause) = shared.ending.known() {
        return Err(Unfinished::Settled(lost(&cause)));
    }
    if limits.cancel.is_cancelled() {
        return Err(Unfinished::Settled(cancelled()));
    }
    if limits.deadline.expired() {
        return Err(Unfinished::Settled(out_of_time()));
    }
    let options = PeerRequestOptions::no_options();
    let sending = shared
        .peer
        .send_cancellable_request(into_request(rpc), options);
    let Ok(handle) = sending.await else {
        return Err(Unfinished::Settled(lost(&lost_cause(shared).await)));
    };
    let id = number(&handle.id).ok_or_else(|| {
        Unfinished::Settled(Failure::new(
            ErrorCode::Internal,
            "the request has no numeric id",
        ))
    })?;
    let outstanding = Outstanding {
        shared,
        id,
        is_over: false,
    };
    let waited = wait(shared, handle.rx, id, limits).await;
    // The answer may have come together with the reason to stop waiting.
    if let Some(outcome) = shared.intake.calls.take_outcome(id) {
        outstanding.end();
        return outcome.map_err(Unfinished::Settled);
    }
    match waited {
        Waited::Answered(answer) => {
            let hint = shared.intake.calls.take_hint(id);
            outstanding.end();
            Err(match hint {
                Some(hint) => Unfinished::Settled(hint),
                None => Unfinished::Sent(without_outcome(shared, *answer).await),
            })
        }
        Waited::Lost(cause) => {
            outstanding.end();
            Err(Unfinished::Sent(lost(&cause)))
        }
        Waited::GaveUp(failure) => {
            outstanding.end();
            let reason = failure.code().as_str();
            let cancelling = cancel(shared.peer.clone(), id, reason);
            if tokio::time::timeout(CANCEL_WAIT, cancelling).await.is_err() {
                tracing::debug!(server = %shared.intake.server, "the server reads nothing");
            }
            Err(Unfinished::Sent(failure))
        }
    }
}

enum Waited {
    Answered(Box<Answer>),
    Lost(ClosedBy),
    GaveUp(Failure),
}

async fn wait(
    shared: &Shared,
    mut answer: oneshot::Receiver<Answer>,
    id: i64,
    limits: &RpcLimits,
) -> Waited {
    let began = runtime::now();
    let lost = shared.ending.cause();
    tokio::pin!(lost);
    loop {
        let last_sign = shared
            .intake
            .calls
            .last_sign(id)
            .unwrap_or(began)
            .max(began);
        let idle_until = last_sign + limits.idle;
        tokio::select! {
            biased;
            answer = &mut answer => {
                let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                return Waited::Answered(Box::new(answer));
            }
            () = limits.cancel.cancelled() => return Waited::GaveUp(cancelled()),
            cause = &mut lost => return Waited::Lost(cause),
            () = tokio::time::sleep_until(idle_until.min(limits.deadline.instant())) => {}
        }
        if limits.deadline.expired() {
            events::deadline_exceeded("rpc");
            return Waited::GaveUp(out_of_time());
        }
        if shared
            .intake
            .calls
            .last_sign(id)
            .is_none_or(|sign| sign <= last_sign)
        {
            events::deadline_exceeded("rpc");
            return Waited::GaveUp(silent(limits.idle));
        }
    }
}

/// rmcp has ended the request and the transport left no word about it.
async fn without_outcome(shared: &Shared, answer: Answer) -> Failure {
    match answer {
        Ok(_) => Failure::new(ErrorCode::Internal, "the answer was lost inside Talaria"),
        Err(ServiceError::TransportClosed) => lost(&lost_cause(shared).await),
        Err(error) => Failure::new(
            ErrorCode::ConnectionLost,
            "the connection was lost during the call",
        )
        .caused_by(error),
    }
}

async fn lost_cause(shared: &Shared) -> ClosedBy {
    let known = tokio::time::timeout(CAUSE_WAIT, shared.ending.cause()).await;
    known.unwrap_or_else(|_| ClosedBy::Transport("the transport ended".to_owned()))
}

/// A request that the server is busy with. Dropping it cancels the request there.
struct Outstanding<'a> {
    shared: &'a Shared,
    id: i64,
    is_over: bool,
}

impl Outstanding<'_> {
    fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Outstanding<'_> {
    fn drop(&mut self) {
        self.shared.intake.calls.give_up(self.id);
        if !self.is_over && tokio::runtime::Handle::try_current().is_ok() {
            let cancelling = cancel(self.shared.peer.clone(), self.id, "the caller went away");
            drop(runtime::spawn("mcp_cancel", async move {
                drop(tokio::time::timeout(CANCEL_WAIT, cancelling).await);
            }));
        }
    }
}

async fn cancel(peer: Peer<RoleClient>, id: i64, reason: &'static str) {
    let id = Some(RequestId::Number(id));
    let params = CancelledNotificationParam::new(id, Some(reason.to_owned()));
    if let Err(error) = peer.notify_cancelled(params).await {
        tracing::debug!(%error, "the server was not told of the cancellation");
    }
}

/// What a call gets whose session is over.
fn lost(cause: &ClosedBy) -> Failure {
    let detail = match cause {
        ClosedBy::Us => "the session was closed during the call".to_owned(),
        ClosedBy::ChildExit(status) => format!("its process ended ({status})"),
        ClosedBy::Transport(what) => format!("the connection ended: {what}"),
    };
    Failure::new(ErrorCode::ConnectionLost, detail)
}

fn cancelled() -> Failure {
    Failure::new(ErrorCode::Cancelled, "the call was cancelled")
}

fn out_of_time() -> Failure {
    Failure::new(
        ErrorCode::Timeout,
        "it did not answer before the deadline of the call",
    )
}

fn silent(idle: Duration) -> Failure {
    let detail = format!(
        "it gave no answer and no sign of progress for {} s (its `timeout`)",
        idle.as_secs_f64()
    );
    Failure::new(ErrorCode::Timeout, detail)
}

fn into_request(rpc: Rpc) -> ClientRequest {
    match rpc {
        Rpc::ListTools { cursor } => page::<ListToolsRequestMethod>(cursor).into(),
        Rpc::ListResources { cursor } => page::<ListResourcesRequestMethod>(cursor).into(),
        Rpc::ListPrompts { cursor } => page::<ListPromptsRequestMethod>(cursor).into(),
        Rpc::CallTool { name, arguments } => {
            let params = CallToolRequestParams::new(name).with_arguments(arguments);
            CallToolRequest::new(params).into()
        }
        Rpc::ReadResource { uri } => {
            ReadResourceRequest::new(ReadResourceRequestParams::new(uri)).into()
        }
        Rpc::GetPrompt { name, arguments } => {
            let params = GetPromptRequestParams::new(name).with_arguments(arguments);
            GetPromptRequest::new(params).into()
        }
        Rpc::Ping => PingRequest::default().into(),
    }
}

/// A list request; the first page is asked for without parameters.
fn page<M: Default>(cursor: Option<String>) -> RequestOptionalParam<M, PaginatedRequestParams> {
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    RequestOptionalParam {
        method: M::default(),
        params,
        extensions: Extensions::default(),
    }
}
