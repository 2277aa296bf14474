//! Which links are worth asking: a circuit breaker for every account and for every model. Pure.
//!
//! A link has both. A bad key closes every link of its account and no model of another one; a
//! model that is not there, or does not see, closes its own links and leaves the key alone.

use std::time::{Duration, Instant};

use super::verdict::{Fault, FaultKind, Origin, Verdict};

/// Failures in a row after which a link is left alone.
pub(super) const THRESHOLD: u32 = 3;
/// How long it is left alone at first; twice as long after every probe that fails.
const COOL_DOWN: Duration = Duration::from_secs(30);
/// The same for what does not mend itself: a key, a quota, a model.
pub(super) const QUARANTINE: Duration = Duration::from_secs(300);
/// The cool-down of a breaker that is open for a time that the provider named: none of ours, so
/// that the next failure begins with [`COOL_DOWN`].
const NAMED: Duration = Duration::ZERO;
/// The longest time a link is left alone.
const MAX_COOL_DOWN: Duration = Duration::from_secs(600);

/// What a link shares with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Endpoint and key, or the MCP server.
    pub account: String,
    /// The same with the model, or the tool.
    pub model: String,
}

/// What a breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BreakerState {
    /// Everything.
    Closed,
    /// One attempt, to find out.
    HalfOpen,
    /// Nothing.
    Open,
}

impl BreakerState {
    /// Every state.
    pub const ALL: &'static [Self] = &[Self::Closed, Self::HalfOpen, Self::Open];

    /// The word used in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// Why a link is not asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What opened its breaker.
    pub cause: FaultKind,
    /// How long it stays open; zero while a probe is under way.
    pub wait: Duration,
    /// Whether the provider named that time.
    pub is_named: bool,
}

impl Blocked {
    /// The same as a fault, for the report of an attempt that was none.
    #[must_use]
    pub fn fault(self) -> Fault {
        let cause = self.cause.sentence();
        let seconds = self.wait.as_secs().saturating_add(1);
        let words = if self.wait.is_zero() {
            format!("not asked; before, {cause}, and another request is finding out")
        } else {
            format!("not asked for another {seconds} s; before, {cause}")
        };
        Fault::new(FaultKind::CircuitOpen, &words)
    }
}

/// Whether an attempt had the time its link can expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HadTime {
    /// It had.
    Enough,
    /// The time of the whole description cut it short.
    Short,
}

/// The breakers of a chain.
#[derive(Clone, Debug)]
pub struct Health {
    /// The places of a link's breakers among `accounts` and `models`.
    links: Vec<(usize, usize)>,
    accounts: Vec<Breaker>,
    models: Vec<Breaker>,
}

#[derive(Clone, Copy, Debug)]
enum Scope {
    Account,
    Model,
}

#[derive(Clone, Copy, Debug)]
enum Breaker {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
        cool_down: Duration,
        cause: FaultKind,
    },
    Probing {
        /// When another probe may be made, should this one never be heard of again.
        until: Instant,
        cool_down: Duration,
        cause: FaultKind,
    },
}

/// What an attempt says of one breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// It works.
    Good,
    /// It failed; enough of these in a row open the breaker.
    Bad(FaultKind),
    /// It will fail again for this long.
    Broken(FaultKind, Duration),
    /// It asks to be left alone for this long.
    Named(FaultKind, Duration),
    /// Nothing.
    None,
}

impl Health {
    /// Links of which nothing is known yet.
    #[must_use]
    pub fn new(links: &[Identity]) -> Self {
        let (mut accounts, mut models) = (Vec::new(), Vec::new());
        let scopes: Vec<(usize, usize)> = links
            .iter()
            .map(|link| {
                let account = place_of(&mut accounts, &link.account);
                (account, place_of(&mut models, &link.model))
            })
            .collect();
        Self {
            accounts: vec![Breaker::CLOSED; accounts.len()],
            models: vec![Breaker::CLOSED; models.len()],
            links: scopes,
        }
    }

    /// Whether a link would be let through.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, link: usize, now: Instant) -> Result<(), Blocked> {
        match self.scopes(link) {
            Some((account, model)) => account.check(now).and_then(|()| model.check(now)),
            None => Ok(()),
        }
    }

    /// Lets a link through, or says why not. Where that makes it a probe, the next one is let
    /// through when this one is reported, and `until` at the latest.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&mut self, link: usize, now: Instant, until: Instant) -> Result<(), Blocked> {
        self.check(link, now)?;
        self.each(link, |breaker, _| breaker.probe(until));
        Ok(())
    }

    /// What a link lets through.
    #[must_use]
    pub fn state(&self, link: usize, now: Instant) -> BreakerState {
        match self.scopes(link) {
            Some((account, model)) => account.state(now).max(model.state(now)),
            None => BreakerState::Closed,
        }
    }

    /// Takes in what an attempt came to. `had_time` says whether it had all the time its link
    /// can expect: an attempt that was cut short says nothing of the link.
    pub fn record(&mut self, link: usize, verdict: &Verdict, had_time: HadTime, now: Instant) {
        let signs = match verdict {
            Verdict::Answer(_) => (Sign::Good, Sign::Good),
            Verdict::Reasoned(_) => (Sign::Good, Sign::None),
            Verdict::Failed(fault) => signs(fault, had_time),
        };
        self.each(link, |breaker, scope| match scope {
            Scope::Account => breaker.take(signs.0, now),
            Scope::Model => breaker.take(signs.1, now),
        });
    }

    /// An attempt that was let through came to nothing, for no fault of the link.
    pub fn forget(&mut self, link: usize, now: Instant) {
        self.each(link, |breaker, _| breaker.take(Sign::None, now));
    }

    fn scopes(&self, link: usize) -> Option<(&Breaker, &Breaker)> {
        let (account, model) = self.links.get(link)?;
        Some((self.accounts.get(*account)?, self.models.get(*model)?))
    }

    fn each(&mut self, link: usize, change: impl Fn(&mut Breaker, Scope)) {
        let Some((account, model)) = self.links.get(link).copied() else {
            return;
        };
        if let Some(account) = self.accounts.get_mut(account) {
            change(account, Scope::Account);
        }
        if let Some(model) = self.models.get_mut(model) {
            change(model, Scope::Model);
        }
    }
}

/// The place of a name among those seen so far.
fn place_of<'a>(names: &mut Vec<&'a str>, name: &'a str) -> usize {
    if let Some(place) = names.iter().position(|known| *known == name) {
        return place;
    }
    names.push(name);
    names.len() - 1
}

/// What a fault says of the account and of the model.
fn signs(fault: &Fault, had_time: HadTime) -> (Sign, Sign) {
    let kind = fault.kind;
    if fault.origin == Origin::Queue {
        return (Sign::None, Sign::None);
    }
    if fault.origin == Origin::Words {
        // It answered; whatever it says, another picture may make it say something else.
        return (Sign::Good, Sign::None);
    }
    match kind {
        FaultKind::ServerError | FaultKind::RateLimited => match fault.retry_after {
            Some(wait) if !wait.is_zero() => (Sign::Named(kind, wait), Sign::None),
            Some(_) | None => (Sign::Bad(kind), Sign::None),
        },
        FaultKind::Unreachable | FaultKind::NotConnected => (Sign::Bad(kind), Sign::None),
        FaultKind::Auth | FaultKind::Quota => (Sign::Broken(kind, QUARANTINE), Sign::None),
        FaultKind::UnknownModel | FaultKind::CannotSee => {
            (Sign::Good, Sign::Broken(kind, QUARANTINE))
        }
        FaultKind::Timeout if had_time == HadTime::Short => (Sign::None, Sign::None),
        FaultKind::Timeout
        | FaultKind::ErrorInside
        | FaultKind::NotJson
        | FaultKind::Malformed
        | FaultKind::ToolError
        | FaultKind::PatternMatched => (Sign::None, Sign::Bad(kind)),
        // It answered; another picture or question may fare better.
        FaultKind::TooLarge
        | FaultKind::BadRequest
        | FaultKind::Empty
        | FaultKind::ReasoningOnly
        | FaultKind::RefusalOnly
        | FaultKind::Oversize => (Sign::Good, Sign::None),
        FaultKind::UnknownTool
        | FaultKind::Misconfigured
        | FaultKind::Unsendable
        | FaultKind::CircuitOpen
        | FaultKind::Skipped
        | FaultKind::NoTime => (Sign::None, Sign::None),
    }
}

impl Breaker {
    const CLOSED: Self = Self::Closed { failures: 0 };

    fn check(&self, now: Instant) -> Result<(), Blocked> {
        match *self {
            Self::Closed { .. } => Ok(()),
            Self::Open {
                until,
                cause,
                cool_down,
            } => blocked(until, cause, cool_down == NAMED, now),
            Self::Probing { until, cause, .. } if now < until => Err(Blocked {
                cause,
                wait: Duration::ZERO,
                is_named: false,
            }),
            Self::Probing { .. } => Ok(()),
        }
    }

    fn state(&self, now: Instant) -> BreakerState {
        match *self {
            Self::Closed { .. } => BreakerState::Closed,
            Self::Open { until, .. } if now < until => BreakerState::Open,
            Self::Open { .. } | Self::Probing { .. } => BreakerState::HalfOpen,
        }
    }

    /// Makes what is let through a probe.
    const fn probe(&mut self, until: Instant) {
        match *self {
            Self::Closed { .. } => {}
            Self::Open {
                cool_down, cause, ..
            }
            | Self::Probing {
                cool_down, cause, ..
            } => {
                *self = Self::Probing {
                    until,
                    cool_down,
                    cause,
                };
            }
        }
    }

    fn take(&mut self, sign: Sign, now: Instant) {
        match sign {
            Sign::Good => *self = Self::CLOSED,
            Sign::Bad(cause) => self.failed(cause, now),
            Sign::Broken(cause, wait) => self.open(cause, wait, wait.max(COOL_DOWN), now),
            Sign::Named(cause, wait) => self.open(cause, wait, NAMED, now),
            Sign::None => {
                // Another one may find out.
                if let Self::Probing {
                    cool_down, cause, ..
                } = *self
                {
                    *self = Self::Open {
                        until: now,
                        cool_down,
                        cause,
                    };
                }
            }
        }
    }

    fn open(&mut self, cause: FaultKind, wait: Duration, cool_down: Duration, now: Instant) {
        *self = Self::Open {
            until: now + wait.min(MAX_COOL_DOWN),
            cool_down,
            cause,
        };
    }

    fn failed(&mut self, cause: FaultKind, now: Instant) {
        match *self {
            Self::Closed { failures } if failures + 1 < THRESHOLD => {
                *self = Self::Closed {
                    failures: failures + 1,
                };
            }
            Self::Closed { .. } => self.open(cause, COOL_DOWN, COOL_DOWN, now),
            Self::Probing { cool_down, .. } => {
                let cool_down = (cool_down * 2).clamp(COOL_DOWN, MAX_COOL_DOWN);
                self.open(cause, cool_down, cool_down, now);
            }
            // One that was under way when the breaker opened.
            Self::Open { .. } => {}
        }
    }
}

fn blocked(until: Instant, cause: FaultKind, is_named: bool, now: Instant) -> Result<(), Blocked> {
    let wait = until.saturating_duration_since(now);
    if wait.is_zero() {
        return Ok(());
    }
    Err(Blocked {
        cause,
        wait,
        is_named,
    })
}

#[cfg(test)]
mod tests;
