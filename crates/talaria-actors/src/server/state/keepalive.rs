//! Whether an idle session still answers: pings, or lists where pings do not help. Pure.

use std::time::{Duration, Instant};

/// Pause before a session that failed once is asked again.
const SECOND_CHANCE: Duration = Duration::from_secs(5);

/// How a session is asked for a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeBy {
    /// `ping`.
    Ping,
    /// The first page of `tools/list`.
    List,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeEnd {
    /// An answer.
    Alive,
    /// An answer that says there is no such method.
    Refused,
    /// No answer in time.
    Silent,
    /// The connection failed.
    Lost,
    /// The credentials were refused.
    Unauthorized,
    /// Something of our own failed; the session was not to blame.
    Untold,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The session is well.
    Alive,
    /// Ask in another way, now.
    AskBy(ProbeBy),
    /// It failed once and is asked again soon.
    Suspect,
    /// It failed twice.
    Dead,
    /// Nothing is known; ask at the next time.
    Untold,
    /// It wants other credentials.
    Unauthorized,
}

/// The signs of life of one session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keepalive {
    /// For good: pings do not help with this server.
    by_list: bool,
    /// The server has tools, so that they can be listed.
    has_tools: bool,
    running: Option<ProbeBy>,
    /// A ping was not answered and the list is asked for instead.
    after_ping: bool,
    suspect: bool,
    /// When to ask, out of turn.
    hurry: Option<Instant>,
}

impl Keepalive {
    /// A new session.
    pub(super) const fn connected(&mut self, has_tools: bool) {
        *self = Self {
            by_list: self.by_list,
            has_tools,
            running: None,
            after_ping: false,
            suspect: false,
            hurry: None,
        };
    }

    /// Whether the session failed once.
    pub(super) const fn is_suspect(&self) -> bool {
        self.suspect
    }

    /// Whether it is being asked.
    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// When an idle session is asked next.
    pub(super) fn due(&self, last_sign: Instant, every: Option<Duration>) -> Option<Instant> {
        if self.running.is_some() {
            return None;
        }
        let regular = every.map(|every| last_sign + every);
        self.hurry.into_iter().chain(regular).min()
    }

    /// Something gives reason to ask at once.
    pub(super) const fn hurry(&mut self, now: Instant) {
        self.hurry = Some(now);
    }

    /// Asks; answers how.
    pub(super) const fn start(&mut self) -> ProbeBy {
        let by = if self.by_list && self.has_tools {
            ProbeBy::List
        } else {
            ProbeBy::Ping
        };
        self.hurry = None;
        self.after_ping = false;
        self.running = Some(by);
        by
    }

    /// A call goes first; it shows as much.
    pub(super) const fn give_up(&mut self) {
        self.running = None;
    }

    /// Something was answered.
    pub(super) const fn sign_of_life(&mut self) {
        self.suspect = false;
        self.hurry = None;
    }

    /// The asking ended.
    pub(super) fn ended(&mut self, end: ProbeEnd, now: Instant) -> Option<Finding> {
        let by = self.running.take()?;
        Some(match (by, end) {
            (_, ProbeEnd::Unauthorized) => Finding::Unauthorized,
            (_, ProbeEnd::Untold) => Finding::Untold,
            (ProbeBy::Ping, ProbeEnd::Refused) => {
                self.by_list = true;
                self.sign_of_life();
                Finding::Alive
            }
            (ProbeBy::List, ProbeEnd::Alive | ProbeEnd::Refused) => {
                self.by_list |= self.after_ping;
                self.sign_of_life();
                Finding::Alive
            }
            (ProbeBy::Ping, ProbeEnd::Alive) => {
                self.sign_of_life();
                Finding::Alive
            }
            (ProbeBy::Ping, ProbeEnd::Silent) if self.has_tools => {
                self.after_ping = true;
                self.running = Some(ProbeBy::List);
                Finding::AskBy(ProbeBy::List)
            }
            (_, ProbeEnd::Silent | ProbeEnd::Lost) if self.suspect => Finding::Dead,
            (_, ProbeEnd::Silent | ProbeEnd::Lost) => {
                self.suspect = true;
                self.hurry = Some(now + SECOND_CHANCE);
                Finding::Suspect
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        talaria_types::runtime::now().into_std()
    }

    fn session(has_tools: bool) -> Keepalive {
        let mut keepalive = Keepalive::default();
        keepalive.connected(has_tools);
        keepalive
    }

    #[test]
    fn l10_a_server_that_lists_and_does_not_answer_pings_is_asked_for_its_list() {
        let mut keepalive = session(true);
        assert_eq!(keepalive.start(), ProbeBy::Ping);
        let finding = keepalive.ended(ProbeEnd::Silent, now());
        assert_eq!(finding, Some(Finding::AskBy(ProbeBy::List)));
        assert_eq!(
            keepalive.ended(ProbeEnd::Alive, now()),
            Some(Finding::Alive)
        );
        assert_eq!(keepalive.start(), ProbeBy::List, "for good");
        keepalive.connected(true);
        assert_eq!(keepalive.start(), ProbeBy::List, "in the next session, too");
    }

    #[test]
    fn a_server_without_ping_is_asked_for_its_list_from_then_on() {
        for (has_tools, then) in [(true, ProbeBy::List), (false, ProbeBy::Ping)] {
            let mut keepalive = session(has_tools);
            keepalive.start();
            assert_eq!(
                keepalive.ended(ProbeEnd::Refused, now()),
                Some(Finding::Alive)
            );
            assert_eq!(keepalive.start(), then);
        }
    }

    #[test]
    fn a_session_is_given_up_when_it_fails_twice() {
        for end in [ProbeEnd::Silent, ProbeEnd::Lost] {
            let mut keepalive = session(false);
            let began = now();
            keepalive.start();
            assert_eq!(keepalive.ended(end, began), Some(Finding::Suspect));
            assert!(keepalive.is_suspect());
            let every = Some(Duration::from_secs(180));
            assert_eq!(keepalive.due(began, every), Some(began + SECOND_CHANCE));
            keepalive.start();
            assert_eq!(keepalive.ended(end, began), Some(Finding::Dead));
        }
    }

    #[test]
    fn any_answer_clears_the_suspicion() {
        let mut keepalive = session(false);
        keepalive.start();
        keepalive.ended(ProbeEnd::Lost, now());
        keepalive.sign_of_life();
        assert!(!keepalive.is_suspect());
        assert_eq!(keepalive.due(now(), None), None);
    }

    #[test]
    fn a_fault_of_our_own_says_nothing_of_the_session() {
        let mut keepalive = session(false);
        for _ in 0..3 {
            keepalive.start();
            assert_eq!(
                keepalive.ended(ProbeEnd::Untold, now()),
                Some(Finding::Untold)
            );
            assert!(!keepalive.is_suspect());
        }
    }

    #[test]
    fn what_was_given_up_tells_nothing() {
        let mut keepalive = session(false);
        keepalive.start();
        keepalive.give_up();
        assert_eq!(keepalive.ended(ProbeEnd::Lost, now()), None);
        assert!(!keepalive.is_suspect());
    }
}
