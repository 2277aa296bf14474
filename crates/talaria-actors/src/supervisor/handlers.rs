//! What the supervisor does with each message.

use actix::fut::wrap_future;
use actix::{
    ActorContext, ActorFutureExt, Arbiter, AsyncContext, Context, Handler, ResponseActFuture,
};
use futures_util::future::join_all;
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, Failure};

use crate::server::ServerHandle;
use crate::server::messages::{Probe, ServerStopped};
use crate::server::snapshot::StateName;
use crate::supervisor::actor::{STOP_OVERRUN, SupervisorActor};
use crate::supervisor::governed::{Death, Governed, Life};
use crate::supervisor::messages::{DrainAll, Reload, StopSupervisor, Switch, SwitchServer};
use crate::supervisor::report::ReloadReport;

impl Handler<ServerStopped> for SupervisorActor {
    type Result = ();

    fn handle(&mut self, notice: ServerStopped, ctx: &mut Context<Self>) {
        let current = self
            .servers
            .get(&notice.server)
            .is_some_and(|server| server.handle.generation() == notice.generation);
        if current {
            let cause = if notice.panicked {
                Death::Panicked
            } else {
                Death::Finished
            };
            self.actor_died(&notice.server, cause, ctx);
        } else {
            self.left(&notice.server, notice.generation, ctx);
        }
    }
}

impl Handler<Reload> for SupervisorActor {
    type Result = Result<ReloadReport, Failure>;

    fn handle(&mut self, reload: Reload, ctx: &mut Context<Self>) -> Self::Result {
        self.directory.check_open()?;
        Ok(Self::reload(self, &reload.config, ctx))
    }
}

impl Handler<SwitchServer> for SupervisorActor {
    type Result = Result<(), Failure>;

    fn handle(&mut self, switch: SwitchServer, ctx: &mut Context<Self>) -> Self::Result {
        if self.draining {
            return self.directory.check_open();
        }
        if !self.servers.contains_key(&switch.server) {
            // A reload removed it meanwhile.
            let detail = format!("no server is named '{}'", switch.server);
            return Err(Failure::new(ErrorCode::UnknownServer, detail));
        }
        match switch.to {
            Switch::On => self.switch_on(&switch.server, ctx),
            Switch::Off => self.switch_off(&switch.server, ctx),
        }
        Ok(())
    }
}

impl Handler<DrainAll> for SupervisorActor {
    type Result = ResponseActFuture<Self, Vec<Arbiter>>;

    fn handle(&mut self, drain: DrainAll, ctx: &mut Context<Self>) -> Self::Result {
        self.draining = true;
        let until = Deadline::at(drain.until);
        let stop_by = Deadline::at(drain.until + self.parts.timing.close_within + STOP_OVERRUN);
        let mut stopping = Vec::new();
        for server in self.servers.values_mut() {
            match &server.life {
                Life::Running => stopping.push(server.handle.clone()),
                Life::None => {}
                Life::Waiting => {
                    server.life = Life::None;
                    server.show_stopped(ErrorCode::ShuttingDown);
                }
                Life::Scheduled(restart) => {
                    ctx.cancel_future(*restart);
                    server.life = Life::None;
                    server.show_stopped(ErrorCode::ShuttingDown);
                }
            }
        }
        // Those that a reload sent away end with the others.
        let leaving = self.leaving.iter().map(|leaving| &leaving.server.handle);
        stopping.extend(leaving.cloned());
        let stopped = join_all(
            stopping
                .into_iter()
                .map(|server| stop(server, until, stop_by)),
        );
        Box::pin(wrap_future(stopped).map(|_, actor: &mut Self, _| {
            let leaving = actor.leaving.iter_mut().map(|leaving| &mut leaving.server);
            actor
                .servers
                .values_mut()
                .chain(leaving)
                .filter_map(Governed::take_idle_arbiter)
                .collect()
        }))
    }
}

impl Handler<Probe> for SupervisorActor {
    type Result = ();

    fn handle(&mut self, _: Probe, _: &mut Context<Self>) {}
}

impl Handler<StopSupervisor> for SupervisorActor {
    type Result = ();

    fn handle(&mut self, _: StopSupervisor, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

/// Drains one server and waits until it has stopped.
async fn stop(server: ServerHandle, until: Deadline, stop_by: Deadline) {
    let stopped = server.watch_until(stop_by, |seen| seen.state == StateName::Stopped);
    tokio::pin!(stopped);
    let last = tokio::select! {
        biased;
        // It may die on its own meanwhile.
        last = &mut stopped => last,
        () = server.begin_drain(stop_by, until, ErrorCode::ShuttingDown) => stopped.await,
    };
    if last.state != StateName::Stopped {
        events::deadline_exceeded("drain");
        tracing::error!(server = %server.name(), "server did not stop in time");
    }
}
