//! The supervisor actor.
//!
//! Owns: which servers run, their threads, their restarts after a panic or a freeze.
//! Accepts: `ServerStopped`, `SwitchServer`, `DrainAll`, `StopSupervisor`.
//! Emits: `Drain` and `Probe` to server actors, snapshots of servers that have no actor.
//! Never: carries a call, waits for a server inside a handler.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, Arbiter, AsyncContext, Context, Handler,
    ResponseActFuture, SpawnHandle,
};
use futures_util::future::join_all;
use parking_lot::Mutex;
use talaria_config::{ServerConfig, ServerEntry};
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, Failure, ServerName, runtime};

use crate::backoff::Jitter;
use crate::directory::Directory;
use crate::directory::naming::Namespace;
use crate::server::ServerHandle;
use crate::server::actor::{ServerActor, ServerSetup};
use crate::server::messages::{Probe, ServerStopped};
use crate::server::snapshot::{Snapshot, StateName};
use crate::supervisor::handle::{Limits, SupervisorHandle};
use crate::supervisor::lifeline::{Lifeline, Verdict};
use crate::supervisor::messages::{DrainAll, StopSupervisor, Switch, SwitchServer};
use crate::supervisor::plan::Timing;
use crate::supervisor::{Parts, Placement};

/// Death notices and commands that may wait.
const MAILBOX: usize = 1024;
/// How long a server may take to stop once its calls are over.
const STOP_OVERRUN: Duration = Duration::from_secs(15);

/// The actor.
pub(crate) struct SupervisorActor {
    parts: Parts,
    directory: Arc<Directory>,
    servers: BTreeMap<ServerName, Governed>,
    draining: bool,
}

impl fmt::Debug for SupervisorActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorActor")
            .field("servers", &self.servers.keys())
            .field("draining", &self.draining)
            .finish_non_exhaustive()
    }
}

/// One usable server.
struct Governed {
    config: Arc<ServerConfig>,
    handle: ServerHandle,
    lifeline: Lifeline,
    wanted: Switch,
    life: Life,
    arbiter: Option<Arbiter>,
    probing: bool,
}

/// Whether there is an actor.
enum Life {
    None,
    Running,
    /// One will be started.
    Scheduled(SpawnHandle),
}

/// Starts the supervisor and, through it, every enabled server.
pub(crate) fn start(parts: &Parts) -> SupervisorHandle {
    let usable = parts
        .config
        .servers
        .iter()
        .filter_map(|(name, entry)| match entry {
            ServerEntry::Usable(server) => Some((name, server.name_prefix)),
            ServerEntry::Broken { .. } => None,
        });
    let directory = Arc::new(Directory::new(Namespace::of(usable)));
    let limits = Limits {
        max_call_duration: parts.config.talaria.calls.max_call_duration,
        pending_per_token: parts.config.talaria.limits.pending_per_token,
        ready_wait: parts.timing.ready_wait,
        stop_within: parts.timing.close_within + STOP_OVERRUN,
    };
    let blocking = parts.blocking.clone();
    let servers = governed(parts, &directory);
    let actor = SupervisorActor {
        parts: parts.clone(),
        directory: Arc::clone(&directory),
        servers,
        draining: false,
    };
    let (address, arbiter) = match parts.placement {
        Placement::Current => (actor.start(), None),
        Placement::OwnArbiters => {
            let arbiter = Arbiter::new();
            (
                Actor::start_in_arbiter(&arbiter.handle(), |_| actor),
                Some(arbiter),
            )
        }
    };
    SupervisorHandle::new(address, directory, limits, blocking, Mutex::new(arbiter))
}

fn governed(parts: &Parts, directory: &Directory) -> BTreeMap<ServerName, Governed> {
    let mut servers = BTreeMap::new();
    for (name, entry) in &parts.config.servers {
        match entry {
            ServerEntry::Broken { problem } => {
                directory.add_server(ServerHandle::broken(name.clone(), problem.clone()));
            }
            ServerEntry::Usable(config) => {
                let server = Governed::new(Arc::new(config.as_ref().clone()), &parts.timing);
                directory.add_server(server.handle.clone());
                servers.insert(name.clone(), server);
            }
        }
    }
    servers
}

impl Governed {
    fn new(config: Arc<ServerConfig>, timing: &Timing) -> Self {
        let (wanted, snapshot) = if config.enabled {
            (Switch::On, Snapshot::new(StateName::Starting, None))
        } else {
            let words = "disabled in the configuration".to_owned();
            (Switch::Off, Snapshot::new(StateName::Disabled, Some(words)))
        };
        let handle = ServerHandle::new(
            config.name.clone(),
            &config.transport,
            config.name_prefix,
            timing.ready_wait,
            snapshot,
        );
        let lifeline = Lifeline::new(timing.budget, Jitter::random());
        Self {
            config,
            handle,
            lifeline,
            wanted,
            life: Life::None,
            arbiter: None,
            probing: false,
        }
    }
}

impl SupervisorActor {
    fn start_server(&mut self, name: &ServerName, ctx: &Context<Self>) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        let setup = ServerSetup {
            config: Arc::clone(&server.config),
            handle: server.handle.clone(),
            connector: Arc::clone(&self.parts.connector),
            directory: Arc::clone(&self.directory),
            blocking: self.parts.blocking.clone(),
            supervisor: ctx.address().recipient(),
            policy: self
                .parts
                .timing
                .policy(&server.config, &self.parts.config.talaria.limits),
            close_within: self.parts.timing.close_within,
        };
        let generation = server.handle.retire();
        server.lifeline.started(runtime::now().into_std());
        server.life = Life::Running;
        server.probing = false;
        let actor = ServerActor::new(setup, generation);
        // The actor opens its route itself, once its mailbox has its real capacity.
        match self.parts.placement {
            Placement::Current => drop(actor.start()),
            Placement::OwnArbiters => {
                let arbiter = server.arbiter.get_or_insert_with(Arbiter::new);
                drop(ServerActor::start_in_arbiter(&arbiter.handle(), |_| actor));
            }
        }
    }

    fn actor_died(&mut self, name: &ServerName, cause: Death, ctx: &mut Context<Self>) {
        let draining = self.draining;
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        let generation = server.handle.retire();
        server.life = Life::None;
        server.handle.publish_load(generation, 0, 0);
        if let Some(session) = server.handle.take_session() {
            close_orphan(session, self.parts.timing.close_within, ctx);
        }
        if cause == Death::Frozen {
            // The thread may never come back, so it is not joined either.
            if let Some(arbiter) = server.arbiter.take() {
                arbiter.stop();
            }
        }
        if draining {
            server.show(generation, StateName::Stopped, "drain", None, None);
            return;
        }
        if server.wanted == Switch::Off {
            self.directory.withdraw(name);
            server.park(generation);
            return;
        }
        if cause == Death::Finished {
            // Enabled again while it drained.
            self.start_server(name, ctx);
            return;
        }
        let now = runtime::now().into_std();
        let (state, wait) = match server.lifeline.died(now) {
            Verdict::Restart(wait) => (StateName::Backoff, wait),
            Verdict::Probe(wait) => (StateName::Failed, wait),
        };
        tracing::error!(server = %name, cause = cause.as_str(), "server actor died");
        server.show(
            generation,
            state,
            cause.as_str(),
            Some(cause.words()),
            Some(now + wait),
        );
        let restart = name.clone();
        let scheduled = ctx.run_later(wait, move |actor, ctx| {
            actor.start_server(&restart, ctx);
        });
        server.life = Life::Scheduled(scheduled);
    }

    /// Asks every server actor for a sign of life.
    fn heartbeat(&mut self, ctx: &mut Context<Self>) {
        let frozen_after = self.parts.timing.frozen_after;
        for (name, server) in &mut self.servers {
            let Some(address) = server.handle.address() else {
                continue;
            };
            if server.probing {
                continue;
            }
            server.probing = true;
            let name = name.clone();
            let generation = server.handle.generation();
            let probe = tokio::time::timeout(frozen_after, address.send(Probe));
            let probed = wrap_future::<_, Self>(probe).map(move |answer, actor, ctx| {
                let pulse = match answer {
                    Ok(Ok(())) => Pulse::Beats,
                    // Its death notice is on its way, or was lost.
                    Ok(Err(_)) => Pulse::Gone,
                    Err(_) => Pulse::Missing,
                };
                actor.probed(&name, generation, pulse, ctx);
            });
            ctx.spawn(probed);
        }
        ctx.run_later(self.parts.timing.heartbeat, Self::heartbeat);
    }

    fn probed(
        &mut self,
        name: &ServerName,
        generation: u64,
        pulse: Pulse,
        ctx: &mut Context<Self>,
    ) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        if server.handle.generation() != generation {
            return;
        }
        server.probing = false;
        match pulse {
            Pulse::Beats => {}
            Pulse::Gone => self.actor_died(name, Death::Vanished, ctx),
            Pulse::Missing => self.actor_died(name, Death::Frozen, ctx),
        }
    }

    fn switch_on(&mut self, name: &ServerName, ctx: &mut Context<Self>) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        server.wanted = Switch::On;
        match server.life {
            Life::None => {}
            // An operator does not wait for the back-off.
            Life::Scheduled(restart) => {
                ctx.cancel_future(restart);
            }
            // While it drains, its end starts it again.
            Life::Running => return,
        }
        let generation = server.handle.generation();
        server.handle.publish(generation, "operator", |snapshot| {
            snapshot.state = StateName::Starting;
            snapshot.reason = None;
            snapshot.next_attempt = None;
        });
        self.start_server(name, ctx);
    }

    fn switch_off(&mut self, name: &ServerName, ctx: &mut Context<Self>) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        server.wanted = Switch::Off;
        match std::mem::replace(&mut server.life, Life::None) {
            Life::None => {}
            Life::Scheduled(restart) => {
                ctx.cancel_future(restart);
                self.directory.withdraw(name);
                server.park(server.handle.generation());
            }
            Life::Running => {
                server.life = Life::Running;
                let until = Deadline::after(self.parts.timing.disable_within);
                let handle = server.handle.clone();
                let asking = async move {
                    handle
                        .begin_drain(until, until, ErrorCode::ServerDisabled)
                        .await;
                };
                ctx.spawn(wrap_future::<_, Self>(asking));
            }
        }
    }

    fn idle_arbiters(&mut self) -> Vec<Arbiter> {
        self.servers
            .values_mut()
            .filter(|server| !matches!(server.life, Life::Running))
            .filter_map(|server| server.arbiter.take())
            .collect()
    }
}

impl Governed {
    /// Publishes the state of a server that has no actor.
    fn show(
        &self,
        generation: u64,
        state: StateName,
        cause: &'static str,
        words: Option<String>,
        next_attempt: Option<std::time::Instant>,
    ) {
        self.handle.publish(generation, cause, |snapshot| {
            snapshot.state = state;
            snapshot.reason = words;
            snapshot.next_attempt = next_attempt;
            snapshot.attempts_ended += 1;
            if let Some(peer) = &mut snapshot.peer {
                peer.pid = None;
            }
        });
    }

    /// Shows it as disabled and lets its thread go.
    fn park(&mut self, generation: u64) {
        let words = Some("disabled by an operator".to_owned());
        self.show(generation, StateName::Disabled, "operator", words, None);
        self.handle.publish(generation, "operator", |snapshot| {
            snapshot.tools = 0;
            snapshot.listed = false;
        });
        if let Some(arbiter) = self.arbiter.take() {
            arbiter.stop();
        }
    }
}

/// What a heartbeat found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pulse {
    /// It answered.
    Beats,
    /// There is no actor.
    Gone,
    /// There is one that does not answer.
    Missing,
}

/// How an actor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// By its own decision, after a drain.
    Finished,
    /// Of a panic.
    Panicked,
    /// It does not read its mailbox.
    Frozen,
    /// Without a word.
    Vanished,
}

impl Death {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "drain",
            Self::Panicked | Self::Vanished => "panic",
            Self::Frozen => "frozen",
        }
    }

    fn words(self) -> String {
        match self {
            Self::Finished => String::new(),
            Self::Panicked | Self::Vanished => "restarting after a fault inside Talaria".to_owned(),
            Self::Frozen => "restarting because its loop stopped answering".to_owned(),
        }
    }
}

/// Ends the session of an actor that can no longer do it.
fn close_orphan(
    session: Arc<dyn crate::upstream::Upstream>,
    within: Duration,
    ctx: &mut Context<SupervisorActor>,
) {
    let closing = async move {
        let closing = session.close(Deadline::after(within));
        if tokio::time::timeout(within + STOP_OVERRUN, closing)
            .await
            .is_err()
        {
            tracing::warn!("the session of a dead actor did not close in time");
        }
    };
    ctx.spawn(wrap_future(closing));
}

impl Actor for SupervisorActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        let enabled: Vec<_> = self
            .servers
            .iter()
            .filter(|(_, server)| server.wanted == Switch::On)
            .map(|(name, _)| name.clone())
            .collect();
        for name in enabled {
            self.start_server(&name, ctx);
        }
        ctx.run_later(self.parts.timing.heartbeat, Self::heartbeat);
    }
}

impl Handler<ServerStopped> for SupervisorActor {
    type Result = ();

    fn handle(&mut self, notice: ServerStopped, ctx: &mut Context<Self>) {
        let current = self
            .servers
            .get(&notice.server)
            .is_some_and(|server| server.handle.generation() == notice.generation);
        if current {
            let cause = if notice.panicked {
                Death::Panicked
            } else {
                Death::Finished
            };
            self.actor_died(&notice.server, cause, ctx);
        }
    }
}

impl Handler<SwitchServer> for SupervisorActor {
    type Result = Result<(), Failure>;

    fn handle(&mut self, switch: SwitchServer, ctx: &mut Context<Self>) -> Self::Result {
        if self.draining {
            return self.directory.check_open();
        }
        match switch.to {
            Switch::On => self.switch_on(&switch.server, ctx),
            Switch::Off => self.switch_off(&switch.server, ctx),
        }
        Ok(())
    }
}

impl Handler<DrainAll> for SupervisorActor {
    type Result = ResponseActFuture<Self, Vec<Arbiter>>;

    fn handle(&mut self, drain: DrainAll, ctx: &mut Context<Self>) -> Self::Result {
        self.draining = true;
        let until = Deadline::at(drain.until);
        let stop_by = Deadline::at(drain.until + self.parts.timing.close_within + STOP_OVERRUN);
        let mut stopping = Vec::new();
        for server in self.servers.values_mut() {
            match &server.life {
                Life::Running => stopping.push(server.handle.clone()),
                Life::None => {}
                Life::Scheduled(restart) => {
                    ctx.cancel_future(*restart);
                    server.life = Life::None;
                    let generation = server.handle.generation();
                    server.show(generation, StateName::Stopped, "drain", None, None);
                }
            }
        }
        let stopped = join_all(
            stopping
                .into_iter()
                .map(|server| stop(server, until, stop_by)),
        );
        // The death notices, sent before the actors are gone, are handled before this answers.
        Box::pin(wrap_future(stopped).map(|_, actor: &mut Self, _| actor.idle_arbiters()))
    }
}

/// Drains one server and waits until it has stopped.
async fn stop(server: ServerHandle, until: Deadline, stop_by: Deadline) {
    let stopped = server.watch_until(stop_by, |seen| seen.state == StateName::Stopped);
    tokio::pin!(stopped);
    let last = tokio::select! {
        biased;
        // It may die on its own meanwhile.
        last = &mut stopped => last,
        () = server.begin_drain(stop_by, until, ErrorCode::ShuttingDown) => stopped.await,
    };
    if last.state != StateName::Stopped {
        events::deadline_exceeded("drain");
        tracing::error!(server = %server.name(), "server did not stop in time");
    }
}

impl Handler<StopSupervisor> for SupervisorActor {
    type Result = ();

    fn handle(&mut self, _: StopSupervisor, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

/// The supervisor's address.
pub(crate) type SupervisorAddress = Addr<SupervisorActor>;
