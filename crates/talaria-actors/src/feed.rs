//! What changes, as it happens, for those who listen: states of servers, tools, reloads.
//!
//! One bounded memory serves everybody. A listener reads from it at its own pace; one that falls
//! behind, or asks for more than is remembered, is told to look at everything anew. So a slow
//! listener costs nobody else a thing.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use talaria_telemetry::events;
use talaria_types::{ErrorCode, Failure, ServerName};
use tokio::sync::watch;

/// Events that are remembered.
const REMEMBERED: usize = 1024;
/// Characters of names that are remembered with them.
const REMEMBERED_CHARS: usize = 1024 * 1024;
/// Names in one list of an event; a longer one is cut.
const NAMES: usize = 256;
/// Listeners at a time.
const LISTENERS: usize = 256;

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A server changed its state.
    ServerState(ServerStateEvent),
    /// A server's tools changed.
    ToolsChanged(ToolsChangedEvent),
    /// The configuration was read again.
    ConfigReloaded(ConfigReloadedEvent),
}

/// A server changed its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServerStateEvent {
    /// Its name.
    pub server: String,
    /// The state it left.
    pub from: String,
    /// The state it is in.
    pub to: String,
    /// Why, where the state needs a reason.
    pub reason: Option<String>,
}

/// A server's tools changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolsChangedEvent {
    /// Its name.
    pub server: String,
    /// Public names that are new.
    pub added: Vec<String>,
    /// Public names that are gone.
    pub removed: Vec<String>,
    /// Public names whose definition is another.
    pub changed: Vec<String>,
    /// The names are not all: `GET /v1/tools` has them.
    pub truncated: bool,
    /// The version of the tool list since then.
    pub version: u64,
}

/// The configuration was read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigReloadedEvent {
    /// Servers that are new.
    pub added: Vec<String>,
    /// Servers that are gone.
    pub removed: Vec<String>,
    /// Servers whose entry changed.
    pub changed: Vec<String>,
}

impl Event {
    /// The word after `event:`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ServerState(_) => "server_state",
            Self::ToolsChanged(_) => "tools_changed",
            Self::ConfigReloaded(_) => "config_reloaded",
        }
    }

    /// The event as somebody may see it who may use these servers only.
    #[must_use]
    pub fn seen_by(&self, may_use: impl Fn(&str) -> bool) -> Option<Self> {
        match self {
            Self::ServerState(ServerStateEvent { server, .. })
            | Self::ToolsChanged(ToolsChangedEvent { server, .. }) => {
                may_use(server).then(|| self.clone())
            }
            Self::ConfigReloaded(reloaded) => {
                let theirs = |names: &[String]| {
                    let mut names = names.to_vec();
                    names.retain(|name| may_use(name));
                    names
                };
                Some(Self::ConfigReloaded(ConfigReloadedEvent {
                    added: theirs(&reloaded.added),
                    removed: theirs(&reloaded.removed),
                    changed: theirs(&reloaded.changed),
                }))
            }
        }
    }

    fn chars(&self) -> usize {
        let all = |lists: [&Vec<String>; 3]| lists.into_iter().flatten().map(String::len).sum();
        match self {
            Self::ServerState(state) => state.reason.as_ref().map_or(0, String::len),
            Self::ToolsChanged(tools) => all([&tools.added, &tools.removed, &tools.changed]),
            Self::ConfigReloaded(config) => all([&config.added, &config.removed, &config.changed]),
        }
    }
}

/// A place in the order of events, of one run of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    run: u64,
    number: u64,
}

impl EventId {
    /// Reads what [`fmt::Display`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (run, number) = text.split_once('-')?;
        Some(Self {
            run: u64::from_str_radix(run, 16).ok()?,
            number: number.parse().ok()?,
        })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.run, self.number)
    }
}

/// Takes events and keeps the latest; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Tells runs of the service apart.
    run: u64,
    memory: Mutex<Memory>,
    latest: watch::Sender<Latest>,
    listeners: AtomicUsize,
}

/// What wakes listeners.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    number: u64,
    closed: bool,
}

#[derive(Debug, Default)]
struct Memory {
    events: VecDeque<(u64, Arc<Event>)>,
    chars: usize,
    /// The number of the latest event.
    latest: u64,
}

impl Memory {
    fn push(&mut self, event: Event) {
        self.latest += 1;
        self.chars += event.chars();
        self.events.push_back((self.latest, Arc::new(event)));
        while self.events.len() > REMEMBERED || self.chars > REMEMBERED_CHARS {
            let Some((_, forgotten)) = self.events.pop_front() else {
                return;
            };
            self.chars = self.chars.saturating_sub(forgotten.chars());
        }
    }

    /// The event after `number`; none where it has not happened yet.
    fn after(&self, number: u64) -> Result<Option<(u64, Arc<Event>)>, Forgotten> {
        if number == self.latest {
            return Ok(None);
        }
        let oldest = self.events.front().map(|(oldest, _)| *oldest);
        let offset = oldest.and_then(|oldest| (number + 1).checked_sub(oldest));
        let index = offset.and_then(|offset| usize::try_from(offset).ok());
        let found = index.and_then(|index| self.events.get(index));
        found.cloned().map(Some).ok_or(Forgotten)
    }
}

/// What was asked for is not remembered.
#[derive(Debug)]
struct Forgotten;

impl Feed {
    /// An empty one.
    pub(crate) fn new() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let shared = Shared {
            run: RandomState::new().hash_one("talaria events"),
            memory: Mutex::new(Memory::default()),
            latest: watch::Sender::new(Latest::default()),
            listeners: AtomicUsize::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Something changed.
    pub(crate) fn say(&self, event: Event) {
        let mut memory = self.shared.memory.lock();
        memory.push(event);
        let number = memory.latest;
        // Under the lock, so that the number only rises.
        self.shared
            .latest
            .send_modify(|latest| latest.number = number);
    }

    /// A server's tools changed.
    pub(crate) fn tools_changed(&self, mut event: ToolsChangedEvent) {
        for names in [&mut event.added, &mut event.removed, &mut event.changed] {
            event.truncated |= names.len() > NAMES;
            names.truncate(NAMES);
        }
        self.say(Event::ToolsChanged(event));
    }

    /// Nothing more will be said: listeners end.
    pub(crate) fn close(&self) {
        self.shared
            .latest
            .send_modify(|latest| latest.closed = true);
    }

    /// Listens from after `last` on, or from now on.
    ///
    /// # Errors
    /// `busy` when too many listen; `shutting_down` when nothing more will be said.
    pub(crate) fn listen(&self, last: Option<&str>) -> Result<Listener, Failure> {
        let wake = self.shared.latest.subscribe();
        if wake.borrow().closed {
            let detail = "Talaria is shutting down";
            return Err(Failure::new(ErrorCode::ShuttingDown, detail));
        }
        let place = Place::take(&self.shared)?;
        let latest = self.shared.memory.lock().latest;
        let asked = last.map(EventId::parse);
        let (heard, missed) = match asked {
            None => (latest, false),
            Some(Some(id)) if id.run == self.shared.run && id.number <= latest => {
                (id.number, false)
            }
            Some(_) => (latest, true),
        };
        Ok(Listener {
            place,
            wake,
            heard,
            missed,
        })
    }
}

/// One listener's place; given back on drop.
#[derive(Debug)]
struct Place {
    shared: Arc<Shared>,
}

impl Place {
    fn take(shared: &Arc<Shared>) -> Result<Self, Failure> {
        let taken =
            shared
                .listeners
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |listeners| {
                    (listeners < LISTENERS).then_some(listeners + 1)
                });
        match taken {
            Ok(before) => {
                events::queue_depth("event_listeners", before + 1, LISTENERS);
                Ok(Self {
                    shared: Arc::clone(shared),
                })
            }
            Err(_) => {
                events::queue_refused("event_listeners");
                let detail = format!("{LISTENERS} callers listen to events already");
                Err(Failure::new(ErrorCode::Busy, detail).retry_after(Duration::from_secs(10)))
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let before = self.shared.listeners.fetch_sub(1, Ordering::Relaxed);
        events::queue_depth("event_listeners", before.saturating_sub(1), LISTENERS);
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub struct Listener {
    place: Place,
    wake: watch::Receiver<Latest>,
    /// The number of the event that was heard last.
    heard: u64,
    /// It asked for more than is remembered.
    missed: bool,
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// An event.
    Event(EventId, Arc<Event>),
    /// Events were missed: whoever keeps a picture of the service looks at all of it anew.
    Missed(EventId),
}

impl Listener {
    /// The place in the order of events up to which everything was heard.
    #[must_use]
    pub fn position(&self) -> EventId {
        EventId {
            run: self.place.shared.run,
            number: self.heard,
        }
    }

    /// Waits for the next event; none when nothing more will be said.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if std::mem::take(&mut self.missed) {
                return Some(Heard::Missed(self.position()));
            }
            let next = self.place.shared.memory.lock().after(self.heard);
            match next {
                Ok(Some((number, event))) => {
                    self.heard = number;
                    return Some(Heard::Event(self.position(), event));
                }
                Ok(None) => {}
                Err(Forgotten) => {
                    self.heard = self.place.shared.memory.lock().latest;
                    self.missed = true;
                    continue;
                }
            }
            let heard = self.heard;
            let more = self
                .wake
                .wait_for(|latest| latest.closed || latest.number > heard);
            let is_over = more.await.map_or(true, |latest| latest.number <= heard);
            if is_over {
                return None;
            }
        }
    }
}

/// An event of a server's state.
pub(crate) fn state_event(
    server: &ServerName,
    from: &str,
    to: &str,
    reason: Option<&String>,
) -> Event {
    Event::ServerState(ServerStateEvent {
        server: server.as_str().to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        reason: reason.cloned(),
    })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn state(server: &str) -> Event {
        state_event(&ServerName::from(server), "connecting", "ready", None)
    }

    /// What is heard without waiting.
    fn heard(listener: &mut Listener) -> Option<Heard> {
        listener.next().now_or_never().flatten()
    }

    fn server(heard: Option<Heard>) -> String {
        let Some(Heard::Event(_, event)) = heard else {
            panic!("{heard:?}")
        };
        let Event::ServerState(state) = &*event else {
            panic!("{event:?}")
        };
        state.server.clone()
    }

    #[test]
    fn a_listener_hears_what_is_said_after_it_came() {
        let feed = Feed::new();
        feed.say(state("before"));
        let mut listener = feed.listen(None).unwrap();
        assert_eq!(heard(&mut listener), None);
        feed.say(state("a"));
        feed.say(state("b"));
        assert_eq!(server(heard(&mut listener)), "a");
        assert_eq!(server(heard(&mut listener)), "b");
        assert_eq!(heard(&mut listener), None);
    }

    #[test]
    fn one_that_comes_back_goes_on_where_it_was() {
        let feed = Feed::new();
        let mut listener = feed.listen(None).unwrap();
        feed.say(state("a"));
        drop(heard(&mut listener));
        let last = listener.position().to_string();
        drop(listener);
        feed.say(state("b"));
        let mut again = feed.listen(Some(&last)).unwrap();
        assert_eq!(server(heard(&mut again)), "b");
        assert_eq!(heard(&mut again), None);
    }

    #[test]
    fn what_is_not_remembered_is_told_as_missed() {
        let feed = Feed::new();
        let mut slow = feed.listen(None).unwrap();
        let first = slow.position().to_string();
        for _ in 0..=REMEMBERED {
            feed.say(state("a"));
        }
        assert!(matches!(heard(&mut slow), Some(Heard::Missed(_))));
        assert_eq!(heard(&mut slow), None);
        feed.say(state("b"));
        assert_eq!(server(heard(&mut slow)), "b");
        let other_run = Feed::new().listen(None).unwrap().position().to_string();
        for last in [first.as_str(), &other_run, "nonsense", ""] {
            let mut late = feed.listen(Some(last)).unwrap();
            assert!(matches!(heard(&mut late), Some(Heard::Missed(_))), "{last}");
            assert_eq!(heard(&mut late), None);
        }
    }

    #[test]
    fn long_lists_are_cut_and_the_memory_is_bounded() {
        let feed = Feed::new();
        let mut listener = feed.listen(None).unwrap();
        for _ in 0..100 {
            feed.tools_changed(ToolsChangedEvent {
                server: "s".to_owned(),
                added: vec!["x".repeat(64); 4096],
                removed: vec![],
                changed: vec![],
                truncated: false,
                version: 1,
            });
        }
        let memory = feed.shared.memory.lock();
        assert!(memory.chars <= REMEMBERED_CHARS, "{}", memory.chars);
        assert!((2..100).contains(&memory.events.len()));
        drop(memory);
        assert!(matches!(heard(&mut listener), Some(Heard::Missed(_))));
    }

    #[test]
    fn the_number_of_listeners_is_bounded_and_places_are_given_back() {
        let feed = Feed::new();
        let all: Vec<_> = (0..LISTENERS).map(|_| feed.listen(None).unwrap()).collect();
        assert_eq!(feed.listen(None).unwrap_err().code(), ErrorCode::Busy);
        drop(all);
        assert!(feed.listen(None).is_ok());
    }

    #[test]
    fn listeners_end_when_nothing_more_will_be_said() {
        let feed = Feed::new();
        let mut listener = feed.listen(None).unwrap();
        feed.say(state("a"));
        feed.close();
        assert_eq!(server(listener.next().now_or_never().unwrap()), "a");
        assert_eq!(listener.next().now_or_never(), Some(None));
        let late = feed.listen(None).unwrap_err();
        assert_eq!(late.code(), ErrorCode::ShuttingDown);
    }

    #[test]
    fn nobody_hears_of_servers_that_are_not_theirs() {
        let may_use = |server: &str| server == "mine";
        assert!(state("mine").seen_by(may_use).is_some());
        assert!(state("other").seen_by(may_use).is_none());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let reloaded = Event::ConfigReloaded(ConfigReloadedEvent {
            added: names(&["mine", "other"]),
            removed: names(&["other"]),
            changed: vec![],
        });
        let expected = Event::ConfigReloaded(ConfigReloadedEvent {
            added: names(&["mine"]),
            removed: vec![],
            changed: vec![],
        });
        assert_eq!(reloaded.seen_by(may_use), Some(expected));
    }
}
