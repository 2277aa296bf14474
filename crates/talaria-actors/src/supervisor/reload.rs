//! Carrying out a reload: which servers begin, end and are replaced.
//!
//! A server that ends or is replaced takes no new calls and finishes those that run. Its
//! replacement waits for that where both would be processes of this machine, since two of them
//! may quarrel over a port or a file; the callers wait meanwhile.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{AsyncContext, Context, SpawnHandle};
use talaria_config::{Config, ServerConfig, ServerEntry, TransportConfig};
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, ServerName};

use crate::directory::naming::Namespace;
use crate::feed::{ConfigReloadedEvent, Event, state_event};
use crate::server::ServerHandle;
use crate::server::snapshot::StateName;
use crate::supervisor::actor::{STOP_OVERRUN, SupervisorActor, close_orphan};
use crate::supervisor::difference::{Difference, Entries};
use crate::supervisor::governed::{Governed, Life};
use crate::supervisor::plan::Patience;
use crate::supervisor::report::ReloadReport;

/// The label of everything a reload causes.
const CAUSE: &str = "reload";

/// A server on its way out.
pub(super) struct Leaving {
    pub(super) server: Governed,
    /// What who still comes is told.
    refusal: ErrorCode,
    /// Ends it the hard way.
    overdue: SpawnHandle,
}

/// The prefixes of the servers that can be used.
pub(super) fn namespace(entries: &Entries) -> Namespace {
    Namespace::of(entries.iter().filter_map(|(name, entry)| match entry {
        ServerEntry::Usable(server) => Some((name, server.name_prefix)),
        ServerEntry::Broken { .. } => None,
    }))
}

impl SupervisorActor {
    /// Makes the servers what the configuration says, and nothing more than that.
    pub(super) fn reload(&mut self, config: &Config, ctx: &mut Context<Self>) -> ReloadReport {
        let difference = Difference::between(&self.entries, &config.servers);
        self.entries = difference.entries;
        self.directory.rename(namespace(&self.entries));
        for name in &difference.removed {
            self.remove(name, ctx);
        }
        for name in difference.changed.iter().chain(&difference.added) {
            self.install(name, ctx);
        }
        let words =
            |names: Vec<ServerName>| -> Vec<_> { names.iter().map(ToString::to_string).collect() };
        let event = ConfigReloadedEvent {
            added: words(difference.added),
            removed: words(difference.removed),
            changed: words(difference.changed),
        };
        self.directory
            .feed()
            .say(Event::ConfigReloaded(event.clone()));
        ReloadReport {
            added: event.added,
            removed: event.removed,
            changed: event.changed,
            unchanged: difference.unchanged,
            broken: difference.broken,
            restart_required: self.parts.config.restart_keys(config),
            warnings: config.warnings.clone(),
        }
    }

    /// Retires a server that is configured no more.
    fn remove(&mut self, name: &ServerName, ctx: &mut Context<Self>) {
        self.directory.remove_server(name);
        if let Some(server) = self.servers.remove(name) {
            self.dismiss(server, ErrorCode::UnknownServer, ctx);
        }
    }

    /// Puts a server in place as its entry says, instead of what stood there.
    fn install(&mut self, name: &ServerName, ctx: &mut Context<Self>) {
        let Some(entry) = self.entries.get(name) else {
            return;
        };
        let old = self.directory.server(name.as_str());
        // One that was removed and comes back may not have ended yet.
        let old = old.or_else(|| self.last_leaving(name));
        match entry {
            ServerEntry::Broken { problem } => {
                let next = ServerHandle::broken(name.clone(), problem.clone());
                self.replace(old.as_ref(), &next, None);
            }
            ServerEntry::Usable(config) => {
                let config = Arc::new(config.as_ref().clone());
                let timing = &self.parts.timing;
                let patience = match &old {
                    Some(_) => Patience::of_successor(&config, self.handover()),
                    None => timing.patience(),
                };
                let server = Governed::new(Arc::clone(&config), timing, patience);
                self.replace(old.as_ref(), &server.handle, Some(&config));
                if let Some(before) = self.servers.insert(name.clone(), server) {
                    self.dismiss(before, ErrorCode::ServerUnavailable, ctx);
                }
                if config.enabled {
                    self.start_in_turn(name, CAUSE, ctx);
                }
            }
        }
    }

    /// Makes a handle the one that everybody finds.
    fn replace(
        &self,
        old: Option<&ServerHandle>,
        next: &ServerHandle,
        config: Option<&ServerConfig>,
    ) {
        if let Some(old) = old {
            old.replace_with(next);
        }
        match config.filter(|config| config.enabled) {
            Some(config) => {
                let tools = self.directory.rebind(next, &config.tools);
                let generation = next.generation();
                next.publish(generation, CAUSE, |snapshot| {
                    snapshot.tools = tools;
                    snapshot.enter(snapshot.state);
                });
            }
            None => {
                // In this order, so that the old one cannot list its tools again in between.
                self.directory.add_server(next.clone());
                self.directory.withdraw(next.name());
            }
        }
        next.announce(CAUSE);
        if old.is_some() {
            next.announce_afresh();
        }
        let (from, to) = (
            old.map_or(StateName::Stopped, |old| old.snapshot().state),
            next.snapshot(),
        );
        if from != to.state {
            let (from, to, reason) = (from.as_str(), to.state.as_str(), to.reason.as_ref());
            self.directory
                .feed()
                .say(state_event(next.name(), from, to, reason));
        }
    }

    /// How long a server that was replaced may take to end.
    fn handover(&self) -> Duration {
        let calls = self.parts.config.talaria.calls.drain_timeout;
        calls + self.parts.timing.close_within + STOP_OVERRUN
    }

    /// Lets a server finish what it does and end.
    fn dismiss(&mut self, mut server: Governed, refusal: ErrorCode, ctx: &mut Context<Self>) {
        match server.life {
            Life::None | Life::Waiting => {}
            Life::Scheduled(restart) => {
                ctx.cancel_future(restart);
            }
            Life::Running => {
                let calls = self.parts.config.talaria.calls.drain_timeout;
                let until = Deadline::after(calls);
                let handle = server.handle.clone();
                let asking = async move { handle.begin_drain(until, until, refusal).await };
                ctx.spawn(wrap_future::<_, Self>(asking));
                let name = server.handle.name().clone();
                let generation = server.handle.generation();
                let overdue = ctx.run_later(self.handover(), move |actor, ctx| {
                    tracing::error!(server = %name, "a retired server did not stop in time");
                    actor.left(&name, generation, ctx);
                });
                self.leaving.push(Leaving {
                    server,
                    refusal,
                    overdue,
                });
                return;
            }
        }
        self.show_stopped(&server, refusal);
        if let Some(arbiter) = server.arbiter.take() {
            arbiter.stop();
        }
    }

    /// Says that a server has stopped, and that it is gone where none has taken its place.
    fn show_stopped(&self, server: &Governed, refusal: ErrorCode) {
        server.show_stopped(refusal);
        let name = server.handle.name();
        if !self.servers.contains_key(name) {
            events::server_removed(name);
        }
    }

    /// A server on its way out has ended, or is given up.
    pub(super) fn left(&mut self, name: &ServerName, generation: u64, ctx: &mut Context<Self>) {
        let is_meant = |leaving: &Leaving| {
            let handle = &leaving.server.handle;
            handle.name() == name && handle.generation() == generation
        };
        let Some(index) = self.leaving.iter().position(is_meant) else {
            return;
        };
        let Leaving {
            server,
            refusal,
            overdue,
        } = self.leaving.swap_remove(index);
        ctx.cancel_future(overdue);
        let generation = server.handle.retire();
        server.handle.publish_load(generation, 0, 0);
        if let Some(session) = server.handle.take_session() {
            close_orphan(session, self.parts.timing.close_within, ctx);
        }
        self.show_stopped(&server, refusal);
        if let Some(arbiter) = server.arbiter {
            arbiter.stop();
        }
        let waits = self
            .servers
            .get(name)
            .is_some_and(|server| matches!(server.life, Life::Waiting));
        if waits && !self.draining {
            self.start_in_turn(name, CAUSE, ctx);
        }
    }

    /// Starts a server, or lets it wait for the processes of that name that are still ending.
    pub(super) fn start_in_turn(
        &mut self,
        name: &ServerName,
        cause: &'static str,
        ctx: &mut Context<Self>,
    ) {
        let is_in_the_way = |leaving: &Leaving| {
            leaving.server.handle.name() == name
                && match leaving.server.config.transport {
                    TransportConfig::Stdio { .. } => true,
                    TransportConfig::Http(_) => false,
                }
        };
        if !self.leaving.iter().any(is_in_the_way) {
            self.start_server(name, cause, ctx);
        } else if let Some(server) = self.servers.get_mut(name) {
            server.life = Life::Waiting;
        }
    }

    fn last_leaving(&self, name: &ServerName) -> Option<ServerHandle> {
        let handles = self.leaving.iter().map(|leaving| &leaving.server.handle);
        handles
            .filter(|handle| handle.name() == name)
            .max_by_key(|handle| handle.generation())
            .cloned()
    }
}
