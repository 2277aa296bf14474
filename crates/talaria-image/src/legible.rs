//! Whether text survives the fit, judged by how fine the strokes of the picture are.

use crate::grain::Grain;
use crate::raster::Raster;

/// Coarseness of text at scale 1, measured on pages and screens: 1.17 to 1.53.
const COARSENESS_AT_SCALE_1: f64 = 1.4;
/// How often text at scale 1 may be divided and still be read.
///
/// Text of 14 pixels keeps nine words in ten at 1.63 and two in ten at 2.45.
const READABLE: f64 = 1.8;

/// Whether a side shrinks so much that fine text would be lost, were there any.
pub(crate) fn may_lose_text(long: u32, max_side: u32) -> bool {
    f64::from(long) > READABLE * f64::from(max_side)
}

/// Whether text is lost when so many pixels of the raster become one.
pub(crate) fn loses_text(raster: &Raster, factor: f64) -> bool {
    if factor <= READABLE {
        return false;
    }
    let grain = Grain::of(raster);
    let scale = 1.0 + (grain.coarseness - COARSENESS_AT_SCALE_1).max(0.0);
    grain.is_drawn() && factor > READABLE * scale
}

#[cfg(test)]
mod tests {
    use super::loses_text;
    use crate::raster::{Layout, Raster};

    /// Short strokes, `scale` pixels wide, on white, as letters leave them.
    fn page(scale: usize) -> Raster {
        let (width, height) = (1_200, 400);
        let mut pixels = vec![255; width * height];
        for (y, row) in pixels.chunks_exact_mut(width).enumerate() {
            if y / scale % 20 < 8 {
                continue;
            }
            for (x, pixel) in row.iter_mut().enumerate() {
                let column = x / scale;
                if column.is_multiple_of(4) && column % 28 < 20 {
                    *pixel = 0;
                }
            }
        }
        Raster {
            width: 1_200,
            height: 400,
            layout: Layout::Grey,
            pixels,
        }
    }

    #[test]
    fn fine_text_is_lost_earlier_than_coarse_text() {
        assert!(!loses_text(&page(1), 1.63));
        assert!(loses_text(&page(1), 2.45));
        assert!(!loses_text(&page(2), 2.45));
        assert!(loses_text(&page(2), 7.0));
    }

    #[test]
    fn photos_have_no_text_to_lose() {
        let mut photo = page(1);
        let mut state = 1_u32;
        for (place, pixel) in photo.pixels.iter_mut().enumerate() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slope = u8::try_from(place % 1_200 / 6).unwrap();
            *pixel = slope + state.to_be_bytes()[0] % 8;
        }
        assert!(!loses_text(&photo, 7.0));
    }
}
