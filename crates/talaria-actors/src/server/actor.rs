//! The actor of one MCP server.
//!
//! Owns: the session, the RPC lock and the life-cycle state of one server.
//! Accepts: `CallTool`, `CancelCall`, `Reconnect`, `Drain`, `Probe`.
//! Emits: replies to callers, snapshots, `ServerStopped`, changes of the tool directory.
//! Never: decodes a payload, touches the disk, waits for another server, decides anything that
//! `state.rs` can decide.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, ActorContext, AsyncContext, Context, Recipient, SpawnHandle};
use talaria_config::ServerConfig;
use talaria_mcp::PeerInfo;
use talaria_types::runtime::{self, BlockingPool};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::backoff::Jitter;
use crate::directory::Directory;
use crate::server::handle::ServerHandle;
use crate::server::messages::{Reply, ServerStopped, Ticket};
use crate::server::schemas::Schemas;
use crate::server::snapshot::{Outlook, Snapshot};
use crate::server::state::{CallId, FuseKey, Input, Lane, Policy, ServerState};
use crate::upstream::{Connector, Upstream};

/// Control messages that fit into the mailbox besides the calls.
const CONTROL_MESSAGES: usize = 16;

/// What a server actor is made from; a restart makes a new one from a clone.
#[derive(Clone, Debug)]
pub(crate) struct ServerSetup {
    /// Its configuration.
    pub(crate) config: Arc<ServerConfig>,
    /// Where others see it.
    pub(crate) handle: ServerHandle,
    /// Makes sessions.
    pub(crate) connector: Arc<dyn Connector>,
    /// Takes its tools.
    pub(crate) directory: Arc<Directory>,
    /// Remembers them for the next start, where the server is lazy.
    pub(crate) schemas: Arc<Schemas>,
    /// Reads big lists.
    pub(crate) blocking: BlockingPool,
    /// Takes its death notice.
    pub(crate) supervisor: Recipient<ServerStopped>,
    /// Its limits.
    pub(crate) policy: Policy,
    /// How long closing a session may take.
    pub(crate) close_within: Duration,
}

/// The actor.
pub(crate) struct ServerActor {
    pub(super) setup: ServerSetup,
    pub(super) generation: u64,
    pub(super) state: ServerState,
    pub(super) calls: HashMap<CallId, OpenCall>,
    pub(super) session: Option<Arc<dyn Upstream>>,
    pub(super) connecting: Option<SpawnHandle>,
    /// The asking for a sign of life.
    pub(super) probing: Option<SpawnHandle>,
    /// What an attempt to connect brought; published with the state that follows from it.
    pub(super) attempt: Option<Attempt>,
    timer: Option<(Instant, SpawnHandle)>,
    load: (usize, usize),
    /// Makes lanes and fuses of names.
    hasher: RandomState,
}

/// The end of an attempt to connect.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// What the handshake told; none where there was none.
    pub(super) peer: Option<PeerInfo>,
}

impl fmt::Debug for ServerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerActor")
            .field("server", self.setup.handle.name())
            .field("generation", &self.generation)
            .field("state", &self.state.name())
            .finish_non_exhaustive()
    }
}

/// A call between its acceptance and its answer.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) ticket: Arc<Ticket>,
    pub(super) reply: oneshot::Sender<Reply>,
    pub(super) cancel: CancellationToken,
    pub(super) outcome: Option<Reply>,
    /// Ended by a drain rather than by its caller.
    pub(super) aborted: bool,
}

impl ServerActor {
    /// The incarnation `generation` of a server, started because of `cause`.
    pub(crate) fn new(setup: ServerSetup, generation: u64, cause: &'static str) -> Self {
        let now = runtime::now().into_std();
        let state = ServerState::new(setup.policy, Jitter::random(), cause, now);
        Self {
            setup,
            generation,
            state,
            calls: HashMap::new(),
            session: None,
            connecting: None,
            probing: None,
            attempt: None,
            timer: None,
            load: (0, 0),
            hasher: RandomState::new(),
        }
    }

    /// Feeds the state machine and carries out what it asks for.
    pub(super) fn apply(&mut self, input: Input, ctx: &mut Context<Self>) {
        if self.is_stale() {
            // It was replaced while it was frozen; its session and its calls are settled.
            ctx.stop();
            return;
        }
        let now = runtime::now().into_std();
        for effect in self.state.handle(input, now) {
            self.perform(effect, ctx);
        }
        self.publish(now);
        self.arm_timer(now, ctx);
    }

    /// Takes a call in.
    pub(super) fn take_call(
        &mut self,
        id: CallId,
        ticket: Arc<Ticket>,
        reply: oneshot::Sender<Reply>,
        ctx: &mut Context<Self>,
    ) {
        self.drop_abandoned(ctx);
        let deadline = ticket.ctx.deadline.instant().into_std();
        let read_only = ticket.read_only;
        let (lane, fuse) = (self.lane(&ticket), self.fuse(&ticket));
        let cancel = ticket.ctx.cancel.child_token();
        self.calls.insert(
            id,
            OpenCall {
                ticket,
                reply,
                cancel,
                outcome: None,
                aborted: false,
            },
        );
        self.apply(
            Input::Call {
                id,
                deadline,
                read_only,
                lane,
                fuse,
            },
            ctx,
        );
    }

    /// Whose turn the call takes: its token's.
    fn lane(&self, ticket: &Ticket) -> Lane {
        ticket.ctx.token.as_ref().map_or(Lane::NOBODY, |token| {
            // Never the lane of those without a token.
            Lane(self.hasher.hash_one(token) | 1)
        })
    }

    /// Where the errors of its tool are counted: by token, session and tool.
    fn fuse(&self, ticket: &Ticket) -> Option<FuseKey> {
        let session = ticket.ctx.session.as_ref()?;
        let whose = (&ticket.ctx.token, session, ticket.target.raw_name());
        Some(FuseKey(self.hasher.hash_one(whose)))
    }

    /// A caller has gone: its call is dropped before the wire, or cancelled on it.
    pub(super) fn caller_gone(&mut self, id: CallId, ctx: &mut Context<Self>) {
        if let Some(call) = self.calls.get(&id) {
            call.cancel.cancel();
            self.apply(Input::CallerGone(id), ctx);
        }
    }

    /// When the queue is full, callers that left without a word make room.
    fn drop_abandoned(&mut self, ctx: &mut Context<Self>) {
        if self.state.pending() < self.setup.policy.pending {
            return;
        }
        let gone: Vec<_> = self
            .calls
            .iter()
            .filter(|(_, call)| call.reply.is_closed() || call.cancel.is_cancelled())
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.caller_gone(id, ctx);
        }
    }

    fn publish(&mut self, now: Instant) {
        let handle = &self.setup.handle;
        let attempt = self.attempt.take();
        if attempt.is_some() || !handle.look(|shown| self.is_shown(shown, now)) {
            handle.publish(self.generation, self.state.cause(), |snapshot| {
                if let Some(attempt) = attempt {
                    snapshot.attempts_ended += 1;
                    snapshot.peer = attempt.peer.or_else(|| snapshot.peer.take());
                }
                self.show(snapshot, now);
            });
        }
        let load = (self.state.in_flight(), self.state.pending());
        if load != self.load {
            self.load = load;
            handle.publish_load(self.generation, load.0, load.1);
        }
    }

    fn is_shown(&self, snapshot: &Snapshot, now: Instant) -> bool {
        snapshot.state == self.state.name()
            && snapshot.next_attempt == self.state.next_attempt()
            && snapshot.reason.as_deref() == self.state.words()
            && snapshot.refusal == self.state.refusal()
            && snapshot.needs_reauth == self.state.needs_reauth()
            && snapshot.breaker == self.state.breaker(now)
            && snapshot.stale == (self.state.is_stale() || snapshot.is_outdated())
    }

    pub(super) fn show(&self, snapshot: &mut Snapshot, now: Instant) {
        snapshot.enter(self.state.name());
        snapshot.stale |= self.state.is_stale();
        snapshot.needs_reauth = self.state.needs_reauth();
        snapshot.breaker = self.state.breaker(now);
        snapshot.reason = self.state.words().map(str::to_owned);
        snapshot.next_attempt = self.state.next_attempt();
        snapshot.refusal = self.state.refusal();
        if snapshot.state.outlook() != Outlook::Up
            && let Some(peer) = &mut snapshot.peer
        {
            peer.pid = None;
        }
    }

    /// One timer at a time; one that fires early does no harm.
    fn arm_timer(&mut self, now: Instant, ctx: &mut Context<Self>) {
        let Some(wake) = self.state.next_wake(now) else {
            return;
        };
        match self.timer {
            Some((armed, _)) if armed <= wake => return,
            Some((_, handle)) => {
                ctx.cancel_future(handle);
            }
            None => {}
        }
        let wait = wake.saturating_duration_since(now);
        let handle = ctx.run_later(wait, |actor, ctx| {
            actor.timer = None;
            actor.apply(Input::Clock, ctx);
        });
        self.timer = Some((wake, handle));
    }

    /// Whether another incarnation has taken over.
    pub(super) fn is_stale(&self) -> bool {
        self.setup.handle.generation() != self.generation
    }
}

impl Actor for ServerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(self.setup.policy.pending + CONTROL_MESSAGES);
        self.setup.handle.open_route(self.generation, ctx.address());
        if self.setup.policy.lazy {
            self.recall(ctx);
        } else {
            self.apply(Input::Start { known: false }, ctx);
        }
    }

    /// The death notice; comes after a panic too, and must not panic itself.
    fn stopped(&mut self, _: &mut Self::Context) {
        let notice = ServerStopped {
            server: self.setup.handle.name().clone(),
            generation: self.generation,
            panicked: std::thread::panicking(),
        };
        if self.setup.supervisor.try_send(notice).is_err() {
            // The heartbeat finds out.
            tracing::warn!(server = %self.setup.handle.name(), "death notice not delivered");
        }
    }
}
