//! JPEG in safe Rust.

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};

use super::super::failed;
use crate::raster::{Layout, Raster};
use crate::refusal::Refusal;

/// Writes a picture as JPEG.
///
/// # Errors
/// When a side is over 65,535 pixels, which is a fault of ours.
pub(crate) fn jpeg(raster: &Raster, quality: u8) -> Result<Vec<u8>, Refusal> {
    let mut file = Vec::with_capacity(raster.pixels.len() / 8);
    let mut encoder = Encoder::new(&mut file, quality);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    let colours = match raster.layout {
        Layout::Grey => ColorType::Luma,
        Layout::Rgb => ColorType::Rgb,
    };
    let side = |side| u16::try_from(side).map_err(|error| failed("JPEG", &error));
    encoder
        .encode(
            &raster.pixels,
            side(raster.width)?,
            side(raster.height)?,
            colours,
        )
        .map_err(|error| failed("JPEG", &error))?;
    Ok(file)
}
