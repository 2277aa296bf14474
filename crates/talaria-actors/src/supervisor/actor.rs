//! The supervisor actor.
//!
//! Owns: which servers run, their threads, their restarts after a panic or a freeze.
//! Accepts: `ServerStopped`, `SwitchServer`, `Reload`, `DrainAll`, `StopSupervisor`, `Probe`.
//! Emits: `Drain` and `Probe` to server actors, snapshots of servers that have no actor.
//! Never: carries a call, waits for a server inside a handler.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{Actor, ActorFutureExt, Addr, Arbiter, AsyncContext, Context};
use parking_lot::Mutex;
use talaria_config::ServerEntry;
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, ServerName, runtime};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::directory::Directory;
use crate::server::ServerHandle;
use crate::server::actor::ServerSetup;
use crate::server::messages::Probe;
use crate::server::schemas::Schemas;
use crate::server::snapshot::StateName;
use crate::server::state::Policy;
use crate::supervisor::difference::Entries;
use crate::supervisor::governed::{Death, Governed, Life};
use crate::supervisor::handle::{Limits, SupervisorHandle};
use crate::supervisor::lifeline::Verdict;
use crate::supervisor::messages::Switch;
use crate::supervisor::reload::{Leaving, namespace};
use crate::supervisor::{Parts, Placement};
use crate::upstream::Upstream;

/// Death notices and commands that may wait.
const MAILBOX: usize = 1024;
/// How long a server may take to stop once its calls are over, besides closing its session.
pub(super) const STOP_OVERRUN: Duration = Duration::from_secs(15);

/// The supervisor's address.
pub(crate) type SupervisorAddress = Addr<SupervisorActor>;

/// The actor.
pub(crate) struct SupervisorActor {
    pub(super) parts: Parts,
    pub(super) directory: Arc<Directory>,
    /// What is configured now.
    pub(super) entries: Entries,
    pub(super) servers: BTreeMap<ServerName, Governed>,
    /// Servers that a reload removed or replaced and that are not over yet.
    pub(super) leaving: Vec<Leaving>,
    pub(super) schemas: Arc<Schemas>,
    pub(super) draining: bool,
    /// Tells the handle that it has ended, however it did.
    pub(super) _ended: DropGuard,
}

impl fmt::Debug for SupervisorActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorActor")
            .field("servers", &self.servers.keys())
            .field("draining", &self.draining)
            .finish_non_exhaustive()
    }
}

/// Starts the supervisor and, through it, every enabled server.
pub(crate) fn start(parts: &Parts) -> SupervisorHandle {
    let entries = parts.config.servers.clone();
    let directory = Arc::new(Directory::new(namespace(&entries)));
    let limits = Limits {
        max_call_duration: parts.config.talaria.calls.max_call_duration,
        pending_per_token: parts.config.talaria.limits.pending_per_token,
        stop_within: parts.timing.close_within + STOP_OVERRUN,
    };
    let servers = governed(parts, &directory);
    for server in directory.servers() {
        server.announce("added");
    }
    let ended = CancellationToken::new();
    let actor = SupervisorActor {
        parts: parts.clone(),
        directory: Arc::clone(&directory),
        entries,
        servers,
        leaving: Vec::new(),
        schemas: Arc::new(Schemas::below(&parts.config.talaria.home)),
        draining: false,
        _ended: ended.clone().drop_guard(),
    };
    let (address, arbiter) = match parts.placement {
        Placement::Current => (actor.start(), None),
        Placement::OwnArbiters => {
            let arbiter = Arbiter::new();
            let address = Actor::start_in_arbiter(&arbiter.handle(), |_| actor);
            (address, Some(arbiter))
        }
    };
    SupervisorHandle::new(address, directory, limits, ended, Mutex::new(arbiter))
}

fn governed(parts: &Parts, directory: &Directory) -> BTreeMap<ServerName, Governed> {
    let mut servers = BTreeMap::new();
    for (name, entry) in &parts.config.servers {
        match entry {
            ServerEntry::Broken { problem } => {
                directory.add_server(ServerHandle::broken(name.clone(), problem.clone()));
            }
            ServerEntry::Usable(config) => {
                let config = Arc::new(config.as_ref().clone());
                let server = Governed::new(config, &parts.timing, parts.timing.patience());
                directory.add_server(server.handle.clone());
                servers.insert(name.clone(), server);
            }
        }
    }
    servers
}

impl SupervisorActor {
    pub(super) fn start_server(
        &mut self,
        name: &ServerName,
        cause: &'static str,
        ctx: &mut Context<Self>,
    ) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        let timing = &self.parts.timing;
        let setup = ServerSetup {
            config: Arc::clone(&server.config),
            handle: server.handle.clone(),
            connector: Arc::clone(&self.parts.connector),
            directory: Arc::clone(&self.directory),
            schemas: Arc::clone(&self.schemas),
            blocking: self.parts.blocking.clone(),
            supervisor: ctx.address().recipient(),
            policy: Policy {
                first_wait: server.patience.for_session,
                ..timing.policy(&server.config, &self.parts.config.talaria)
            },
            close_within: timing.close_within,
        };
        // One that starts again has nobody's callers to take over.
        server.patience = timing.patience();
        if !server.start(setup, self.parts.placement, cause) {
            self.actor_died(name, Death::Unborn, ctx);
        }
    }

    /// Settles what a dead actor left and decides when there will be another.
    pub(super) fn actor_died(&mut self, name: &ServerName, cause: Death, ctx: &mut Context<Self>) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        let generation = server.handle.retire();
        server.life = Life::None;
        server.handle.publish_load(generation, 0, 0);
        if let Some(session) = server.handle.take_session() {
            close_orphan(session, self.parts.timing.close_within, ctx);
        }
        if cause == Death::Frozen
            && let Some(arbiter) = server.arbiter.take()
        {
            // The thread may never come back, so it is not joined either.
            arbiter.stop();
        }
        if self.draining {
            server.show_stopped(ErrorCode::ShuttingDown);
        } else if server.wanted == Switch::Off {
            self.directory.withdraw(name);
            server.park();
        } else if cause == Death::Finished {
            // Enabled again while it drained.
            server.show_starting();
            self.start_server(name, "operator", ctx);
        } else {
            self.schedule_restart(name, cause, ctx);
        }
    }

    fn schedule_restart(&mut self, name: &ServerName, cause: Death, ctx: &mut Context<Self>) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        tracing::error!(server = %name, cause = cause.as_str(), "server actor died");
        let now = runtime::now().into_std();
        let (state, wait) = match server.lifeline.died(now) {
            Verdict::Restart(wait) => (StateName::Backoff, wait),
            Verdict::Probe(wait) => (StateName::Parked, wait),
        };
        server.show_death(state, cause, now + wait);
        let name = name.clone();
        let scheduled = ctx.run_later(wait, move |actor, ctx| {
            actor.start_server(&name, cause.as_str(), ctx);
        });
        server.life = Life::Scheduled(scheduled);
    }

    /// Asks every server actor for a sign of life.
    fn heartbeat(&mut self, ctx: &mut Context<Self>) {
        let blocking = &self.parts.blocking;
        let jobs = self.parts.config.talaria.limits.blocking_jobs.get();
        events::queue_depth("blocking_jobs", blocking.running(), jobs);
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
                let death = match answer {
                    Ok(Ok(())) => None,
                    // Its death notice is on its way, or was lost.
                    Ok(Err(_)) => Some(Death::Vanished),
                    Err(_) => Some(Death::Frozen),
                };
                actor.probed(&name, generation, death, ctx);
            });
            ctx.spawn(probed);
        }
        ctx.run_later(self.parts.timing.heartbeat, Self::heartbeat);
    }

    fn probed(
        &mut self,
        name: &ServerName,
        generation: u64,
        death: Option<Death>,
        ctx: &mut Context<Self>,
    ) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        if server.handle.generation() != generation {
            return;
        }
        server.probing = false;
        if let Some(death) = death {
            self.actor_died(name, death, ctx);
        }
    }

    /// Makes a server run.
    pub(super) fn switch_on(&mut self, name: &ServerName, ctx: &mut Context<Self>) {
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
            // While it drains, its end starts it again; so does the end of what it waits for.
            Life::Running | Life::Waiting => return,
        }
        server.show_starting();
        self.start_in_turn(name, "operator", ctx);
    }

    /// Makes a server stop.
    pub(super) fn switch_off(&mut self, name: &ServerName, ctx: &mut Context<Self>) {
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        server.wanted = Switch::Off;
        match server.life {
            Life::None => {}
            Life::Scheduled(restart) => {
                ctx.cancel_future(restart);
                server.life = Life::None;
                self.directory.withdraw(name);
                server.park();
            }
            Life::Waiting => {
                server.life = Life::None;
                self.directory.withdraw(name);
                server.park();
            }
            Life::Running => {
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
}

/// Ends the session of an actor that can no longer do it.
pub(super) fn close_orphan(
    session: Arc<dyn Upstream>,
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
        let enabled = self
            .servers
            .iter()
            .filter(|(_, server)| server.wanted == Switch::On);
        let enabled: Vec<_> = enabled.map(|(name, _)| name.clone()).collect();
        for name in enabled {
            self.start_server(&name, "added", ctx);
        }
        ctx.run_later(self.parts.timing.heartbeat, Self::heartbeat);
    }
}
