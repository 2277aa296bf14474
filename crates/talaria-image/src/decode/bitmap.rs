//! Windows bitmaps and icons.

use std::io::Cursor;

use image::codecs::bmp::BmpDecoder;
use image::codecs::ico::IcoDecoder;
use image::{ColorType, ImageDecoder};

use super::intake::{Intake, Samples};
use super::{Decoded, Plan, check, fits, png, settle};
use crate::header::{IconEntry, damaged};
use crate::refusal::Refusal;
use crate::watch::Watch;

pub(super) fn decode(bytes: &[u8], plan: &Plan, watch: &Watch) -> Result<Decoded, Refusal> {
    check(watch, 0)?;
    let decoder = BmpDecoder::new(Cursor::new(bytes)).map_err(|_error| broken())?;
    read(decoder, plan)
}

pub(super) fn decode_icon(bytes: &[u8], plan: &Plan, watch: &Watch) -> Result<Decoded, Refusal> {
    check(watch, 0)?;
    let entry = IconEntry::largest(bytes).ok_or_else(broken)?;
    if entry.is_png() {
        return png::decode(entry.data, plan, watch);
    }
    // An icon of this one picture; the decoder would choose by depth, not by size.
    let [width, height] = entry.sides;
    let length = u32::try_from(entry.data.len()).map_err(|_error| broken())?;
    let mut icon = vec![0, 0, 1, 0, 1, 0, width, height, 0, 0, 1, 0, 32, 0];
    icon.extend_from_slice(&length.to_le_bytes());
    icon.extend_from_slice(&22_u32.to_le_bytes());
    icon.extend_from_slice(entry.data);
    let decoder = IcoDecoder::new(Cursor::new(icon.as_slice())).map_err(|_error| broken())?;
    read(decoder, plan)
}

fn broken() -> Refusal {
    damaged("the bitmap does not decode: its data is cut short or broken")
}

fn read(decoder: impl ImageDecoder, plan: &Plan) -> Result<Decoded, Refusal> {
    if decoder.dimensions() != (plan.width, plan.height) {
        return Err(damaged("the bitmap's headers do not agree on its size"));
    }
    // Bitmaps and icons decode to nothing else.
    let samples = [
        (ColorType::L8, Samples::Grey),
        (ColorType::Rgb8, Samples::Rgb),
        (ColorType::Rgba8, Samples::Rgba),
    ]
    .into_iter()
    .find_map(|(colour, samples)| (colour == decoder.color_type()).then_some(samples))
    .ok_or_else(broken)?;
    let row = plan.width as usize * samples.channels();
    fits(u64::from(plan.height).saturating_mul(row as u64), plan)?;
    let mut pixels = vec![0; row * plan.height as usize];
    decoder.read_image(&mut pixels).map_err(|_error| broken())?;
    let mut intake = Intake::new(plan, samples, None);
    for row in pixels.chunks_exact(row) {
        intake.push(row);
    }
    settle(intake, None)
}
