//! The words of a tool that was asked a question, with nothing of its result but the words.

use talaria_types::{RawResult, ServerName};

use crate::delivery::Gate;
use crate::describe::backend_words;
use crate::masking::Masker;
use crate::render::Format;
use crate::repeats::Piece;
use crate::sanitise::{json_line, model_text};

use super::lines::{File, PartContent};
use super::planner::Planner;
use super::{Plan, PlanRequest, ReaderTool, ResultKind};

/// Why a tool's result holds no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The tool said that it failed, in these words.
    #[error("the tool reported an error: {0}")]
    Failed(String),
    /// The result holds no words.
    #[error("the tool's answer holds no words")]
    Empty,
}

/// What a tool answered, clean as a server's words are: its texts, else its structured content.
/// Pictures, sounds and other files of the result are dropped, so that no answer about a picture
/// leads to another picture. Dropping them deletes staged files: no work for a loop.
///
/// # Errors
/// The tool said that it failed, or said nothing.
pub fn tool_answer_text(raw: RawResult) -> Result<String, NoAnswer> {
    let request = PlanRequest {
        kind: ResultKind::ToolCall,
        server: None::<ServerName>,
        tool: None,
        reader: ReaderTool::Missing,
        format: Format::Talaria,
        result_size_chars: usize::MAX,
        gate: Gate {
            open: false,
            mode: String::new(),
            reason: String::new(),
        },
        masker: Masker::default(),
    };
    let Plan {
        parts,
        mut files,
        structured,
        is_error,
        ..
    } = Planner::new(request).read(raw);
    let texts = parts.into_iter().filter_map(|part| match part.content {
        PartContent::TextBlock(pieces) | PartContent::Words(pieces) => Some(words(pieces)),
        PartContent::TextOf(file) => files.get_mut(file).and_then(text_inside),
        PartContent::Own(_) | PartContent::File(_) => None,
    });
    let texts: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
    let text = match (texts.is_empty(), structured) {
        (true, Some(structured)) => json_line(&structured.value),
        (true, None) | (false, _) => texts.join("\n"),
    };
    if is_error {
        return Err(NoAnswer::Failed(backend_words(&text)));
    }
    let text = model_text(&text);
    let text = text.trim();
    if text.is_empty() {
        return Err(NoAnswer::Empty);
    }
    Ok(text.to_owned())
}

/// The words among the pieces; what was data is not there.
fn words(pieces: Vec<Piece>) -> String {
    let words = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Words(words) => Some(words),
        Piece::Repeat(_) | Piece::Moved(_) | Piece::Refused(_) => None,
    });
    words.collect()
}

fn text_inside(file: &mut File) -> Option<String> {
    let text = file.text.as_mut()?;
    Some(words(std::mem::take(&mut text.pieces)))
}
