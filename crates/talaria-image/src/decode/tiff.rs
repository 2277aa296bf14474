//! TIFF: the first page, strip by strip where it is stored so.

use std::io::Cursor;

use tiff::ColorType;
use tiff::decoder::{ChunkType, Decoder, DecodingResult};
use tiff::tags::Tag;

use super::intake::{Intake, Samples};
use super::{Decoded, Plan, check, fits, settle};
use crate::colour::{Conversion, Space};
use crate::header::tiff::{indexes, open, refuse};
use crate::header::{damaged, pixels, unsupported};
use crate::refusal::Refusal;
use crate::watch::Watch;

/// `PlanarConfiguration` of samples that stand pixel by pixel.
const CHUNKY: u16 = 1;

pub(super) fn decode(bytes: &[u8], plan: &Plan, watch: &Watch) -> Result<Decoded, Refusal> {
    let indexes = indexes(bytes);
    let mut decoder = open(indexes.as_deref().unwrap_or(bytes))?;
    let format = Format::of(&mut decoder, indexes.is_some())?;
    let conversion = decoder
        .get_tag_u8_vec(Tag::IccProfile)
        .ok()
        .and_then(|profile| Conversion::from_icc(&profile, format.space()));
    let mut intake = Intake::new(plan, format.samples, conversion);
    let mut problem = None;
    let width = plan.width as usize;
    if decoder.get_chunk_type() == ChunkType::Strip {
        let (across, down) = decoder.chunk_dimensions();
        fits(pixels(across, down) * format.bytes_per_pixel(), plan)?;
        let strips = decoder.strip_count().map_err(|error| refuse(&error))?;
        for strip in 0..strips {
            check(watch, 0)?;
            match decoder.read_chunk(strip) {
                Ok(samples) => format.push(&samples, width, &mut intake)?,
                Err(error) if strip == 0 => return Err(refuse(&error)),
                Err(_) => {
                    problem = Some("its data is cut short or broken".to_owned());
                    break;
                }
            }
            if intake.is_full() {
                break;
            }
        }
    } else {
        fits(
            pixels(plan.width, plan.height) * format.bytes_per_pixel(),
            plan,
        )?;
        let samples = decoder.read_image().map_err(|error| refuse(&error))?;
        format.push(&samples, width, &mut intake)?;
    }
    settle(intake, problem)
}

/// What the samples of a page mean.
#[derive(Debug)]
struct Format {
    samples: Samples,
    /// Bits per sample.
    bits: u8,
    /// Samples per pixel that are stored; those behind the wanted ones are skipped.
    stored: usize,
    /// Colours by index.
    palette: Option<Vec<[u8; 3]>>,
}

impl Format {
    fn of(decoder: &mut Decoder<Cursor<&[u8]>>, is_index: bool) -> Result<Self, Refusal> {
        let colours = decoder.colortype().map_err(|error| refuse(&error))?;
        let count = decoder
            .find_tag_unsigned::<u16>(Tag::SamplesPerPixel)
            .ok()
            .flatten()
            .unwrap_or(1);
        let planar = decoder
            .find_tag_unsigned::<u16>(Tag::PlanarConfiguration)
            .ok()
            .flatten()
            .unwrap_or(CHUNKY);
        if planar != CHUNKY && count > 1 {
            return Err(unsupported("a TIFF that stores its colours apart"));
        }
        let samples = match colours {
            ColorType::Gray(_) | ColorType::Multiband { .. } if is_index => Samples::Rgb,
            ColorType::Gray(_) | ColorType::Multiband { .. } => Samples::Grey,
            ColorType::GrayA(_) => Samples::GreyAlpha,
            ColorType::RGB(_) => Samples::Rgb,
            ColorType::RGBA(_) => Samples::Rgba,
            ColorType::CMYK(_) | ColorType::CMYKA(_) => Samples::Cmyk,
            ColorType::YCbCr(_) | ColorType::Lab(_) => {
                return Err(unsupported("a TIFF in YCbCr or Lab"));
            }
            ColorType::Palette(_) | _ => {
                return Err(unsupported("a TIFF of a rare colour type"));
            }
        };
        let bits = colours.bit_depth();
        if !matches!(bits, 1 | 2 | 4 | 8 | 16) || is_index && bits == 16 {
            return Err(unsupported("a TIFF with an odd number of bits"));
        }
        let palette = if is_index {
            Some(palette(decoder)?)
        } else {
            None
        };
        Ok(Self {
            samples,
            bits,
            stored: usize::from(count).max(1),
            palette,
        })
    }

    /// Rounded up.
    fn bytes_per_pixel(&self) -> u64 {
        (self.stored as u64 * u64::from(self.bits)).div_ceil(8)
    }

    fn space(&self) -> Space {
        match self.samples {
            Samples::Grey | Samples::GreyAlpha => Space::Grey,
            Samples::Rgb | Samples::Rgba => Space::Rgb,
            Samples::Cmyk => Space::Cmyk,
        }
    }

    /// Takes the rows of a strip or of the whole page.
    fn push(
        &self,
        samples: &DecodingResult,
        width: usize,
        intake: &mut Intake,
    ) -> Result<(), Refusal> {
        let mut line = Vec::with_capacity(width * self.samples.channels());
        let per_row = width * self.stored;
        if let DecodingResult::U8(bytes) = samples
            && self.bits <= 8
        {
            let packed = (per_row * usize::from(self.bits)).div_ceil(8);
            for row in bytes.chunks_exact(packed.max(1)) {
                if self.keeps_rows() {
                    intake.push(row);
                    continue;
                }
                line.clear();
                if self.bits == 8 {
                    self.pick(row.iter().copied(), &mut line);
                } else {
                    self.pick(unpack(row, self.bits).take(per_row), &mut line);
                }
                intake.push(&line);
            }
        } else if let DecodingResult::U16(words) = samples
            && self.bits == 16
        {
            for row in words.chunks_exact(per_row.max(1)) {
                line.clear();
                self.pick(row.iter().map(|word| word.to_be_bytes()[0]), &mut line);
                intake.push(&line);
            }
        } else {
            return Err(unsupported("a TIFF whose samples are no plain numbers"));
        }
        Ok(())
    }

    /// Whether rows are stored as they are wanted.
    fn keeps_rows(&self) -> bool {
        self.bits == 8 && self.palette.is_none() && self.stored == self.samples.channels()
    }

    /// The wanted samples of a row, brought to 8 bits.
    fn pick(&self, row: impl Iterator<Item = u8>, line: &mut Vec<u8>) {
        if let Some(palette) = &self.palette {
            let colours = row
                .step_by(self.stored)
                .map(|index| palette.get(usize::from(index)).copied().unwrap_or_default());
            line.extend(colours.flatten());
            return;
        }
        let most = u8::MAX >> (8 - self.bits.min(8));
        // 1, 3, 15 and 255 all divide 255.
        let scale = u8::MAX / most.max(1);
        let wanted = self.samples.channels();
        let scaled = row
            .enumerate()
            .filter(|(place, _)| place % self.stored < wanted)
            .map(|(_, sample)| sample.saturating_mul(scale));
        line.extend(scaled);
    }
}

fn palette(decoder: &mut Decoder<Cursor<&[u8]>>) -> Result<Vec<[u8; 3]>, Refusal> {
    let map = decoder
        .get_tag_u16_vec(Tag::ColorMap)
        .map_err(|_error| damaged("the TIFF has no palette"))?;
    let size = map.len() / 3;
    let level = |place: usize| map.get(place).map_or(0, |level| level.to_be_bytes()[0]);
    Ok((0..size)
        .map(|index| [level(index), level(size + index), level(2 * size + index)])
        .collect())
}

/// Samples of 1, 2 or 4 bits, the first in the highest bits.
fn unpack(row: &[u8], bits: u8) -> impl Iterator<Item = u8> {
    let mask = u8::MAX >> (8 - bits);
    row.iter()
        .flat_map(move |byte| (1..=8 / bits).map(move |place| byte >> (8 - bits * place) & mask))
}
