//! TIFF: the first page, and how many there are.

use std::io::Cursor;

use tiff::decoder::{Decoder, Limits};
use tiff::tags::Tag;
use tiff::{ColorType, TiffError};

use super::{Header, damaged, unsupported};
use crate::bytes::{be16, be32, le16, le32};
use crate::limits::{MAX_DECODER_BYTES, MAX_PROFILE_BYTES};
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::{Refusal, RefusalKind};

/// Pages that are counted.
const MAX_PAGES: u32 = 10_000;

/// A decoder that holds no more than it may.
pub(crate) fn open(bytes: &[u8]) -> Result<Decoder<Cursor<&[u8]>>, Refusal> {
    let mut limits = Limits::default();
    limits.decoding_buffer_size = usize::try_from(MAX_DECODER_BYTES).unwrap_or(usize::MAX);
    limits.intermediate_buffer_size = limits.decoding_buffer_size;
    limits.ifd_value_size = MAX_PROFILE_BYTES;
    Decoder::new(Cursor::new(bytes))
        .map(|decoder| decoder.with_limits(limits))
        .map_err(|error| refuse(&error))
}

/// A decoder's error as a refusal.
pub(crate) fn refuse(error: &TiffError) -> Refusal {
    match error {
        TiffError::UnsupportedError(_) => unsupported("a TIFF of a rare kind"),
        TiffError::LimitsExceeded | TiffError::IntSizeError => Refusal {
            kind: RefusalKind::TooLarge,
            detail: "the TIFF needs more memory to decode than is allowed".to_owned(),
        },
        TiffError::FormatError(_) | TiffError::IoError(_) | TiffError::UsageError(_) => {
            damaged("the TIFF does not decode: its data is cut short or broken")
        }
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let mut decoder = open(bytes)?;
    let (width, height) = decoder.dimensions().map_err(|error| refuse(&error))?;
    let colours = decoder.colortype().map_err(|error| refuse(&error))?;
    let orientation = decoder
        .find_tag_unsigned::<u32>(Tag::Orientation)
        .ok()
        .flatten()
        .map_or(Orientation::Upright, Orientation::from_number);
    let frames = pages(bytes).unwrap_or(1).max(1);
    Ok(Header {
        format: SourceFormat::Tiff,
        width,
        height,
        orientation,
        frames,
        is_animated: false,
        has_alpha: matches!(colours, ColorType::RGBA(_) | ColorType::GrayA(_)),
        is_plain: false,
        is_lossy: false,
    })
}

/// Follows the chain of directories of a classic TIFF.
fn pages(bytes: &[u8]) -> Option<u32> {
    let is_big_endian = bytes.starts_with(b"MM\0*");
    if !is_big_endian && !bytes.starts_with(b"II*\0") {
        return None;
    }
    let word = |at| {
        if is_big_endian {
            be16(bytes, at)
        } else {
            le16(bytes, at)
        }
    };
    let long = |at| {
        if is_big_endian {
            be32(bytes, at)
        } else {
            le32(bytes, at)
        }
    };
    let mut at = usize::try_from(long(4)?).ok()?;
    let mut count = 0;
    // A chain that bites its tail is counted to the end of patience.
    while at != 0 && count < MAX_PAGES {
        let Some(entries) = word(at) else { break };
        count += 1;
        let Some(next) = long(at + 2 + usize::from(entries) * 12) else {
            break;
        };
        at = usize::try_from(next).ok()?;
    }
    Some(count)
}
