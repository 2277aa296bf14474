//! Windows icons and cursors: the largest of their pictures.

use super::{Header, PngFacts, bitmap, cut_short};
use crate::bytes::{le16, le32};
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::Refusal;

/// The largest picture of an icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IconEntry<'a> {
    /// Sides as the directory gives them; 0 stands for 256.
    pub(crate) sides: [u8; 2],
    /// A PNG, or a bitmap without its file header.
    pub(crate) data: &'a [u8],
}

impl<'a> IconEntry<'a> {
    pub(crate) fn largest(bytes: &'a [u8]) -> Option<Self> {
        let count = usize::from(le16(bytes, 4)?);
        let (entries, _) = bytes.get(6..)?.as_chunks::<16>();
        entries
            .iter()
            .take(count)
            .filter_map(|entry| {
                let start = usize::try_from(le32(entry, 12)?).ok()?;
                let length = usize::try_from(le32(entry, 8)?).ok()?;
                let rest = bytes.get(start..)?;
                // What is cut off is left to the decoder.
                let data = rest.get(..length).unwrap_or(rest);
                let [width, height, ..] = *entry;
                let depth = le16(entry, 6)?;
                let side = |side: u8| if side == 0 { 256 } else { u32::from(side) };
                let rank = (side(width) * side(height), depth);
                let sides = [width, height];
                Some((rank, Self { sides, data }))
            })
            .max_by_key(|(rank, _)| *rank)
            .map(|(_, entry)| entry)
    }

    pub(crate) fn is_png(&self) -> bool {
        self.data.starts_with(b"\x89PNG\r\n\x1a\n")
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let entry = IconEntry::largest(bytes).ok_or_else(|| cut_short("icon"))?;
    let (width, height) = if entry.is_png() {
        PngFacts::read(entry.data).map(|facts| (facts.width, facts.height))
    } else {
        // The height counts the mask under the picture as well.
        bitmap::size(entry.data, 0).map(|(width, height, _)| (width, height / 2))
    }
    .ok_or_else(|| cut_short("icon"))?;
    Ok(Header {
        format: SourceFormat::Ico,
        width,
        height,
        orientation: Orientation::Upright,
        // The other pictures are the same one in other sizes.
        frames: 1,
        is_animated: false,
        has_alpha: true,
        is_plain: false,
    })
}
