//! What one readable message means, and the strict form in which rmcp gets it.

use rmcp::model::{
    CustomResult, ErrorCode as RpcErrorCode, ErrorData, NumberOrString, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use serde_json::{Map, Value, json};
use talaria_types::{ErrorCode, Failure, RawResult};

use super::calls::Kind;
use super::{Intake, handshake};
use crate::session::SessionEvent;
use crate::wire::Scrubbed;

/// Characters of a server's own words that are kept.
const MAX_WORDS: usize = 2_000;

/// Takes in one message; returns what rmcp has to see of it.
pub(super) fn dispatch(
    intake: &Intake,
    scrubbed: Scrubbed,
    own: Option<i64>,
) -> Option<ServerJsonRpcMessage> {
    let Scrubbed {
        rest: Value::Object(message),
        result,
        ..
    } = scrubbed
    else {
        intake.noise();
        return None;
    };
    let id = message.get("id").filter(|id| !id.is_null());
    if let Some(method) = message.get("method").and_then(Value::as_str) {
        return match id {
            Some(id) => server_request(id, method),
            None => {
                notification(intake, method, message.get("params"));
                None
            }
        };
    }
    if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
        return error_answer(intake, id, error, own);
    }
    match result {
        Some(result) => answer(intake, id, result, own),
        None => empty_answer(intake, id),
    }
}

/// Neither a result nor an error: whoever it answers gets nothing else.
fn empty_answer(intake: &Intake, id: Option<&Value>) -> Option<ServerJsonRpcMessage> {
    let waiting = id
        .and_then(integer)
        .and_then(|id| Some((id, intake.calls.kind(id)?)));
    let Some((id, kind)) = waiting else {
        intake.noise();
        return None;
    };
    if kind == Kind::Discover {
        return Some(of_no_use(intake, id));
    }
    let detail = "its answer has neither a result nor an error";
    intake.fail(id, Failure::new(ErrorCode::MalformedMessage, detail))
}

/// Nothing a server may ask of us needs its parameters: pings are answered, the rest is not
/// offered. So rmcp gets the method alone, which it can always read.
fn server_request(id: &Value, method: &str) -> Option<ServerJsonRpcMessage> {
    let id = request_id(id)?;
    let bare = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    serde_json::from_value(bare).ok()
}

fn notification(intake: &Intake, method: &str, params: Option<&Value>) {
    match method {
        "notifications/progress" => {
            let token = params.and_then(|params| params.get("progressToken"));
            if let Some(token) = token.and_then(request_id) {
                intake.calls.progress(&token);
            }
        }
        "notifications/tools/list_changed" => intake.tell(SessionEvent::ToolsChanged),
        _ => tracing::debug!(server = %intake.server, method, "notification ignored"),
    }
}

fn answer(
    intake: &Intake,
    id: Option<&Value>,
    result: RawResult,
    own: Option<i64>,
) -> Option<ServerJsonRpcMessage> {
    // A result without an id is taken only where the transport knows whose it is: it may be the
    // late answer of a call that was given up, and to hand it to another would be a lie.
    let id = match id {
        Some(id) => integer(id),
        None => own,
    };
    let Some((id, kind)) = id.and_then(|id| Some((id, intake.calls.kind(id)?))) else {
        // As a rule the caller has given up meanwhile.
        tracing::debug!(server = %intake.server, "an answer that nobody waits for was dropped");
        return None;
    };
    let typed = match kind {
        Kind::Initialize => handshake::initialize(&result.json),
        Kind::Discover => handshake::discover(&result.json),
        Kind::ListTools => Some(header_annotations(&result.json)),
        Kind::Listen | Kind::CallTool | Kind::Raw => Some(stand_in()),
    };
    if typed.is_none() && kind == Kind::Discover {
        return Some(of_no_use(intake, id));
    }
    let Some(typed) = typed else {
        let detail = "its answer to the handshake is not an object";
        return intake.fail(id, Failure::new(ErrorCode::MalformedMessage, detail));
    };
    match kind {
        Kind::Initialize | Kind::Discover | Kind::Listen => intake.calls.forget(id),
        Kind::ListTools | Kind::CallTool | Kind::Raw => {
            intake.calls.settle(id, Ok(result));
        }
    }
    Some(ServerJsonRpcMessage::response(typed, RequestId::Number(id)))
}

/// It answers whatever it is asked, or knows other revisions: `initialize` will tell.
fn of_no_use(intake: &Intake, id: i64) -> ServerJsonRpcMessage {
    tracing::debug!(server = %intake.server, "the answer to server/discover is of no use");
    intake.calls.forget(id);
    let error = ErrorData::new(
        RpcErrorCode::METHOD_NOT_FOUND,
        "no revision in common",
        None,
    );
    ServerJsonRpcMessage::error(error, Some(RequestId::Number(id)))
}

fn error_answer(
    intake: &Intake,
    id: Option<&Value>,
    error: &Value,
    own: Option<i64>,
) -> Option<ServerJsonRpcMessage> {
    let named = id.and_then(integer).and_then(|id| intake.calls.waiting(id));
    // A server that could not read the id says null, or a word of its own.
    let is_foreign = id.is_some_and(|id| integer(id).is_some());
    let call = named.or(own).or_else(|| {
        if is_foreign {
            None
        } else {
            intake.calls.only_waiting()
        }
    });
    let Some(id) = call.and_then(|id| intake.calls.waiting(id)) else {
        tracing::debug!(server = %intake.server, "an error that nobody waits for was dropped");
        return None;
    };
    let code = error
        .get("code")
        .map_or(RpcErrorCode::INTERNAL_ERROR.0, error_code);
    let words = words(error);
    let detail = format!("it answered with JSON-RPC error {code}");
    let failure = Failure::new(ErrorCode::ServerError, detail).with_server_words(words.clone());
    // Whatever a server has against `server/discover`, `initialize` will tell the truth.
    let is_discover = intake.calls.kind(id) == Some(Kind::Discover);
    let code = if is_discover {
        RpcErrorCode::METHOD_NOT_FOUND
    } else {
        RpcErrorCode(code)
    };
    intake.calls.settle(id, Err(failure));
    let error = ErrorData::new(code, words, None);
    Some(ServerJsonRpcMessage::error(
        error,
        Some(RequestId::Number(id)),
    ))
}

/// Codes outside 32 bits, in fractions or in quotes are read as far as they make sense.
fn error_code(code: &Value) -> i32 {
    let wide = integer(code).or_else(|| whole(code.as_f64()?.trunc()));
    wide.map_or(RpcErrorCode::INTERNAL_ERROR.0, |wide| {
        i32::try_from(wide).unwrap_or(if wide < 0 { i32::MIN } else { i32::MAX })
    })
}

fn words(error: &Value) -> String {
    let said = error.as_str().or_else(|| error.get("message")?.as_str());
    let words = said.map_or_else(|| error.to_string(), str::to_owned);
    words.chars().take(MAX_WORDS).collect()
}

/// An id as JSON-RPC means it: an integer in whatever spelling.
pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The integer a float stands for, if it stands for one.
fn whole(float: f64) -> Option<i64> {
    if float.fract() == 0.0 {
        format!("{float:.0}").parse().ok()
    } else {
        None
    }
}

fn request_id(value: &Value) -> Option<NumberOrString> {
    match value.as_str() {
        Some(text) => Some(NumberOrString::String(text.into())),
        None => integer(value).map(NumberOrString::Number),
    }
}

fn stand_in() -> ServerResult {
    ServerResult::CustomResult(CustomResult(Value::Object(Map::new())))
}

/// Over HTTP rmcp turns arguments into headers where a tool's schema asks for it; for that it
/// has to see these schemas, and nothing else of the list.
fn header_annotations(list: &Value) -> ServerResult {
    let tools = list
        .get("tools")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let annotated: Vec<Value> = tools
        .iter()
        .filter_map(|tool| {
            let schema = tool
                .get("inputSchema")
                .filter(|schema| is_annotated(schema))?;
            Some(json!({ "name": tool.get("name")?.as_str()?, "inputSchema": schema }))
        })
        .collect();
    if annotated.is_empty() {
        return stand_in();
    }
    let list = json!({ "tools": annotated });
    serde_json::from_value(list).map_or_else(|_| stand_in(), ServerResult::ListToolsResult)
}

fn is_annotated(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("x-mcp-header") || map.values().any(is_annotated),
        Value::Array(list) => list.iter().any(is_annotated),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
