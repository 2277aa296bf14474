//! What an endpoint answers, told apart from how far the answer gets.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

/// One reply of a script.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) dates: Vec<(String, Duration)>,
    pub(super) body: Body,
    pub(super) framing: Framing,
    pub(super) pause: Duration,
    pub(super) gate: Option<Gate>,
    pub(super) drip: Option<Duration>,
    pub(super) end: Option<(Place, End)>,
}

/// The bytes of a body.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Bytes(Arc<[u8]>),
    /// A unit many times over.
    Repeat {
        unit: Arc<[u8]>,
        count: usize,
    },
}

/// How the client is told where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its length.
    Length,
    /// By a length that is another one.
    Told(usize),
    /// By chunks.
    Chunked,
    /// By chunks whose sizes are no numbers.
    BrokenChunks,
    /// By the end of the connection.
    Connection,
}

/// Where a reply ends before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing was sent.
    Start,
    /// In the middle of the head.
    Head,
    /// After so many bytes of the body.
    Body(usize),
}

/// How a reply ends before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing more comes; the connection stays.
    Stall,
    /// The connection is reset.
    Reset,
    /// The sending half is closed, and the endpoint reads on.
    HalfClose,
    /// The connection is closed.
    Close,
}

/// Holds replies back until a test opens it.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn passed(&self) {
        let mut open = self.0.subscribe();
        // It fails only when the gate is gone, which the reply itself holds.
        drop(open.wait_for(|open| *open).await);
    }
}

impl Reply {
    /// A JSON body.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::raw(status, body.to_string()).with_header("Content-Type", "application/json")
    }

    /// A body as it stands, without a type.
    #[must_use]
    pub fn raw(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            dates: Vec::new(),
            body: Body::Bytes(body.into().into()),
            framing: Framing::Length,
            pause: Duration::ZERO,
            gate: None,
            drip: None,
            end: None,
        }
    }

    /// A body of a unit many times over.
    #[must_use]
    pub fn repeated(status: u16, unit: impl Into<Vec<u8>>, count: usize) -> Self {
        let body = Body::Repeat {
            unit: unit.into().into(),
            count,
        };
        Self {
            body,
            ..Self::raw(status, "")
        }
    }

    /// A complete answer of an OpenAI-shaped chat API.
    #[must_use]
    pub fn chat(text: &str) -> Self {
        Self::json(200, &chat_body(&json!(text)))
    }

    /// An error of an OpenAI-shaped API.
    #[must_use]
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let error = json!({"message": message, "type": code, "code": code});
        Self::json(status, &json!({ "error": error }))
    }

    /// A redirection.
    #[must_use]
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::raw(status, "").with_header("Location", location)
    }

    /// Accepts the request and never answers.
    #[must_use]
    pub fn stalled() -> Self {
        Self::raw(200, "").stalled_at(Place::Start)
    }

    /// One more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A header whose value is the moment so far after the reply, as an HTTP date.
    #[must_use]
    pub fn with_date(mut self, name: &str, ahead: Duration) -> Self {
        self.dates.push((name.to_owned(), ahead));
        self
    }

    /// Waits before the first byte.
    #[must_use]
    pub const fn after(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Waits for the gate before the first byte.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Sends head and body byte by byte with a pause after each.
    #[must_use]
    pub const fn dripped(mut self, pause: Duration) -> Self {
        self.drip = Some(pause);
        self
    }

    /// Sends nothing from there on.
    #[must_use]
    pub const fn stalled_at(mut self, place: Place) -> Self {
        self.end = Some((place, End::Stall));
        self
    }

    /// Resets the connection there.
    #[must_use]
    pub const fn reset_at(mut self, place: Place) -> Self {
        self.end = Some((place, End::Reset));
        self
    }

    /// Ends the sending half of the connection there.
    #[must_use]
    pub const fn half_closed_at(mut self, place: Place) -> Self {
        self.end = Some((place, End::HalfClose));
        self
    }

    /// Closes the connection there.
    #[must_use]
    pub const fn closed_at(mut self, place: Place) -> Self {
        self.end = Some((place, End::Close));
        self
    }

    /// Tells another length than the body has.
    #[must_use]
    pub const fn telling_length(mut self, length: usize) -> Self {
        self.framing = Framing::Told(length);
        self
    }

    /// Tells no length: the body comes in chunks.
    #[must_use]
    pub const fn chunked(mut self) -> Self {
        self.framing = Framing::Chunked;
        self
    }

    /// Claims chunks and sends none.
    #[must_use]
    pub const fn with_broken_chunks(mut self) -> Self {
        self.framing = Framing::BrokenChunks;
        self
    }

    /// Tells no length: the body ends with the connection.
    #[must_use]
    pub const fn until_closed(mut self) -> Self {
        self.framing = Framing::Connection;
        self
    }

    pub(super) fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        for (name, ahead) in &self.dates {
            let moment = talaria_types::runtime::wall_clock() + *ahead;
            head.push_str(&format!("{name}: {}\r\n", httpdate::fmt_http_date(moment)));
        }
        head.push_str(&match self.framing {
            Framing::Length => format!("Content-Length: {}\r\n", self.body.len()),
            Framing::Told(length) => format!("Content-Length: {length}\r\n"),
            Framing::Chunked | Framing::BrokenChunks => "Transfer-Encoding: chunked\r\n".to_owned(),
            Framing::Connection => "Connection: close\r\n".to_owned(),
        });
        head.push_str("\r\n");
        head.into_bytes()
    }
}

impl Body {
    const PIECE: usize = 64 * 1024;

    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Repeat { unit, count } => unit.len() * count,
        }
    }

    /// The bytes in pieces, made one after the other.
    pub(super) fn pieces(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        match self {
            Self::Bytes(bytes) => Box::new(bytes.chunks(Self::PIECE).map(<[u8]>::to_vec)),
            Self::Repeat { unit, count } => {
                let per_piece = (Self::PIECE / unit.len().max(1)).max(1);
                let rest = unit.repeat(count % per_piece);
                Box::new(
                    std::iter::repeat_n(unit.repeat(per_piece), count / per_piece)
                        .chain(std::iter::once(rest))
                        .filter(|piece| !piece.is_empty()),
                )
            }
        }
    }
}

/// The body of a chat completion whose message has this content.
#[must_use]
fn chat_body(content: &Value) -> Value {
    let message = json!({"role": "assistant", "content": content});
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    })
}
