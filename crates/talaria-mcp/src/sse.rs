//! Server-sent events out of pushed bytes, bounded and without I/O.
//!
//! The data of an event goes straight into the one buffer that the intake reads it from; a
//! message of 70 MB is copied once on its way through here.

use std::collections::VecDeque;

use crate::oversize::Oversize;

/// Longest event id, and longest line of any field but `data`.
const FIELD_BYTES: usize = 4 * 1024;

/// One of these at the very beginning is not part of the stream (HTML standard, 9.2.6).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What is kept of either end of an event over the limit.
const END_BYTES: usize = 1024;

/// One complete event, or the sign of one that is too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An event as it is dispatched.
    Message(EventParts),
    /// The data has just grown over the limit; the rest of it is being thrown away.
    OversizeBegan {
        /// How the data begins.
        head: Vec<u8>,
    },
    /// An event over the limit has ended.
    OversizeEnded {
        /// How its data began.
        head: Vec<u8>,
        /// How its data ended.
        tail: Vec<u8>,
        /// Length of its data.
        bytes: u64,
    },
}

/// The fields of an event that anybody here reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventParts {
    /// What kind of event it is; `message` where the server names none.
    pub(crate) name: Option<String>,
    /// Lines of data, joined by line breaks.
    pub(crate) data: Vec<u8>,
    /// Id to resume after.
    pub(crate) id: Option<String>,
    /// Milliseconds to wait before resuming.
    pub(crate) retry: Option<u64>,
}

/// Cuts events out of pushed chunks. Holds at most one event up to the limit.
#[derive(Debug)]
pub(crate) struct EventFramer {
    limit: usize,
    line: LineState,
    /// Nothing but the beginning of a byte order mark has come yet.
    at_start: bool,
    /// A carriage return was the last byte; a line feed after it belongs to it.
    after_return: bool,
    parts: EventParts,
    has_data: bool,
    oversize: Option<Oversize>,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum LineState {
    /// The field name, or a short line, is being collected.
    Collecting(Vec<u8>),
    /// The rest of the line is data.
    Data { is_first: bool },
    /// The rest of the line is of no interest.
    Skipping,
}

impl EventFramer {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: LineState::Collecting(Vec::new()),
            at_start: true,
            after_return: false,
            parts: EventParts::default(),
            has_data: false,
            oversize: None,
            events: VecDeque::new(),
        }
    }

    /// Takes the next bytes of the body.
    pub(crate) fn push(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_return)
                && let Some(rest) = chunk.strip_prefix(b"\n")
            {
                chunk = rest;
                continue;
            }
            let end = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            self.grow(piece);
            chunk = rest;
            if let Some((end, rest)) = chunk.split_first() {
                self.after_return = *end == b'\r';
                self.end_line();
                chunk = rest;
            }
        }
    }

    /// Ends the stream; an event without its blank line counts, because servers forget it.
    pub(crate) fn finish(&mut self) {
        self.end_line();
        self.dispatch();
    }

    /// The next event that is complete.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn grow(&mut self, piece: &[u8]) {
        match &mut self.line {
            LineState::Skipping => {}
            LineState::Data { is_first } => {
                let is_first = std::mem::take(is_first);
                let piece = if is_first {
                    piece.strip_prefix(b" ").unwrap_or(piece)
                } else {
                    piece
                };
                self.grow_data(piece);
            }
            LineState::Collecting(line) => {
                line.extend_from_slice(piece);
                if self.at_start && line.len() >= BYTE_ORDER_MARK.len() {
                    self.at_start = false;
                    if line.starts_with(BYTE_ORDER_MARK) {
                        line.drain(..BYTE_ORDER_MARK.len());
                    }
                }
                if let Some(value) = line.strip_prefix(b"data:") {
                    let value = value.to_vec();
                    let is_first = value.is_empty();
                    self.begin_data();
                    self.line = LineState::Data { is_first };
                    self.grow_data(value.strip_prefix(b" ").unwrap_or(&value));
                } else if line.len() > FIELD_BYTES || line.first() == Some(&b':') {
                    self.line = LineState::Skipping;
                }
            }
        }
    }

    /// Data of several lines is joined by line breaks.
    fn begin_data(&mut self) {
        if std::mem::replace(&mut self.has_data, true) {
            self.grow_data(b"\n");
        }
    }

    fn grow_data(&mut self, piece: &[u8]) {
        if let Some(oversize) = &mut self.oversize {
            oversize.grow(piece);
            return;
        }
        self.parts.data.extend_from_slice(piece);
        if self.parts.data.len() <= self.limit {
            return;
        }
        let data = std::mem::take(&mut self.parts.data);
        let oversize = Oversize::began(&data, END_BYTES, END_BYTES);
        let head = oversize.head.clone();
        self.oversize = Some(oversize);
        self.events.push_back(Event::OversizeBegan { head });
    }

    fn end_line(&mut self) {
        self.at_start = false;
        let line = match std::mem::replace(&mut self.line, LineState::Collecting(Vec::new())) {
            LineState::Data { .. } | LineState::Skipping => return,
            LineState::Collecting(line) => line,
        };
        if line.is_empty() {
            self.dispatch();
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.begin_data(),
            "event" => self.parts.name = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.parts.id = Some(value.to_owned()),
            "retry" => self.parts.retry = value.parse().ok().or(self.parts.retry),
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        self.has_data = false;
        let parts = std::mem::take(&mut self.parts);
        if let Some(Oversize {
            head, tail, bytes, ..
        }) = self.oversize.take()
        {
            self.events
                .push_back(Event::OversizeEnded { head, tail, bytes });
        }
        // A name alone makes no event (HTML standard, 9.2.6), and neither does nothing.
        if !parts.data.is_empty() || parts.id.is_some() || parts.retry.is_some() {
            self.events.push_back(Event::Message(parts));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(limit: usize, chunks: &[&[u8]]) -> Vec<Event> {
        let mut framer = EventFramer::new(limit);
        for chunk in chunks {
            framer.push(chunk);
        }
        framer.finish();
        std::iter::from_fn(|| framer.next_event()).collect()
    }

    fn message(data: &str, id: Option<&str>, retry: Option<u64>) -> Event {
        Event::Message(EventParts {
            name: None,
            data: data.as_bytes().to_vec(),
            id: id.map(str::to_owned),
            retry,
        })
    }

    #[test]
    fn reads_events_whatever_their_line_ends() {
        for end in ["\n", "\r\n", "\r"] {
            let body =
                "data: {\"a\":1}|id: 7||: comment||retry: 500|id: 8||event: x||data:x|data: y||"
                    .replace('|', end);
            assert_eq!(
                events(100, &[body.as_bytes()]),
                [
                    message("{\"a\":1}", Some("7"), None),
                    message("", Some("8"), Some(500)),
                    message("x\ny", None, None),
                ],
                "{end:?}"
            );
        }
    }

    #[test]
    fn an_event_has_the_name_that_stands_in_it_and_no_other() {
        let names: Vec<Option<String>> =
            events(100, &[b"event: endpoint\ndata: /m\n\ndata: x\n\n"])
                .into_iter()
                .map(|event| {
                    let Event::Message(parts) = event else {
                        panic!("{event:?}")
                    };
                    parts.name
                })
                .collect();
        assert_eq!(names, [Some("endpoint".to_owned()), None]);
    }

    #[test]
    fn only_one_blank_before_the_data_belongs_to_the_syntax() {
        assert_eq!(
            events(100, &[b"data:  x \n\n"]),
            [message(" x ", None, None)]
        );
        assert_eq!(
            events(100, &[b"data:", b" ", b" x\n\n"]),
            [message(" x", None, None)]
        );
    }

    #[test]
    fn one_byte_order_mark_before_the_first_event_is_left_out() {
        for pieces in [
            vec![b"\xef\xbb\xbfdata: x\n\n".as_slice()],
            vec![b"\xef", b"\xbb", b"\xbfdata", b": x\n\n"],
        ] {
            assert_eq!(events(100, &pieces), [message("x", None, None)]);
        }
        assert_eq!(events(100, &[b"\n\xef\xbb\xbfdata: x\n\n"]), []);
    }

    #[test]
    fn the_last_event_may_lack_its_blank_line() {
        assert_eq!(events(100, &[b"data: x"]), [message("x", None, None)]);
    }

    #[test]
    fn an_event_over_the_limit_is_told_at_once_and_at_its_end() {
        let mut framer = EventFramer::new(4);
        framer.push(b"data: abcde");
        assert_eq!(
            framer.next_event(),
            Some(Event::OversizeBegan {
                head: b"abcde".to_vec()
            })
        );
        framer.push(b"fg\nid: 3\n\ndata: ok\n\n");
        assert_eq!(
            framer.next_event(),
            Some(Event::OversizeEnded {
                head: b"abcde".to_vec(),
                tail: b"abcdefg".to_vec(),
                bytes: 7
            })
        );
        assert_eq!(framer.next_event(), Some(message("", Some("3"), None)));
        assert_eq!(framer.next_event(), Some(message("ok", None, None)));
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(
            text in proptest::collection::vec(
                prop_oneof![
                    Just(b"data: ".to_vec()), Just(b"id: 1".to_vec()), Just(b"\n".to_vec()),
                    Just(b"\r".to_vec()), Just(b"\r\n".to_vec()), Just(b"xyz".to_vec()),
                    Just(b":".to_vec()), Just(b"\n\n".to_vec()),
                ],
                0..40,
            ),
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let text = text.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let mut start = 0;
            let mut chunks: Vec<&[u8]> = Vec::new();
            for cut in cuts {
                chunks.push(&text[start..cut]);
                start = cut;
            }
            prop_assert_eq!(events(1_000, &[&text]), events(1_000, &chunks));
        }
    }
}
