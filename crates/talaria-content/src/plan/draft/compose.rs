//! Lines of the model text: the server's words cleaned, ours put between them.

use talaria_types::NoticeCode;

use crate::delivery::{BlockFate, BlockRecord};
use crate::plan::lines::{Audience, Part, PartContent, SettledFile};
use crate::plan::reference::text_of;
use crate::redact::{Boundary, redact_at};
use crate::render::Format;
use crate::repeats::Piece;
use crate::sanitise::{LineStart, clean};

/// One line or one run of lines, clean.
#[derive(Debug)]
pub(in crate::plan) struct Line {
    pub(in crate::plan) text: String,
    pub(in crate::plan) origin: Origin,
    pub(in crate::plan) block: Option<usize>,
    pub(in crate::plan) audience: Audience,
}

/// Whose words a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Origin {
    /// A marker or a path of ours; it is never cut.
    Ours,
    /// Words of the server.
    Server,
}

/// Turns parts into lines, now that every file has its path.
pub(super) fn compose(
    parts: Vec<Part>,
    files: &[SettledFile],
    is_error: bool,
    format: Format,
) -> Vec<Line> {
    // Hermes redacts inside words as well; where it is not imitated, words stay whole.
    let boundary = is_error.then(|| match format.tells_failures_in_words() {
        true => Boundary::Anywhere,
        false => Boundary::Word,
    });
    parts
        .into_iter()
        .filter_map(|part| {
            let (text, origin) = match part.content {
                PartContent::TextBlock(pieces) | PartContent::Words(pieces) => {
                    (spoken(pieces, files), Origin::Server)
                }
                PartContent::TextOf(file) => {
                    let pieces = files.get(file)?.text.clone()?;
                    (spoken(pieces, files), Origin::Server)
                }
                PartContent::Own(line) => (line, Origin::Ours),
                PartContent::File(file) => (files.get(file)?.line.clone(), Origin::Ours),
            };
            let text = match (boundary, origin) {
                (Some(boundary), Origin::Server) => redacted(text, boundary),
                (None, _) | (Some(_), Origin::Ours) => text,
            };
            Some(Line {
                text,
                origin,
                block: part.block,
                audience: part.audience,
            })
        })
        .collect()
}

/// The server's words, cleaned, with references between them.
fn spoken(pieces: Vec<Piece>, files: &[SettledFile]) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Words(words) => {
                let start = match text.chars().next_back() {
                    None | Some('\n') => LineStart::Yes,
                    Some(_) => LineStart::No,
                };
                let cleaned = match clean(&words, start) {
                    std::borrow::Cow::Owned(cleaned) => cleaned,
                    std::borrow::Cow::Borrowed(_) => words,
                };
                // A single text is moved, not copied: it may have 60 MB.
                if text.is_empty() {
                    text = cleaned;
                } else {
                    text.push_str(&cleaned);
                }
            }
            Piece::Repeat(_) | Piece::Moved(_) | Piece::Refused(_) => {
                text.push_str(&text_of(&piece, files));
            }
        }
    }
    text
}

fn redacted(text: String, boundary: Boundary) -> String {
    match redact_at(&text, boundary) {
        std::borrow::Cow::Owned(redacted) => redacted,
        std::borrow::Cow::Borrowed(_) => text,
    }
}

/// A block whose only file could not be stored was not saved.
pub(super) fn mark_unstored(blocks: &mut [BlockRecord], block: Option<usize>) {
    let Some(record) = block.and_then(|block| blocks.get_mut(block)) else {
        return;
    };
    if record.fate == BlockFate::Saved {
        record.fate = BlockFate::Refused(NoticeCode::NotStored);
    }
}

pub(super) fn join<'a>(lines: impl Iterator<Item = &'a Line>) -> String {
    let mut text = String::new();
    for (index, line) in lines.enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&line.text);
    }
    text
}

pub(in crate::plan) fn join_owned(mut lines: Vec<Line>) -> String {
    if lines.len() == 1 {
        return lines.pop().map(|line| line.text).unwrap_or_default();
    }
    join(lines.iter())
}

pub(super) fn is_longer(text: &str, characters: usize) -> bool {
    text.len() > characters && text.chars().count() > characters
}

pub(super) fn are_longer(lines: &[Line], characters: usize) -> bool {
    let bytes: usize = lines.iter().map(|line| line.text.len() + 1).sum();
    bytes > characters.saturating_add(1) && length(lines) > characters
}

/// Characters of the lines joined with newlines.
pub(in crate::plan) fn length(lines: &[Line]) -> usize {
    let characters: usize = lines.iter().map(|line| line.text.chars().count()).sum();
    characters + lines.len().saturating_sub(1)
}
