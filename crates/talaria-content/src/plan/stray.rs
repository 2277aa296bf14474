//! Payloads that the wire layer found where the protocol has none.

use talaria_types::NoticeCode;

use crate::delivery::BlockFate;
use crate::render::Format;
use crate::repeats::Piece;
use crate::sanitise::{field, one_line};
use crate::source::{Content, Source, of_payload};

use super::FileBody;
use super::blocks::{reason, refusal_code};
use super::lines::{Audience, FileStyle, PartContent};
use super::planner::Planner;
use super::reference::{Patch, Root};

const STRAY: FileStyle = FileStyle::Marker {
    opening: "MCP payload saved to",
    what: "payload",
};

impl Planner {
    /// Deals with payloads inside one block that the block itself did not use.
    pub(super) fn collect_block_strays(&mut self, index: usize, at: &str) {
        let pointers = self.pointers_under(at);
        if self.request.format == Format::Hermes {
            for pointer in pointers {
                drop(self.payloads.remove(&pointer));
            }
            return;
        }
        for pointer in pointers {
            let Some(payload) = self.payloads.remove(&pointer) else {
                continue;
            };
            match of_payload(payload) {
                Source::Absent => {}
                Source::Refused(refused) => {
                    let reason = reason(&refused.refusal);
                    self.notices.add(
                        refusal_code(&refused.refusal),
                        Some(index),
                        format!("a payload of the block cannot be used: {reason}"),
                    );
                }
                Source::Content(content) => {
                    if self.file_with(&content).is_none() {
                        let file = self.want_stray(content, Some(index));
                        self.push(Some(index), Audience::NotHermes, PartContent::File(file));
                        self.record(index, BlockFate::Saved);
                        self.notices.add(
                            NoticeCode::MalformedBlock,
                            Some(index),
                            "the block holds a payload where the protocol has none; it was saved",
                        );
                    }
                }
            }
        }
    }

    /// Deals with every payload that is left once all blocks are read: in structured content, in
    /// `_meta`, or anywhere else.
    pub(super) fn collect_strays(&mut self) {
        if self.is_error_text_only() {
            self.payloads.clear();
            return;
        }
        let roots = [
            (Root::Structured, &self.structured),
            (Root::Meta, &self.meta),
        ]
        .map(|(root, located)| (root, located.as_ref().map(|located| located.at.clone())));
        for (pointer, payload) in std::mem::take(&mut self.payloads) {
            let place = roots.iter().find_map(|(root, at)| {
                let inside = pointer.strip_prefix(at.as_deref()?)?;
                (inside.is_empty() || inside.starts_with('/')).then(|| (*root, inside.to_owned()))
            });
            let piece = self.stray_piece(of_payload(payload), &one_line(&pointer));
            if let (Some((root, pointer)), Some(piece)) = (place, piece) {
                self.patches.push(Patch {
                    root,
                    pointer,
                    pieces: vec![piece],
                });
            }
        }
    }

    fn stray_piece(&mut self, source: Source, pointer: &str) -> Option<Piece> {
        let place = field(pointer);
        match source {
            Source::Absent => None,
            Source::Refused(refused) => {
                let reason = reason(&refused.refusal);
                self.notices.add(
                    refusal_code(&refused.refusal),
                    None,
                    format!("the payload at {place} cannot be used: {reason}"),
                );
                Some(Piece::Refused(reason))
            }
            Source::Content(content) => {
                if let Some(file) = self.file_with(&content) {
                    self.notices.add(
                        NoticeCode::RepeatReplaced,
                        None,
                        format!("{place} repeats a payload; a reference stands in its place"),
                    );
                    return Some(Piece::Repeat(file));
                }
                self.notices.add(
                    NoticeCode::RepeatReplaced,
                    None,
                    format!("the payload at {place} was saved; a reference stands in its place"),
                );
                let file = self.want_stray(content, None);
                self.push(None, Audience::NotHermes, PartContent::File(file));
                Some(Piece::Moved(file))
            }
        }
    }

    /// The file that already has these bytes.
    fn file_with(&self, content: &Content) -> Option<usize> {
        let FileBody::Staged(staged) = &content.body else {
            return None;
        };
        self.files.iter().position(|file| {
            file.request
                .as_ref()
                .is_some_and(|request| match &request.body {
                    FileBody::Staged(known) => {
                        known.bytes == staged.bytes && known.sha256 == staged.sha256
                    }
                    FileBody::Bytes(known) => {
                        u64::try_from(known.len()) == Ok(staged.bytes)
                            && crate::source::sha256(known) == staged.sha256
                    }
                })
        })
    }

    fn want_stray(&mut self, content: Content, block: Option<usize>) -> usize {
        self.want_plain_file(content, None, block, STRAY)
    }

    fn pointers_under(&self, at: &str) -> Vec<String> {
        let prefix = format!("{at}/");
        self.payloads
            .range(prefix.clone()..)
            .map(|(pointer, _)| pointer)
            .take_while(|pointer| pointer.starts_with(&prefix))
            .cloned()
            .collect()
    }
}
