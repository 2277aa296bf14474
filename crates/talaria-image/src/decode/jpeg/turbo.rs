//! JPEG by libjpeg-turbo, which scales while it transforms.

use turbojpeg::{Decompressor, Image, PixelFormat, ScalingFactor};

use super::super::intake::Intake;
use super::super::{Decoded, Plan, fits, settle};
use super::{reduced_to, samples};
use crate::colour::Conversion;
use crate::header::JpegFacts;
use crate::limits::MAX_SCANS;
use crate::raster::Raster;
use crate::scratch;

/// Denominator of the factors the library scales by.
const PARTS: u32 = 8;

/// The whole picture; none where the other decoder has to look: CMYK, regions, damage.
pub(super) fn decode(
    bytes: &[u8],
    plan: &Plan,
    facts: &JpegFacts<'_>,
    conversion: Option<&Conversion>,
) -> Option<Decoded> {
    let format = match facts.components.len() {
        1 => PixelFormat::GRAY,
        3 => PixelFormat::RGB,
        _ => return None,
    };
    if !plan.is_whole()
        || !facts.has_end
        || facts.is_buffered() && fits(facts.coefficient_bytes(), plan).is_err()
    {
        return None;
    }
    let mut decompressor = Decompressor::new().ok()?;
    decompressor
        .set_scan_limit(u32::try_from(MAX_SCANS).unwrap_or(u32::MAX))
        .ok()?;
    let header = decompressor.read_header(bytes).ok()?;
    (header.width == plan.width as usize && header.height == plan.height as usize).then_some(())?;
    let parts = parts(plan);
    let factor = ScalingFactor::new(parts as usize, PARTS as usize);
    decompressor.set_scaling_factor(factor).ok()?;
    let header = header.scaled(factor);
    let row = header.width * format.size();
    let mut pixels = scratch::used(row * header.height);
    let image = Image {
        pixels: pixels.as_mut_slice(),
        width: header.width,
        pitch: row,
        height: header.height,
        format,
    };
    decompressor.decompress(bytes, image).ok()?;
    let width = u32::try_from(header.width).ok()?;
    let height = u32::try_from(header.height).ok()?;
    if conversion.is_none() {
        return Some(Decoded {
            raster: Raster {
                width,
                height,
                layout: samples(facts).layout(),
                pixels,
            },
            damage: None,
        });
    }
    let mut intake = Intake::new(
        &reduced_to(plan, width, height),
        samples(facts),
        conversion.cloned(),
    );
    for row in pixels.chunks_exact(row) {
        intake.push(row);
    }
    settle(intake, None).ok()
}

/// The smallest number of eighths that is not smaller than the fit.
fn parts(plan: &Plan) -> u32 {
    let long = u64::from(plan.width.max(plan.height));
    (1..PARTS)
        .find(|parts| long * u64::from(*parts) / u64::from(PARTS) >= u64::from(plan.max_side))
        .unwrap_or(PARTS)
}
