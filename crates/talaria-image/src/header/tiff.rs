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

/// The tag that says what samples mean, and two of its values.
const INTERPRETATION: u16 = 262;
const BLACK_IS_ZERO: u16 = 1;
const PALETTE: u16 = 3;
/// Pages that are counted.
const MAX_PAGES: u32 = 10_000;

/// A TIFF of palette colours as one of grey levels, which the decoder knows: its indexes.
pub(crate) fn indexes(bytes: &[u8]) -> Option<Vec<u8>> {
    let order = Order::of(bytes)?;
    let directory = usize::try_from(order.long(bytes, 4)?).ok()?;
    let entries = usize::from(order.word(bytes, directory)?);
    let interpretation = (0..entries)
        .filter_map(|index| directory.checked_add(2 + index * 12))
        .find(|entry| order.word(bytes, *entry) == Some(INTERPRETATION))?;
    (order.word(bytes, interpretation + 8)? == PALETTE).then_some(())?;
    let mut grey = bytes.to_vec();
    let value = grey.get_mut(interpretation + 8..interpretation + 10)?;
    value.copy_from_slice(&order.stored(BLACK_IS_ZERO));
    Some(grey)
}

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
    let indexes = indexes(bytes);
    let mut decoder = open(indexes.as_deref().unwrap_or(bytes))?;
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
    })
}

/// Follows the chain of directories of a classic TIFF.
fn pages(bytes: &[u8]) -> Option<u32> {
    let order = Order::of(bytes)?;
    let mut at = usize::try_from(order.long(bytes, 4)?).ok()?;
    let mut count = 0;
    // A chain that bites its tail is counted to the end of patience.
    while at != 0 && count < MAX_PAGES {
        let Some(entries) = order.word(bytes, at) else {
            break;
        };
        count += 1;
        let Some(next) = order.long(bytes, at + 2 + usize::from(entries) * 12) else {
            break;
        };
        at = usize::try_from(next).ok()?;
    }
    Some(count)
}

/// The byte order of a classic TIFF.
#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.get(..4)? {
            b"II*\0" => Some(Self::Little),
            b"MM\0*" => Some(Self::Big),
            _ => None,
        }
    }

    fn word(self, bytes: &[u8], at: usize) -> Option<u16> {
        match self {
            Self::Little => le16(bytes, at),
            Self::Big => be16(bytes, at),
        }
    }

    fn long(self, bytes: &[u8], at: usize) -> Option<u32> {
        match self {
            Self::Little => le32(bytes, at),
            Self::Big => be32(bytes, at),
        }
    }

    fn stored(self, word: u16) -> [u8; 2] {
        match self {
            Self::Little => word.to_le_bytes(),
            Self::Big => word.to_be_bytes(),
        }
    }
}
