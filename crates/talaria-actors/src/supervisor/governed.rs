//! One server as its supervisor sees it.

use std::sync::Arc;
use std::time::Instant;

use actix::{Actor, Arbiter, SpawnHandle};
use talaria_config::ServerConfig;
use talaria_types::{ErrorCode, runtime};

use crate::backoff::Jitter;
use crate::server::ServerHandle;
use crate::server::actor::{ServerActor, ServerSetup};
use crate::server::snapshot::{Snapshot, StateName};
use crate::supervisor::Placement;
use crate::supervisor::lifeline::Lifeline;
use crate::supervisor::messages::Switch;
use crate::supervisor::plan::{Patience, Timing};

/// A usable server, with or without an actor.
pub(super) struct Governed {
    pub(super) config: Arc<ServerConfig>,
    pub(super) handle: ServerHandle,
    pub(super) lifeline: Lifeline,
    /// How long calls wait for it to begin.
    pub(super) patience: Patience,
    /// What the operator wants.
    pub(super) wanted: Switch,
    pub(super) life: Life,
    /// Its thread; none where all actors share one, and while it is not running.
    pub(super) arbiter: Option<Arbiter>,
    /// A heartbeat is under way.
    pub(super) probing: bool,
}

/// Whether there is an actor.
pub(super) enum Life {
    /// No.
    None,
    /// Yes.
    Running,
    /// One will be started.
    Scheduled(SpawnHandle),
    /// One will be started once the process it replaces has ended.
    Waiting,
}

/// How an actor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// By its own decision, after a drain.
    Finished,
    /// Of a panic.
    Panicked,
    /// It does not read its mailbox.
    Frozen,
    /// Without a word.
    Vanished,
    /// There was no thread for it.
    Unborn,
}

impl Death {
    /// The label.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "drain",
            Self::Panicked | Self::Vanished => "panic",
            Self::Frozen => "frozen",
            Self::Unborn => "internal",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Finished => "",
            Self::Panicked | Self::Vanished => "restarting after a fault inside Talaria",
            Self::Frozen => "restarting because its loop stopped answering",
            Self::Unborn => "the system gives no thread for it",
        }
    }
}

impl Governed {
    /// A server that is not started yet.
    pub(super) fn new(config: Arc<ServerConfig>, timing: &Timing, patience: Patience) -> Self {
        let (wanted, snapshot) = if config.enabled {
            let state = if config.lazy {
                StateName::Configured
            } else {
                StateName::Connecting
            };
            (Switch::On, Snapshot::new(state, None))
        } else {
            let words = "disabled in the configuration".to_owned();
            (Switch::Off, Snapshot::new(StateName::Disabled, Some(words)))
        };
        let handle = ServerHandle::new(&config, timing.ready_wait, patience, snapshot);
        let lifeline = Lifeline::new(timing.budget, Jitter::random());
        Self {
            config,
            handle,
            lifeline,
            patience,
            wanted,
            life: Life::None,
            arbiter: None,
            probing: false,
        }
    }

    /// Starts an actor; false where there is no thread for it.
    pub(super) fn start(
        &mut self,
        setup: ServerSetup,
        placement: Placement,
        cause: &'static str,
    ) -> bool {
        let generation = self.handle.retire();
        self.lifeline.started(runtime::now().into_std());
        self.life = Life::Running;
        self.probing = false;
        let actor = ServerActor::new(setup, generation, cause);
        // The actor opens its route itself, once its mailbox has its real capacity.
        match placement {
            Placement::Current => drop(actor.start()),
            Placement::OwnArbiters => {
                if self.arbiter.is_none() {
                    // A new arbiter panics where the system gives no thread.
                    self.arbiter = std::panic::catch_unwind(Arbiter::new).ok();
                }
                let Some(arbiter) = &self.arbiter else {
                    return false;
                };
                drop(ServerActor::start_in_arbiter(&arbiter.handle(), |_| actor));
            }
        }
        true
    }

    /// Shows that its actor died and when there will be another.
    pub(super) fn show_death(&self, state: StateName, cause: Death, next_attempt: Instant) {
        let generation = self.handle.generation();
        self.handle.publish(generation, cause.as_str(), |snapshot| {
            without_actor(snapshot, state, Some(cause.words().to_owned()));
            snapshot.next_attempt = Some(next_attempt);
        });
    }

    /// Shows it as stopped; who still comes is told this.
    pub(super) fn show_stopped(&self, refusal: ErrorCode) {
        let generation = self.handle.generation();
        self.handle.publish(generation, "drain", |snapshot| {
            without_actor(snapshot, StateName::Stopped, None);
            snapshot.refusal = Some(refusal);
        });
    }

    /// Shows it as starting because an operator wants it.
    pub(super) fn show_starting(&self) {
        let generation = self.handle.generation();
        self.handle.publish(generation, "operator", |snapshot| {
            let attempts_ended = snapshot.attempts_ended;
            without_actor(snapshot, StateName::Connecting, None);
            snapshot.attempts_ended = attempts_ended;
        });
    }

    /// Shows it as disabled and lets its thread go.
    pub(super) fn park(&mut self) {
        let generation = self.handle.generation();
        self.handle.publish(generation, "operator", |snapshot| {
            let words = "disabled by an operator".to_owned();
            without_actor(snapshot, StateName::Disabled, Some(words));
            snapshot.tools = 0;
            snapshot.listed = false;
        });
        if let Some(arbiter) = self.arbiter.take() {
            arbiter.stop();
        }
    }

    /// Takes its thread, if nothing runs on it any more.
    pub(super) fn take_idle_arbiter(&mut self) -> Option<Arbiter> {
        let is_over = self.handle.look(|shown| shown.state == StateName::Stopped);
        let is_idle = is_over || !matches!(self.life, Life::Running);
        if is_idle { self.arbiter.take() } else { None }
    }
}

/// What all states without an actor have in common. Whoever waits for an attempt waits no more.
fn without_actor(snapshot: &mut Snapshot, state: StateName, words: Option<String>) {
    snapshot.enter(state);
    snapshot.reason = words;
    snapshot.next_attempt = None;
    snapshot.refusal = None;
    snapshot.attempts_ended += 1;
    if let Some(peer) = &mut snapshot.peer {
        peer.pid = None;
    }
}
