//! How a picture looks along its rows: what tells letters from photos, and large from small.

use crate::raster::{Layout, Raster};

/// About so many rows are looked at, spread over the picture.
const ROWS: usize = 160;
/// Of a low picture, one row in so many.
const EVERY: usize = 4;
/// Steps from band to band, so that lines of text at even distances do not meet the rows that
/// are looked at at the same height.
const STRIDE: usize = 3;
/// A step of any channel from which neighbours belong to different things, as ink and paper do.
const STRONG: u8 = 32;

/// Share of equal neighbours below which a picture is no drawing but noise, such as dithering.
///
/// Screens lie above 0.35, dithered pictures near 0.
const FLAT: f64 = 0.25;
/// Share of strong steps from which a picture counts as drawn: letters, lines, edges of windows.
///
/// Photos lie below 0.02, screens with photos above 0.1.
const DRAWN: f64 = 0.06;
/// Share of strong steps from which a picture counts as text-like.
///
/// Pages of text lie above 0.3.
const TEXT_LIKE: f64 = 0.2;

/// What neighbouring pixels have in common.
pub(crate) struct Grain {
    /// Equal neighbours among all.
    flatness: f64,
    /// Strong steps among all steps: letters and lines have many, photos hardly any.
    sharpness: f64,
    /// Difference of pixels three apart over that of neighbours: 1 for the finest lines, 3 for
    /// soft ones.
    pub(crate) coarseness: f64,
}

impl Grain {
    pub(crate) fn of(raster: &Raster) -> Self {
        let row = usize::try_from(raster.width).unwrap_or(usize::MAX) * raster.layout.channels();
        let mut sums = Sums::default();
        let rows = raster.pixels.len() / row.max(1);
        let every = (rows / ROWS).max(EVERY);
        for (number, band) in raster.pixels.chunks(row.max(1) * every).enumerate() {
            let Some(row) = band.chunks_exact(row.max(1)).nth(number * STRIDE % every) else {
                continue;
            };
            match raster.layout {
                Layout::Grey => sums.add(row.as_chunks::<1>().0),
                Layout::Rgb => sums.add(row.as_chunks::<3>().0),
            }
        }
        sums.grain()
    }

    /// Whether letters or lines were drawn on it.
    pub(crate) fn is_drawn(&self) -> bool {
        self.flatness >= FLAT && self.sharpness >= DRAWN
    }

    /// Whether it is mostly letters, lines and flat areas.
    pub(crate) fn is_text_like(&self) -> bool {
        self.flatness >= FLAT && self.sharpness >= TEXT_LIKE
    }
}

#[derive(Default)]
struct Sums {
    pairs: u64,
    steps: u64,
    strong: u64,
    near: u64,
    far: u64,
}

impl Sums {
    fn add<const N: usize>(&mut self, row: &[[u8; N]]) {
        for (left, right) in row.iter().zip(row.iter().skip(1)) {
            let step = step(left, right);
            self.pairs += 1;
            self.steps += u64::from(step > 0);
            self.strong += u64::from(step >= STRONG);
            self.near += u64::from(step);
        }
        for (left, right) in row.iter().zip(row.iter().skip(3)) {
            self.far += u64::from(step(left, right));
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "shares need few digits")]
    fn grain(&self) -> Grain {
        let equal = self.pairs - self.steps;
        Grain {
            flatness: equal as f64 / self.pairs.max(1) as f64,
            sharpness: self.strong as f64 / self.steps.max(1) as f64,
            coarseness: self.far as f64 / self.near.max(1) as f64,
        }
    }
}

/// The largest difference of any channel.
fn step<const N: usize>(left: &[u8; N], right: &[u8; N]) -> u8 {
    let steps = left
        .iter()
        .zip(right)
        .map(|(left, right)| left.abs_diff(*right));
    steps.fold(0, u8::max)
}
