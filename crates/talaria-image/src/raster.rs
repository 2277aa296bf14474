//! Decoded pixels, opaque.

use crate::scratch;

/// How the bytes of a [`Raster`] are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One byte per pixel.
    Grey,
    /// Three bytes per pixel, sRGB.
    Rgb,
}

impl Layout {
    /// Bytes per pixel.
    pub(crate) const fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb => 3,
        }
    }
}

/// Decoded pixels, row by row from the top, no padding between rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raster {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) layout: Layout,
    /// `width × height × channels` bytes.
    pub(crate) pixels: Vec<u8>,
}

impl Drop for Raster {
    fn drop(&mut self) {
        scratch::keep_bytes(std::mem::take(&mut self.pixels));
    }
}
