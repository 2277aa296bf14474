//! One exact step down to the side that is allowed; never up.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

use crate::raster::{Layout, Raster};
use crate::refusal::{Refusal, RefusalKind};

/// A rectangle of a raster, in its own pixels.
///
/// Fractions occur where the decoder already reduced the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Crop {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The size of a picture whose long side may be `max_side`: `round(w · max_side / long)`, at
/// least 1, and the size it has where that already fits.
pub(crate) fn fitted(width: u32, height: u32, max_side: u32) -> (u32, u32) {
    let long = width.max(height);
    if long <= max_side {
        return (width, height);
    }
    let side = |side: u32| {
        let scaled =
            (u64::from(side) * u64::from(max_side) + u64::from(long) / 2) / u64::from(long.max(1));
        u32::try_from(scaled).unwrap_or(max_side).max(1)
    };
    (side(width), side(height))
}

/// Both sides times `factor`, each at least 1.
pub(crate) fn scaled(size: (u32, u32), factor: f64) -> (u32, u32) {
    (scaled_side(size.0, factor), scaled_side(size.1, factor))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive side times a factor of at most one"
)]
fn scaled_side(side: u32, factor: f64) -> u32 {
    ((f64::from(side) * factor).round() as u32).max(1)
}

/// Cuts `crop` out of a picture and brings it to `size` with a Lanczos filter.
///
/// # Errors
/// `Failed` when the raster does not hold what its size says, which is a fault of ours.
pub(crate) fn resized(
    raster: &Raster,
    crop: Option<Crop>,
    size: (u32, u32),
) -> Result<Raster, Refusal> {
    let mut pixels = vec![0; bytes(size.0) * bytes(size.1) * raster.layout.channels()];
    // By pixel type: left to choose at run time, the crate would build every other one too.
    match raster.layout {
        Layout::Grey => resize::<U8>(raster, crop, size, &mut pixels),
        Layout::Rgb => resize::<U8x3>(raster, crop, size, &mut pixels),
    }?;
    Ok(Raster {
        width: size.0,
        height: size.1,
        layout: raster.layout,
        pixels,
    })
}

fn resize<P: PixelTrait>(
    raster: &Raster,
    crop: Option<Crop>,
    size: (u32, u32),
    pixels: &mut [u8],
) -> Result<(), Refusal> {
    let source = TypedImageRef::<P>::from_buffer(raster.width, raster.height, &raster.pixels)
        .map_err(|error| broken(&error))?;
    let mut output =
        TypedImage::<P>::from_buffer(size.0, size.1, pixels).map_err(|error| broken(&error))?;
    let mut options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3));
    if let Some(crop) = crop {
        options = options.crop(crop.left, crop.top, crop.width, crop.height);
    }
    Resizer::new()
        .resize_typed(&source, &mut output, &options)
        .map_err(|error| broken(&error))
}

/// Adds white to the right and below until no side is shorter than `least`.
pub(crate) fn padded(raster: Raster, least: u32) -> Raster {
    let (width, height) = (raster.width.max(least), raster.height.max(least));
    if (width, height) == (raster.width, raster.height) {
        return raster;
    }
    let channels = raster.layout.channels();
    let row = bytes(raster.width) * channels;
    let wide = bytes(width) * channels;
    let mut pixels = Vec::with_capacity(wide * bytes(height));
    for line in raster.pixels.chunks_exact(row.max(1)) {
        pixels.extend_from_slice(line);
        pixels.resize(pixels.len() + wide - row, u8::MAX);
    }
    pixels.resize(wide * bytes(height), u8::MAX);
    Raster {
        width,
        height,
        pixels,
        ..raster
    }
}

fn bytes(side: u32) -> usize {
    usize::try_from(side).unwrap_or(usize::MAX)
}

fn broken(error: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        kind: RefusalKind::Failed,
        detail: format!("the picture could not be scaled: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Crop, fitted, padded, resized};
    use crate::raster::{Layout, Raster};

    fn raster(width: u32, height: u32, layout: Layout, value: u8) -> Raster {
        let length = width as usize * height as usize * layout.channels();
        Raster {
            width,
            height,
            layout,
            pixels: vec![value; length],
        }
    }

    #[test]
    fn e12_sizes_are_exact_fits() {
        let table = [
            ((1568, 1568), (1568, 1568)),
            ((1500, 30), (1500, 30)),
            ((1570, 1570), (1568, 1568)),
            ((1600, 900), (1568, 882)),
            ((1920, 1080), (1568, 882)),
            ((2560, 1440), (1568, 882)),
            ((3000, 2000), (1568, 1045)),
            ((3840, 2160), (1568, 882)),
            ((4000, 3000), (1568, 1176)),
            ((9999, 9999), (1568, 1568)),
            ((25_000, 4_000), (1568, 251)),
            ((2_000, 127), (1568, 100)),
            ((3_000, 100), (1568, 52)),
            ((2_000, 30), (1568, 24)),
            ((1_569, 10), (1568, 10)),
            ((100, 20_000), (8, 1568)),
            ((60_000, 64), (1568, 2)),
            ((1_000_000, 1), (1568, 1)),
        ];
        for ((width, height), size) in table {
            assert_eq!(fitted(width, height, 1_568), size, "{width}×{height}");
        }
    }

    #[test]
    fn a_flat_picture_stays_flat_in_every_layout() {
        for layout in [Layout::Grey, Layout::Rgb] {
            let small = resized(&raster(100, 60, layout, 255), None, (50, 30)).unwrap();
            assert_eq!(small, raster(50, 30, layout, 255));
        }
    }

    #[test]
    fn a_crop_shows_only_its_part() {
        let mut picture = raster(40, 10, Layout::Grey, 0);
        for row in picture.pixels.chunks_exact_mut(40) {
            row[20..].fill(200);
        }
        let crop = Crop {
            left: 20.0,
            top: 0.0,
            width: 20.0,
            height: 10.0,
        };
        let part = resized(&picture, Some(crop), (20, 10)).unwrap();
        assert_eq!(part, raster(20, 10, Layout::Grey, 200));
    }

    #[test]
    fn padding_is_white_right_and_below() {
        let picture = padded(raster(2, 1, Layout::Rgb, 7), 3);
        let mut pixels = vec![7; 6];
        pixels.extend([255; 21]);
        assert_eq!((picture.width, picture.height), (3, 3));
        assert_eq!(picture.pixels, pixels);
    }

    proptest! {
        #[test]
        fn a_fit_never_enlarges_and_keeps_the_form(
            width in 1_u32..70_000, height in 1_u32..70_000, max_side in 32_u32..4_000,
        ) {
            let (w, h) = fitted(width, height, max_side);
            prop_assert!(w >= 1 && h >= 1 && w <= width && h <= height);
            prop_assert_eq!(w.max(h), width.max(height).min(max_side));
            let factor = f64::from(width.max(height)) / f64::from(w.max(h));
            prop_assert!((f64::from(w) * factor - f64::from(width)).abs() <= factor);
            prop_assert!((f64::from(h) * factor - f64::from(height)).abs() <= factor);
        }
    }
}
