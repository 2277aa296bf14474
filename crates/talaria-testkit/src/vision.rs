//! A scripted endpoint that speaks plain HTTP on the loopback address: the model behind a vision
//! backend, or the host of a picture's address.
//!
//! It can answer, stall before or in the middle of the head and the body, drip, reset, end its
//! half of the connection, and lie about lengths; it remembers what it was asked, when, and how
//! many connections and requests were open at the same time.

mod asked;
mod connection;
mod reply;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpSocket;

use crate::loopback::Loopback;

pub use asked::Asked;
pub use reply::{Gate, Place, Reply};

/// A running endpoint; dropping it ends it and every connection.
#[derive(Debug)]
pub struct VisionEndpoint {
    loopback: Loopback,
    state: Arc<State>,
}

/// What the connections of an endpoint share.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Scripts by path; the one without a path answers the rest.
    scripts: Mutex<BTreeMap<Option<String>, Turns>>,
    asked: Mutex<Vec<Asked>>,
    connections: Mutex<Gauge>,
    requests: Mutex<Gauge>,
    departures: Mutex<usize>,
}

/// A script and how far it has come.
#[derive(Debug, Default)]
struct Turns {
    replies: Vec<Reply>,
    next: usize,
}

/// How many there are of something, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// Now.
    pub now: usize,
    /// Most at the same time.
    pub peak: usize,
    /// Since the start.
    pub total: usize,
}

/// Counts one more until dropped.
pub(crate) struct Counted<'a>(&'a Mutex<Gauge>);

impl<'a> Counted<'a> {
    pub(crate) fn new(gauge: &'a Mutex<Gauge>) -> Self {
        let mut counts = gauge.lock();
        counts.now += 1;
        counts.total += 1;
        counts.peak = counts.peak.max(counts.now);
        drop(counts);
        Self(gauge)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.lock().now -= 1;
    }
}

impl State {
    /// The reply to a request for a path: the next of its script, the last of it again and
    /// again, 404 without one.
    fn turn(&self, target: &str) -> Reply {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let mut scripts = self.scripts.lock();
        let own = Some(path.to_owned());
        let key = if scripts.contains_key(&own) {
            own
        } else {
            None
        };
        let reply = scripts.get_mut(&key).and_then(|turns| {
            let reply = turns
                .replies
                .get(turns.next)
                .or_else(|| turns.replies.last());
            turns.next += 1;
            reply.cloned()
        });
        reply.unwrap_or_else(|| Reply::raw(404, "nothing is scripted"))
    }
}

impl VisionEndpoint {
    /// Starts an endpoint on a free port of 127.0.0.1 that gives these replies in order, the
    /// last again and again.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> anyhow::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), replies)
    }

    /// Starts an endpoint at an address, for example the one another had.
    ///
    /// # Errors
    /// The address is taken, or not one of this machine.
    pub fn start_at(
        address: SocketAddr,
        replies: impl IntoIterator<Item = Reply>,
    ) -> anyhow::Result<Self> {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let loopback = Loopback::start("vision-endpoint", address, move |stream| {
            let state = Arc::clone(&shared);
            async move {
                let _open = Counted::new(&state.connections);
                drop(connection::serve(stream, &state).await);
            }
        })?;
        let endpoint = Self { loopback, state };
        endpoint.answer(replies);
        Ok(endpoint)
    }

    /// Replaces the script of every path that has none of its own.
    pub fn answer(&self, replies: impl IntoIterator<Item = Reply>) {
        self.script(None, replies);
    }

    /// Replaces the script of one path.
    pub fn answer_at(&self, path: &str, replies: impl IntoIterator<Item = Reply>) {
        self.script(Some(path.to_owned()), replies);
    }

    fn script(&self, path: Option<String>, replies: impl IntoIterator<Item = Reply>) {
        let turns = Turns {
            replies: replies.into_iter().collect(),
            next: 0,
        };
        self.state.scripts.lock().insert(path, turns);
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.loopback.address()
    }

    /// The URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// What a configuration names as the base URL of an OpenAI-shaped API.
    #[must_use]
    pub fn base(&self) -> String {
        self.url("/v1")
    }

    /// What it was asked so far, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().clone()
    }

    /// How often it was asked.
    #[must_use]
    pub fn count(&self) -> usize {
        self.state.asked.lock().len()
    }

    /// Connections, open until one side closes them.
    #[must_use]
    pub fn connections(&self) -> Gauge {
        *self.state.connections.lock()
    }

    /// Requests, open until the reply is complete or the client has left.
    #[must_use]
    pub fn requests(&self) -> Gauge {
        *self.state.requests.lock()
    }

    /// How many clients left before their reply was complete.
    #[must_use]
    pub fn departures(&self) -> usize {
        *self.state.departures.lock()
    }
}

/// A port that refuses every connection and that nobody else can take.
#[derive(Debug)]
pub struct RefusingPort {
    address: SocketAddr,
    /// Bound, but never listening.
    _socket: TcpSocket,
}

impl RefusingPort {
    /// Takes a free port.
    ///
    /// # Errors
    /// There is none.
    pub fn take() -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok(Self {
            address: socket.local_addr()?,
            _socket: socket,
        })
    }

    /// Where nobody listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a configuration names as the base URL of an OpenAI-shaped API.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

#[cfg(test)]
mod tests;
