//! What is remembered of event streams, so that a server that keeps closing them is not asked
//! again and again.

use std::sync::Arc;
use std::time::Duration;

use talaria_types::runtime;
use tokio::sync::watch;
use tokio::time::Instant;

/// Pause after a first common stream that brought nothing; doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(4);
const MAX_PAUSE: Duration = Duration::from_secs(120);

/// Least time from the end of one stream to the next, whatever pause the server asks for: a server
/// that ends each of them at once would otherwise be asked hundreds of times a second.
pub(super) const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// A common stream that lived this long was worth opening, even if nothing came.
const WORTHWHILE: Duration = Duration::from_secs(30);

/// Resumed responses in a row that may end without an event.
const MAX_EMPTY_RESUMES: u32 = 3;

/// Which stream a `GET` opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// The session's own, for what the server says unasked.
    Common,
    /// The continuation of a response that broke off.
    Resumed,
}

/// Shared by all requests of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Arc<watch::Sender<State>>);

/// Follows what becomes of the common stream.
#[derive(Debug)]
pub(super) struct CommonWatch(watch::Receiver<State>);

impl CommonWatch {
    /// Whether it is open now.
    pub(super) fn is_open(&mut self) -> bool {
        self.0.borrow_and_update().is_open
    }

    /// Resolves when something came, or it was opened or closed.
    pub(super) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The session is over, and with it whoever waits here.
            std::future::pending::<()>().await;
        }
    }
}

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    was_open: bool,
    common_last_id: Option<String>,
    common: Ends,
    resumed: Ends,
}

/// How streams of a kind ended.
#[derive(Debug, Default)]
struct Ends {
    /// Those in a row that brought nothing.
    empty: u32,
    /// When the last one did.
    last: Option<Instant>,
}

impl Ends {
    /// What is left of the least pause after the last one.
    fn least_pause(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| {
            LEAST_PAUSE.saturating_sub(last.elapsed())
        })
    }
}

impl Streams {
    /// Tells by the event id after which it starts what a `GET` is for.
    pub(super) fn which(&self, last_event_id: Option<&str>) -> Stream {
        match last_event_id {
            Some(id) if self.0.borrow().common_last_id.as_deref() != Some(id) => Stream::Resumed,
            Some(_) | None => Stream::Common,
        }
    }

    /// How long to wait before asking; `None` where it makes no sense any more.
    pub(super) fn pause(&self, stream: Stream) -> Option<Duration> {
        let state = self.0.borrow();
        match stream {
            Stream::Common => {
                let pause = match state.common.empty {
                    0 => Duration::ZERO,
                    empty => FIRST_PAUSE
                        .saturating_mul(1 << (empty - 1).min(16))
                        .min(MAX_PAUSE),
                };
                Some(pause.max(state.common.least_pause()))
            }
            Stream::Resumed => {
                (state.resumed.empty < MAX_EMPTY_RESUMES).then(|| state.resumed.least_pause())
            }
        }
    }

    /// Whether the common stream was ever open: then it is worth trying again.
    pub(super) fn was_open(&self) -> bool {
        self.0.borrow().was_open
    }

    /// Follows the common stream.
    pub(super) fn watch_common(&self) -> CommonWatch {
        CommonWatch(self.0.subscribe())
    }

    /// A stream was opened.
    pub(super) fn opened(&self, stream: Stream) {
        if stream == Stream::Common {
            self.0.send_modify(|state| {
                state.is_open = true;
                state.was_open = true;
            });
        }
    }

    /// An event was taken in.
    pub(super) fn brought(&self, stream: Stream) {
        if stream == Stream::Common {
            self.0.send_modify(|_| {});
        }
    }

    /// An event with an id came.
    pub(super) fn saw_id(&self, stream: Stream, id: &str) {
        if stream == Stream::Common {
            self.0
                .send_modify(|state| state.common_last_id = Some(id.to_owned()));
        }
    }

    /// Nobody reads a stream any more.
    pub(super) fn left(&self, stream: Stream) {
        if stream == Stream::Common {
            self.0.send_modify(|state| state.is_open = false);
        }
    }

    /// A stream has ended.
    pub(super) fn ended(&self, stream: Stream, brought_events: bool, lived: Duration) {
        let is_empty = !brought_events && (stream == Stream::Resumed || lived < WORTHWHILE);
        self.0.send_modify(|state| {
            let ends = match stream {
                Stream::Common => &mut state.common,
                Stream::Resumed => &mut state.resumed,
            };
            ends.empty = if is_empty {
                ends.empty.saturating_add(1)
            } else {
                0
            };
            ends.last = Some(runtime::now());
            state.is_open &= stream != Stream::Common;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_common_stream_that_closes_at_once_is_asked_for_ever_more_seldom() {
        let streams = Streams::default();
        let mut asked_at = Vec::new();
        let mut waited = Duration::ZERO;
        for _ in 0..6 {
            waited += streams.pause(Stream::Common).unwrap();
            asked_at.push(waited.as_secs());
            streams.ended(Stream::Common, false, Duration::from_millis(1));
        }
        assert_eq!(asked_at, [0, 4, 12, 28, 60, 124]);
        streams.ended(Stream::Common, true, Duration::ZERO);
        assert_eq!(streams.pause(Stream::Common), Some(LEAST_PAUSE));
        streams.ended(Stream::Common, false, WORTHWHILE);
        assert_eq!(streams.pause(Stream::Common), Some(LEAST_PAUSE));
        tokio::time::advance(LEAST_PAUSE).await;
        assert_eq!(streams.pause(Stream::Common), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_resumed_in_vain_is_given_up() {
        let streams = Streams::default();
        assert_eq!(streams.which(Some("7")), Stream::Resumed);
        for _ in 0..MAX_EMPTY_RESUMES {
            assert_eq!(streams.pause(Stream::Resumed), Some(Duration::ZERO));
            streams.ended(Stream::Resumed, false, Duration::ZERO);
            tokio::time::advance(LEAST_PAUSE).await;
        }
        assert_eq!(streams.pause(Stream::Resumed), None);
    }

    #[test]
    fn the_common_stream_is_known_by_its_last_id() {
        let streams = Streams::default();
        assert_eq!(streams.which(None), Stream::Common);
        streams.saw_id(Stream::Resumed, "a");
        assert_eq!(streams.which(Some("a")), Stream::Resumed);
        streams.saw_id(Stream::Common, "b");
        assert_eq!(streams.which(Some("b")), Stream::Common);
    }
}
