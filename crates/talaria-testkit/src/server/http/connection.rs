//! One TCP connection of a scripted HTTP server: requests in, scripted answers out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_types::runtime::spawn;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::Sessions;
use super::head::{self, Request};
use super::legacy::{self, Piece};
use crate::records::RecordKind;
use crate::script::{HttpAction, Pace, Part, ProcessAction};
use crate::server::engine::{Engine, Flow, Outlet, chunks};

/// Serves requests one after the other until the connection ends.
pub(crate) async fn serve(
    stream: TcpStream,
    engine: Arc<Engine>,
    sessions: Arc<Sessions>,
) -> anyhow::Result<()> {
    stream.set_nodelay(!engine.script.http.split_writes)?;
    let (read, write) = stream.into_split();
    let mut reader = BufReader::new(read);
    let mut answer = HttpAnswer {
        write,
        sse: engine.script.http.sse,
        split_writes: engine.script.http.split_writes,
        sessions: &sessions,
        new_session: None,
        state: State::Waiting,
    };
    while let Some(request) = head::read(&mut reader).await? {
        answer.state = State::Waiting;
        answer.new_session = None;
        handle(request, &engine, &mut answer, &mut reader).await?;
        if answer.state == State::Broken {
            break;
        }
    }
    Ok(())
}

async fn handle(
    request: Request,
    engine: &Arc<Engine>,
    answer: &mut HttpAnswer<'_>,
    reader: &mut BufReader<OwnedReadHalf>,
) -> anyhow::Result<()> {
    let script = &engine.script.http;
    if let Some((status, body)) = answer.sessions.refusal() {
        note(&request, engine)?;
        return answer.plain(status, &[], &body).await;
    }
    if let Some(token) = &script.token
        && request.headers.get("authorization") != Some(&format!("Bearer {token}"))
    {
        note(&request, engine)?;
        let challenge = [("WWW-Authenticate".to_owned(), "Bearer".to_owned())];
        return answer.plain(401, &challenge, "unauthorized").await;
    }
    match (request.method.as_str(), &script.legacy) {
        ("POST", None) => post(request, engine, answer, reader).await,
        ("POST", Some(_)) => post_beside_stream(request, engine, answer).await,
        ("GET", Some(place)) => {
            engine
                .records
                .add(RecordKind::Get, Value::Null, request.headers)?;
            serve_stream(place, answer, reader).await
        }
        ("GET", None) => {
            engine
                .records
                .add(RecordKind::Get, Value::Null, request.headers)?;
            match &script.get {
                Some((status, body)) => answer.plain(*status, &[], body).await,
                None => {
                    let mut cuts = answer.sessions.cuts();
                    answer.begin_events().await?;
                    tokio::select! {
                        relayed = answer.relay() => relayed,
                        cut = cuts.changed() => {
                            answer.state = State::Broken;
                            Ok(cut?)
                        }
                        () = watch_for_end(reader) => {
                            answer.state = State::Broken;
                            Ok(())
                        }
                    }
                }
            }
        }
        ("DELETE", _) => {
            if let Some(id) = request.headers.get("mcp-session-id") {
                answer.sessions.close(id);
            }
            engine
                .records
                .add(RecordKind::Delete, Value::Null, request.headers)?;
            answer.plain(200, &[], "").await
        }
        (other, _) => {
            let asked = Value::String(other.to_owned());
            engine
                .records
                .add(RecordKind::Garbage, asked, request.headers)?;
            answer.plain(405, &[], "").await
        }
    }
}

/// The event stream of the older transport, until one side ends it.
async fn serve_stream(
    place: &str,
    answer: &mut HttpAnswer<'_>,
    reader: &mut BufReader<OwnedReadHalf>,
) -> anyhow::Result<()> {
    let (session, mut pieces) = answer.sessions.attach();
    let mut announced = answer.sessions.announcements();
    let mut cuts = answer.sessions.cuts();
    answer.begin_events().await?;
    let first = legacy::endpoint_event(place, &session);
    answer.chunk(first.as_bytes()).await?;
    loop {
        let bytes = tokio::select! {
            piece = pieces.recv() => match piece {
                Some(Piece::Bytes(bytes)) => bytes,
                Some(Piece::Cut) | None => break,
            },
            changed = announced.changed() => {
                changed?;
                let method = announced.borrow_and_update().1.clone();
                legacy::announcement(&method)
            }
            _ = cuts.changed() => break,
            () = watch_for_end(reader) => break,
        };
        answer.chunk(&bytes).await?;
    }
    answer.sessions.detach(&session);
    answer.state = State::Broken;
    Ok(())
}

/// A message of the older transport: accepted here, answered on the stream.
async fn post_beside_stream(
    request: Request,
    engine: &Arc<Engine>,
    answer: &mut HttpAnswer<'_>,
) -> anyhow::Result<()> {
    let Some(session) = legacy::session_of(&request.target) else {
        note(&request, engine)?;
        return answer.plain(405, &[], "messages go elsewhere").await;
    };
    let Some(stream) = answer.sessions.stream(session) else {
        note(&request, engine)?;
        return answer.plain(404, &[], "no such session").await;
    };
    let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
        note(&request, engine)?;
        return answer.plain(400, &[], "not JSON").await;
    };
    engine.receive(&message, request.headers)?;
    if message.get("method").is_some() && message.get("id").is_some() {
        let sessions = Arc::clone(answer.sessions);
        let serving = legacy::serve(Arc::clone(engine), sessions, stream, message);
        // It ends with its stream.
        drop(spawn(
            "scripted_request",
            async move { drop(serving.await) },
        ));
    }
    answer.plain(202, &[], "").await
}

/// Records what was refused before it was read.
fn note(request: &Request, engine: &Engine) -> anyhow::Result<()> {
    let message = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    engine
        .records
        .add(RecordKind::Message, message, request.headers.clone())
}

async fn post(
    request: Request,
    engine: &Engine,
    answer: &mut HttpAnswer<'_>,
    reader: &mut BufReader<OwnedReadHalf>,
) -> anyhow::Result<()> {
    let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        engine
            .records
            .add(RecordKind::Garbage, Value::String(text), request.headers)?;
        return answer.plain(400, &[], "not JSON").await;
    };
    let session = request.headers.get("mcp-session-id").cloned();
    engine.receive(&message, request.headers)?;
    let method = message.get("method").and_then(Value::as_str);
    if engine.script.http.sessions && method != Some("server/discover") {
        match session {
            None if method == Some("initialize") => {
                answer.new_session = Some(answer.sessions.open());
            }
            None => return answer.plain(400, &[], "no session").await,
            Some(id) if !answer.sessions.knows(&id) => {
                return answer.plain(404, &[], "no such session").await;
            }
            Some(_) => {}
        }
    }
    if method.is_none() || message.get("id").is_none() {
        return answer.plain(202, &[], "").await;
    }
    let served = tokio::select! {
        served = engine.serve(&message, answer) => served,
        () = watch_for_end(reader) => {
            engine.records.add(RecordKind::Disconnected, message, BTreeMap::new())?;
            answer.state = State::Broken;
            return Ok(());
        }
    };
    served?;
    answer.end().await
}

/// Resolves when the client closes its side. Pipelined bytes are not expected and end it too.
pub(crate) async fn watch_for_end(reader: &mut BufReader<OwnedReadHalf>) {
    loop {
        if reader.get_ref().readable().await.is_err() {
            return;
        }
        match reader.get_ref().try_read(&mut [0_u8; 1]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was sent.
    Waiting,
    /// The head of an event stream was sent.
    Events,
    /// The answer is complete.
    Done,
    /// The connection cannot be used again.
    Broken,
}

/// The answer to one request.
struct HttpAnswer<'a> {
    write: OwnedWriteHalf,
    sse: bool,
    split_writes: bool,
    sessions: &'a Arc<Sessions>,
    new_session: Option<String>,
    state: State,
}

impl HttpAnswer<'_> {
    /// Answers with a complete response.
    async fn plain(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        body: &str,
    ) -> anyhow::Result<()> {
        let mut head = self.head(status, headers);
        head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        self.write.write_all(head.as_bytes()).await?;
        self.state = State::Done;
        Ok(())
    }

    fn head(&self, status: u16, headers: &[(String, String)]) -> String {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
        if let Some(id) = &self.new_session {
            head.push_str(&format!("Mcp-Session-Id: {id}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head
    }

    async fn begin_events(&mut self) -> anyhow::Result<()> {
        let kind = [("Content-Type".to_owned(), "text/event-stream".to_owned())];
        let mut head = self.head(200, &kind);
        head.push_str("Transfer-Encoding: chunked\r\n\r\n");
        self.write.write_all(head.as_bytes()).await?;
        self.state = State::Events;
        Ok(())
    }

    /// Writes every announcement as an event, until the connection breaks.
    async fn relay(&mut self) -> anyhow::Result<()> {
        let mut announcements = self.sessions.announcements();
        loop {
            announcements.changed().await?;
            let method = announcements.borrow_and_update().1.clone();
            let note = json!({"jsonrpc": "2.0", "method": method});
            self.event(&[Part::Text(note.to_string())], &Value::Null, Pace::Fast)
                .await?;
        }
    }

    /// One piece of a chunked body.
    async fn chunk(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut piece = format!("{:x}\r\n", bytes.len()).into_bytes();
        piece.extend_from_slice(bytes);
        piece.extend_from_slice(b"\r\n");
        self.write.write_all(&piece).await?;
        Ok(())
    }

    async fn event(&mut self, parts: &[Part], id: &Value, pace: Pace) -> anyhow::Result<()> {
        if self.state == State::Waiting {
            self.begin_events().await?;
        }
        self.chunk(b"event: message\ndata: ").await?;
        for bytes in chunks(parts, id) {
            let bytes = bytes?;
            match pace {
                Pace::Fast => self.chunk(&bytes).await?,
                Pace::Drip => {
                    for byte in bytes {
                        self.chunk(&[byte]).await?;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
        }
        self.chunk(b"\n\n").await
    }

    async fn json(&mut self, parts: &[Part], id: &Value, pace: Pace) -> anyhow::Result<()> {
        if self.state != State::Waiting {
            // A JSON body is one message; what comes after or before it has no place.
            return Ok(());
        }
        let mut length = 0;
        for bytes in chunks(parts, id) {
            length += bytes?.len();
        }
        let kind = [("Content-Type".to_owned(), "application/json".to_owned())];
        let mut head = self.head(200, &kind);
        head.push_str(&format!("Content-Length: {length}\r\n\r\n"));
        let mut pending = head.into_bytes();
        if self.split_writes {
            self.write.write_all(&std::mem::take(&mut pending)).await?;
        }
        for bytes in chunks(parts, id) {
            pending.append(&mut bytes?);
            match pace {
                Pace::Fast => self.write.write_all(&pending).await?,
                Pace::Drip => {
                    for byte in &pending {
                        self.write.write_all(&[*byte]).await?;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
            pending.clear();
        }
        self.state = State::Done;
        Ok(())
    }

    /// Completes the answer when the script has come to its end.
    async fn end(&mut self) -> anyhow::Result<()> {
        match self.state {
            State::Waiting => self.plain(202, &[], "").await,
            State::Events => {
                self.write.write_all(b"0\r\n\r\n").await?;
                self.state = State::Done;
                Ok(())
            }
            State::Done | State::Broken => Ok(()),
        }
    }
}

impl Outlet for HttpAnswer<'_> {
    async fn message(&mut self, parts: &[Part], id: &Value, pace: Pace) -> anyhow::Result<()> {
        if self.sse {
            self.event(parts, id, pace).await
        } else {
            self.json(parts, id, pace).await
        }
    }

    async fn process(&mut self, action: &ProcessAction, _id: &Value) -> anyhow::Result<Flow> {
        anyhow::bail!("{action:?} is not for HTTP")
    }

    async fn http(&mut self, action: &HttpAction, id: &Value) -> anyhow::Result<Flow> {
        match action {
            HttpAction::Answer {
                status,
                headers,
                body,
            } => {
                self.plain(*status, headers, body).await?;
                Ok(Flow::End)
            }
            HttpAction::ForgetSessions => {
                self.sessions.forget_all();
                Ok(Flow::On)
            }
            HttpAction::Events { parts } => {
                if self.state == State::Waiting {
                    self.begin_events().await?;
                }
                for bytes in chunks(parts, id) {
                    self.chunk(&bytes?).await?;
                }
                Ok(Flow::On)
            }
            HttpAction::Announce { method } => {
                self.sessions.announce(method);
                Ok(Flow::On)
            }
            HttpAction::Reset => {
                self.write.as_ref().set_zero_linger()?;
                self.state = State::Broken;
                Ok(Flow::End)
            }
            HttpAction::HalfClose => {
                if self.state == State::Waiting {
                    // A length that is never reached: the client must notice the cut.
                    let mut head = self.head(
                        200,
                        &[("Content-Type".to_owned(), "application/json".to_owned())],
                    );
                    head.push_str("Content-Length: 1000\r\n\r\n{\"jsonrpc\":");
                    self.write.write_all(head.as_bytes()).await?;
                }
                self.write.shutdown().await?;
                self.state = State::Broken;
                Ok(Flow::End)
            }
        }
    }
}
