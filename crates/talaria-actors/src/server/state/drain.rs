//! The end: no new calls, those that run finish, then the session closes.

use std::time::{Duration, Instant};

use talaria_types::ErrorCode;

use super::{Effect, Link, Phase, Reason, Refusal, ServerState};

/// Further than any drain waits.
const FAR: Duration = Duration::from_secs(24 * 3600);

impl ServerState {
    pub(super) fn begin_drain(
        &mut self,
        until: Instant,
        refusal: ErrorCode,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let until = self.drain.map_or(until, |(earlier, _)| earlier.min(until));
        self.drain = Some((until, refusal));
        if self.phase == Phase::Stopped {
            return;
        }
        self.phase = Phase::Draining;
        self.retiring = None;
        self.reason = Reason::new("drain", "takes no new calls and finishes those that run");
        self.queue.forget_refresh();
        if self.keepalive.is_running() {
            self.keepalive.give_up();
            effects.push(Effect::AbandonProbe);
        }
        match self.link {
            Link::Up => {}
            Link::Absent | Link::Closing => self.refuse_queue(now, effects),
            Link::Connecting => {
                self.link = Link::Absent;
                effects.push(Effect::AbandonConnect);
                self.refuse_queue(now, effects);
            }
        }
    }

    pub(super) fn refuse_queue(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let code = self.drain.map_or(ErrorCode::ShuttingDown, |(_, code)| code);
        self.refuse_all(Refusal::Draining(code), now, effects);
    }

    pub(super) fn drain_is_due(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.drain.is_none_or(|(until, _)| until > now) {
            return;
        }
        self.refuse_queue(now, effects);
        effects.extend(self.running.keys().map(|id| Effect::Abort(*id)));
        // Ending the session ends whatever does not heed the cancellation.
        if self.link == Link::Up {
            self.close_link(effects);
        }
        self.drain = self.drain.map(|(_, code)| (now + FAR, code));
    }

    pub(super) fn finish_drain(&mut self, effects: &mut Vec<Effect>) {
        let idle = self.running.is_empty() && self.queue.is_empty();
        if self.phase != Phase::Draining || !idle {
            return;
        }
        match self.link {
            Link::Up => self.close_link(effects),
            Link::Absent => {
                self.phase = Phase::Stopped;
                self.reason = Reason::bare("drain");
                effects.push(Effect::Stop);
            }
            Link::Connecting | Link::Closing => {}
        }
    }
}
