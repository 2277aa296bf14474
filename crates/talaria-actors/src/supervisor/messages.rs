//! What the supervisor accepts besides death notices.

use std::sync::Arc;

use actix::{Arbiter, Message};
use talaria_config::Config;
use talaria_types::{Failure, ServerName};
use tokio::time::Instant;

use crate::supervisor::report::ReloadReport;

/// Start a server, or stop it until it is started again. Sent by the handle; the outcome shows
/// in the snapshot. Fails with `unknown_server` or `shutting_down`.
#[derive(Debug)]
pub(crate) struct SwitchServer {
    /// Which.
    pub(crate) server: ServerName,
    /// Which way.
    pub(crate) to: Switch,
}

/// The two ways of [`SwitchServer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Run.
    On,
    /// Do not run.
    Off,
}

impl Message for SwitchServer {
    type Result = Result<(), Failure>;
}

/// Make the servers what a configuration says. Sent by the handle; answers with what changed.
/// Fails with `shutting_down`.
#[derive(Debug)]
pub(crate) struct Reload {
    /// The configuration.
    pub(crate) config: Arc<Config>,
}

impl Message for Reload {
    type Result = Result<ReloadReport, Failure>;
}

/// Stop every server: no new calls, those that run finish until `until`. Sent by the handle;
/// answers with the threads that have nothing to do any more.
#[derive(Debug)]
pub(crate) struct DrainAll {
    /// When to stop waiting for calls.
    pub(crate) until: Instant,
}

impl Message for DrainAll {
    type Result = Vec<Arbiter>;
}

/// The supervisor's own end, after [`DrainAll`].
#[derive(Debug)]
pub(crate) struct StopSupervisor;

impl Message for StopSupervisor {
    type Result = ();
}
