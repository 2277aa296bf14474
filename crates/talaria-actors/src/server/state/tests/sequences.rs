//! A hundred thousand random lives: each ends with every call answered once, and a server that is
//! well again takes calls again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// Lives of each of the four tests, which run beside each other.
const LIVES: u64 = 25_000;

#[derive(Clone, Copy, Debug)]
enum Action {
    Call {
        within_ms: u64,
        read_only: bool,
        lane: Lane,
        fuse: Option<FuseKey>,
    },
    Leave(usize),
    End(usize, CallEnd),
    Connect,
    RefuseConnect(Trouble),
    LoseSession,
    Closed,
    ToolsChanged,
    Refreshed(bool),
    Probed(ProbeEnd),
    Reconnect,
    Drain(u64),
    Advance(u64),
    /// Time passes and the timer is late.
    Oversleep(u64),
    /// Words of a session that is long over.
    Stale,
}

/// SplitMix64: the same seed gives the same life.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % bound
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    fn maybe(&mut self, seconds: u64) -> Option<Duration> {
        self.coin().then(|| Duration::from_secs(seconds))
    }

    fn policy(&mut self) -> Policy {
        let pending = 1 + self.index(5);
        Policy {
            share: 1 + self.index(pending),
            loss_ends_session: self.coin(),
            keepalive: self.maybe(30),
            lazy: self.below(4) == 0,
            idle_timeout: self.maybe(20),
            max_lifetime: self.maybe(60),
            ..policy(1 + self.index(3), pending)
        }
    }

    fn action(&mut self) -> Action {
        const ENDS: &[CallEnd] = &[
            CallEnd::Answered,
            CallEnd::Answered,
            CallEnd::ToolFailed,
            CallEnd::ToolFailed,
            CallEnd::Failed,
            CallEnd::Silent,
            CallEnd::Silent,
            CallEnd::Silent,
            CallEnd::Unauthorized,
            CallEnd::LostUnsent,
            CallEnd::LostSent,
        ];
        const TROUBLES: &[Trouble] = &[
            Trouble::Passing,
            Trouble::Passing,
            Trouble::Passing,
            Trouble::Lasting,
            Trouble::Unauthorized,
            Trouble::Hopeless,
        ];
        const PROBE_ENDS: &[ProbeEnd] = &[
            ProbeEnd::Alive,
            ProbeEnd::Refused,
            ProbeEnd::Silent,
            ProbeEnd::Silent,
            ProbeEnd::Lost,
            ProbeEnd::Unauthorized,
            ProbeEnd::Untold,
        ];
        match self.below(48) {
            0..12 => Action::Call {
                within_ms: self.below(20_000),
                read_only: self.coin(),
                lane: Lane(self.below(3)),
                fuse: self.coin().then(|| FuseKey(self.below(2))),
            },
            12..14 => Action::Leave(self.index(8)),
            14..24 => Action::End(self.index(4), self.one_of(ENDS)),
            24..30 => Action::Connect,
            30..32 => Action::RefuseConnect(self.one_of(TROUBLES)),
            32..34 => Action::LoseSession,
            34..37 => Action::Closed,
            37 => Action::ToolsChanged,
            38 => Action::Refreshed(self.coin()),
            39 => Action::Probed(self.one_of(PROBE_ENDS)),
            40 => Action::Reconnect,
            41 if self.below(4) == 0 => Action::Drain(self.below(10_000)),
            41..45 => Action::Advance(self.below(8_000)),
            45 => Action::Advance(30_000 + self.below(400_000)),
            46 => Action::Oversleep(self.below(30_000)),
            _ => Action::Stale,
        }
    }
}

impl World {
    fn act(&mut self, action: Action) {
        match action {
            Action::Call {
                within_ms,
                read_only,
                lane,
                fuse,
            } => {
                self.call_of(lane, fuse, Duration::from_millis(within_ms), read_only);
            }
            Action::Leave(which) => {
                if let Some(id) = self.open.keys().nth(which).copied() {
                    self.feed(Input::CallerGone(id));
                }
            }
            Action::End(which, end) => {
                if let Some(id) = self.running.keys().nth(which).copied() {
                    self.end(id, end);
                }
            }
            Action::Connect => self.connect(),
            Action::RefuseConnect(trouble) => self.refuse_connect(trouble),
            Action::LoseSession => self.lose_session(),
            Action::Closed => self.closed(),
            Action::ToolsChanged => self.feed(Input::ToolsChanged(self.state.epoch())),
            Action::Refreshed(read) => self.refreshed(read),
            Action::Probed(end) => self.probed(end),
            Action::Reconnect => self.reconnect(),
            Action::Drain(within) => self.drain(Duration::from_millis(within)),
            Action::Advance(by) => self.advance(Duration::from_millis(by)),
            Action::Oversleep(by) => self.now += Duration::from_millis(by),
            Action::Stale => {
                let epoch = Epoch(self.state.epoch().0.wrapping_sub(1));
                let reason = exited();
                self.feed(Input::SessionEnded { epoch, reason });
                self.feed(Input::SessionClosed(epoch));
                self.feed(Input::ToolsChanged(epoch));
                let end = ProbeEnd::Lost;
                self.feed(Input::ProbeEnded { epoch, end });
                self.feed(Input::Start { known: true });
            }
        }
    }

    /// Everything that is under way ends well.
    fn be_kind(&mut self) {
        self.closed();
        self.connect();
        for id in self.running.keys().copied().collect::<Vec<_>>() {
            self.end(id, CallEnd::Answered);
        }
        self.refreshed(true);
        self.probed(ProbeEnd::Alive);
        self.closed();
        self.connect();
    }

    /// In a kind world a server takes calls again, whatever it went through.
    fn recovers(&mut self) {
        if self.state.name() == StateName::Failed {
            self.reconnect();
        }
        for _ in 0..2 {
            self.be_kind();
            self.advance(Duration::from_secs(400));
        }
        self.be_kind();
        let id = self.call(LONG, false);
        for _ in 0..4 {
            if !self.running.contains_key(&id) {
                self.be_kind();
                self.advance(Duration::from_millis(100));
            }
        }
        self.end(id, CallEnd::Answered);
        assert_eq!(self.settled.get(&id), Some(&Effect::Answer(id)));
        self.be_kind();
    }

    /// Everything that is under way ends, and the server stops.
    fn stops(&mut self) {
        self.drain(Duration::from_secs(1));
        self.advance(Duration::from_secs(2));
        for id in self.running.keys().copied().collect::<Vec<_>>() {
            self.end(id, CallEnd::Failed);
        }
        self.refreshed(false);
        self.closed();
        assert!(self.open.is_empty(), "never answered: {:?}", self.open);
        assert_eq!(self.state.name(), StateName::Stopped);
        assert_eq!(self.stops, 1);
        assert_eq!(self.settled.len() as u64, self.next_id - 1);
    }
}

fn live(policy: Policy, seed: u64, now: Instant, actions: &[Action]) {
    let mut world = World::begin(policy, seed, now, seed.is_multiple_of(2));
    for action in actions {
        world.act(*action);
    }
    if !world.drained && seed.is_multiple_of(3) {
        world.recovers();
    }
    world.stops();
}

/// Leaves out what the failure does not need.
fn shortest(fails: impl Fn(&[Action]) -> bool, mut actions: Vec<Action>) -> Vec<Action> {
    let mut at = 0;
    while at < actions.len() {
        let mut fewer = actions.clone();
        fewer.remove(at);
        if fails(&fewer) {
            actions = fewer;
        } else {
            at += 1;
        }
    }
    actions
}

fn lives(seeds: std::ops::Range<u64>) {
    let now = talaria_types::runtime::now().into_std();
    for seed in seeds {
        let mut dice = Dice(seed);
        let policy = dice.policy();
        let length = 4 + dice.index(40);
        let actions: Vec<_> = (0..length).map(|_| dice.action()).collect();
        let fails = |actions: &[Action]| {
            catch_unwind(AssertUnwindSafe(|| live(policy, seed, now, actions))).is_err()
        };
        if fails(&actions) {
            let actions = shortest(fails, actions);
            eprintln!("life {seed} breaks a rule with {policy:#?}\nand {actions:#?}");
            live(policy, seed, now, &actions);
        }
    }
}

#[test]
fn first_quarter_of_a_hundred_thousand_lives() {
    lives(0..LIVES);
}

#[test]
fn second_quarter_of_a_hundred_thousand_lives() {
    lives(LIVES..2 * LIVES);
}

#[test]
fn third_quarter_of_a_hundred_thousand_lives() {
    lives(2 * LIVES..3 * LIVES);
}

#[test]
fn last_quarter_of_a_hundred_thousand_lives() {
    lives(3 * LIVES..4 * LIVES);
}
