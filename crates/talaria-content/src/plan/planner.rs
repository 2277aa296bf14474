//! Reads a result block by block and collects what becomes of it.

use std::collections::BTreeMap;

use serde_json::Value;
use talaria_types::{NoticeCode, Payload, RawResult, WireNote};

use crate::delivery::{BlockFate, BlockRecord, Link};
use crate::notices::Notices;
use crate::repeats::{Piece, Repeats};
use crate::structured::repeats_text;

use super::kinds;
use super::lines::{Audience, File, Part, PartContent};
use super::prompt::Frame;
use super::reference::{Patch, Root, cut_value};
use super::shapes::{Located, Shape, tool_result};
use super::{Plan, PlanRequest, ResultKind};

/// Everything that is collected while a result is read.
#[derive(Debug)]
pub(super) struct Planner {
    pub(super) request: PlanRequest,
    pub(super) payloads: BTreeMap<String, Payload>,
    pub(super) parts: Vec<Part>,
    pub(super) files: Vec<File>,
    pub(super) blocks: Vec<BlockRecord>,
    /// The kind of the block that is being read.
    pub(super) kind: &'static str,
    pub(super) notices: Notices,
    pub(super) links: Vec<Link>,
    pub(super) structured: Option<Located>,
    pub(super) meta: Option<Located>,
    pub(super) patches: Vec<Patch>,
    pub(super) is_error: bool,
    /// Whether any part is more than blanks and notices (specification 1.8).
    pub(super) has_usable_text: bool,
    pub(super) listing: Option<Value>,
    pub(super) prompt: Option<Frame>,
}

impl Planner {
    pub(super) fn new(request: PlanRequest) -> Self {
        Self {
            request,
            payloads: BTreeMap::new(),
            parts: Vec::new(),
            files: Vec::new(),
            blocks: Vec::new(),
            kind: kinds::UNKNOWN,
            notices: Notices::default(),
            links: Vec::new(),
            structured: None,
            meta: None,
            patches: Vec::new(),
            is_error: false,
            has_usable_text: false,
            listing: None,
            prompt: None,
        }
    }

    pub(super) fn read(mut self, mut raw: RawResult) -> Plan {
        // First of all, so that no spill, no cut and no name has one.
        self.request.masker.mask_strings(&mut raw.json);
        self.payloads = raw.payloads;
        for note in raw.notes {
            self.notices
                .add(NoticeCode::MessageMended, None, mended(note));
        }
        match self.request.kind {
            ResultKind::ToolCall => self.read_tool_result(tool_result(raw.json, "")),
            ResultKind::ReadResource => self.read_resources(raw.json),
            ResultKind::ListResources => self.read_resource_list(raw.json),
            ResultKind::ListPrompts => self.read_prompt_list(raw.json),
            ResultKind::GetPrompt => self.read_prompt(raw.json),
        }
        self.collect_strays();
        self.cut_repeats();
        self.into_plan()
    }

    /// Whether the failed result is answered as one string without files (specification 1.14).
    pub(super) fn is_error_text_only(&self) -> bool {
        self.is_error
            && self.request.kind == ResultKind::ToolCall
            && self.request.format.tells_failures_in_words()
    }

    pub(super) fn read_tool_result(&mut self, shape: Shape) {
        if let Some(oddity) = shape.oddity {
            self.notices.add(NoticeCode::OldShape, None, oddity);
        }
        self.is_error = shape.is_error;
        self.structured = shape.structured;
        self.meta = shape.meta;
        if self.is_error_text_only() {
            self.read_error_texts(shape.blocks);
            return;
        }
        for (index, block) in shape.blocks.into_iter().enumerate() {
            self.kind = kinds::of_block(&block.value);
            self.read_block(index, block);
        }
        self.drop_repeated_structure();
    }

    /// Structured content that a text block already gives is given once.
    fn drop_repeated_structure(&mut self) {
        let Some(structured) = &self.structured else {
            return;
        };
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::text_block).collect();
        if repeats_text(&structured.value, &texts) {
            self.structured = None;
        }
    }

    /// Finds the payloads of this result's files in every text and value once more.
    fn cut_repeats(&mut self) {
        let mut repeats = Repeats::default();
        for (at, file) in self.files.iter().enumerate() {
            if let Some(request) = &file.request {
                repeats.learn(at, &request.body);
            }
        }
        if repeats.is_empty() {
            return;
        }
        let before = self.patches.len();
        cut_value(
            Root::Structured,
            self.structured.as_mut(),
            &repeats,
            &mut self.patches,
        );
        cut_value(Root::Meta, self.meta.as_mut(), &repeats, &mut self.patches);
        for patch in self.patches.iter().skip(before) {
            let place = match patch.root {
                Root::Structured => "structuredContent",
                Root::Meta => "_meta",
            };
            self.notices.add(
                NoticeCode::RepeatReplaced,
                None,
                format!("{place} repeats a payload; a reference to the file stands in its place"),
            );
        }
        for part in &mut self.parts {
            let pieces = match &mut part.content {
                PartContent::TextBlock(pieces) | PartContent::Words(pieces) => pieces,
                PartContent::Own(_) | PartContent::File(_) | PartContent::TextOf(_) => continue,
            };
            if cut_pieces(pieces, &repeats) {
                self.notices.add(
                    NoticeCode::RepeatReplaced,
                    part.block,
                    "the text repeats a payload; a reference to the file stands in its place",
                );
            }
        }
    }

    /// Notes what became of a block; of several things the best one counts.
    pub(super) fn record(&mut self, index: usize, fate: BlockFate) {
        match self.blocks.get_mut(index) {
            None => self.blocks.push(BlockRecord {
                kind: self.kind,
                fate,
            }),
            Some(record) => {
                if rank(fate) > rank(record.fate) {
                    record.fate = fate;
                }
            }
        }
    }

    /// A line of ours in the place of something, with its notice.
    pub(super) fn refuse(&mut self, refused: Refusal) {
        let Refusal {
            index,
            code,
            message,
            is_usable,
            audience,
        } = refused;
        self.record(index, BlockFate::Refused(code));
        self.has_usable_text |= is_usable;
        self.notices.add(code, Some(index), message.as_str());
        let line = format!("[{message} ({})]", code.as_str());
        self.push(Some(index), audience, PartContent::Own(line));
    }

    /// A text of the server. Blank ones are only in the text of format `hermes`.
    pub(super) fn push_words(&mut self, index: usize, text: String, is_block: bool) {
        let is_blank = text.trim().is_empty();
        self.has_usable_text |= !is_blank;
        let audience = if is_blank {
            Audience::OnlyHermes
        } else {
            Audience::Everybody
        };
        let pieces = vec![Piece::Words(text)];
        let content = if is_block {
            PartContent::TextBlock(pieces)
        } else {
            PartContent::Words(pieces)
        };
        self.push(Some(index), audience, content);
    }

    pub(super) fn push(&mut self, block: Option<usize>, audience: Audience, content: PartContent) {
        self.parts.push(Part {
            block,
            audience,
            content,
        });
    }

    fn into_plan(self) -> Plan {
        Plan {
            request: self.request,
            parts: self.parts,
            files: self.files,
            blocks: self.blocks,
            notices: self.notices,
            links: self.links,
            structured: self.structured,
            meta: self.meta,
            patches: self.patches,
            is_error: self.is_error,
            has_usable_text: self.has_usable_text,
            listing: self.listing,
            prompt: self.prompt,
        }
    }
}

/// Something that is not delivered, and what is said in its place.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) index: usize,
    pub(super) code: NoticeCode,
    /// Without brackets and code.
    pub(super) message: String,
    /// Whether Hermes counts such a line as usable text.
    pub(super) is_usable: bool,
    pub(super) audience: Audience,
}

/// Cuts the words among the pieces where they repeat a payload.
pub(super) fn cut_pieces(pieces: &mut Vec<Piece>, repeats: &Repeats<'_>) -> bool {
    let mut is_cut = false;
    let mut result = Vec::with_capacity(pieces.len());
    for piece in pieces.drain(..) {
        match piece {
            Piece::Words(words) => match repeats.cut(&words) {
                None => result.push(Piece::Words(words)),
                Some(cut) => {
                    is_cut = true;
                    result.extend(cut);
                }
            },
            Piece::Repeat(_) | Piece::Moved(_) | Piece::Refused(_) => result.push(piece),
        }
    }
    *pieces = result;
    is_cut
}

const fn rank(fate: BlockFate) -> u8 {
    match fate {
        BlockFate::Saved => 3,
        BlockFate::Spilled => 2,
        BlockFate::Delivered => 1,
        BlockFate::Refused(_) => 0,
    }
}

const fn mended(note: WireNote) -> &'static str {
    match note {
        WireNote::LoneSurrogate => "half a character was escaped in the message; it reads U+FFFD",
        WireNote::InvalidUtf8 => "bytes of the message are not UTF-8; they read U+FFFD",
        WireNote::TooDeep => "a value of the message is nested too deeply; it was left out",
        WireNote::HugeNumber => "a number of the message is too large; its digits are a string",
        WireNote::RawControl => "a control character of the message was not escaped",
        WireNote::ListCut => "the list is longer than is read of one; the rest is missing here",
    }
}
