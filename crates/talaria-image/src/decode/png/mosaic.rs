//! Interlaced rows, put where they belong.

use super::super::intake::{Opaque, Samples};
use super::super::{Decoded, Plan};
use crate::colour::Conversion;
use crate::header::damaged;
use crate::raster::{Layout, Raster};
use crate::refusal::Refusal;

/// One of the seven passes: its first pixel and the distance to the next, across and down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    x: u32,
    y: u32,
    across: u32,
    down: u32,
    /// Distance of the pixels of this pass and all before it.
    grid: (usize, usize),
}

impl Pass {
    /// Pixels of a row of the pass.
    pub(super) const fn columns(&self, width: u32) -> u32 {
        width.saturating_sub(self.x).div_ceil(self.across)
    }

    /// Rows of the pass.
    pub(super) const fn rows(&self, height: u32) -> u32 {
        height.saturating_sub(self.y).div_ceil(self.down)
    }
}

const fn pass(x: u32, y: u32, across: u32, down: u32, grid: (usize, usize)) -> Pass {
    Pass {
        x,
        y,
        across,
        down,
        grid,
    }
}

pub(super) const PASSES: [Pass; 7] = [
    pass(0, 0, 8, 8, (8, 8)),
    pass(4, 0, 8, 8, (4, 8)),
    pass(0, 4, 4, 8, (4, 4)),
    pass(2, 0, 4, 4, (2, 4)),
    pass(0, 2, 2, 4, (2, 2)),
    pass(1, 0, 2, 2, (1, 2)),
    pass(0, 1, 1, 2, (1, 1)),
];

/// The pixels so far: as they are, or as sums of the blocks that are averaged, so that a large
/// picture costs no more than its reduced size.
#[derive(Debug)]
enum Store {
    Pixels(Vec<u8>),
    Sums(Vec<u16>),
}

/// A picture whose rows come in seven passes.
#[derive(Debug)]
pub(super) struct Mosaic {
    plan: Plan,
    opaque: Opaque,
    layout: Layout,
    width: u32,
    height: u32,
    store: Store,
    /// The last pass that is complete.
    complete: Option<Pass>,
}

impl Mosaic {
    pub(super) fn new(plan: &Plan, samples: Samples, conversion: Option<Conversion>) -> Self {
        let layout = samples.layout();
        let width = plan.crop.width.div_ceil(plan.factor);
        let height = plan.crop.height.div_ceil(plan.factor);
        let size = width as usize * height as usize * layout.channels();
        Self {
            plan: *plan,
            opaque: Opaque::new(samples, conversion),
            layout,
            width,
            height,
            store: if plan.factor == 1 {
                Store::Pixels(vec![u8::MAX; size])
            } else {
                Store::Sums(vec![0; size])
            },
            complete: None,
        }
    }

    /// Adds row `line` of a pass.
    pub(super) fn put(&mut self, pass: &Pass, line: u32, row: &[u8]) {
        let y = pass.y + line * pass.down;
        let crop = self.plan.crop;
        if y < crop.y || y >= crop.y + crop.height {
            return;
        }
        let channels = self.layout.channels();
        let start = ((y - crop.y) / self.plan.factor) as usize * self.width as usize;
        let factor = self.plan.factor;
        let places = (0..)
            .map(|column| pass.x + column * pass.across)
            .map(|x| (x >= crop.x && x < crop.x + crop.width).then(|| (x - crop.x) / factor))
            .map(|column| column.map(|column| (start + column as usize) * channels));
        let row = self.opaque.make(row);
        for (pixel, place) in row.chunks_exact(channels).zip(places) {
            let Some(place) = place else { continue };
            match &mut self.store {
                Store::Pixels(pixels) => {
                    if let Some(kept) = pixels.get_mut(place..place + channels) {
                        kept.copy_from_slice(pixel);
                    }
                }
                Store::Sums(sums) => {
                    let kept = sums.get_mut(place..place + channels).unwrap_or_default();
                    for (sum, sample) in kept.iter_mut().zip(pixel) {
                        *sum += u16::from(*sample);
                    }
                }
            }
        }
    }

    /// All rows of `pass` are there.
    pub(super) fn complete(&mut self, pass: &Pass) {
        self.complete = Some(*pass);
    }

    /// Whether all passes are there.
    pub(super) fn is_complete(&self) -> bool {
        self.complete.is_some_and(|pass| pass.grid == (1, 1))
    }

    /// The picture; missing pixels repeat their neighbours of the passes that are complete.
    pub(super) fn finish(self, problem: Option<String>) -> Result<Decoded, Refusal> {
        let is_complete = self.is_complete();
        let plan = self.plan;
        let grid = self.complete.map_or((usize::MAX, 1), |pass| pass.grid);
        let pixels = match self.store {
            Store::Pixels(mut pixels) if !is_complete && grid.0 <= 2 && grid.1 <= 4 => {
                repeat(&mut pixels, &plan, self.layout.channels(), grid);
                Some(pixels)
            }
            Store::Pixels(pixels) if is_complete => Some(pixels),
            Store::Sums(sums) if is_complete => Some(average(&sums, &plan, self.layout.channels())),
            Store::Pixels(_) | Store::Sums(_) => None,
        };
        let pixels = pixels.ok_or_else(|| {
            let words = problem.as_deref().unwrap_or("the file ends early");
            damaged(format!(
                "the interlaced PNG is damaged ({words}) and too little of it can be decoded"
            ))
        })?;
        let damage = problem.map(|words| {
            if is_complete {
                words
            } else {
                format!("{words}; the picture is shown coarsely")
            }
        });
        Ok(Decoded {
            raster: Raster {
                width: self.width,
                height: self.height,
                layout: self.layout,
                pixels,
            },
            damage,
        })
    }
}

/// Fills every pixel between those of the grid from the one above and to the left.
fn repeat(pixels: &mut [u8], plan: &Plan, channels: usize, (across, down): (usize, usize)) {
    let crop = plan.crop;
    let width = crop.width as usize;
    for y in 0..crop.height as usize {
        for x in 0..width {
            // The grid belongs to the whole picture, of which this is a part.
            let left = (x + crop.x as usize) % across;
            let above = (y + crop.y as usize) % down;
            let place = (y * width + x) * channels;
            let from = (y.saturating_sub(above) * width + x.saturating_sub(left)) * channels;
            if from != place && from + channels <= pixels.len() {
                pixels.copy_within(from..from + channels, place);
            }
        }
    }
}

fn average(sums: &[u16], plan: &Plan, channels: usize) -> Vec<u8> {
    let columns = plan.crop.width.div_ceil(plan.factor);
    let extent = |index: u32, whole: u32| (whole - index * plan.factor).min(plan.factor);
    sums.chunks(columns as usize * channels)
        .zip(0..)
        .flat_map(|(row, y)| {
            let rows = extent(y, plan.crop.height);
            row.chunks(channels).zip(0..).flat_map(move |(block, x)| {
                let count = rows * extent(x, plan.crop.width);
                block.iter().map(move |sum| {
                    u8::try_from((u32::from(*sum) + count / 2) / count.max(1)).unwrap_or(u8::MAX)
                })
            })
        })
        .collect()
}
