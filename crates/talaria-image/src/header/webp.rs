//! WebP, chunk by chunk.

use super::{Header, cut_short, exif, pixels};
use crate::bytes::{be32, le16, le24, le32};
use crate::colour::{self, Space};
use crate::limits::{MAX_DECODER_BYTES, MAX_FRAMES_COUNTED, MAX_PROFILE_BYTES};
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::{Refusal, RefusalKind};

/// Bytes the decoder holds per pixel: planes or codes beside the colours.
const STILL_BYTES: u64 = 7;
/// The same with the canvas of an animation.
const ANIMATION_BYTES: u64 = 14;

/// What the chunks say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WebpFacts<'a> {
    pub(crate) width: u32,
    pub(crate) height: u32,
    has_alpha: bool,
    is_animated: bool,
    pub(crate) frames: u32,
    /// Frames in front of the first that is not what the file says it is.
    pub(crate) sound_frames: u32,
    profile: Option<&'a [u8]>,
    orientation: Orientation,
    has_trouble: bool,
    end: usize,
}

impl<'a> WebpFacts<'a> {
    /// Walks over the chunks of a file that has WebP's signature.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut facts = Self {
            end: usize::try_from(le32(bytes, 4)?).ok()?.checked_add(8)?,
            ..Self::default()
        };
        let mut at = 12;
        while let Some((kind, data, whole)) = chunk(bytes, at) {
            match kind {
                b"VP8X" => {
                    let flags = *data.first()?;
                    facts.has_alpha = flags & 0x10 != 0;
                    facts.is_animated = flags & 0x02 != 0;
                    facts.width = le24(data, 4)? + 1;
                    facts.height = le24(data, 7)? + 1;
                }
                b"VP8 " | b"VP8L" => facts.read_still(kind, data)?,
                b"ANMF" => facts.read_frame(data, whole),
                b"ICCP" => facts.profile = Some(data),
                b"EXIF" => {
                    if let Some(orientation) = exif::orientation(data) {
                        facts.orientation = orientation;
                    }
                }
                _ => {}
            }
            if !whole {
                facts.has_trouble = true;
                break;
            }
            at = at.checked_add(8 + data.len().next_multiple_of(2))?;
        }
        (facts.width != 0 && facts.frames != 0).then_some(facts)
    }

    fn read_still(&mut self, kind: &[u8], data: &[u8]) -> Option<()> {
        let (width, height) = size(kind, data)?;
        if self.width == 0 {
            self.width = width;
            self.height = height;
            self.has_alpha = kind == b"VP8L" && data.get(4)? & 0x10 != 0;
        } else if !self.is_animated && (width, height) != (self.width, self.height) {
            return None;
        }
        self.frames = self.frames.max(1);
        self.sound_frames = self.sound_frames.max(1);
        Some(())
    }

    fn read_frame(&mut self, data: &[u8], whole: bool) {
        if self.is_sound(data).unwrap_or_default() && whole && self.sound_frames == self.frames {
            self.sound_frames += 1;
        }
        if self.frames < MAX_FRAMES_COUNTED {
            self.frames += 1;
        }
    }

    /// Whether a frame lies on the canvas and holds pictures of its own size.
    fn is_sound(&self, data: &[u8]) -> Option<bool> {
        let width = le24(data, 6)? + 1;
        let height = le24(data, 9)? + 1;
        let fits =
            le24(data, 0)? * 2 + width <= self.width && le24(data, 3)? * 2 + height <= self.height;
        let inside = data.get(16..)?;
        let mut at = 0;
        while let Some((kind, data, whole)) = chunk(inside, at) {
            if matches!(kind, b"VP8 " | b"VP8L") {
                return Some(fits && whole && size(kind, data)? == (width, height));
            }
            at = at.checked_add(8 + data.len().next_multiple_of(2))?;
        }
        None
    }

    /// Bytes the decoder holds.
    pub(crate) fn decoder_bytes(&self) -> u64 {
        let per_pixel = if self.is_animated {
            ANIMATION_BYTES
        } else {
            STILL_BYTES
        };
        pixels(self.width, self.height) * per_pixel
    }

    /// The ICC profile.
    pub(crate) fn profile(&self) -> Option<&'a [u8]> {
        self.profile.filter(|data| data.len() <= MAX_PROFILE_BYTES)
    }
}

/// The type of the chunk at `at`, what is there of its data, and whether that is all of it.
fn chunk(bytes: &[u8], at: usize) -> Option<(&[u8], &[u8], bool)> {
    let kind = bytes.get(at..at.checked_add(4)?)?;
    let length = usize::try_from(le32(bytes, at + 4)?).ok()?;
    let rest = bytes.get(at + 8..)?;
    Some(match rest.get(..length) {
        Some(data) => (kind, data, true),
        None => (kind, rest, false),
    })
}

/// The size that a bitstream itself claims.
fn size(kind: &[u8], data: &[u8]) -> Option<(u32, u32)> {
    if kind == b"VP8L" {
        let bits = le32(data, 1).filter(|_| data.first() == Some(&0x2f))?;
        return Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1));
    }
    // A key frame: three bytes, a start code, two sizes whose upper two bits are scales.
    (be32(data, 2)? & 0x00ff_ffff == 0x009d_012a).then_some(())?;
    let side = |at| le16(data, at).map(|side| u32::from(side & 0x3fff));
    Some((side(6)?, side(8)?))
}

pub(super) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let facts = WebpFacts::read(bytes).ok_or_else(|| cut_short("WebP"))?;
    super::check_size(facts.width, facts.height)?;
    if facts.decoder_bytes() > MAX_DECODER_BYTES {
        return Err(Refusal {
            kind: RefusalKind::TooLarge,
            detail: format!(
                "a WebP picture of {}×{} pixels needs more memory to decode than is allowed",
                facts.width, facts.height
            ),
        });
    }
    let has_odd_colours = facts
        .profile
        .is_some_and(|profile| colour::Conversion::from_icc(profile, Space::Rgb).is_some());
    Ok(Header {
        format: SourceFormat::WebP,
        width: facts.width,
        height: facts.height,
        orientation: facts.orientation,
        frames: facts.frames,
        is_animated: facts.is_animated && facts.frames > 1,
        has_alpha: facts.has_alpha,
        is_plain: !facts.is_animated
            && !has_odd_colours
            && !facts.has_trouble
            && facts.orientation == Orientation::Upright
            && facts.end == bytes.len(),
    })
}
