//! The orientation out of an EXIF block.

use crate::bytes::{be16, be32, le16, le32};
use crate::orient::Orientation;

const ORIENTATION: u16 = 0x0112;
/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 512;

/// The orientation of a TIFF structure, with or without `Exif\0\0` in front.
pub(super) fn orientation(block: &[u8]) -> Option<Orientation> {
    let block = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    let (word, long): (Read16, Read32) = match block.get(..4)? {
        b"II*\0" => (le16, le32),
        b"MM\0*" => (be16, be32),
        _ => return None,
    };
    let directory = usize::try_from(long(block, 4)?).ok()?;
    let count = usize::from(word(block, directory)?).min(MAX_ENTRIES);
    (0..count).find_map(|index| {
        let entry = directory.checked_add(2 + index * 12)?;
        if word(block, entry)? != ORIENTATION {
            return None;
        }
        // Written as SHORT by the standard, as LONG by some cameras.
        let number = match word(block, entry + 2)? {
            3 => u32::from(word(block, entry + 8)?),
            4 => long(block, entry + 8)?,
            _ => return None,
        };
        Some(Orientation::from_number(number))
    })
}

type Read16 = fn(&[u8], usize) -> Option<u16>;
type Read32 = fn(&[u8], usize) -> Option<u32>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_byte_orders() {
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        let big = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0";
        assert_eq!(orientation(little), Some(Orientation::QuarterRight));
        assert_eq!(orientation(big), Some(Orientation::QuarterLeft));
    }

    #[test]
    fn survives_blocks_that_end_anywhere() {
        let whole = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        for length in 0..18 {
            assert_eq!(orientation(&whole[..length]), None, "{length}");
        }
        let lost = b"II*\0\xff\xff\xff\xff\x01\0\x12\x01";
        assert_eq!(orientation(lost), None);
    }
}
