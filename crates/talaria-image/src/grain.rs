//! How a picture looks along its rows: what tells letters from photos, and large from small.

use crate::raster::{Layout, Raster};

/// One row in so many is looked at.
const EVERY: usize = 4;
/// A step of any channel from which neighbours belong to different things, as ink and paper do.
const STRONG: u8 = 32;

/// What neighbouring pixels have in common.
pub(crate) struct Grain {
    /// Strong steps among all steps: letters and lines have many, photos hardly any.
    pub(crate) sharpness: f64,
    /// Difference of pixels three apart over that of neighbours: 1 for the finest lines, 3 for
    /// soft ones.
    pub(crate) coarseness: f64,
}

impl Grain {
    pub(crate) fn of(raster: &Raster) -> Self {
        let row = usize::try_from(raster.width).unwrap_or(usize::MAX) * raster.layout.channels();
        let mut sums = Sums::default();
        for row in raster.pixels.chunks_exact(row.max(1)).step_by(EVERY) {
            match raster.layout {
                Layout::Grey => sums.add(row.as_chunks::<1>().0),
                Layout::Rgb => sums.add(row.as_chunks::<3>().0),
            }
        }
        sums.grain()
    }
}

#[derive(Default)]
struct Sums {
    steps: u64,
    strong: u64,
    near: u64,
    far: u64,
}

impl Sums {
    fn add<const N: usize>(&mut self, row: &[[u8; N]]) {
        for (left, right) in row.iter().zip(row.iter().skip(1)) {
            let step = step(left, right);
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
        Grain {
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
