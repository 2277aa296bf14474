//! JPEG by libjpeg-turbo, in builds that have it anyway; it sees pixels of ours only.

use turbojpeg::{Compressor, Image, PixelFormat, Subsamp};

use super::super::failed;
use crate::raster::{Layout, Raster};
use crate::refusal::Refusal;

/// Writes a picture as JPEG.
///
/// # Errors
/// When the library has no memory or a side is over 65,535 pixels, which is a fault of ours.
pub(crate) fn jpeg(raster: &Raster, quality: u8) -> Result<Vec<u8>, Refusal> {
    let (format, subsampling) = match raster.layout {
        Layout::Grey => (PixelFormat::GRAY, Subsamp::Gray),
        Layout::Rgb => (PixelFormat::RGB, Subsamp::Sub2x2),
    };
    let side = |side| usize::try_from(side).map_err(|error| failed("JPEG", &error));
    let width = side(raster.width)?;
    let image = Image {
        pixels: raster.pixels.as_slice(),
        width,
        pitch: width.saturating_mul(raster.layout.channels()),
        height: side(raster.height)?,
        format,
    };
    let write = || {
        let mut compressor = Compressor::new()?;
        compressor.set_quality(i32::from(quality))?;
        compressor.set_subsamp(subsampling)?;
        compressor.compress_to_vec(image)
    };
    write().map_err(|error| failed("JPEG", &error))
}
