//! A text over the model's budget: the whole of it in a file, its beginning and every line of
//! ours in the text (design decision 12).

use talaria_types::NoticeCode;

use crate::delivery::{Artifact, ArtifactKind, BlockFate, BlockRecord};
use crate::render::hermes::truncate;
use crate::sanitise::{field, strip_tags};

use super::draft::{Line, Origin, join_owned, length};
use super::{FileBody, FileOutcome, FileRequest};

/// Characters of a spilled text that the model still reads.
pub(super) const PREVIEW_CHARACTERS: usize = 1_500;
/// The share of the budget that lines of ours may take, in hundredths.
const OWN_SHARE: usize = 40;
/// Structured content whose JSON is longer is only in the file.
const MAX_STRUCTURED_CHARACTERS: usize = 2_000_000;

/// A text that is too long, with what stands in for it.
#[derive(Debug)]
pub(super) struct Bounded {
    request: Option<FileRequest>,
    /// Lines before the marker, which are cut at their end.
    beginning: String,
    /// Lines of ours after the marker.
    rest: String,
    /// What stands in for the text when it cannot be stored.
    fallback: String,
    characters: usize,
    shown: usize,
    /// Blocks whose words are not all shown.
    cut_blocks: Vec<usize>,
    holds_large_structure: bool,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Spill {
    pub(super) text: String,
    pub(super) artifact: Option<Artifact>,
    pub(super) notice: (NoticeCode, String),
    /// Whether the structured content is only in the file.
    pub(super) drops_structured: bool,
}

impl Bounded {
    pub(super) fn new(lines: Vec<Line>, budget: usize, is_json: bool) -> Self {
        let characters = length(&lines);
        let holds_large_structure = lines.iter().any(|line| {
            line.block.is_none()
                && line.origin == Origin::Server
                && line.text.len() > MAX_STRUCTURED_CHARACTERS
        });
        let mut view = View::new(budget);
        for line in &lines {
            view.add(line);
        }
        let whole = join_owned(lines);
        let fallback = truncate(&whole, budget).into_owned();
        let (name, media_type) = match is_json {
            true => ("result.json", "application/json"),
            false => ("result.txt", "text/plain"),
        };
        let request = FileRequest {
            kind: ArtifactKind::Text,
            name: name.to_owned(),
            named: false,
            media_type: media_type.to_owned(),
            declared_type: None,
            source_uri: None,
            body: FileBody::Bytes(whole.into_bytes()),
        };
        view.note_hidden();
        Self {
            request: Some(request),
            beginning: view.beginning,
            rest: view.rest,
            fallback,
            characters,
            shown: view.shown,
            cut_blocks: view.cut_blocks,
            holds_large_structure,
        }
    }

    pub(super) fn take_request(&mut self) -> Option<FileRequest> {
        self.request.take()
    }

    pub(super) fn settle(self, outcome: Option<FileOutcome>, blocks: &mut [BlockRecord]) -> Spill {
        let characters = grouped(self.characters);
        match outcome {
            Some(FileOutcome::Stored(artifact)) => {
                for block in &self.cut_blocks {
                    if let Some(record) = blocks.get_mut(*block)
                        && record.fate == BlockFate::Delivered
                    {
                        record.fate = BlockFate::Spilled;
                    }
                }
                let path = artifact.path.display();
                let marker = format!(
                    "[MCP result text truncated: the first {} of {characters} characters are \
                     shown, the whole text is saved to {path} ({} bytes) — read it with a file or \
                     terminal tool (text_spilled)]",
                    grouped(self.shown),
                    artifact.bytes
                );
                let text = [self.beginning, marker, self.rest]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join("\n");
                Spill {
                    text,
                    notice: (
                        NoticeCode::TextSpilled,
                        format!("the text has {characters} characters; the whole is in {path}"),
                    ),
                    artifact: Some(artifact),
                    drops_structured: self.holds_large_structure,
                }
            }
            failed => {
                let detail = match failed {
                    Some(FileOutcome::Failed { code, detail }) => {
                        format!("{} ({})", field(&detail), code.as_str())
                    }
                    Some(FileOutcome::Stored(_)) | None => "nobody stored it".to_owned(),
                };
                let marker = format!(
                    "[MCP result text truncated: {characters} characters in all; the whole text \
                     could not be stored: {detail} (text_truncated)]"
                );
                Spill {
                    text: format!("{}\n{marker}", self.fallback),
                    artifact: None,
                    notice: (
                        NoticeCode::TextTruncated,
                        format!("the text was cut and could not be stored whole: {detail}"),
                    ),
                    drops_structured: false,
                }
            }
        }
    }
}

/// What of a long text is shown.
#[derive(Debug)]
struct View {
    preview: usize,
    own: usize,
    beginning: String,
    rest: String,
    shown: usize,
    hidden: usize,
    is_cut: bool,
    cut_blocks: Vec<usize>,
}

impl View {
    fn new(budget: usize) -> Self {
        Self {
            preview: PREVIEW_CHARACTERS.min(budget),
            own: budget.saturating_mul(OWN_SHARE) / 100,
            beginning: String::new(),
            rest: String::new(),
            shown: 0,
            hidden: 0,
            is_cut: false,
            cut_blocks: Vec::new(),
        }
    }

    fn add(&mut self, line: &Line) {
        match line.origin {
            Origin::Ours => self.add_own(&line.text),
            Origin::Server => self.add_words(line),
        }
    }

    /// Lines of ours are whole or not there at all: half a path names another file.
    fn add_own(&mut self, text: &str) {
        let length = text.chars().count() + 1;
        let Some(left) = self.own.checked_sub(length) else {
            self.hidden += 1;
            return;
        };
        self.own = left;
        let into = if self.is_cut {
            &mut self.rest
        } else {
            &mut self.beginning
        };
        push_line(into, text);
    }

    fn add_words(&mut self, line: &Line) {
        let is_shown = !self.is_cut && {
            let end = line
                .text
                .char_indices()
                .nth(self.preview)
                .map(|(end, _)| end);
            let words = line
                .text
                .get(..end.unwrap_or(line.text.len()))
                .unwrap_or_default();
            // A cut inside a flag would leave its characters without their end.
            let words = strip_tags(words);
            let count = words.chars().count();
            self.preview -= count.min(self.preview);
            self.shown += count;
            if !words.is_empty() {
                push_line(&mut self.beginning, &words);
            }
            self.is_cut = end.is_some() || self.preview == 0;
            end.is_none()
        };
        if !is_shown
            && let Some(block) = line.block
            && self.cut_blocks.last() != Some(&block)
        {
            self.cut_blocks.push(block);
        }
    }

    fn note_hidden(&mut self) {
        if self.hidden > 0 {
            let line = format!(
                "[MCP result lines left out here: {}, see the file]",
                self.hidden
            );
            push_line(&mut self.rest, &line);
        }
    }
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Digits in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
