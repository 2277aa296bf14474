//! Lossy WebP, for pictures that JPEG would spoil at the size they may have.

use ::webp::{Encoder, PixelLayout, WebPConfig};

use super::failed;
use crate::raster::{Layout, Raster};
use crate::refusal::Refusal;

/// Effort of the encoder, 0 to 6: beyond this each step costs more than it saves.
const METHOD: i32 = 2;

/// Writes a picture as lossy WebP.
///
/// # Errors
/// When the encoder has no memory, which is a fault of ours.
pub(crate) fn webp(raster: &Raster, quality: u8) -> Result<Vec<u8>, Refusal> {
    let mut config =
        WebPConfig::new().map_err(|()| failed("WebP", &"the encoder has another version"))?;
    config.quality = f32::from(quality);
    config.method = METHOD;
    let expanded: Vec<u8>;
    let pixels = match raster.layout {
        Layout::Grey => {
            expanded = raster.pixels.iter().flat_map(|&grey| [grey; 3]).collect();
            &expanded
        }
        Layout::Rgb => &raster.pixels,
    };
    let file = Encoder::new(pixels, PixelLayout::Rgb, raster.width, raster.height)
        .encode_advanced(&config)
        .map_err(|error| failed("WebP", &format_args!("{error:?}")))?;
    Ok(file.to_vec())
}
