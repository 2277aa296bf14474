//! JPEG, marker by marker.

use memchr::memchr;

use super::{Header, cut_short, damaged, exif, unsupported};
use crate::bytes::be16;
use crate::colour::{self, Space};
use crate::limits::{MAX_PROFILE_BYTES, MAX_SCAN_PIXELS, MAX_SCANS};
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::{Refusal, RefusalKind};

/// How a component is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampling {
    pub(crate) id: u8,
    pub(crate) horizontal: u32,
    pub(crate) vertical: u32,
}

/// What the markers say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JpegFacts<'a> {
    pub(crate) width: u32,
    pub(crate) height: u32,
    precision: u8,
    /// The low half of the frame's marker: 0 and 1 sequential, 2 progressive.
    process: u8,
    pub(crate) components: Vec<Sampling>,
    /// The transform of an Adobe segment.
    pub(crate) adobe: Option<u8>,
    pub(crate) has_jfif: bool,
    orientation: Orientation,
    profile_parts: Vec<&'a [u8]>,
    pub(crate) scans: usize,
    /// Components of the first scan.
    first_scan: u8,
    /// Whether the end of the picture is there.
    pub(crate) has_end: bool,
    /// Where it is.
    pub(crate) end: usize,
    /// Whether something is not as it should be that other decoders may refuse:
    /// bytes between segments, an odd version, tables that do not add up, further pictures.
    is_odd: bool,
}

impl<'a> JpegFacts<'a> {
    /// Walks over the markers of a file that has JPEG's.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut facts = Self::default();
        let mut at = 2;
        while let Some((marker, start)) = next_marker(bytes, at) {
            // In front of the first scan segment follows upon segment.
            facts.is_odd |= facts.scans == 0 && start != at + 2;
            match marker {
                0xd9 => {
                    facts.has_end = true;
                    facts.end = start - 2;
                    break;
                }
                // Stand alone: restarts, a start inside, filler.
                0x01 | 0xd0..=0xd8 => {
                    at = start;
                    continue;
                }
                _ => {}
            }
            let length = usize::from(be16(bytes, start)?);
            let end = start.checked_add(length.max(2))?;
            let Some(data) = bytes.get(start + 2..end) else {
                break;
            };
            facts.read_segment(marker, data);
            at = end;
        }
        (!facts.components.is_empty()).then_some(facts)
    }

    fn read_segment(&mut self, marker: u8, data: &'a [u8]) {
        match marker {
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf if self.components.is_empty() => {
                // A frame that says too little leaves no components behind.
                let _frame = self.read_frame(marker, data);
            }
            0xda => {
                if self.scans == 0 {
                    self.first_scan = data.first().copied().unwrap_or_default();
                }
                self.scans += 1;
            }
            0xc4 => self.is_odd |= !are_codes_sound(data),
            0xdb => self.is_odd |= !are_quotients_sound(data),
            // What describes the picture stands in front of its first scan.
            _ if self.scans > 0 => {}
            0xe0 if data.starts_with(b"JFIF\0") => {
                self.has_jfif = true;
                self.is_odd |= data.get(5) != Some(&1);
            }
            0xe1 if data.starts_with(b"Exif\0\0") => {
                if let Some(orientation) = exif::orientation(data) {
                    self.orientation = orientation;
                }
            }
            0xe2 if data.starts_with(b"MPF\0") => self.is_odd = true,
            0xe2 if data.starts_with(b"ICC_PROFILE\0") => self.profile_parts.push(data),
            0xee if data.starts_with(b"Adobe") => self.adobe = data.get(11).copied(),
            _ => {}
        }
    }

    fn read_frame(&mut self, marker: u8, data: &[u8]) -> Option<()> {
        self.process = marker & 0x0f;
        self.precision = *data.first()?;
        self.height = u32::from(be16(data, 1)?);
        self.width = u32::from(be16(data, 3)?);
        let count = usize::from(*data.get(5)?);
        let (entries, _) = data.get(6..6 + count * 3)?.as_chunks::<3>();
        self.components = entries
            .iter()
            .map(|[id, factors, _]| Sampling {
                id: *id,
                horizontal: u32::from(factors >> 4),
                vertical: u32::from(factors & 0x0f),
            })
            .collect();
        Some(())
    }

    /// The ICC profile, if all of its parts are there in order.
    pub(crate) fn profile(&self) -> Option<Vec<u8>> {
        let mut parts: Vec<(u8, &[u8])> = self
            .profile_parts
            .iter()
            .filter_map(|data| Some((*data.get(12)?, data.get(14..)?)))
            .collect();
        parts.sort_by_key(|(number, _)| *number);
        let is_whole = (1_u8..)
            .zip(&parts)
            .all(|(due, (number, _))| due == *number);
        let size: usize = parts.iter().map(|(_, part)| part.len()).sum();
        (is_whole && size > 0 && size <= MAX_PROFILE_BYTES)
            .then(|| parts.iter().flat_map(|(_, part)| *part).copied().collect())
    }

    pub(crate) fn space(&self) -> Space {
        match self.components.len() {
            1 => Space::Grey,
            3 => Space::Rgb,
            _ => Space::Cmyk,
        }
    }

    /// Whether its coefficients have to be held until the last scan has been read.
    pub(crate) fn is_buffered(&self) -> bool {
        self.process == 2 || usize::from(self.first_scan) != self.components.len()
    }

    /// Bytes of all coefficients, where they have to be held.
    pub(crate) fn coefficient_bytes(&self) -> u64 {
        let most = |side: fn(&Sampling) -> u32| self.components.iter().map(side).max().unwrap_or(1);
        let area = u64::from(most(|one| one.horizontal)) * u64::from(most(|one| one.vertical));
        let samples: u64 = self
            .components
            .iter()
            .map(|one| u64::from(one.horizontal) * u64::from(one.vertical))
            .sum();
        super::pixels(self.width, self.height) * samples * 2 / area.max(1)
    }

    fn check(&self) -> Result<(), Refusal> {
        if !matches!(self.process, 0..=2) || self.precision != 8 {
            return Err(unsupported(
                "a JPEG that is neither baseline nor progressive with 8 bits",
            ));
        }
        if !matches!(self.components.len(), 1 | 3 | 4) {
            return Err(unsupported("a JPEG that has neither 1, 3 nor 4 components"));
        }
        if self.height == 0 {
            return Err(unsupported("a JPEG that gives its height at the end"));
        }
        let is_sampled =
            |one: &Sampling| matches!(one.horizontal, 1..=4) && matches!(one.vertical, 1..=4);
        if !self.components.iter().all(is_sampled) {
            return Err(damaged("the JPEG has sampling factors outside of 1 to 4"));
        }
        if self.scans == 0 {
            return Err(damaged("the JPEG ends before its picture begins"));
        }
        if self.is_buffered() {
            self.check_scans()?;
        }
        Ok(())
    }

    fn check_scans(&self) -> Result<(), Refusal> {
        let work = super::pixels(self.width, self.height)
            .saturating_mul(u64::try_from(self.scans).unwrap_or(u64::MAX));
        let bytes = self.coefficient_bytes();
        if self.scans > MAX_SCANS
            || work > MAX_SCAN_PIXELS
            || bytes > crate::limits::MAX_DECODER_BYTES
        {
            return Err(Refusal {
                kind: RefusalKind::TooLarge,
                detail: format!(
                    "a progressive JPEG of {}×{} pixels in {} scans needs too much time or memory",
                    self.width, self.height, self.scans
                ),
            });
        }
        Ok(())
    }
}

/// Whether a segment holds whole tables of codes, none with more codes than its lengths allow.
fn are_codes_sound(mut data: &[u8]) -> bool {
    while let Some((class, rest)) = data.split_first() {
        let Some((lengths, rest)) = rest.split_at_checked(16) else {
            return false;
        };
        let mut room = 1_u32;
        for count in lengths {
            let Some(left) = (room * 2).checked_sub(u32::from(*count)) else {
                return false;
            };
            room = left;
        }
        let codes: usize = lengths.iter().map(|count| usize::from(*count)).sum();
        // A code of ones only is reserved.
        if codes == 0 || codes > 256 || room == 0 || class & 0x0f > 3 || class >> 4 > 1 {
            return false;
        }
        let Some(rest) = rest.get(codes..) else {
            return false;
        };
        data = rest;
    }
    true
}

/// Whether a segment holds whole tables of quotients, none of them zero.
fn are_quotients_sound(mut data: &[u8]) -> bool {
    while let Some((kind, rest)) = data.split_first() {
        let width = usize::from(kind >> 4) + 1;
        let Some((table, rest)) = rest.split_at_checked(64 * width) else {
            return false;
        };
        if width > 2
            || kind & 0x0f > 3
            || table
                .chunks(width)
                .any(|one| one.iter().all(|byte| *byte == 0))
        {
            return false;
        }
        data = rest;
    }
    true
}

/// The next marker at or behind `at` and where its segment starts.
fn next_marker(bytes: &[u8], mut at: usize) -> Option<(u8, usize)> {
    loop {
        let rest = bytes.get(at..)?;
        at = at.checked_add(memchr(0xff, rest)?)?;
        match *bytes.get(at + 1)? {
            // A stuffed byte of compressed data.
            0x00 => at += 2,
            // Filler in front of a marker.
            0xff => at += 1,
            marker => return Some((marker, at + 2)),
        }
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let facts = JpegFacts::read(bytes).ok_or_else(|| cut_short("JPEG"))?;
    super::check_size(facts.width, facts.height.max(1))?;
    facts.check()?;
    let has_odd_colours = !facts.profile_parts.is_empty()
        && facts
            .profile()
            .is_some_and(|profile| colour::Conversion::from_icc(&profile, facts.space()).is_some());
    Ok(Header {
        format: SourceFormat::Jpeg,
        width: facts.width,
        height: facts.height,
        orientation: facts.orientation,
        // The other pictures of a multi-picture file are previews and depth maps, no animation.
        frames: 1,
        is_animated: false,
        has_alpha: false,
        is_plain: facts.components.len() != 4
            && facts.orientation == Orientation::Upright
            && !has_odd_colours
            && !facts.is_odd
            && facts.has_end,
    })
}
