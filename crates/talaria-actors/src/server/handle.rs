//! The handle to one server: calls, snapshot and control, without knowing the actor.
//!
//! It outlives the actor. When an actor dies, calls that were not sent yet go to its successor;
//! calls that may have been sent fail with `outcome_uncertain`. When a reload changes the server,
//! another handle replaces this one, and takes the calls that were not sent yet.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::Addr;
use actix::dev::SendError;
use parking_lot::Mutex;
use talaria_config::{NamePrefix, ServerConfig, Trust};
use talaria_telemetry::events;
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, ServerName, runtime};
use tokio::sync::{oneshot, watch};

use crate::feed::{Feed, state_event};
use crate::server::actor::ServerActor;
use crate::server::messages::{CallTool, CancelCall, Drain, Reconnect, Reply, Ticket};
use crate::server::refusal;
use crate::server::snapshot::{Outlook, Snapshot, StateName};
use crate::server::state::CallId;
use crate::supervisor::plan::Patience;
use crate::upstream::Upstream;

/// How long a caller waits for the actor's own word after its deadline.
const GRACE: Duration = Duration::from_secs(3);

/// A cheap handle to one server.
#[derive(Clone, Debug)]
pub(crate) struct ServerHandle {
    shared: Arc<Shared>,
}

struct Shared {
    name: ServerName,
    network_transport: &'static str,
    prefix: NamePrefix,
    trust: Trust,
    ready_wait: Duration,
    /// How long calls wait while it begins.
    patience: Patience,
    connect_timeout: Duration,
    /// Set when the configuration does not allow the server to run at all.
    problem: Option<String>,
    route: watch::Sender<Route>,
    snapshot: watch::Sender<Snapshot>,
    /// Where changes of state are told, once the directory knows the server.
    feed: OnceLock<Feed>,
    /// The live session, so that it can be ended when its actor no longer can.
    session: Mutex<Option<Arc<dyn Upstream>>>,
    in_flight: AtomicUsize,
    pending: AtomicUsize,
    next_call: AtomicU64,
}

/// What a new handle is made from.
struct Parts {
    name: ServerName,
    network_transport: &'static str,
    prefix: NamePrefix,
    trust: Trust,
    ready_wait: Duration,
    patience: Patience,
    connect_timeout: Duration,
    problem: Option<String>,
    snapshot: Snapshot,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("name", &self.name)
            .field("state", &self.snapshot.borrow().state)
            .finish_non_exhaustive()
    }
}

/// The actor that serves now.
#[derive(Clone, Debug, Default)]
struct Route {
    generation: u64,
    address: Option<Addr<ServerActor>>,
    /// Who takes the calls since a reload changed the server.
    replacement: Option<ServerHandle>,
}

impl ServerHandle {
    /// A handle to a server that has no actor yet.
    pub(crate) fn new(
        config: &ServerConfig,
        ready_wait: Duration,
        patience: Patience,
        snapshot: Snapshot,
    ) -> Self {
        Self::from_parts(Parts {
            name: config.name.clone(),
            network_transport: config.transport.network_transport(),
            prefix: config.name_prefix,
            trust: config.trust,
            ready_wait,
            patience,
            connect_timeout: config.connect_timeout,
            problem: None,
            snapshot,
        })
    }

    /// A handle to a server that the configuration does not allow to run.
    pub(crate) fn broken(name: ServerName, problem: String) -> Self {
        let snapshot = Snapshot::new(StateName::Failed, Some(problem.clone()));
        Self::from_parts(Parts {
            name,
            network_transport: "",
            prefix: NamePrefix::Default,
            trust: Trust::Untrusted,
            ready_wait: Duration::ZERO,
            patience: Patience::default(),
            connect_timeout: Duration::ZERO,
            problem: Some(problem),
            snapshot,
        })
    }

    fn from_parts(parts: Parts) -> Self {
        let shared = Shared {
            name: parts.name,
            network_transport: parts.network_transport,
            prefix: parts.prefix,
            trust: parts.trust,
            ready_wait: parts.ready_wait,
            patience: parts.patience,
            connect_timeout: parts.connect_timeout,
            problem: parts.problem,
            route: watch::Sender::new(Route::default()),
            snapshot: watch::Sender::new(parts.snapshot),
            feed: OnceLock::new(),
            session: Mutex::new(None),
            in_flight: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            next_call: AtomicU64::new(1),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The raw name.
    pub(crate) fn name(&self) -> &ServerName {
        &self.shared.name
    }

    /// Whether both lead to the same server as it is configured now.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// `pipe`, `tcp`, or empty for a server that is not usable.
    pub(crate) fn network_transport(&self) -> &'static str {
        self.shared.network_transport
    }

    /// How its tools are named.
    pub(crate) fn prefix(&self) -> NamePrefix {
        self.shared.prefix
    }

    /// How long connecting may take; nothing for a server that is not usable.
    pub(crate) fn connect_timeout(&self) -> Duration {
        self.shared.connect_timeout
    }

    /// Whether a call may be made as far as trust goes: on a server that is not trusted, only
    /// what just reads, or what the caller approved (specification 6.7).
    ///
    /// # Errors
    /// `forbidden` otherwise.
    pub(crate) fn check_trust(&self, ctx: &CallContext, read_only: bool) -> Result<(), Failure> {
        let trusted = match self.shared.trust {
            Trust::Full => true,
            Trust::Untrusted => false,
        };
        if trusted || read_only || ctx.approved {
            return Ok(());
        }
        Err(refusal::not_approved(self.name()))
    }

    /// What is known of it now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.shared.snapshot.borrow().clone()
    }

    /// Looks at the snapshot without copying it.
    pub(crate) fn look<R>(&self, at: impl FnOnce(&Snapshot) -> R) -> R {
        at(&self.shared.snapshot.borrow())
    }

    /// RPCs that run and calls that wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let shared = &self.shared;
        (
            shared.in_flight.load(Ordering::Relaxed),
            shared.pending.load(Ordering::Relaxed),
        )
    }

    /// `server_misconfigured` where the configuration does not allow the server to run.
    ///
    /// # Errors
    /// That one.
    pub(crate) fn check_usable(&self) -> Result<(), Failure> {
        match &self.shared.problem {
            None => Ok(()),
            Some(problem) => Err(Failure::new(
                ErrorCode::ServerMisconfigured,
                format!(
                    "server '{}' cannot be used as configured: {problem}",
                    self.shared.name
                ),
            )
            .on_server(&self.shared.name)),
        }
    }

    /// Waits until the snapshot fits, or the deadline passes; answers with the last one.
    pub(crate) async fn watch_until(
        &self,
        deadline: Deadline,
        fits: impl FnMut(&Snapshot) -> bool,
    ) -> Snapshot {
        let mut snapshots = self.shared.snapshot.subscribe();
        let waiting = snapshots.wait_for(fits);
        if let Ok(Ok(fitting)) = tokio::time::timeout_at(deadline.instant(), waiting).await {
            return fitting.clone();
        }
        self.snapshot()
    }

    /// Asks for a new session.
    ///
    /// # Errors
    /// `server_unavailable` when there is no actor.
    pub(crate) async fn reconnect(&self, deadline: Deadline) -> Result<(), Failure> {
        let Some(address) = self.address() else {
            return Err(self.not_ready());
        };
        match tokio::time::timeout_at(deadline.instant(), address.send(Reconnect)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(self.not_ready()),
        }
    }

    /// Makes a call. Dropping the future cancels it, on the wire too.
    ///
    /// # Errors
    /// Any transport-level failure; a tool's own error is an answer.
    pub(crate) async fn call(&self, ticket: Ticket) -> Reply {
        let ticket = Arc::new(ticket);
        let mut server = self.clone();
        loop {
            let reply = server.call_here(&ticket).await;
            let passed_on = reply.is_err() && !ticket.may_be_sent() && !ticket.is_over();
            let Some(next) = passed_on.then(|| server.replacement()).flatten() else {
                return reply;
            };
            // The new entry may trust the server less.
            next.check_trust(&ticket.ctx, ticket.read_only)?;
            server = next;
        }
    }

    async fn call_here(&self, ticket: &Arc<Ticket>) -> Reply {
        self.check_usable()?;
        let deadline = ticket.ctx.deadline;
        let mut replayed = false;
        let mut route = self.shared.route.subscribe();
        loop {
            let ready_by = Deadline::after(self.wait_for_actor()).earlier(deadline);
            let (generation, address) = self.reach(&mut route, ready_by).await?;
            let attempt = match self.hand_in(ticket, &address) {
                Ok(attempt) => attempt,
                Err(SendError::Full(_)) => return Err(refusal::busy(self.name())),
                Err(SendError::Closed(_)) => {
                    self.successor(&mut route, generation, ready_by).await?;
                    continue;
                }
            };
            match self.wait(attempt, &mut route, generation, ticket).await {
                Waited::Reply(reply) => return reply,
                Waited::ActorGone if !ticket.may_be_sent() => {}
                Waited::ActorGone if ticket.read_only && !replayed => {
                    replayed = true;
                    ticket.mark_sent(false);
                }
                Waited::ActorGone => {
                    return Err(ticket.judge(refusal::connection_lost(self.name())));
                }
            }
            if deadline.expired() {
                return Err(self.not_ready());
            }
        }
    }

    fn hand_in(
        &self,
        ticket: &Arc<Ticket>,
        address: &Addr<ServerActor>,
    ) -> Result<Attempt, SendError<CallTool>> {
        let id = CallId(self.shared.next_call.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        address.try_send(CallTool {
            id,
            ticket: Arc::clone(ticket),
            reply,
        })?;
        let departure = Departure {
            address: address.clone(),
            id,
            armed: true,
        };
        Ok(Attempt { answer, departure })
    }

    async fn wait(
        &self,
        mut attempt: Attempt,
        route: &mut watch::Receiver<Route>,
        generation: u64,
        ticket: &Ticket,
    ) -> Waited {
        let patience = tokio::time::sleep_until(ticket.ctx.deadline.instant() + GRACE);
        tokio::select! {
            biased;
            reply = &mut attempt.answer => {
                attempt.departure.armed = false;
                reply.map_or(Waited::ActorGone, Waited::Reply)
            }
            () = ticket.ctx.cancel.cancelled() => {
                Waited::Reply(Err(ticket.judge(refusal::cancelled(self.name()))))
            }
            _ = route.wait_for(|route| route.generation != generation) => Waited::ActorGone,
            () = patience => {
                events::deadline_exceeded("rpc");
                Waited::Reply(Err(self.silent(ticket)))
            }
        }
    }

    /// The actor did not keep the deadline itself.
    fn silent(&self, ticket: &Ticket) -> Failure {
        let failure = Failure::new(
            ErrorCode::Timeout,
            format!(
                "the call to server '{}' timed out; the server's loop did not answer",
                self.name()
            ),
        )
        .on_server(self.name());
        ticket.judge(failure)
    }

    async fn reach(
        &self,
        route: &mut watch::Receiver<Route>,
        ready_by: Deadline,
    ) -> Result<(u64, Addr<ServerActor>), Failure> {
        let current = route.borrow_and_update().clone();
        if let Some(address) = current.address {
            return Ok((current.generation, address));
        }
        if current.replacement.is_some() {
            return Err(self.not_ready());
        }
        let mut snapshots = self.shared.snapshot.subscribe();
        let given_up = snapshots.wait_for(|seen| is_hopeless(seen.state));
        let arrival =
            route.wait_for(|route| route.address.is_some() || route.replacement.is_some());
        let waiting = async {
            tokio::select! {
                biased;
                _ = given_up => Route::default(),
                arrived = arrival => arrived.map(|route| route.clone()).unwrap_or_default(),
            }
        };
        let arrived = tokio::time::timeout_at(ready_by.instant(), waiting).await;
        match arrived.unwrap_or_default() {
            Route {
                generation,
                address: Some(address),
                ..
            } => Ok((generation, address)),
            Route { .. } => Err(self.not_ready()),
        }
    }

    /// How long a call waits for an actor: longer while the first one has not begun to connect.
    fn wait_for_actor(&self) -> Duration {
        if self.look(|seen| seen.starts == 0) {
            self.shared.patience.for_actor
        } else {
            self.shared.ready_wait
        }
    }

    /// How long a call waits for the list of its tools.
    fn wait_for_list(&self) -> Duration {
        let Patience {
            for_actor,
            for_session,
        } = self.shared.patience;
        if self.look(|seen| seen.attempts_ended == 0) {
            for_actor.max(for_session)
        } else {
            self.shared.ready_wait
        }
    }

    /// Waits until the server, or what takes its place, has listed its tools or will not do so
    /// soon; answers with the one that stands there then.
    pub(crate) async fn listed(&self, deadline: Deadline) -> Self {
        let decided = |seen: &Snapshot| match seen.state.outlook() {
            Outlook::Up | Outlook::Soon => seen.listed,
            Outlook::Down => true,
        };
        let mut server = self.clone();
        loop {
            let by = Deadline::after(server.wait_for_list()).earlier(deadline);
            let mut route = server.shared.route.subscribe();
            let replaced = route.wait_for(|route| route.replacement.is_some());
            tokio::select! {
                _ = replaced => {}
                _ = server.watch_until(by, decided) => {}
            }
            match server.replacement() {
                Some(next) if !deadline.expired() => server = next,
                Some(_) | None => return server,
            }
        }
    }

    /// Waits until the route no longer leads to a dead actor; fails where it will not change.
    async fn successor(
        &self,
        route: &mut watch::Receiver<Route>,
        generation: u64,
        ready_by: Deadline,
    ) -> Result<(), Failure> {
        let change =
            route.wait_for(|route| route.generation != generation || route.replacement.is_some());
        match tokio::time::timeout_at(ready_by.instant(), change).await {
            Ok(Ok(route)) if route.generation != generation => Ok(()),
            Ok(Ok(_) | Err(_)) | Err(_) => Err(self.not_ready()),
        }
    }

    fn not_ready(&self) -> Failure {
        refusal::not_ready(self.name(), &self.snapshot())
    }

    /// The handle that took this one's place, once a reload changed the server.
    pub(crate) fn replacement(&self) -> Option<Self> {
        self.shared.route.borrow().replacement.clone()
    }

    /// The actor that serves now.
    pub(crate) fn address(&self) -> Option<Addr<ServerActor>> {
        self.shared.route.borrow().address.clone()
    }
}

/// What only the actor and its supervisor do.
impl ServerHandle {
    /// The number of the current incarnation.
    pub(crate) fn generation(&self) -> u64 {
        self.shared.route.borrow().generation
    }

    /// Tells changes of state to `feed` from now on.
    pub(crate) fn tell(&self, feed: &Feed) {
        self.shared.feed.get_or_init(|| feed.clone());
    }

    /// Tells the metrics of the state it begins with, and of `usual`, the cause where the
    /// configuration alone is none.
    pub(crate) fn announce(&self, usual: &'static str) {
        self.look(|shown| {
            let cause = match shown.state {
                StateName::Failed => ErrorCode::ServerMisconfigured.as_str(),
                StateName::Disabled => "config",
                StateName::Configured
                | StateName::Connecting
                | StateName::Ready
                | StateName::Degraded
                | StateName::Backoff
                | StateName::Parked
                | StateName::Draining
                | StateName::Stopped => usual,
            };
            let to = shown.state.as_str();
            events::server_state_changed(self.name(), StateName::Stopped.as_str(), to, cause);
        });
    }

    /// Tells the metrics that it begins afresh, where another stood before.
    pub(crate) fn announce_afresh(&self) {
        let breaker = self.look(|shown| shown.breaker.as_str());
        events::server_breaker_changed(self.name(), breaker);
        let (in_flight, pending) = self.load();
        events::server_load(self.name(), in_flight, pending);
    }

    /// Hands the calls that were not sent yet, and those to come, to `next`. What runs goes on
    /// here; what others see is from now on what `next` shows.
    pub(crate) fn replace_with(&self, next: &Self) {
        // The number of an incarnation stands for one actor of this name, whatever its handle.
        let generation = self.generation();
        next.shared
            .route
            .send_modify(|route| route.generation = generation + 1);
        self.shared
            .route
            .send_modify(|route| route.replacement = Some(next.clone()));
    }

    /// Whether others see what this handle shows.
    fn is_shown(&self) -> bool {
        self.shared.route.borrow().replacement.is_none()
    }

    /// Ends the current incarnation; the next one has the number returned.
    pub(crate) fn retire(&self) -> u64 {
        let mut next = 0;
        self.shared.route.send_modify(|route| {
            route.generation += 1;
            route.address = None;
            next = route.generation;
        });
        next
    }

    /// Opens the route to an actor, if it is the current incarnation.
    pub(crate) fn open_route(&self, generation: u64, address: Addr<ServerActor>) {
        self.shared.route.send_if_modified(|route| {
            let current = route.generation == generation;
            if current {
                route.address = Some(address);
            }
            current
        });
    }

    /// Changes what others see, if asked by the current incarnation. `cause` is the label of a
    /// change of state.
    pub(crate) fn publish(
        &self,
        generation: u64,
        cause: &'static str,
        change: impl FnOnce(&mut Snapshot),
    ) {
        if self.generation() != generation {
            return;
        }
        self.shared.snapshot.send_modify(|snapshot| {
            let (before, breaker) = (snapshot.state, snapshot.breaker.as_str());
            change(snapshot);
            if breaker != snapshot.breaker.as_str() && self.is_shown() {
                events::server_breaker_changed(&self.shared.name, snapshot.breaker.as_str());
            }
            if before != snapshot.state && self.is_shown() {
                let (from, to) = (before.as_str(), snapshot.state.as_str());
                events::server_state_changed(&self.shared.name, from, to, cause);
                snapshot.since = Some(runtime::wall_clock());
                if let Some(feed) = self.shared.feed.get() {
                    feed.say(state_event(
                        &self.shared.name,
                        from,
                        to,
                        snapshot.reason.as_ref(),
                    ));
                }
                if let Some(words) = &snapshot.reason {
                    tracing::info!(server = %self.shared.name, state = to, "{words}");
                }
            }
        });
    }

    /// Publishes the load, if asked by the current incarnation.
    pub(crate) fn publish_load(&self, generation: u64, in_flight: usize, pending: usize) {
        if self.generation() == generation {
            self.shared.in_flight.store(in_flight, Ordering::Relaxed);
            self.shared.pending.store(pending, Ordering::Relaxed);
            if self.is_shown() {
                events::server_load(&self.shared.name, in_flight, pending);
            }
        }
    }

    /// Keeps the session where the supervisor finds it.
    pub(crate) fn keep_session(&self, generation: u64, session: Option<Arc<dyn Upstream>>) {
        if self.generation() == generation {
            *self.shared.session.lock() = session;
        }
    }

    /// Takes the session of a dead actor.
    pub(crate) fn take_session(&self) -> Option<Arc<dyn Upstream>> {
        self.shared.session.lock().take()
    }

    /// Asks the actor to drain; waits until the deadline for the actor to exist and for a place
    /// in its mailbox.
    pub(crate) async fn begin_drain(
        &self,
        deadline: Deadline,
        until: Deadline,
        refusal: ErrorCode,
    ) {
        let message = Drain {
            until: until.instant(),
            refusal,
        };
        let asking = async {
            let mut route = self.shared.route.subscribe();
            let arrival = route.wait_for(|route| route.address.is_some()).await;
            let address = arrival.ok().and_then(|route| route.address.clone());
            match address {
                Some(address) => address.send(message).await.is_ok(),
                None => false,
            }
        };
        if !matches!(
            tokio::time::timeout_at(deadline.instant(), asking).await,
            Ok(true)
        ) {
            tracing::warn!(server = %self.name(), "server actor does not take the drain request");
        }
    }
}

/// Whether no actor is to be waited for.
const fn is_hopeless(state: StateName) -> bool {
    match state {
        StateName::Disabled | StateName::Stopped | StateName::Parked | StateName::Failed => true,
        StateName::Configured
        | StateName::Connecting
        | StateName::Ready
        | StateName::Degraded
        | StateName::Backoff
        | StateName::Draining => false,
    }
}

/// A call at an actor.
#[derive(Debug)]
struct Attempt {
    answer: oneshot::Receiver<Reply>,
    departure: Departure,
}

enum Waited {
    Reply(Reply),
    ActorGone,
}

/// Tells the actor when the caller leaves without an answer.
#[derive(Debug)]
struct Departure {
    address: Addr<ServerActor>,
    id: CallId,
    armed: bool,
}

impl Drop for Departure {
    fn drop(&mut self) {
        // A full mailbox is no loss: the actor sees that nobody waits when the call's turn comes.
        if self.armed && self.address.try_send(CancelCall(self.id)).is_err() {
            tracing::debug!(call = self.id.0, "cancellation not delivered");
        }
    }
}
