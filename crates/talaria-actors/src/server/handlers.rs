//! What the server actor does with each message. The rules are in `state.rs`.

use actix::{ActorContext, Context, Handler};

use crate::server::actor::ServerActor;
use crate::server::messages::{CallTool, CancelCall, Drain, Probe, Reconnect};
use crate::server::state::Input;

impl Handler<CallTool> for ServerActor {
    type Result = ();

    fn handle(&mut self, call: CallTool, ctx: &mut Context<Self>) {
        self.take_call(call.id, call.ticket, call.reply, ctx);
    }
}

impl Handler<CancelCall> for ServerActor {
    type Result = ();

    fn handle(&mut self, CancelCall(id): CancelCall, ctx: &mut Context<Self>) {
        self.caller_gone(id, ctx);
    }
}

impl Handler<Reconnect> for ServerActor {
    type Result = ();

    fn handle(&mut self, _: Reconnect, ctx: &mut Context<Self>) {
        self.apply(Input::Reconnect, ctx);
    }
}

impl Handler<Drain> for ServerActor {
    type Result = ();

    fn handle(&mut self, drain: Drain, ctx: &mut Context<Self>) {
        let until = drain.until.into_std();
        self.apply(
            Input::Drain {
                until,
                refusal: drain.refusal,
            },
            ctx,
        );
    }
}

impl Handler<Probe> for ServerActor {
    type Result = ();

    fn handle(&mut self, _: Probe, ctx: &mut Context<Self>) {
        // One that was replaced while it was frozen has nothing to do any more.
        if self.is_stale() {
            ctx.stop();
        }
    }
}
