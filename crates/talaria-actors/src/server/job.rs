//! One call on the wire: raced against the end of the session, bounded, safe from panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use talaria_content::ResultKind;
use talaria_mcp::{Rpc, RpcLimits};
use talaria_telemetry::events;
use talaria_types::{ErrorCode, Failure, ServerName};
use tokio_util::sync::CancellationToken;

use crate::directory::ToolTarget;
use crate::server::messages::{Reply, Ticket};
use crate::server::refusal;
use crate::server::state::CallEnd;
use crate::upstream::Upstream;
use crate::utility;

/// How long a request may take to notice that its session has ended.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long a request may take to notice its deadline or its cancellation.
const OVERRUN: Duration = Duration::from_secs(2);

/// A call that is about to run.
#[derive(Debug)]
pub(crate) struct CallJob {
    /// The session.
    pub(crate) session: Arc<dyn Upstream>,
    /// The server, for words.
    pub(crate) server: ServerName,
    /// What is wanted.
    pub(crate) ticket: Arc<Ticket>,
    /// The caller's cancellation, or ours.
    pub(crate) cancel: CancellationToken,
    /// Time without an answer or progress.
    pub(crate) idle: Duration,
}

impl CallJob {
    /// Runs the call. Always ends, whatever the session does.
    pub(crate) async fn run(self) -> (Reply, CallEnd) {
        let reply = AssertUnwindSafe(self.race()).catch_unwind().await;
        let broken = |_| Err(self.ticket.judge(refusal::broken(&self.server)));
        let reply = reply
            .unwrap_or_else(broken)
            .map_err(|failure| self.in_our_words(failure));
        let end = end_of(&reply);
        (reply, end)
    }

    async fn race(&self) -> Reply {
        let work = self.perform();
        tokio::pin!(work);
        let ended = self.session.closed();
        let overdue = tokio::time::sleep_until(self.ticket.ctx.deadline.instant() + OVERRUN);
        let deaf = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(OVERRUN).await;
        };
        tokio::select! {
            biased;
            reply = &mut work => reply,
            _ = ended => match tokio::time::timeout(LAST_WORDS, work).await {
                Ok(reply) => reply,
                Err(_) => Err(self.ticket.judge(refusal::connection_lost(&self.server))),
            },
            () = overdue => {
                events::deadline_exceeded("rpc");
                Err(self.ticket.judge(Failure::new(ErrorCode::Timeout, "")))
            }
            () = deaf => Err(self.ticket.judge(refusal::cancelled(&self.server))),
        }
    }

    /// A timeout names both limits, whatever the session called it.
    fn in_our_words(&self, failure: Failure) -> Failure {
        if failure.code() == ErrorCode::Timeout {
            let ours = refusal::timed_out(&self.ticket, &self.server, self.idle);
            return if failure.is_outcome_uncertain() {
                ours.outcome_uncertain()
            } else {
                ours
            };
        }
        if failure.server().is_none() {
            failure.on_server(&self.server)
        } else {
            failure
        }
    }

    async fn perform(&self) -> Reply {
        let limits = RpcLimits {
            idle: self.idle,
            deadline: self.ticket.ctx.deadline,
            cancel: self.cancel.clone(),
        };
        match &self.ticket.target {
            ToolTarget::Tool(name) => {
                let rpc = Rpc::CallTool {
                    name: name.clone(),
                    arguments: self.ticket.arguments.clone(),
                };
                let raw = self.session.request(rpc, limits).await?;
                Ok((raw, ResultKind::ToolCall))
            }
            ToolTarget::Utility(utility) => {
                utility::execute(&*self.session, *utility, &self.ticket.arguments, &limits).await
            }
        }
    }
}

/// What the outcome says of the session.
fn end_of(reply: &Reply) -> CallEnd {
    match reply {
        Ok(_) => CallEnd::Answered,
        Err(failure) if failure.code() == ErrorCode::ServerError => CallEnd::Answered,
        Err(failure) if failure.code() == ErrorCode::ConnectionLost => {
            if failure.is_outcome_uncertain() {
                CallEnd::LostSent
            } else {
                CallEnd::LostUnsent
            }
        }
        Err(_) => CallEnd::Failed,
    }
}
