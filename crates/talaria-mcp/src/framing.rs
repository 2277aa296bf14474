//! Cuts a byte stream into lines, bounded and without I/O.

use std::collections::VecDeque;

use crate::oversize::Oversize;

/// What is kept of the beginning of a line over the limit: enough for the fields before the
/// result.
const HEAD_BYTES: usize = 1024;

/// What is kept of its end: enough for the fields after the result.
const TAIL_BYTES: usize = 256;

/// One piece of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A complete line without its end; never empty.
    Line(Vec<u8>),
    /// A line has just grown over the limit; the rest of it is being thrown away.
    OversizeBegan {
        /// How it begins.
        head: Vec<u8>,
    },
    /// A line over the limit has ended.
    OversizeEnded {
        /// How it began.
        head: Vec<u8>,
        /// How it ended.
        tail: Vec<u8>,
        /// Its whole length.
        bytes: u64,
    },
    /// The stream ended inside this line.
    Cut(Vec<u8>),
}

/// Cuts lines out of pushed chunks. Holds at most one line up to the limit.
#[derive(Debug)]
pub struct LineFramer {
    limit: usize,
    line: Vec<u8>,
    oversize: Option<Oversize>,
    frames: VecDeque<Frame>,
}

impl LineFramer {
    /// A framer for lines of at most `limit` bytes, the line end not counted.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            oversize: None,
            frames: VecDeque::new(),
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, mut chunk: &[u8]) {
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = chunk.split_at(end);
            self.grow(line);
            self.end_line();
            chunk = rest.get(1..).unwrap_or_default();
        }
        self.grow(chunk);
    }

    /// The next frame that is complete.
    pub fn next_frame(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    /// Ends the stream.
    pub fn finish(&mut self) {
        if self.oversize.is_some() {
            self.end_line();
        }
        let line = trimmed(std::mem::take(&mut self.line));
        if !line.is_empty() {
            self.frames.push_back(Frame::Cut(line));
        }
    }

    /// Bytes of the line that is being collected.
    #[must_use]
    pub const fn pending_bytes(&self) -> usize {
        self.line.len()
    }

    fn grow(&mut self, piece: &[u8]) {
        if let Some(oversize) = &mut self.oversize {
            oversize.grow(piece);
            return;
        }
        self.line.extend_from_slice(piece);
        if self.line.len() <= self.limit {
            return;
        }
        // The buffer goes away here, not at the end of a line that may never end.
        let line = std::mem::take(&mut self.line);
        let oversize = Oversize::began(&line, HEAD_BYTES, TAIL_BYTES);
        let head = oversize.head.clone();
        self.oversize = Some(oversize);
        self.frames.push_back(Frame::OversizeBegan { head });
    }

    fn end_line(&mut self) {
        if let Some(Oversize {
            head, tail, bytes, ..
        }) = self.oversize.take()
        {
            self.frames
                .push_back(Frame::OversizeEnded { head, tail, bytes });
            return;
        }
        let line = trimmed(std::mem::take(&mut self.line));
        if !line.is_empty() {
            self.frames.push_back(Frame::Line(line));
        }
    }
}

/// Takes the carriage return of a CRLF away, and lines of nothing but blanks altogether.
fn trimmed(mut line: Vec<u8>) -> Vec<u8> {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    if line.trim_ascii().is_empty() {
        Vec::new()
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(limit: usize, chunks: &[&[u8]]) -> Vec<Frame> {
        let mut framer = LineFramer::new(limit);
        for chunk in chunks {
            framer.push(chunk);
        }
        framer.finish();
        std::iter::from_fn(|| framer.next_frame()).collect()
    }

    fn line(text: &str) -> Frame {
        Frame::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn cuts_lines_whatever_their_end() {
        assert_eq!(
            frames(100, &[b"a\r\n\r\n \nbc\nd\n"]),
            [line("a"), line("bc"), line("d")]
        );
    }

    #[test]
    fn a_line_may_come_byte_by_byte() {
        let text = "Preis \u{2014} \u{5b8c}\u{6210} \u{1f388} ok\n".as_bytes();
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(
            frames(100, &bytes),
            [line("Preis \u{2014} \u{5b8c}\u{6210} \u{1f388} ok")]
        );
    }

    #[test]
    fn the_end_of_the_stream_inside_a_line_is_told() {
        assert_eq!(
            frames(100, &[b"a\nbc"]),
            [line("a"), Frame::Cut(b"bc".to_vec())]
        );
    }

    #[test]
    fn the_limit_itself_is_a_line() {
        assert_eq!(frames(3, &[b"abc\n"]), [line("abc")]);
    }

    #[test]
    fn a_line_over_the_limit_is_told_at_once_and_at_its_end() {
        let mut framer = LineFramer::new(3);
        framer.push(b"abcd");
        assert_eq!(
            framer.next_frame(),
            Some(Frame::OversizeBegan {
                head: b"abcd".to_vec()
            })
        );
        assert_eq!(framer.pending_bytes(), 0);
        framer.push(b"efg");
        assert_eq!(framer.next_frame(), None);
        framer.push(b"h\nok\n");
        assert_eq!(
            framer.next_frame(),
            Some(Frame::OversizeEnded {
                head: b"abcd".to_vec(),
                tail: b"abcdefgh".to_vec(),
                bytes: 8
            })
        );
        assert_eq!(framer.next_frame(), Some(line("ok")));
    }

    #[test]
    fn the_tail_of_a_long_line_is_its_last_bytes() {
        let long = vec![b'x'; 5000];
        let found = frames(10, &[&long, b"the end\n"]);
        let Some(Frame::OversizeEnded { head, tail, bytes }) = found.get(1) else {
            panic!("{found:?}");
        };
        assert_eq!(head.len(), HEAD_BYTES);
        assert_eq!(tail.len(), TAIL_BYTES);
        assert!(tail.ends_with(b"the end"));
        assert_eq!(*bytes, 5007);
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0_usize..200, 0..8),
            limit in 1_usize..40,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let mut start = 0;
            let mut chunks: Vec<&[u8]> = Vec::new();
            for cut in cuts {
                chunks.push(&text[start..cut]);
                start = cut;
            }
            let whole = frames(limit, &[&text]);
            let pieces = frames(limit, &chunks);
            // How much of a head is there when the limit is crossed depends on the chunk.
            let comparable = |frames: Vec<Frame>| -> Vec<Frame> {
                frames
                    .into_iter()
                    .map(|frame| match frame {
                        Frame::OversizeBegan { .. } => Frame::OversizeBegan { head: Vec::new() },
                        Frame::OversizeEnded { tail, bytes, .. } => {
                            Frame::OversizeEnded { head: Vec::new(), tail, bytes }
                        }
                        frame @ (Frame::Line(_) | Frame::Cut(_)) => frame,
                    })
                    .collect()
            };
            prop_assert_eq!(comparable(whole), comparable(pieces));
        }
    }
}
