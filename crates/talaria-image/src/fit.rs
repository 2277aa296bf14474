//! One exact step down to the side that is allowed; never up.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions};

use crate::raster::{Layout, Raster};
use crate::refusal::{Refusal, RefusalKind};
use crate::scratch;

/// Bytes of a band between the two passes of a fit.
const BAND_BYTES: f64 = 2_097_152.0;
/// Rows of a band at least: every band computes the few rows above and below it again.
const LEAST_BAND: usize = 64;

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
    let mut pixels = scratch::used(bytes(size.0) * bytes(size.1) * raster.layout.channels());
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

/// Fits a picture band by band: what lies between its two passes is then small enough for the
/// processor's caches.
fn resize<P: PixelTrait>(
    raster: &Raster,
    crop: Option<Crop>,
    size: (u32, u32),
    pixels: &mut [u8],
) -> Result<(), Refusal> {
    let source = TypedImageRef::<P>::from_buffer(raster.width, raster.height, &raster.pixels)
        .map_err(|error| broken(&error))?;
    let crop = crop.unwrap_or_else(|| Crop {
        left: 0.0,
        top: 0.0,
        width: f64::from(raster.width),
        height: f64::from(raster.height),
    });
    let row = bytes(size.0) * P::size();
    let down = crop.height / f64::from(size.1.max(1));
    let mut top = 0;
    for band in pixels.chunks_mut(row.max(1) * band_rows(row, down)) {
        let height = u32::try_from(band.len() / row.max(1)).unwrap_or(u32::MAX);
        let mut output =
            TypedImage::<P>::from_buffer(size.0, height, band).map_err(|error| broken(&error))?;
        let (from, tall) = part(crop, raster.height, (top, height), down);
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3))
            .crop(crop.left, from, crop.width, tall);
        scratch::with_resizer(|resizer| resizer.resize_typed(&source, &mut output, &options))
            .map_err(|error| broken(&error))?;
        top += height;
    }
    Ok(())
}

/// Where the rows of a band lie in the source, and how many they are; never below its end, where
/// sums of fractions may come to lie.
fn part(crop: Crop, source: u32, (top, height): (u32, u32), down: f64) -> (f64, f64) {
    let end = f64::from(source);
    let from = (crop.top + f64::from(top) * down).min(end);
    let mut tall = (f64::from(height) * down).min(end - from);
    while from + tall > end {
        tall = tall.next_down();
    }
    (from, tall)
}

/// Rows of a band, by the bytes of a row that is fitted sideways already and the rows that become
/// one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a number of rows between a few and those of a picture"
)]
fn band_rows(row: usize, down: f64) -> usize {
    let between = row as f64 * down.max(1.0);
    ((BAND_BYTES / between.max(1.0)) as usize).max(LEAST_BAND)
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
    let mut pixels = scratch::bytes(wide * bytes(height));
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

    use super::{
        Crop, FilterType, ResizeAlg, ResizeOptions, TypedImage, TypedImageRef, U8, band_rows,
        fitted, padded, resized,
    };
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

    #[test]
    fn bands_leave_no_seams() {
        let mut picture = raster(2_400, 2_400, Layout::Grey, 0);
        for (place, pixel) in picture.pixels.iter_mut().enumerate() {
            *pixel = u8::try_from(place * 7 / 13 % 251).unwrap();
        }
        let (width, height) = (1_568_u32, 1_568_u32);
        assert!(band_rows(1_568, 2_400.0 / 1_568.0) < 1_568);
        let banded = resized(&picture, None, (width, height)).unwrap();
        let mut whole = TypedImage::<U8>::new(width, height);
        let source = TypedImageRef::<U8>::from_buffer(2_400, 2_400, &picture.pixels).unwrap();
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3));
        fast_image_resize::Resizer::new()
            .resize_typed(&source, &mut whole, &options)
            .unwrap();
        let whole = whole.pixels().iter().map(|pixel| pixel.0);
        let furthest = banded
            .pixels
            .iter()
            .zip(whole)
            .map(|(a, b)| a.abs_diff(b))
            .max();
        assert!(furthest <= Some(1), "{furthest:?}");
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
