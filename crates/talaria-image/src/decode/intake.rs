//! Rows of a source become rows of a raster: cut, converted, laid on white, averaged.

use super::Plan;
use crate::colour::{self, Conversion};
use crate::raster::{Layout, Raster};
use crate::scratch;

/// How a source lays out 8-bit samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Samples {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Ink amounts.
    Cmyk,
}

impl Samples {
    pub(super) const fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }

    /// The layout once it is opaque.
    pub(super) const fn layout(self) -> Layout {
        match self {
            Self::Grey | Self::GreyAlpha => Layout::Grey,
            Self::Rgb | Self::Rgba | Self::Cmyk => Layout::Rgb,
        }
    }
}

/// Takes rows from the top and makes the raster.
#[derive(Debug)]
pub(super) struct Intake {
    plan: Plan,
    opaque: Opaque,
    raster: Raster,
    /// Next row of the source.
    row: u32,
    /// Sums of the columns since the last row that was written.
    sums: Vec<u16>,
    summed: u32,
}

impl Intake {
    pub(super) fn new(plan: &Plan, samples: Samples, conversion: Option<Conversion>) -> Self {
        let layout = samples.layout();
        let width = plan.crop.width.div_ceil(plan.factor);
        let height = plan.crop.height.div_ceil(plan.factor);
        let size = width as usize * height as usize * layout.channels();
        let row = plan.crop.width as usize * layout.channels();
        Self {
            plan: *plan,
            opaque: Opaque::new(samples, conversion),
            raster: Raster {
                width,
                height,
                layout,
                pixels: scratch::bytes(size),
            },
            row: 0,
            sums: if plan.factor > 1 {
                vec![0; row]
            } else {
                Vec::new()
            },
            summed: 0,
        }
    }

    /// Whether no further row changes anything.
    pub(super) fn is_full(&self) -> bool {
        self.row >= self.plan.crop.y + self.plan.crop.height
    }

    /// Rows of the source that count.
    pub(super) fn rows_due(&self) -> u32 {
        self.plan.crop.height
    }

    /// Rows of these that came.
    pub(super) fn rows_taken(&self) -> u32 {
        self.row
            .saturating_sub(self.plan.crop.y)
            .min(self.plan.crop.height)
    }

    /// Where the next row may be written as it is; `row_written` follows.
    pub(super) fn open_row(&mut self) -> Option<&mut [u8]> {
        let is_direct = self.plan.is_whole()
            && self.plan.factor == 1
            && self.opaque.keeps_rows()
            && !self.is_full();
        if !is_direct {
            return None;
        }
        let start = self.row as usize * self.plan.width as usize * self.opaque.samples.channels();
        let end = start + self.plan.width as usize * self.opaque.samples.channels();
        self.raster.pixels.resize(end, 0);
        self.raster.pixels.get_mut(start..end)
    }

    /// The row of `open_row` is complete.
    pub(super) fn row_written(&mut self) {
        self.row += 1;
    }

    /// Takes the next row of the source.
    pub(super) fn push(&mut self, row: &[u8]) {
        let is_wanted = self.row >= self.plan.crop.y && !self.is_full();
        self.row += 1;
        if !is_wanted {
            return;
        }
        let channels = self.opaque.samples.channels();
        let start = self.plan.crop.x as usize * channels;
        let end = start + self.plan.crop.width as usize * channels;
        let Some(row) = row.get(start..end) else {
            return;
        };
        let row = self.opaque.make(row);
        if self.plan.factor == 1 {
            self.raster.pixels.extend_from_slice(row);
            return;
        }
        for (sum, sample) in self.sums.iter_mut().zip(row) {
            *sum += u16::from(*sample);
        }
        self.summed += 1;
        if self.summed == self.plan.factor || self.is_full() {
            self.write_averages();
        }
    }

    fn write_averages(&mut self) {
        let factor = self.plan.factor as usize;
        let pixels = &mut self.raster.pixels;
        match self.raster.layout {
            Layout::Grey => average::<1>(&self.sums, factor, self.summed, pixels),
            Layout::Rgb => average::<3>(&self.sums, factor, self.summed, pixels),
        }
        self.sums.fill(0);
        self.summed = 0;
    }

    /// The raster; rows that never came are white.
    pub(super) fn finish(mut self) -> Raster {
        if self.summed > 0 {
            self.write_averages();
        }
        let size = self.raster.width as usize
            * self.raster.height as usize
            * self.raster.layout.channels();
        self.raster.pixels.resize(size, u8::MAX);
        self.raster
    }
}

/// Appends one row of averages: `factor` columns of sums over `rows` rows each.
fn average<const N: usize>(sums: &[u16], factor: usize, rows: u32, out: &mut Vec<u8>) {
    let (sums, _) = sums.as_chunks::<N>();
    for block in sums.chunks(factor) {
        let mut total = [0_u32; N];
        for pixel in block {
            for (total, sum) in total.iter_mut().zip(pixel) {
                *total += u32::from(*sum);
            }
        }
        let count = u32::try_from(block.len()).unwrap_or(1) * rows;
        out.extend(
            total.map(|total| u8::try_from((total + count / 2) / count.max(1)).unwrap_or(u8::MAX)),
        );
    }
}

/// Makes rows opaque: in sRGB or grey, on white.
#[derive(Debug)]
pub(super) struct Opaque {
    samples: Samples,
    conversion: Option<Conversion>,
    row: Vec<u8>,
    colours: Vec<u8>,
}

impl Opaque {
    pub(super) fn new(samples: Samples, conversion: Option<Conversion>) -> Self {
        Self {
            samples,
            conversion,
            row: Vec::new(),
            colours: Vec::new(),
        }
    }

    /// Whether rows stay as they are.
    fn keeps_rows(&self) -> bool {
        self.conversion.is_none() && matches!(self.samples, Samples::Grey | Samples::Rgb)
    }

    /// The row made opaque.
    pub(super) fn make<'a>(&'a mut self, row: &'a [u8]) -> &'a [u8] {
        match self.samples {
            Samples::Grey | Samples::Rgb if self.conversion.is_none() => return row,
            Samples::Grey => {
                let table = table(self.conversion.as_ref());
                self.row.clear();
                self.row
                    .extend(row.iter().map(|level| look_up(table, *level)));
            }
            Samples::GreyAlpha => {
                let table = table(self.conversion.as_ref());
                let (pixels, _) = row.as_chunks::<2>();
                self.row.clear();
                self.row.extend(
                    pixels
                        .iter()
                        .map(|[level, alpha]| colour::over_white(look_up(table, *level), *alpha)),
                );
            }
            Samples::Rgb => {
                self.row.resize(row.len(), 0);
                if !convert(self.conversion.as_ref(), row, &mut self.row) {
                    return row;
                }
            }
            Samples::Rgba => self.lay_on_white(row),
            Samples::Cmyk => {
                self.row.resize(row.len() / 4 * 3, 0);
                if !convert(self.conversion.as_ref(), row, &mut self.row) {
                    colour::cmyk_row(row, &mut self.row);
                }
            }
        }
        &self.row
    }

    fn lay_on_white(&mut self, row: &[u8]) {
        let (pixels, _) = row.as_chunks::<4>();
        self.row.resize(pixels.len() * 3, 0);
        if self.conversion.is_some() {
            self.colours.clear();
            let plain = pixels
                .iter()
                .flat_map(|[red, green, blue, _]| [*red, *green, *blue]);
            self.colours.extend(plain);
            if convert(self.conversion.as_ref(), &self.colours, &mut self.row) {
                let (opaque, _) = self.row.as_chunks_mut::<3>();
                for (out, [_, _, _, alpha]) in opaque.iter_mut().zip(pixels) {
                    *out = out.map(|level| colour::over_white(level, *alpha));
                }
                return;
            }
        }
        let (opaque, _) = self.row.as_chunks_mut::<3>();
        for (out, [red, green, blue, alpha]) in opaque.iter_mut().zip(pixels) {
            *out = if *alpha == u8::MAX {
                [*red, *green, *blue]
            } else {
                [*red, *green, *blue].map(|level| colour::over_white(level, *alpha))
            };
        }
    }
}

fn table(conversion: Option<&Conversion>) -> Option<&[u8; 256]> {
    match conversion {
        Some(Conversion::Grey(table)) => Some(table),
        Some(Conversion::Colour(_)) | None => None,
    }
}

fn look_up(table: Option<&[u8; 256]>, level: u8) -> u8 {
    table
        .and_then(|table| table.get(usize::from(level)))
        .copied()
        .unwrap_or(level)
}

/// Whether `row` was converted into `out`.
fn convert(conversion: Option<&Conversion>, row: &[u8], out: &mut [u8]) -> bool {
    match conversion {
        Some(Conversion::Colour(way)) => way.transform(row, out).is_ok(),
        Some(Conversion::Grey(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Need, Rect};
    use super::*;

    fn plan(width: u32, height: u32, max_side: u32, region: Option<Rect>) -> Plan {
        Plan::of(width, height, &Need { max_side, region })
    }

    #[test]
    fn averages_blocks_and_keeps_the_edges() {
        let mut intake = Intake::new(&plan(5, 3, 1, None), Samples::Grey, None);
        for row in [
            [10, 20, 30, 40, 50],
            [30, 40, 50, 60, 70],
            [100, 102, 0, 0, 9],
        ] {
            intake.push(&row);
        }
        let raster = intake.finish();
        assert_eq!((raster.width, raster.height), (3, 2));
        assert_eq!(raster.pixels, [25, 45, 60, 101, 0, 9]);
    }

    #[test]
    fn cuts_the_region_out() {
        let region = Rect {
            x: 1,
            y: 1,
            width: 2,
            height: 1,
        };
        let mut intake = Intake::new(&plan(3, 3, 100, Some(region)), Samples::Grey, None);
        intake.push(&[1, 2, 3]);
        assert!(!intake.is_full());
        intake.push(&[4, 5, 6]);
        assert!(intake.is_full());
        assert_eq!(intake.finish().pixels, [5, 6]);
    }

    #[test]
    fn lays_transparent_pixels_on_white() {
        let mut intake = Intake::new(&plan(2, 1, 100, None), Samples::Rgba, None);
        intake.push(&[9, 8, 7, 0, 9, 8, 7, 255]);
        assert_eq!(intake.finish().pixels, [255, 255, 255, 9, 8, 7]);
    }

    #[test]
    fn leaves_missing_rows_white() {
        let mut intake = Intake::new(&plan(1, 3, 100, None), Samples::Grey, None);
        intake.open_row().unwrap()[0] = 7;
        intake.row_written();
        assert_eq!(intake.rows_taken(), 1);
        assert_eq!(intake.finish().pixels, [7, 255, 255]);
    }
}
