//! What a scripted server does with a message, whatever carries it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::records::{RecordKind, Records};
use crate::script::{Action, HttpAction, Pace, Part, ProcessAction, Script, text_result};

/// How long a server waits for what its script waits for; longer than any test.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running scripted server; shared by everything that serves it.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) script: Script,
    pub(crate) records: Records,
    tools: Mutex<Vec<Value>>,
    turns: Mutex<BTreeMap<String, usize>>,
    busy: AtomicUsize,
    replies: watch::Sender<usize>,
    cancelled: watch::Sender<BTreeSet<String>>,
}

/// Where a server's messages go; what HTTP and stdio do differently.
pub(crate) trait Outlet: Send {
    /// Writes one message made of parts.
    fn message(
        &mut self,
        parts: &[Part],
        id: &Value,
        pace: Pace,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Does what only a child process can; answers whether the script goes on.
    fn process(
        &mut self,
        action: &ProcessAction,
        id: &Value,
    ) -> impl Future<Output = anyhow::Result<Flow>> + Send;

    /// Does what only an HTTP server can; answers whether the script goes on.
    fn http(
        &mut self,
        action: &HttpAction,
        id: &Value,
    ) -> impl Future<Output = anyhow::Result<Flow>> + Send;
}

/// Whether a script goes on after an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The next action follows.
    On,
    /// Nothing follows.
    End,
}

/// Counts a request as served until dropped.
struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Engine {
    pub(crate) fn new(script: Script) -> anyhow::Result<Arc<Self>> {
        let records = Records::open(script.record.as_deref())?;
        let mut turns = BTreeMap::new();
        let messages = records
            .all()
            .into_iter()
            .filter(|record| record.kind == RecordKind::Message);
        for record in messages {
            if let Some(key) = turn_key(&record.message) {
                *turns.entry(key).or_default() += 1;
            }
        }
        Ok(Arc::new(Self {
            tools: Mutex::new(script.tool_definitions()),
            script,
            records,
            turns: Mutex::new(turns),
            busy: AtomicUsize::new(0),
            replies: watch::Sender::new(0),
            cancelled: watch::Sender::new(BTreeSet::new()),
        }))
    }

    /// Takes note of a message. Requests are then to be served with [`Self::serve`].
    pub(crate) fn receive(
        &self,
        message: &Value,
        headers: BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        if !self.script.is_forgetful {
            self.records
                .add(RecordKind::Message, message.clone(), headers)?;
        }
        if is_reply(message) {
            self.replies.send_modify(|count| *count += 1);
        }
        if message.get("method").and_then(Value::as_str) == Some("notifications/cancelled")
            && let Some(id) = message.pointer("/params/requestId")
        {
            self.cancelled.send_modify(|ids| {
                ids.insert(id.to_string());
            });
        }
        Ok(())
    }

    /// Serves one request to the end of its script.
    pub(crate) async fn serve(
        &self,
        request: &Value,
        outlet: &mut impl Outlet,
    ) -> anyhow::Result<()> {
        let others = self.busy.fetch_add(1, Ordering::SeqCst);
        let mut busy = Some(Busy(&self.busy));
        for action in self.actions(request) {
            if matches!(
                action,
                Action::Answer { .. } | Action::Fail { .. } | Action::Echo { .. } | Action::Look(_)
            ) {
                // Whoever has read the answer may ask again at once and find nobody busy.
                busy = None;
            }
            if matches!(action, Action::HangIfBusy) && others > 0 {
                std::future::pending::<()>().await;
            }
            if self.perform(&action, request, outlet).await? == Flow::End {
                break;
            }
        }
        drop(busy);
        Ok(())
    }

    /// Performs the actions before the first message.
    pub(crate) async fn start(&self, outlet: &mut impl Outlet) -> anyhow::Result<()> {
        self.records
            .add(RecordKind::Started, Value::Null, BTreeMap::new())?;
        for action in self.flattened(&self.script.at_start, &Value::Null) {
            if self.perform(&action, &Value::Null, outlet).await? == Flow::End {
                break;
            }
        }
        Ok(())
    }

    /// The actions a request asks for: scripted, or the built-in answer.
    fn actions(&self, request: &Value) -> Vec<Action> {
        let method = request
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let turn = turn_key(request).map_or(0, |key| {
            let mut turns = self.turns.lock();
            let turn = turns.entry(key).or_default();
            *turn += 1;
            *turn - 1
        });
        let scripted = if method == "tools/call" {
            request
                .pointer("/params/name")
                .and_then(Value::as_str)
                .and_then(|tool| self.script.calls.get(tool))
        } else {
            self.script.methods.get(method)
        };
        match scripted.and_then(|turns| turns.get(turn).or_else(|| turns.last())) {
            Some(actions) => self.flattened(actions, request),
            None => vec![self.built_in(method, request)],
        }
    }

    /// The same actions without those that stand for others.
    fn flattened(&self, actions: &[Action], request: &Value) -> Vec<Action> {
        let mut flat = Vec::new();
        for action in actions {
            match action {
                Action::Usual => {
                    let method = request.get("method").and_then(Value::as_str);
                    flat.push(self.built_in(method.unwrap_or_default(), request));
                }
                Action::Repeat { times, actions } => {
                    let once = self.flattened(actions, request);
                    flat.extend(std::iter::repeat_n(once, *times).flatten());
                }
                Action::Answer { .. }
                | Action::Fail { .. }
                | Action::Send { .. }
                | Action::Notify { .. }
                | Action::Progress { .. }
                | Action::Request { .. }
                | Action::AwaitReplies { .. }
                | Action::AwaitCancel
                | Action::AwaitFile { .. }
                | Action::Delay { .. }
                | Action::Hang
                | Action::HangIfBusy
                | Action::Echo { .. }
                | Action::Look(_)
                | Action::SetTools { .. }
                | Action::Process(_)
                | Action::Http(_) => flat.push(action.clone()),
            }
        }
        flat
    }

    fn built_in(&self, method: &str, request: &Value) -> Action {
        match method {
            "initialize" => {
                let asked = request.pointer("/params/protocolVersion").cloned();
                let revision = self
                    .script
                    .protocol_version
                    .clone()
                    .map(Value::String)
                    .or(asked);
                Action::Answer {
                    result: json!({
                        "protocolVersion": revision,
                        "capabilities": self.script.capabilities,
                        "serverInfo": {"name": self.script.name, "version": "1.0.0"},
                    }),
                }
            }
            "ping" => Action::Answer { result: json!({}) },
            "tools/list" => Action::Answer {
                result: json!({"tools": *self.tools.lock()}),
            },
            "tools/call" => Action::Fail {
                code: -32602,
                message: "Unknown tool".to_owned(),
            },
            _ => Action::Fail {
                code: -32601,
                message: format!("Method not found: {method}"),
            },
        }
    }

    async fn perform(
        &self,
        action: &Action,
        request: &Value,
        outlet: &mut impl Outlet,
    ) -> anyhow::Result<Flow> {
        let id = request.get("id").unwrap_or(&Value::Null);
        match action {
            Action::Answer { result } => {
                say(
                    outlet,
                    &json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    id,
                )
                .await?;
            }
            Action::Fail { code, message } => {
                let error = json!({"code": code, "message": message});
                say(
                    outlet,
                    &json!({"jsonrpc": "2.0", "id": id, "error": error}),
                    id,
                )
                .await?;
            }
            Action::Notify { method, params } => {
                let note = json!({"jsonrpc": "2.0", "method": method, "params": params});
                say(outlet, &note, id).await?;
            }
            Action::Progress { progress } => {
                let token = request.pointer("/params/_meta/progressToken");
                let params = json!({"progressToken": token, "progress": progress});
                let note = json!({
                    "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
                });
                say(outlet, &note, id).await?;
            }
            Action::Request {
                id: own,
                method,
                params,
            } => {
                let ask = json!({"jsonrpc": "2.0", "id": own, "method": method, "params": params});
                say(outlet, &ask, id).await?;
            }
            Action::Send { parts, pace } => outlet.message(parts, id, *pace).await?,
            Action::AwaitReplies { count } => {
                let mut replies = self.replies.subscribe();
                bounded("replies", replies.wait_for(|seen| seen >= count)).await??;
            }
            Action::AwaitCancel => {
                let wanted = id.to_string();
                let mut cancelled = self.cancelled.subscribe();
                bounded(
                    "a cancellation",
                    cancelled.wait_for(|ids| ids.contains(&wanted)),
                )
                .await??;
            }
            Action::AwaitFile { path } => {
                crate::wait_for("the test's file", PATIENCE, || {
                    std::future::ready(if path.exists() { Ok(()) } else { Err(path) })
                })
                .await?;
            }
            Action::Delay { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Action::Hang => std::future::pending().await,
            // The first is looked at by whoever serves; the others were replaced.
            Action::HangIfBusy | Action::Usual | Action::Repeat { .. } => {}
            Action::Echo { argument, journal } => {
                let place = format!("/params/arguments/{argument}");
                let text = request.pointer(&place).and_then(Value::as_str);
                let text = text.unwrap_or_default();
                if let Some(path) = journal {
                    note_down(path, text)?;
                }
                let result = text_result(text);
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                say(outlet, &answer, id).await?;
            }
            Action::Look(look) => {
                let arguments = request.pointer("/params/arguments").unwrap_or(&Value::Null);
                let result = look.at(arguments);
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                say(outlet, &answer, id).await?;
            }
            Action::SetTools { tools } => self.tools.lock().clone_from(tools),
            Action::Process(action) => return outlet.process(action, id).await,
            Action::Http(action) => return outlet.http(action, id).await,
        }
        Ok(Flow::On)
    }
}

/// Pieces of a message as bytes, made one after the other.
pub(crate) fn chunks<'a>(
    parts: &'a [Part],
    id: &'a Value,
) -> impl Iterator<Item = anyhow::Result<Vec<u8>>> + Send + 'a {
    parts.iter().flat_map(
        move |part| -> Box<dyn Iterator<Item = anyhow::Result<Vec<u8>>> + Send> {
            match part {
                Part::Text(text) => one(text.clone().into_bytes()),
                Part::Id => one(id.to_string().into_bytes()),
                Part::Bytes(encoded) => Box::new(std::iter::once(
                    STANDARD
                        .decode(encoded)
                        .context("base64 of a part of a script"),
                )),
                Part::Repeat { unit, count } => repeated(unit, *count),
                Part::Payload(payload) => Box::new(payload.encoded().map(Ok)),
            }
        },
    )
}

fn one(bytes: Vec<u8>) -> Box<dyn Iterator<Item = anyhow::Result<Vec<u8>>> + Send> {
    Box::new(std::iter::once(Ok(bytes)))
}

/// A text many times over, in pieces of about 64 KiB.
fn repeated(unit: &str, count: usize) -> Box<dyn Iterator<Item = anyhow::Result<Vec<u8>>> + Send> {
    let per_piece = (64 * 1024 / unit.len().max(1)).max(1);
    let piece = unit.repeat(per_piece).into_bytes();
    let rest = unit.repeat(count % per_piece).into_bytes();
    Box::new(
        std::iter::repeat_n(piece, count / per_piece)
            .chain(std::iter::once(rest))
            .map(Ok),
    )
}

/// Adds a line to a file that several processes may write to.
fn note_down(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    Ok(())
}

async fn say(outlet: &mut impl Outlet, message: &Value, id: &Value) -> anyhow::Result<()> {
    outlet
        .message(&[Part::Text(message.to_string())], id, Pace::Fast)
        .await
}

async fn bounded<T>(what: &str, wait: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, wait)
        .await
        .with_context(|| format!("waited for {what}"))
}

/// Whether a message answers a request of the server's.
fn is_reply(message: &Value) -> bool {
    message.get("method").is_none() && message.get("id").is_some()
}

/// What turns are counted by: the method, for calls the tool.
fn turn_key(message: &Value) -> Option<String> {
    let method = message.get("method")?.as_str()?;
    let tool = message.pointer("/params/name").and_then(Value::as_str);
    Some(match tool {
        Some(tool) if method == "tools/call" => format!("tools/call {tool}"),
        Some(_) | None => method.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_exactly_as_often_as_asked() {
        for count in [0, 1, 21_845, 21_846, 50_000] {
            let parts = [Part::Repeat {
                unit: "abc".to_owned(),
                count,
            }];
            let bytes: Vec<u8> = chunks(&parts, &Value::Null)
                .flat_map(Result::unwrap)
                .collect();
            assert_eq!(bytes.len(), count * 3);
        }
    }
}
