//! How the server actor carries out what its state machine asks for.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{ActorContext, ActorFutureExt, AsyncContext, Context};
use talaria_mcp::{ClosedBy, ForeignModule, SessionEvent};
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, Failure, runtime};
use tokio::sync::mpsc;
use tracing::Instrument;

use crate::catalogue::{self, Catalogue};
use crate::chain::{chain, reason};
use crate::directory::Change;
use crate::server::actor::{Attempt, ServerActor};
use crate::server::handle::ServerHandle;
use crate::server::job::{CallJob, CallOutcome};
use crate::server::refusal;
use crate::server::state::{CallEnd, CallId, Effect, Epoch, Input, Reason, Refusal, Trouble};
use crate::upstream::{ConnectRequest, Upstream};

/// What a server says on its own and nobody has read yet.
const EVENTS: usize = 16;
/// How long a list may hold up calls when it is read again.
const REFRESH_WITHIN: Duration = Duration::from_secs(15);
/// Names of tools in one line of the log.
const NAMES_TOLD: usize = 32;
/// How long remembering tools may wait for a worker.
const REMEMBER_WITHIN: Duration = Duration::from_secs(30);
/// How much longer than its deadline closing a session may take.
const CLOSE_OVERRUN: Duration = Duration::from_secs(2);

impl ServerActor {
    /// Carries one effect out.
    pub(super) fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Connect(epoch) => self.connect(epoch, ctx),
            Effect::AbandonConnect => {
                if let Some(connecting) = self.connecting.take() {
                    ctx.cancel_future(connecting);
                }
            }
            Effect::Close(epoch) => self.close(epoch, ctx),
            Effect::Begin(id) => self.begin(id, ctx),
            Effect::Answer(id) => self.answer(id),
            Effect::Abort(id) => {
                events::deadline_exceeded("drain");
                if let Some(call) = self.calls.get_mut(&id) {
                    call.aborted = true;
                    call.cancel.cancel();
                }
            }
            Effect::Refuse(id, why) => self.refuse(id, why),
            Effect::Forget(id) => drop(self.calls.remove(&id)),
            Effect::Refresh(epoch) => self.refresh(epoch, ctx),
            Effect::Probe(epoch, by) => self.probe(epoch, by, ctx),
            Effect::AbandonProbe => {
                if let Some(probing) = self.probing.take() {
                    ctx.cancel_future(probing);
                }
            }
            Effect::Stop => ctx.stop(),
        }
    }

    fn connect(&mut self, epoch: Epoch, ctx: &mut Context<Self>) {
        let handle = &self.setup.handle;
        if handle.look(|snapshot| snapshot.starts > 0) {
            events::server_reconnect(handle.name(), self.state.cause());
        }
        handle.publish(self.generation, "", |snapshot| snapshot.starts += 1);
        let (events, said) = mpsc::channel(EVENTS);
        let request = ConnectRequest {
            config: Arc::clone(&self.setup.config),
            deadline: Deadline::after(self.setup.config.connect_timeout),
            events,
        };
        let opening = catalogue::open(
            Arc::clone(&self.setup.connector),
            request,
            self.setup.blocking.clone(),
        );
        let span = tracing::info_span!(parent: None, "connect", server = %handle.name());
        let done = wrap_future::<_, Self>(opening.instrument(span))
            .map(move |opened, actor, ctx| actor.opened(epoch, opened, said, ctx));
        self.connecting = Some(ctx.spawn(done));
    }

    fn opened(
        &mut self,
        epoch: Epoch,
        opened: Result<(Arc<dyn Upstream>, Catalogue), Failure>,
        said: mpsc::Receiver<SessionEvent>,
        ctx: &mut Context<Self>,
    ) {
        self.connecting = None;
        let input = match opened {
            Ok((session, catalogue)) => {
                if self.is_stale() {
                    let closing = session.close(Deadline::after(self.setup.close_within));
                    ctx.spawn(wrap_future::<_, Self>(closing).map(|(), _, ctx| ctx.stop()));
                    return;
                }
                self.session = Some(Arc::clone(&session));
                self.setup
                    .handle
                    .keep_session(self.generation, Some(Arc::clone(&session)));
                self.take_catalogue(catalogue, ctx);
                self.watch_end(epoch, &session, ctx);
                self.listen(epoch, said, ctx);
                self.attempt = Some(Attempt {
                    peer: Some(session.peer().clone()),
                });
                Input::Connected {
                    epoch,
                    has_tools: session.peer().tools,
                }
            }
            Err(failure) => {
                let code = failure.code();
                tracing::warn!(
                    server = %self.setup.handle.name(),
                    code = code.as_str(),
                    error = chain(&failure),
                    "cannot connect"
                );
                self.attempt = Some(Attempt { peer: None });
                let reason = Reason::new(code.as_str(), reason(&failure));
                Input::ConnectFailed {
                    epoch,
                    trouble: trouble(&failure),
                    reason,
                }
            }
        };
        self.apply(input, ctx);
    }

    fn watch_end(&self, epoch: Epoch, session: &Arc<dyn Upstream>, ctx: &mut Context<Self>) {
        let ended = wrap_future::<_, Self>(session.closed()).map(move |by, actor, ctx| {
            let reason = ending(by);
            actor.apply(Input::SessionEnded { epoch, reason }, ctx);
        });
        ctx.spawn(ended);
    }

    /// Takes what the server says on its own; the work it asks for runs elsewhere.
    fn listen(
        &self,
        epoch: Epoch,
        mut said: mpsc::Receiver<SessionEvent>,
        ctx: &mut Context<Self>,
    ) {
        let next = async move { (said.recv().await, said) };
        let heard = wrap_future::<_, Self>(next).map(move |(event, mut said), actor, ctx| {
            let Some(SessionEvent::ToolsChanged) = event else {
                return;
            };
            // What was said meanwhile counts as the same change.
            let meanwhile = std::iter::from_fn(|| said.try_recv().ok());
            let repeats = meanwhile.take(EVENTS).count();
            tracing::trace!(repeats, "the tool list changed");
            actor.apply(Input::ToolsChanged(epoch), ctx);
            actor.listen(epoch, said, ctx);
        });
        ctx.spawn(heard);
    }

    fn close(&mut self, epoch: Epoch, ctx: &mut Context<Self>) {
        self.setup.handle.keep_session(self.generation, None);
        let session = self.session.take();
        let within = self.setup.close_within;
        let closing = async move {
            let Some(session) = session else { return };
            let closing = session.close(Deadline::after(within));
            if tokio::time::timeout(within + CLOSE_OVERRUN, closing)
                .await
                .is_err()
            {
                tracing::warn!("a session did not close in time");
            }
        };
        let closed = wrap_future::<_, Self>(closing)
            .map(move |(), actor, ctx| actor.apply(Input::SessionClosed(epoch), ctx));
        ctx.spawn(closed);
    }

    fn begin(&mut self, id: CallId, ctx: &mut Context<Self>) {
        let epoch = self.state.epoch();
        let (Some(call), Some(session)) = (self.calls.get(&id), self.session.clone()) else {
            // The state machine begins calls it accepted, on a session that is up.
            tracing::error!(call = id.0, "a call began that is not known");
            return;
        };
        let name = self.setup.handle.name();
        events::server_queue_waited(name, call.ticket.since.elapsed());
        call.ticket.mark_sent(true);
        let job = CallJob {
            session,
            server: name.clone(),
            ticket: Arc::clone(&call.ticket),
            cancel: call.cancel.clone(),
            idle: self.setup.config.timeout,
        };
        let span = tracing::debug_span!(parent: &call.ticket.ctx.span, "rpc", server = %name);
        let ended = wrap_future::<_, Self>(job.run().instrument(span))
            .map(move |ended, actor, ctx| actor.call_ended(id, epoch, ended, ctx));
        ctx.spawn(ended);
    }

    fn call_ended(
        &mut self,
        id: CallId,
        epoch: Epoch,
        CallOutcome { reply, end, over }: CallOutcome,
        ctx: &mut Context<Self>,
    ) {
        if let Some(by) = over {
            // Said here first, so that the call knows of it.
            let reason = ending(by);
            self.apply(Input::SessionEnded { epoch, reason }, ctx);
        }
        if let Some(call) = self.calls.get_mut(&id) {
            call.outcome = Some(reply);
            if end == CallEnd::LostUnsent {
                call.ticket.mark_sent(false);
            }
        }
        self.apply(Input::CallEnded { id, epoch, end }, ctx);
    }

    fn answer(&mut self, id: CallId) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        let name = self.setup.handle.name();
        let reply = match call.outcome {
            Some(Err(failure)) if call.aborted && failure.code() == ErrorCode::Cancelled => {
                let code = self.state.refusal().unwrap_or(ErrorCode::ShuttingDown);
                let ours = refusal::draining(code, name);
                let uncertain = failure.is_outcome_uncertain();
                Err(if uncertain {
                    ours.outcome_uncertain()
                } else {
                    ours
                })
            }
            Some(reply) => reply,
            None => Err(refusal::broken(name)),
        };
        // Nobody waits where the caller has gone; the result is dropped with its files.
        drop(call.reply.send(reply));
    }

    fn refuse(&mut self, id: CallId, why: Refusal) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        let handle = &self.setup.handle;
        let mut snapshot = handle.snapshot();
        self.show(&mut snapshot, runtime::now().into_std());
        let failure = refusal::failure(why, handle.name(), &snapshot, &call.ticket);
        drop(call.reply.send(Err(failure)));
    }

    fn refresh(&mut self, epoch: Epoch, ctx: &mut Context<Self>) {
        let Some(session) = self.session.clone() else {
            return;
        };
        let config = Arc::clone(&self.setup.config);
        let within = config
            .timeout
            .min(config.connect_timeout)
            .min(REFRESH_WITHIN);
        let listing = catalogue::read(session, config, within, self.setup.blocking.clone());
        let span = tracing::info_span!(parent: None, "refresh", server = %self.setup.handle.name());
        let read =
            wrap_future::<_, Self>(listing.instrument(span)).map(move |listed, actor, ctx| {
                let read = listed.is_ok();
                match listed {
                    Ok(catalogue) if epoch == actor.state.epoch() => {
                        actor.take_catalogue(catalogue, ctx);
                    }
                    Ok(_) => {}
                    Err(failure) => tracing::warn!(
                        server = %actor.setup.handle.name(),
                        code = failure.code().as_str(),
                        error = chain(&failure),
                        "cannot list the tools again; the old list stays"
                    ),
                }
                let outcome = if read { "read" } else { "failed" };
                events::list_refreshed(actor.setup.handle.name(), outcome);
                actor.apply(Input::RefreshEnded { epoch, read }, ctx);
            });
        ctx.spawn(read);
    }

    /// Offers what a lazy server offered the last time; the first call connects it.
    pub(super) fn recall(&self, ctx: &mut Context<Self>) {
        let (schemas, config) = (
            Arc::clone(&self.setup.schemas),
            Arc::clone(&self.setup.config),
        );
        let blocking = self.setup.blocking.clone();
        let recalling = async move {
            let deadline = Deadline::after(REMEMBER_WITHIN);
            let recalled = blocking
                .run(deadline, move || schemas.recall(&config))
                .await;
            recalled.ok().flatten()
        };
        let recalled = wrap_future::<_, Self>(recalling).map(|recalled, actor, ctx| {
            let known = recalled.is_some();
            // A call that came first has brought a fresher list, or will.
            if let Some(catalogue) = recalled
                && actor.state.epoch() == Epoch::default()
            {
                actor.publish_catalogue(catalogue);
            }
            actor.apply(Input::Start { known }, ctx);
        });
        ctx.spawn(recalled);
    }

    fn take_catalogue(&self, catalogue: Catalogue, ctx: &mut Context<Self>) {
        if self.setup.policy.lazy {
            let schemas = Arc::clone(&self.setup.schemas);
            let config = Arc::clone(&self.setup.config);
            let (blocking, offered) = (self.setup.blocking.clone(), catalogue.clone());
            let remembering = async move {
                let deadline = Deadline::after(REMEMBER_WITHIN);
                let remember = move || schemas.remember(&config, &offered);
                if blocking.run(deadline, remember).await.is_err() {
                    tracing::warn!("the tools of a lazy server were not remembered");
                }
            };
            ctx.spawn(wrap_future::<_, Self>(remembering));
        }
        self.publish_catalogue(catalogue);
    }

    fn publish_catalogue(&self, catalogue: Catalogue) {
        let handle = &self.setup.handle;
        if handle.generation() != self.generation {
            return;
        }
        let first = handle.look(|snapshot| !snapshot.listed);
        if let Some(cut) = catalogue.cut {
            tracing::warn!(server = %handle.name(), "tool list cut short: {cut}");
        }
        let tools = catalogue.tools.len();
        let change = self
            .setup
            .directory
            .publish(handle, catalogue.tools, catalogue.resources);
        report(handle, &change, first);
        handle.publish(self.generation, "", |snapshot| {
            snapshot.tools = tools;
            snapshot.listed = true;
        });
    }
}

/// Why a session ended, as a state's reason.
fn ending(by: ClosedBy) -> Reason {
    match by {
        ClosedBy::Us => Reason::new("closed", "the session was closed"),
        ClosedBy::ChildExit(status) => {
            Reason::new("exited", format!("the server's process ended: {status}"))
        }
        ClosedBy::Transport(words) => {
            Reason::new("connection_lost", format!("the connection ended: {words}"))
        }
    }
}

/// What an attempt that failed so lets expect.
fn trouble(failure: &Failure) -> Trouble {
    if failure
        .source()
        .is_some_and(|cause| cause.is::<ForeignModule>())
    {
        return Trouble::Lasting;
    }
    let known = [
        (ErrorCode::ServerUnauthorized, Trouble::Unauthorized),
        (ErrorCode::CommandNotFound, Trouble::Lasting),
        (ErrorCode::ServerMisconfigured, Trouble::Hopeless),
    ];
    let found = known.iter().find(|(known, _)| *known == failure.code());
    found.map_or(Trouble::Passing, |(_, trouble)| *trouble)
}

fn report(handle: &ServerHandle, change: &Change, first: bool) {
    if change.added.is_empty() && change.removed.is_empty() {
        return;
    }
    events::catalogue_changed(handle.name(), change.added.len(), change.removed.len());
    if !first {
        tracing::warn!(
            server = %handle.name(),
            added = told(&change.added),
            removed = told(&change.removed),
            "the server changed its tools"
        );
    }
}

/// Names for the log, not without end.
fn told(names: &[String]) -> String {
    let mut told: Vec<_> = names.iter().take(NAMES_TOLD).map(String::as_str).collect();
    if names.len() > NAMES_TOLD {
        told.push("…");
    }
    told.join(" ")
}
