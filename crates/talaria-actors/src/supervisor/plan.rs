//! Intervals, limits and per-server policy, as data.

use std::time::Duration;

use talaria_config::{ServerConfig, TalariaConfig, TransportConfig};

use crate::backoff::Backoff;
use crate::server::state::Policy;
use crate::supervisor::lifeline::Budget;

/// Everything that is measured in time and not set by an operator (specification 4.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// How long a call waits for a session.
    pub(crate) ready_wait: Duration,
    /// How long a call waits for a session that is made because of it.
    pub(crate) respawn_wait: Duration,
    /// Waits before a server that was never reached is tried again.
    pub(crate) initial: Backoff,
    /// Attempts after the first before it is parked.
    pub(crate) initial_retries: u32,
    /// Waits before a server that was reached once is tried again.
    pub(crate) reconnect: Backoff,
    /// Attempts before it is parked.
    pub(crate) reconnect_retries: u32,
    /// Pause between attempts once it is parked.
    pub(crate) probe_every: Duration,
    /// How long closing a session may take.
    pub(crate) close_within: Duration,
    /// How long calls may run on when their server is disabled.
    pub(crate) disable_within: Duration,
    /// Pause between two heartbeats.
    pub(crate) heartbeat: Duration,
    /// A server actor that has not answered a heartbeat for so long is frozen.
    pub(crate) frozen_after: Duration,
    /// Restarts of a server actor that died.
    pub(crate) budget: Budget,
}

/// How long calls wait for a server that begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    /// Until it has an actor that connects.
    pub(crate) for_actor: Duration,
    /// Until that one has its first session.
    pub(crate) for_session: Duration,
}

impl Patience {
    /// For a server that takes the place of another: its callers had one before and wait, as
    /// long as they may, until the old one has ended and the first attempt to connect is over.
    pub(crate) const fn of_successor(server: &ServerConfig, handover: Duration) -> Self {
        Self {
            for_actor: handover,
            for_session: server.connect_timeout,
        }
    }
}

impl Timing {
    /// For a server that nobody has called before.
    pub(crate) const fn patience(&self) -> Patience {
        Patience {
            for_actor: self.ready_wait,
            for_session: self.ready_wait,
        }
    }

    /// The values of the service.
    pub(crate) const PRODUCTION: Self = Self {
        ready_wait: Duration::from_secs(5),
        respawn_wait: Duration::from_secs(15),
        initial: Backoff {
            quick: None,
            base: Duration::from_secs(1),
            ceiling: Duration::from_secs(60),
        },
        initial_retries: 3,
        reconnect: Backoff {
            quick: Some(Duration::from_millis(100)),
            base: Duration::from_secs(1),
            ceiling: Duration::from_secs(60),
        },
        reconnect_retries: 5,
        probe_every: Duration::from_secs(300),
        close_within: Duration::from_secs(10),
        disable_within: Duration::from_secs(10),
        heartbeat: Duration::from_secs(5),
        frozen_after: Duration::from_secs(30),
        budget: Budget {
            backoff: Backoff {
                quick: Some(Duration::from_millis(100)),
                base: Duration::from_secs(1),
                ceiling: Duration::from_secs(60),
            },
            restarts: 5,
            healthy_after: Duration::from_secs(60),
            probe_every: Duration::from_secs(300),
        },
    };

    /// The policy of one server.
    pub(crate) fn policy(&self, server: &ServerConfig, config: &TalariaConfig) -> Policy {
        let pending = config.limits.pending_per_server.get();
        let has_company = config.tokens.len() > 1;
        Policy {
            rpc_concurrency: server.rpc_concurrency.get(),
            pending,
            // Where there are others, half of the places are theirs.
            share: if has_company {
                pending.div_ceil(2)
            } else {
                pending
            },
            ready_wait: self.ready_wait,
            first_wait: self.ready_wait,
            respawn_wait: self.respawn_wait,
            initial: self.initial,
            initial_retries: self.initial_retries,
            reconnect: self.reconnect,
            reconnect_retries: self.reconnect_retries,
            probe_every: self.probe_every,
            // A pipe that broke is over; over HTTP every call has a connection of its own.
            loss_ends_session: match server.transport {
                TransportConfig::Stdio { .. } => true,
                TransportConfig::Http(_) => false,
            },
            keepalive: server.keepalive_interval,
            lazy: server.lazy,
            idle_timeout: server.idle_timeout,
            max_lifetime: server.max_lifetime,
        }
    }
}
