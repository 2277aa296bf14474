//! The older HTTP+SSE transport: one event stream carries all that the server says, and every
//! message of the client is a POST to the place that the stream's first event names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Sessions;
use crate::records::RecordKind;
use crate::script::{HttpAction, Pace, Part, ProcessAction};
use crate::server::engine::{Engine, Flow, Outlet, chunks};

/// Pieces that may wait for a stream's connection.
pub(super) const PIECES: usize = 64;

/// What goes onto a stream.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes as they stand.
    Bytes(Vec<u8>),
    /// The connection is broken off.
    Cut,
}

/// The first event of a stream.
pub(super) fn endpoint_event(place: &str, session: &str) -> String {
    let place = place.replace("{session}", session);
    format!("event: endpoint\ndata: {place}\n\n")
}

/// The session that a request's target names.
pub(super) fn session_of(target: &str) -> Option<&str> {
    let (_, query) = target.split_once('?')?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("session="))
}

/// A notification that goes to every stream.
pub(super) fn announcement(method: &str) -> Vec<u8> {
    let note = json!({"jsonrpc": "2.0", "method": method});
    format!("event: message\ndata: {note}\n\n").into_bytes()
}

/// Serves one request; its answers go onto the stream, whose end ends the work too.
pub(super) async fn serve(
    engine: Arc<Engine>,
    sessions: Arc<Sessions>,
    stream: mpsc::Sender<Piece>,
    message: Value,
) -> anyhow::Result<()> {
    let mut answer = StreamAnswer {
        stream: stream.clone(),
        sessions,
    };
    let gone = tokio::select! {
        served = engine.serve(&message, &mut answer) => {
            served?;
            false
        }
        () = stream.closed() => true,
    };
    if gone {
        engine
            .records
            .add(RecordKind::Disconnected, message, BTreeMap::new())?;
    }
    Ok(())
}

/// The answers to one request on the stream of its session.
struct StreamAnswer {
    stream: mpsc::Sender<Piece>,
    sessions: Arc<Sessions>,
}

impl StreamAnswer {
    async fn put(&self, bytes: Vec<u8>) -> anyhow::Result<()> {
        Ok(self.stream.send(Piece::Bytes(bytes)).await?)
    }
}

impl Outlet for StreamAnswer {
    async fn message(&mut self, parts: &[Part], id: &Value, pace: Pace) -> anyhow::Result<()> {
        let mut event = b"event: message\ndata: ".to_vec();
        for bytes in chunks(parts, id) {
            event.append(&mut bytes?);
        }
        event.extend_from_slice(b"\n\n");
        match pace {
            // Events of concurrent requests must not mix, so each goes as one piece.
            Pace::Fast => self.put(event).await,
            Pace::Drip => {
                for byte in event {
                    self.put(vec![byte]).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Ok(())
            }
        }
    }

    async fn process(&mut self, action: &ProcessAction, _id: &Value) -> anyhow::Result<Flow> {
        anyhow::bail!("{action:?} is not for HTTP")
    }

    async fn http(&mut self, action: &HttpAction, id: &Value) -> anyhow::Result<Flow> {
        match action {
            HttpAction::Answer { .. } => anyhow::bail!("{action:?} is not for an event stream"),
            HttpAction::Reset | HttpAction::HalfClose => {
                self.stream.send(Piece::Cut).await?;
                return Ok(Flow::End);
            }
            HttpAction::ForgetSessions => self.sessions.forget_all(),
            HttpAction::Events { parts } => {
                for bytes in chunks(parts, id) {
                    self.put(bytes?).await?;
                }
            }
            HttpAction::Announce { method } => self.sessions.announce(method),
        }
        Ok(Flow::On)
    }
}
