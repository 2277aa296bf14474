//! PNG and APNG, chunk by chunk.

use super::{Header, cut_short, exif};
use crate::bytes::be32;
use crate::colour::{self, Space};
use crate::limits::MAX_PROFILE_BYTES;
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::Refusal;

const SIGNATURE: usize = 8;

/// What the chunks say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PngFacts<'a> {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) depth: u8,
    pub(crate) colour_type: u8,
    pub(crate) is_interlaced: bool,
    has_transparency: bool,
    /// The packed profile of `iCCP`.
    packed_profile: Option<&'a [u8]>,
    orientation: Orientation,
    frames: Option<u32>,
    has_packed_text: bool,
    /// Where `IEND` ends.
    pub(crate) end: Option<usize>,
}

impl<'a> PngFacts<'a> {
    /// Walks over the chunks of a file that has PNG's signature.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut facts = Self::default();
        let mut at = SIGNATURE;
        while let Some((kind, data)) = chunk(bytes, at) {
            match kind {
                b"IHDR" if at == SIGNATURE => facts.read_header(data)?,
                b"tRNS" => facts.has_transparency = true,
                b"iCCP" if facts.packed_profile.is_none() => facts.packed_profile = Some(data),
                b"eXIf" => {
                    if let Some(orientation) = exif::orientation(data) {
                        facts.orientation = orientation;
                    }
                }
                b"acTL" => facts.frames = be32(data, 0),
                b"zTXt" | b"iTXt" => facts.has_packed_text = true,
                _ => {}
            }
            at = at.checked_add(12)?.checked_add(data.len())?;
            if kind == b"IEND" {
                facts.end = Some(at);
                break;
            }
        }
        (facts.depth != 0).then_some(facts)
    }

    fn read_header(&mut self, data: &[u8]) -> Option<()> {
        self.width = be32(data, 0)?;
        self.height = be32(data, 4)?;
        self.depth = *data.get(8)?;
        self.colour_type = *data.get(9)?;
        self.is_interlaced = *data.get(12)? == 1;
        Some(())
    }

    /// The unpacked ICC profile, if it has one of a sane size.
    pub(crate) fn profile(&self) -> Option<Vec<u8>> {
        let data = self.packed_profile?;
        let name = data.iter().take(80).position(|byte| *byte == 0)?;
        let packed = data.get(name + 2..)?;
        fdeflate::decompress_to_vec_bounded(packed, MAX_PROFILE_BYTES).ok()
    }

    pub(crate) fn space(&self) -> Space {
        if self.colour_type & 2 == 0 {
            Space::Grey
        } else {
            Space::Rgb
        }
    }
}

/// The type and the data of the chunk at `at`, as long as it is whole.
fn chunk(bytes: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(be32(bytes, at)?).ok()?;
    let kind = bytes.get(at + 4..at + 8)?;
    let data = bytes.get(at + 8..)?;
    // The checksum counts: a chunk without one is cut.
    (data.len() >= length.checked_add(4)?).then_some(())?;
    Some((kind, data.get(..length)?))
}

pub(super) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let facts = PngFacts::read(bytes).ok_or_else(|| cut_short("PNG"))?;
    let has_odd_colours = facts.packed_profile.is_some()
        && facts
            .profile()
            .is_none_or(|profile| colour::Conversion::from_icc(&profile, facts.space()).is_some());
    let frames = facts.frames.unwrap_or(1).max(1);
    Ok(Header {
        format: SourceFormat::Png,
        width: facts.width,
        height: facts.height,
        orientation: facts.orientation,
        frames,
        is_animated: frames > 1,
        has_alpha: facts.has_transparency || facts.colour_type & 4 != 0,
        is_plain: facts.depth <= 8
            && facts.orientation == Orientation::Upright
            && facts.frames.is_none()
            && !has_odd_colours
            && !facts.has_packed_text
            && facts.end == Some(bytes.len()),
    })
}
