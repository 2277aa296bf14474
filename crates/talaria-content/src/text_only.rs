//! The text-only form of what was rendered already, for an agent whose provider refused the
//! pictures (design decision 17). Taking them out twice is the same as once.

mod bodies;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;
use talaria_types::NoticeCode;

use crate::delivery::{Attachment, Delivery, Notice};
use crate::render::Format;
use crate::sanitise::one_line;

/// How the paragraph of ours about pictures begins; no line of a server can.
const HEADER: &str = "[MCP images: ";
/// How the line of a file begins, likewise.
const MEDIA: &str = "MEDIA:";
const LOOK: &str = "look at them one at a time, with vision_analyze or a file tool";
/// How a line about one of them begins.
const LINE: &str = "- MEDIA:";
/// What such a line says of a picture that never was attached.
const NEVER_ATTACHED: &str = ": not attached: ";
const REASON: &str = "the pixels were taken out of this delivery after it had been made";
const REASON_WITHOUT_PIXELS: &str = "text only was asked for; this delivery had no pixels";

/// A body that is not what Talaria renders in its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no body of format `{format}` as Talaria makes it: {detail}")]
pub struct ForeignBody {
    /// The format it was said to have.
    pub format: &'static str,
    /// What is odd about it.
    pub detail: String,
}

/// A delivery without its pixels: the text says which pictures are files at which path, the gate
/// is closed. One that has none stays as it is, but for the gate.
#[must_use]
pub fn text_only(mut delivery: Delivery) -> Delivery {
    if delivery.gate.open {
        delivery.gate.open = false;
        let reason = if delivery.attachments.is_empty() {
            REASON_WITHOUT_PIXELS
        } else {
            REASON
        };
        reason.clone_into(&mut delivery.gate.reason);
    }
    if delivery.attachments.is_empty() {
        return delivery;
    }
    let count = picture_lines(&delivery).len();
    delivery.text = told_in_words(&delivery).into_owned();
    delivery.notices.push(Notice {
        code: NoticeCode::ImageTextOnly,
        message: format!("the pixels of {} were taken out", counted(count)),
        block: None,
    });
    delivery.attachments.clear();
    delivery.hermes.body = None;
    delivery.hermes.picture_notes = None;
    delivery
}

/// The text of a delivery for a reader that gets no pixels.
pub(crate) fn told_in_words(delivery: &Delivery) -> Cow<'_, str> {
    if delivery.attachments.is_empty() {
        return Cow::Borrowed(&delivery.text);
    }
    let lines = picture_lines(delivery);
    Cow::Owned(retold(&delivery.text, lines.len(), &Files::Listed(&lines)))
}

/// A rendered body without its pictures, in the same format; `hermes` becomes the JSON inside its
/// envelope.
///
/// # Errors
/// The body is not one that [`crate::render()`] makes in this format.
pub fn strip_images(body: Value, format: Format) -> Result<Value, ForeignBody> {
    bodies::strip(body, format).map_err(|detail| ForeignBody {
        format: format.as_str(),
        detail,
    })
}

/// One line for each picture, tiles of one told once.
fn picture_lines(delivery: &Delivery) -> Vec<String> {
    let mut seen = BTreeSet::new();
    delivery
        .attachments
        .iter()
        .filter(|attachment| seen.insert(attachment.artifact.to_string()))
        .map(|attachment| picture_line(attachment, delivery))
        .collect()
}

fn picture_line(attachment: &Attachment, delivery: &Delivery) -> String {
    let (width, height) = (attachment.original_width, attachment.original_height);
    let file = delivery
        .artifacts
        .iter()
        .find(|artifact| artifact.id == attachment.artifact);
    match file {
        Some(artifact) => {
            let path = one_line(&artifact.path.display().to_string());
            format!("{LINE}{path}: {width}×{height} pixels")
        }
        None => format!("- a picture of {width}×{height} pixels that names no file"),
    }
}

/// Where a reader finds the files of the pictures that were taken out.
enum Files<'a> {
    /// In these lines.
    Listed(&'a [String]),
    /// In the `MEDIA:` lines of the result.
    Named,
    /// Nowhere.
    Unnamed,
}

impl Files<'_> {
    /// What a result's own words say; only lines of ours begin so.
    fn named_in<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut lines = texts.into_iter().flat_map(str::lines);
        if lines.any(|line| line.starts_with(MEDIA)) {
            Self::Named
        } else {
            Self::Unnamed
        }
    }
}

/// The text with our paragraph about attached pictures rewritten: so many of them are only files
/// now.
fn retold(text: &str, count: usize, files: &Files<'_>) -> String {
    let (words, notes) = split_notes(text);
    let (lines, files): (&[String], _) = match files {
        Files::Listed(lines) => (lines, format!("they are only files: {LOOK}")),
        Files::Named => {
            let words = format!("they are only files, see the MEDIA: lines: {LOOK}");
            (&[], words)
        }
        Files::Unnamed => (&[], "it names no files of them".to_owned()),
    };
    let header = format!(
        "{HEADER}the pixels of {} were taken out of this result, which this model cannot be \
         shown; {files} ({})]",
        counted(count),
        NoticeCode::ImageTextOnly.as_str()
    );
    let never_attached = notes.lines().filter(|line| line.contains(NEVER_ATTACHED));
    let mut retold = words.to_owned();
    for line in [header.as_str()]
        .into_iter()
        .chain(lines.iter().map(String::as_str))
        .chain(never_attached)
    {
        if !retold.is_empty() {
            retold.push('\n');
        }
        retold.push_str(line);
    }
    retold
}

/// Cuts the paragraph about pictures off, which is the end of the text where there is one.
pub(crate) fn split_notes(text: &str) -> (&str, &str) {
    let start = match text.rfind(&format!("\n{HEADER}")) {
        Some(at) => at + 1,
        None if text.starts_with(HEADER) => 0,
        None => return (text, ""),
    };
    let Some((words, notes)) = text.split_at_checked(start) else {
        return (text, "");
    };
    if notes.lines().skip(1).all(|line| line.starts_with(LINE)) {
        return (words.strip_suffix('\n').unwrap_or(words), notes);
    }
    (text, "")
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 image".to_owned(),
        count => format!("{count} images"),
    }
}
