//! Asking a session for a sign of life.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{ActorFutureExt, AsyncContext, Context};
use futures_util::FutureExt;
use talaria_mcp::{Rpc, RpcLimits};
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, Failure, RawResult};
use tokio_util::sync::CancellationToken;

use crate::server::actor::ServerActor;
use crate::server::state::{Epoch, Input, ProbeBy, ProbeEnd};
use crate::upstream::Upstream;

/// How long a sign of life may take.
const PROBE_WITHIN: Duration = Duration::from_secs(30);
/// How long a request may take to notice that.
const OVERRUN: Duration = Duration::from_secs(2);

/// What a failure says of the session; any other one is the end of it.
const ENDS: &[(ErrorCode, ProbeEnd)] = &[
    (ErrorCode::Timeout, ProbeEnd::Silent),
    (ErrorCode::ServerUnauthorized, ProbeEnd::Unauthorized),
    // What it says may be nonsense; it lives.
    (ErrorCode::ServerError, ProbeEnd::Alive),
    (ErrorCode::MalformedMessage, ProbeEnd::Alive),
    (ErrorCode::MessageTooLarge, ProbeEnd::Alive),
    // Talaria had no worker for it, or broke.
    (ErrorCode::Busy, ProbeEnd::Untold),
    (ErrorCode::Internal, ProbeEnd::Untold),
    (ErrorCode::Cancelled, ProbeEnd::Untold),
];

impl ServerActor {
    pub(super) fn probe(&mut self, epoch: Epoch, by: ProbeBy, ctx: &mut Context<Self>) {
        let Some(session) = self.session.clone() else {
            return;
        };
        let asked = wrap_future::<_, Self>(ask(session, by)).map(move |end, actor, ctx| {
            actor.probing = None;
            events::keepalive_ended(actor.setup.handle.name(), word(end));
            actor.apply(Input::ProbeEnded { epoch, end }, ctx);
        });
        self.probing = Some(ctx.spawn(asked));
    }
}

async fn ask(session: Arc<dyn Upstream>, by: ProbeBy) -> ProbeEnd {
    let rpc = match by {
        ProbeBy::Ping => Rpc::Ping,
        ProbeBy::List => Rpc::ListTools { cursor: None },
    };
    let limits = RpcLimits {
        idle: PROBE_WITHIN,
        deadline: Deadline::after(PROBE_WITHIN),
        cancel: CancellationToken::new(),
    };
    let asking = AssertUnwindSafe(session.request(rpc, limits)).catch_unwind();
    match tokio::time::timeout(PROBE_WITHIN + OVERRUN, asking).await {
        Ok(Ok(answer)) => end_of(by, &answer),
        Ok(Err(_)) => ProbeEnd::Untold,
        Err(_) => ProbeEnd::Silent,
    }
}

fn end_of(by: ProbeBy, answer: &Result<RawResult, Failure>) -> ProbeEnd {
    match answer {
        // A ping that was refused has an answer without a result.
        Ok(result) if by == ProbeBy::Ping && result.json.is_null() => ProbeEnd::Refused,
        Ok(_) => ProbeEnd::Alive,
        Err(failure) => {
            let known = ENDS.iter().find(|(code, _)| *code == failure.code());
            known.map_or(ProbeEnd::Lost, |(_, end)| *end)
        }
    }
}

const fn word(end: ProbeEnd) -> &'static str {
    match end {
        ProbeEnd::Alive => "alive",
        ProbeEnd::Refused => "refused",
        ProbeEnd::Silent => "silent",
        ProbeEnd::Lost => "lost",
        ProbeEnd::Unauthorized => "unauthorized",
        ProbeEnd::Untold => "untold",
    }
}
