//! Windows bitmaps.

use super::{Header, cut_short, pixels};
use crate::bytes::{le16, le32};
use crate::limits::MAX_DECODER_BYTES;
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::{Refusal, RefusalKind};

/// Bytes in front of the information header.
const FILE_HEADER: usize = 14;

/// Width, height and bits per pixel of the information header at `at`.
pub(super) fn size(bytes: &[u8], at: usize) -> Option<(u32, u32, u16)> {
    if le32(bytes, at)? == 12 {
        let side = |at| le16(bytes, at).map(u32::from);
        return Some((side(at + 4)?, side(at + 6)?, le16(bytes, at + 10)?));
    }
    // Rows run upwards unless the height is negative.
    let side = |at| le32(bytes, at).map(|side| side.cast_signed().unsigned_abs());
    Some((side(at + 4)?, side(at + 8)?, le16(bytes, at + 14)?))
}

pub(super) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let (width, height, bits) = size(bytes, FILE_HEADER).ok_or_else(|| cut_short("BMP"))?;
    super::check_size(width, height)?;
    let has_alpha = bits == 32;
    let channels = if has_alpha { 4 } else { 3 };
    if pixels(width, height) * channels > MAX_DECODER_BYTES {
        return Err(Refusal {
            kind: RefusalKind::TooLarge,
            detail: format!(
                "a bitmap of {width}×{height} pixels needs more memory to decode than is allowed"
            ),
        });
    }
    Ok(Header {
        format: SourceFormat::Bmp,
        width,
        height,
        orientation: Orientation::Upright,
        frames: 1,
        is_animated: false,
        has_alpha,
        is_plain: false,
    })
}
