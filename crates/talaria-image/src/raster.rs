//! Decoded pixels.

/// How the bytes of a [`Raster`] are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One byte per pixel.
    Grey,
    /// Three bytes per pixel, sRGB.
    Rgb,
    /// Four bytes per pixel, sRGB, alpha not multiplied in.
    Rgba,
}

impl Layout {
    /// Bytes per pixel.
    pub(crate) const fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb => 3,
            Self::Rgba => 4,
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
