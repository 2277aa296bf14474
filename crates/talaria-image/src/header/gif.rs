//! GIF, block by block.

use super::{Header, cut_short};
use crate::bytes::le16;
use crate::limits::MAX_FRAMES_COUNTED;
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::Refusal;

/// What the blocks say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GifFacts {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) frames: u32,
    has_transparency: bool,
    /// Whether the blocks end within one of them.
    pub(crate) is_cut: bool,
    /// Where the trailer ends.
    end: Option<usize>,
}

impl GifFacts {
    /// Walks over the blocks; pixels are skipped, not decoded.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut facts = Self {
            width: u32::from(le16(bytes, 6)?),
            height: u32::from(le16(bytes, 8)?),
            ..Self::default()
        };
        let mut at = 13 + palette_size(*bytes.get(10)?);
        loop {
            match bytes.get(at) {
                Some(0x3b) => {
                    facts.end = Some(at + 1);
                    break;
                }
                Some(0x2c) => {
                    let Some(next) = facts.read_frame(bytes, at) else {
                        facts.is_cut = true;
                        break;
                    };
                    at = next;
                }
                Some(0x21) => {
                    if bytes.get(at + 1) == Some(&0xf9) {
                        facts.has_transparency |=
                            bytes.get(at + 3).is_some_and(|flags| flags & 1 == 1);
                    }
                    let Some(next) = skip_blocks(bytes, at + 2) else {
                        facts.is_cut = true;
                        break;
                    };
                    at = next;
                }
                // Padding between blocks.
                Some(0) => at += 1,
                Some(_) | None => break,
            }
        }
        (facts.frames > 0).then_some(facts)
    }

    /// Counts the frame at `at` and says where it ends.
    fn read_frame(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let flags = *bytes.get(at + 9)?;
        if self.frames < MAX_FRAMES_COUNTED {
            self.frames += 1;
        }
        if self.width == 0 || self.height == 0 {
            // Without a logical screen the first frame is one.
            self.width = u32::from(le16(bytes, at + 5)?);
            self.height = u32::from(le16(bytes, at + 7)?);
        }
        // The smallest code stands in front of the pixels.
        skip_blocks(bytes, at + 11 + palette_size(flags))
    }
}

/// Bytes of a palette, by the flags of its owner.
fn palette_size(flags: u8) -> usize {
    if flags & 0x80 == 0 {
        0
    } else {
        3 << ((flags & 0x07) + 1)
    }
}

/// Behind a row of sub-blocks.
fn skip_blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = usize::from(*bytes.get(at)?);
        at = at.checked_add(1 + length)?;
        if length == 0 {
            return Some(at);
        }
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let facts = GifFacts::read(bytes).ok_or_else(|| cut_short("GIF"))?;
    Ok(Header {
        format: SourceFormat::Gif,
        width: facts.width,
        height: facts.height,
        orientation: Orientation::Upright,
        frames: facts.frames,
        is_animated: facts.frames > 1,
        has_alpha: facts.has_transparency,
        is_plain: facts.frames == 1 && !facts.is_cut && facts.end == Some(bytes.len()),
    })
}
