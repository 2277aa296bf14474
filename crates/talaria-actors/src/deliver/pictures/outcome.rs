//! The words of the picture crate in those of the content rules.

use sha2::{Digest as _, Sha256};
use talaria_content::{Area, AttachOutcome, ImageNote, ReadyImage, ReadyPicture};
use talaria_image::{NoteKind, Picture, PoolRefusal, Prepared, RefusalKind};
use talaria_types::NoticeCode;

use super::Unready;

pub(super) fn attach_outcome(ready: Result<ReadyPicture, Unready>) -> AttachOutcome {
    match ready {
        Ok(ready) => AttachOutcome::Ready(ready),
        Err(Unready { code, detail, .. }) => AttachOutcome::Refused { code, detail },
    }
}

/// A prepared picture in the words of the rules.
pub(super) fn ready(prepared: Prepared) -> ReadyPicture {
    ReadyPicture {
        images: prepared.pictures.into_iter().map(ready_image).collect(),
        notes: prepared
            .notes
            .into_iter()
            .map(|note| ImageNote {
                code: note_code(note.kind),
                text: note.text,
            })
            .collect(),
        original_width: prepared.source.width,
        original_height: prepared.source.height,
    }
}

fn ready_image(picture: Picture) -> ReadyImage {
    ReadyImage {
        media_type: picture.format.media_type(),
        bytes: picture.bytes,
        width: picture.width,
        height: picture.height,
        area: Area {
            x: picture.area.x,
            y: picture.area.y,
            width: picture.area.width,
            height: picture.area.height,
        },
        scale_note: picture.scale_note,
    }
}

/// What tells prepared pictures apart. It takes the place of the SHA-256 of the data URL: type
/// and bytes are what such an address is made of, and no more.
pub(super) fn identity(image: &ReadyImage) -> String {
    let mut hash = Sha256::new();
    hash.update(image.media_type);
    hash.update([0]);
    hash.update(&image.bytes);
    hex::encode(hash.finalize())
}

const fn note_code(kind: NoteKind) -> NoticeCode {
    match kind {
        NoteKind::Downscaled => NoticeCode::ImageDownscaled,
        NoteKind::Padded => NoticeCode::ImagePadded,
        NoteKind::FirstFrame => NoticeCode::ImageFirstFrame,
        NoteKind::Damaged => NoticeCode::ImageDamaged,
        NoteKind::HardToRead => NoticeCode::ImageHardToRead,
        NoteKind::Tiled => NoticeCode::ImageTiled,
        NoteKind::Cropped => NoticeCode::ImageCropped,
    }
}

impl From<PoolRefusal> for Unready {
    fn from(refusal: PoolRefusal) -> Self {
        let (code, detail, kind) = match refusal {
            PoolRefusal::Busy => (
                NoticeCode::ImageBusy,
                "too many pictures are being prepared".to_owned(),
                None,
            ),
            PoolRefusal::Late => (
                NoticeCode::ImageLate,
                "it was not ready before the deadline".to_owned(),
                None,
            ),
            PoolRefusal::Abandoned => (
                NoticeCode::ImageLate,
                "nobody waited for it any more".to_owned(),
                None,
            ),
            PoolRefusal::Unreadable(detail) => (NoticeCode::ImageFailed, detail, None),
            PoolRefusal::Failed => (
                NoticeCode::ImageFailed,
                "preparing it failed inside talaria".to_owned(),
                None,
            ),
            PoolRefusal::Refused(refusal) => (
                refusal_code(refusal.kind),
                refusal.detail,
                Some(refusal.kind),
            ),
        };
        Self { code, detail, kind }
    }
}

const fn refusal_code(kind: RefusalKind) -> NoticeCode {
    match kind {
        RefusalKind::NotAnImage => NoticeCode::NotAnImage,
        RefusalKind::Unsupported => NoticeCode::ImageUnsupported,
        RefusalKind::TooLarge => NoticeCode::ImageTooLarge,
        RefusalKind::Damaged | RefusalKind::BadRegion => NoticeCode::ImageNotDecodable,
        RefusalKind::TooComplex => NoticeCode::ImageTooComplex,
        RefusalKind::OverBudget => NoticeCode::ImageOverBudget,
        RefusalKind::Abandoned => NoticeCode::ImageLate,
        RefusalKind::Failed => NoticeCode::ImageFailed,
    }
}
