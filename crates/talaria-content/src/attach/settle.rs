//! The end of attaching: pixels, notices, and the lines that the model reads about its pictures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use talaria_types::NoticeCode;

use crate::delivery::Attachment;
use crate::notices::Notices;
use crate::sanitise::one_line;

use super::{Attaching, MAX_ATTACHED, MAX_CANDIDATES, Picture, ReadyPicture, State};

/// Longest note about one picture; the words of a decoder may quote the file.
const MAX_NOTE_CHARACTERS: usize = 1_000;

/// The pixels of a call, with what is said about them.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    pub(crate) attachments: Vec<Attachment>,
    /// How many of the call's pictures were attached.
    pub(crate) header: String,
    /// `- MEDIA:<path>: <note>`, in block order.
    pub(crate) lines: Vec<String>,
    /// Whether a picture stays only a file.
    pub(crate) is_partial: bool,
}

impl Attached {
    /// The lines for a text that names its pictures anyway: nothing where there is nothing to say.
    pub(crate) fn notes(&self) -> Option<String> {
        if !self.is_partial && self.lines.is_empty() {
            return None;
        }
        Some(self.header_and_notes())
    }

    /// The same with a header in any case.
    pub(crate) fn header_and_notes(&self) -> String {
        let mut text = self.header.clone();
        for line in &self.lines {
            text.push('\n');
            text.push_str(line);
        }
        text
    }
}

/// How the pictures of a call fared.
#[derive(Default)]
struct Tally {
    attached: usize,
    refused: usize,
    tiles: usize,
}

impl Attaching {
    /// Decides what is attached, whatever was not reported.
    pub(crate) fn settle(self, notices: &mut Notices) -> Attached {
        if self.pictures.is_empty() {
            return Attached::default();
        }
        let most = self.limits.most.min(MAX_ATTACHED);
        let paths: Vec<String> = self.pictures.iter().map(shown_path).collect();
        let total = self.total;
        let unseen = total.saturating_sub(self.pictures.len());
        let mut attached = Attached::default();
        let mut tally = Tally::default();
        for (picture, path) in self.pictures.into_iter().zip(&paths) {
            let block = picture.block;
            let (code, detail) = match picture.state {
                State::Waiting => continue,
                State::Ready(ready) => {
                    if attached.attachments.len() + ready.images.len() > most {
                        continue;
                    }
                    tally.attached += 1;
                    tally.tiles += ready.images.len() - 1;
                    let notes = words(&ready, block, notices);
                    if !notes.is_empty() {
                        attached.lines.push(format!("- MEDIA:{path}: {notes}"));
                    }
                    attached
                        .attachments
                        .extend(pixels(&picture.artifact, ready));
                    continue;
                }
                State::SameFile(earlier) => (NoticeCode::ImageDuplicate, same(earlier, &paths)),
                State::Refused { code, detail } => (code, note(&detail)),
                State::Asked { .. } => {
                    let detail = "nobody made it ready".to_owned();
                    (NoticeCode::ImageFailed, detail)
                }
            };
            tally.refused += 1;
            attached.lines.push(format!(
                "- MEDIA:{path}: not attached: {detail} ({})",
                code.as_str()
            ));
            notices.add(code, block, format!("not attached: {detail}"));
        }
        let left = total.saturating_sub(tally.attached + tally.refused);
        let why = why_left(left == unseen, most);
        if left > 0 {
            let of = format!("{} of {total} images attached", tally.attached);
            let message = format!("{of}; {why}");
            notices.add(NoticeCode::ImagesNotAttached, None, message);
        }
        attached.is_partial = tally.attached < total;
        attached.header = header(&tally, total, left, &why);
        attached
    }
}

/// Why pictures are left over: the places did not suffice, or it is only those behind the last
/// that is looked at.
fn why_left(is_unseen: bool, most: usize) -> String {
    if is_unseen {
        format!("only the first {MAX_CANDIDATES} of a result are looked at")
    } else {
        format!("a result carries at most {most} pictures")
    }
}

fn header(tally: &Tally, total: usize, left: usize, why: &str) -> String {
    let mut header = match (tally.attached, total) {
        (1, 1) => "[MCP images: the image is attached".to_owned(),
        (attached, _) if attached == total => {
            format!("[MCP images: {total} of {total} images attached, in the order of their paths")
        }
        (attached, _) => format!("[MCP images: {attached} of {total} images attached"),
    };
    if tally.tiles > 0 {
        let pictures = tally.attached + tally.tiles;
        header.push_str(&format!(", cut into tiles, {pictures} pictures in all"));
    }
    if tally.refused > 0 {
        let refused = tally.refused;
        header.push_str(&format!("; {refused} could not be attached, see below"));
    }
    if left > 0 {
        header.push_str(&format!(
            "; {left} not attached, {why}: look at the others \
             one at a time by their MEDIA: paths, with vision_analyze or a file tool \
             ({})",
            NoticeCode::ImagesNotAttached.as_str()
        ));
    }
    header.push(']');
    header
}

fn pixels(artifact: &talaria_types::ArtifactId, ready: ReadyPicture) -> Vec<Attachment> {
    let (original_width, original_height) = (ready.original_width, ready.original_height);
    ready
        .images
        .into_iter()
        .map(|image| Attachment {
            artifact: artifact.clone(),
            media_type: image.media_type.to_owned(),
            data: STANDARD.encode(&image.bytes),
            width: image.width,
            height: image.height,
            original_width,
            original_height,
            scale_note: image.scale_note,
            area: image.area,
        })
        .collect()
}

/// The notes of a picture in one line; each of them is a notice, too. Of a scaled or cut picture
/// the line gives the whole way back to the coordinates of the original.
fn words(ready: &ReadyPicture, block: Option<usize>, notices: &mut Notices) -> String {
    let mut sentences = Vec::new();
    let is_single = ready.images.len() == 1;
    for (number, image) in (1..).zip(&ready.images) {
        match &image.scale_note {
            Some(scale) if is_single => sentences.push(note(scale)),
            Some(scale) => sentences.push(format!("Tile {number}: {}", note(scale))),
            None => {}
        }
    }
    let tells_scale = !sentences.is_empty();
    let after_notes = if is_single {
        Vec::new()
    } else {
        std::mem::take(&mut sentences)
    };
    for image_note in &ready.notes {
        let text = note(&image_note.text);
        notices.add(image_note.code, block, text.as_str());
        if image_note.code != NoticeCode::ImageDownscaled || !tells_scale {
            sentences.push(text);
        }
    }
    sentences.extend(after_notes);
    for sentence in &mut sentences {
        if !sentence.ends_with(['.', '!', '?']) {
            sentence.push('.');
        }
    }
    sentences.join(" ")
}

fn same(earlier: usize, paths: &[String]) -> String {
    match paths.get(earlier) {
        Some(path) => format!("the same picture as MEDIA:{path}"),
        None => "the same picture as an earlier one".to_owned(),
    }
}

/// Words on one line that cannot imitate anything, whatever they quote.
fn note(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(MAX_NOTE_CHARACTERS) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

/// The path as its own `MEDIA:` line shows it.
fn shown_path(picture: &Picture) -> String {
    one_line(&picture.path.display().to_string())
}
