//! From bytes to pixels in sRGB, on white, reduced where a later fit reduces anyway.

mod bitmap;
mod gif;
mod intake;
mod jpeg;
mod png;
mod tiff;
mod webp;

use crate::header::{self, Header, damaged};
use crate::limits::{LEAST_USEFUL_PART, MAX_DECODED_BYTES, MAX_REDUCTION};
use crate::prepared::SourceFormat;
use crate::raster::Raster;
use crate::refusal::{Refusal, RefusalKind};
use crate::svg;
use crate::watch::Watch;

use self::intake::Intake;

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// What the caller will make of the pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Longest side of what leaves.
    /// The raster may be smaller than the source, but never so small that the fit would show it.
    pub(crate) max_side: u32,
    /// The only part wanted, in stored pixels; inside the picture and not empty.
    pub(crate) region: Option<Rect>,
}

/// Pixels and what is wrong with their source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Opaque: grey or RGB.
    pub(crate) raster: Raster,
    /// In words, where the file is damaged and the raster shows what was left.
    pub(crate) damage: Option<String>,
}

/// Decodes the picture that `header` was read from.
pub(crate) fn decode(
    bytes: &[u8],
    header: &Header,
    need: &Need,
    watch: &Watch,
) -> Result<Decoded, Refusal> {
    let plan = Plan::new(header, need);
    match header.format {
        SourceFormat::Png => png::decode(bytes, &plan, watch),
        SourceFormat::Jpeg => jpeg::decode(bytes, &plan, watch),
        SourceFormat::WebP => webp::decode(bytes, &plan, watch),
        SourceFormat::Gif => gif::decode(bytes, &plan, watch),
        SourceFormat::Bmp => bitmap::decode(bytes, &plan, watch),
        SourceFormat::Tiff => tiff::decode(bytes, &plan, watch),
        SourceFormat::Ico => bitmap::decode_icon(bytes, &plan, watch),
        SourceFormat::Svg => {
            check(watch, 0)?;
            let size = (header.width, header.height);
            let raster = svg::draw(bytes, size, plan.crop, plan.max_side)?;
            Ok(Decoded {
                raster,
                damage: None,
            })
        }
        SourceFormat::Avif | SourceFormat::Heic | SourceFormat::Unknown => {
            Err(header::unsupported(header.format.as_str()))
        }
    }
}

/// Whether a file that decoded without damage is also one that no other decoder stumbles over.
pub(crate) fn is_exact(bytes: &[u8], header: &Header, watch: &Watch) -> Result<bool, Refusal> {
    if header.format == SourceFormat::Jpeg {
        jpeg::is_exact(bytes, watch)
    } else {
        Ok(true)
    }
}

/// What of the source becomes pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// The source, in pixels.
    width: u32,
    height: u32,
    /// The part of it that is wanted.
    crop: Rect,
    /// Longest side of what leaves.
    max_side: u32,
    /// By how much rows and columns may be averaged.
    factor: u32,
}

impl Plan {
    fn new(header: &Header, need: &Need) -> Self {
        Self::of(header.width, header.height, need)
    }

    fn of(width: u32, height: u32, need: &Need) -> Self {
        let crop = need.region.unwrap_or(Rect {
            x: 0,
            y: 0,
            width,
            height,
        });
        // An averaged picture stays twice as large as the fit, which then decides the sharpness.
        let least = need.max_side.max(1).saturating_mul(2);
        let factor = (crop.width.max(crop.height) / least).clamp(1, MAX_REDUCTION);
        Self {
            width,
            height,
            crop,
            max_side: need.max_side,
            factor,
        }
    }

    fn is_whole(&self) -> bool {
        self.crop.width == self.width && self.crop.height == self.height
    }
}

/// Refuses what takes too much memory: `held` bytes of a decoder, and the pixels it delivers.
fn fits(held: u64, plan: &Plan) -> Result<(), Refusal> {
    let width = plan.crop.width.div_ceil(plan.factor);
    let height = plan.crop.height.div_ceil(plan.factor);
    if held.saturating_add(header::pixels(width, height) * 3) <= MAX_DECODED_BYTES {
        return Ok(());
    }
    Err(Refusal {
        kind: RefusalKind::TooLarge,
        detail: format!(
            "the picture of {}×{} pixels needs more memory to decode than is allowed",
            plan.width, plan.height
        ),
    })
}

/// What came of a source that may have ended early.
fn settle(intake: Intake, problem: Option<String>) -> Result<Decoded, Refusal> {
    let due = intake.rows_due();
    let taken = intake.rows_taken();
    let raster = intake.finish();
    let damage = match problem {
        None if taken < due => Some("the file ends early".to_owned()),
        problem => problem,
    };
    let damage = match damage {
        Some(words) if taken < due => {
            if taken.saturating_mul(LEAST_USEFUL_PART) < due || is_one_colour(&raster) {
                return Err(damaged(format!(
                    "the picture is damaged ({words}) and too little of it can be decoded"
                )));
            }
            let percent = u64::from(taken) * 100 / u64::from(due.max(1));
            Some(format!(
                "{words}; the upper {percent} % is shown, the rest is left white"
            ))
        }
        damage => damage,
    };
    Ok(Decoded { raster, damage })
}

fn is_one_colour(raster: &Raster) -> bool {
    let channels = raster.layout.channels();
    let mut pixels = raster.pixels.chunks_exact(channels);
    pixels
        .next()
        .is_none_or(|first| pixels.all(|pixel| pixel == first))
}

/// Stops work nobody waits for; asked every so many rows.
fn check(watch: &Watch, row: u32) -> Result<(), Refusal> {
    if row.is_multiple_of(32) && watch.is_over() {
        return Err(Refusal {
            kind: RefusalKind::Abandoned,
            detail: "nobody waits for the picture any more".to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
