//! The state behind all clones of a session.

use std::sync::Arc;

use rmcp::service::{Peer, RoleClient};
use talaria_telemetry::events;
use talaria_types::{Deadline, runtime};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{ClosedBy, PeerInfo};
use crate::intake::Intake;
use crate::process::Process;

/// One session.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) intake: Arc<Intake>,
    pub(super) peer: Peer<RoleClient>,
    pub(super) info: PeerInfo,
    /// `pipe` or `tcp`.
    pub(super) transport: &'static str,
    pub(super) ending: Ending,
    pub(super) process: Option<Process>,
}

/// How the end of a session is found out and told.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// Stops rmcp's loop and with it the transport.
    pub(super) stop: CancellationToken,
    /// Cancelled once rmcp's loop has let go of the transport.
    pub(super) stopped: CancellationToken,
    /// Cancelled once the output of a process has ended and everything in it was read.
    pub(super) output_ended: CancellationToken,
    cause: Arc<watch::Sender<Option<ClosedBy>>>,
    began: Instant,
}

impl Ending {
    pub(super) fn new() -> Self {
        Self {
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
            output_ended: CancellationToken::new(),
            cause: Arc::new(watch::Sender::new(None)),
            began: runtime::now(),
        }
    }

    /// The first cause told is the one that counts.
    pub(super) fn tell(&self, shared: &Labels, cause: ClosedBy) {
        let word = match cause {
            ClosedBy::Us => "closed",
            ClosedBy::ChildExit(_) => "child_exit",
            ClosedBy::Transport(_) => "transport",
        };
        let is_first = self.cause.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(cause);
            }
            is_first
        });
        if is_first {
            let lasted = runtime::now().duration_since(self.began);
            events::mcp_session_ended(&shared.server, shared.transport, lasted, word);
        }
        self.stop.cancel();
    }

    /// Ends the session for reasons of our own. One that is ending by itself already is told by
    /// who watches it.
    fn close(&self, shared: &Labels, has_exited: bool) {
        if has_exited || self.output_ended.is_cancelled() || self.stopped.is_cancelled() {
            self.stop.cancel();
        } else {
            self.tell(shared, ClosedBy::Us);
        }
    }

    pub(super) fn known(&self) -> Option<ClosedBy> {
        self.cause.borrow().clone()
    }

    pub(super) fn cause(&self) -> impl Future<Output = ClosedBy> + Send + 'static + use<> {
        let mut cause = self.cause.subscribe();
        async move {
            match cause.wait_for(Option::is_some).await {
                Ok(known) => known.clone().unwrap_or(ClosedBy::Us),
                Err(_) => ClosedBy::Us,
            }
        }
    }
}

/// Who ended, for the metrics.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    pub(super) server: talaria_types::ServerName,
    pub(super) transport: &'static str,
}

impl Shared {
    pub(super) fn labels(&self) -> Labels {
        Labels {
            server: self.intake.server.clone(),
            transport: self.transport,
        }
    }

    pub(super) async fn closed(&self) -> ClosedBy {
        self.ending.cause().await
    }

    fn end(&self) {
        let has_exited = self.process.as_ref().is_some_and(Process::has_exited);
        self.ending.close(&self.labels(), has_exited);
    }

    pub(super) async fn close(&self, deadline: Deadline) {
        // Before the session ends, because the deadline of who closes it is the one that counts.
        if let Some(process) = &self.process {
            process.stop(deadline);
        }
        self.end();
        let gone = async {
            if let Some(process) = &self.process {
                process.exited().await;
            }
            self.ending.stopped.cancelled().await;
        };
        if tokio::time::timeout_at(deadline.instant(), gone)
            .await
            .is_err()
        {
            tracing::warn!(server = %self.intake.server, "the session did not end in time");
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        Labels {
            server: "s".into(),
            transport: "pipe",
        }
    }

    #[tokio::test]
    async fn a_session_that_is_ending_by_itself_is_not_closed_by_us() {
        for (has_exited, has_output_ended) in [(true, false), (false, true)] {
            let ending = Ending::new();
            if has_output_ended {
                ending.output_ended.cancel();
            }
            ending.close(&labels(), has_exited);
            assert!(ending.stop.is_cancelled());
            assert_eq!(ending.known(), None);
            let exit = ClosedBy::ChildExit("signal: 9 (SIGKILL)".to_owned());
            ending.tell(&labels(), exit.clone());
            assert_eq!(ending.cause().await, exit);
        }
        let ending = Ending::new();
        ending.close(&labels(), false);
        assert_eq!(ending.known(), Some(ClosedBy::Us));
    }
}
