//! One call on the wire: raced against the end of the session, bounded, safe from panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use talaria_content::ResultKind;
use talaria_mcp::{ClosedBy, Rpc, RpcLimits};
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
/// How long the end of a session may take to be known after a call was lost with it.
const NEWS_OF_THE_END: Duration = Duration::from_millis(50);
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

/// How a call ended.
#[derive(Debug)]
pub(crate) struct CallOutcome {
    /// For the caller.
    pub(crate) reply: Reply,
    /// For the state machine.
    pub(crate) end: CallEnd,
    /// What ended the session, where the call was lost with it.
    pub(crate) over: Option<ClosedBy>,
}

impl CallJob {
    /// Runs the call. Always ends, whatever the session does.
    pub(crate) async fn run(self) -> CallOutcome {
        let reply = AssertUnwindSafe(self.race()).catch_unwind().await;
        let broken = |_| Err(self.ticket.judge(refusal::broken(&self.server)));
        let reply = reply
            .unwrap_or_else(broken)
            .map_err(|failure| self.in_our_words(failure));
        let end = end_of(&reply, self.ticket.ctx.deadline.expired());
        let over = match end {
            CallEnd::LostUnsent | CallEnd::LostSent => {
                let ended = self.session.closed();
                tokio::time::timeout(NEWS_OF_THE_END, ended).await.ok()
            }
            CallEnd::Answered
            | CallEnd::ToolFailed
            | CallEnd::Failed
            | CallEnd::Silent
            | CallEnd::Unauthorized => None,
        };
        CallOutcome { reply, end, over }
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

/// What the outcome says of the session. A caller that was in a hurry says nothing.
fn end_of(reply: &Reply, in_a_hurry: bool) -> CallEnd {
    let failure = match reply {
        Ok((raw, _)) if raw.json.get("isError") == Some(&Value::Bool(true)) => {
            return CallEnd::ToolFailed;
        }
        Ok(_) => return CallEnd::Answered,
        Err(failure) => failure,
    };
    let is_lost = failure.code() == ErrorCode::ConnectionLost;
    if failure.code() == ErrorCode::ServerError {
        CallEnd::ToolFailed
    } else if failure.code() == ErrorCode::ServerUnauthorized {
        CallEnd::Unauthorized
    } else if failure.code() == ErrorCode::Timeout && !in_a_hurry {
        CallEnd::Silent
    } else if is_lost && failure.is_outcome_uncertain() {
        CallEnd::LostSent
    } else if is_lost {
        CallEnd::LostUnsent
    } else {
        CallEnd::Failed
    }
}
