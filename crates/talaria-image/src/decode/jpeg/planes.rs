//! Planes of one row of blocks become rows of pixels.

mod mix;
mod scale;

use crate::header::{JpegFacts, Sampling};

use self::mix::Mix;
use self::scale::Scale;
use super::super::intake::Intake;

/// Rows and columns of a block.
const BLOCK: usize = 8;

/// How the components lie on each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Rows of blocks in a stripe, in the finest component.
    tall: usize,
    /// By what each component is coarser than the finest, across and down.
    ratios: Vec<(usize, usize)>,
}

impl Geometry {
    /// None where a component's samples do not lie on the grid of the finest.
    pub(super) fn new(components: &[Sampling]) -> Option<Self> {
        let wide = components.iter().map(|one| one.horizontal).max()?;
        let tall = components.iter().map(|one| one.vertical).max()?;
        let ratio = |most: u32, own: u32| {
            let ratio = most.checked_div(own)?;
            (ratio * own == most && ratio.is_power_of_two()).then_some(ratio as usize)
        };
        let ratios = components
            .iter()
            .map(|one| Some((ratio(wide, one.horizontal)?, ratio(tall, one.vertical)?)))
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            tall: tall as usize,
            ratios,
        })
    }

    /// Rows of blocks in a picture of that height.
    pub(super) fn stripes(&self, height: u32) -> usize {
        (height as usize).div_ceil(self.tall * BLOCK)
    }
}

/// The samples of one row of blocks.
#[derive(Debug)]
pub(super) struct Stripe {
    planes: Vec<Plane>,
}

/// The samples of one component.
#[derive(Debug)]
struct Plane {
    width: usize,
    rows: usize,
    samples: Vec<u8>,
}

impl Plane {
    fn row(&self, index: usize) -> &[u8] {
        let start = index * self.width;
        self.samples
            .get(start..start + self.width)
            .unwrap_or_default()
    }

    fn last_row(&self) -> &[u8] {
        self.row(self.rows.saturating_sub(1))
    }
}

impl Stripe {
    pub(super) fn new(widths: &[usize], components: &[Sampling]) -> Self {
        let planes = widths
            .iter()
            .zip(components)
            .map(|(width, one)| Plane {
                width: *width,
                rows: 0,
                samples: vec![0; width * one.vertical as usize * BLOCK],
            })
            .collect();
        Self { planes }
    }

    fn twin(&self) -> Self {
        let planes = self
            .planes
            .iter()
            .map(|plane| Plane {
                width: plane.width,
                rows: 0,
                samples: vec![0; plane.samples.len()],
            })
            .collect();
        Self { planes }
    }

    pub(super) fn planes(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.planes
            .iter_mut()
            .map(|plane| plane.samples.as_mut_slice())
    }

    pub(super) fn set_rows(&mut self, rows: &[usize]) {
        for (plane, rows) in self.planes.iter_mut().zip(rows) {
            plane.rows = *rows;
        }
    }
}

/// Weaves the planes of a picture into rows.
#[derive(Debug)]
pub(super) struct Weaver {
    scales: Vec<Scale>,
    mix: Mix,
    /// Rows of pixels in a full stripe.
    rows: usize,
    /// The stripe whose rows wait for the first row of the next.
    held: Option<Stripe>,
    /// The last row of each component of the stripe before.
    above: Vec<Vec<u8>>,
    lines: Vec<Vec<u8>>,
    line: Vec<u8>,
}

impl Weaver {
    pub(super) fn new(
        facts: &JpegFacts<'_>,
        geometry: &Geometry,
        reduction: u32,
        width: u32,
    ) -> Self {
        let reduction = reduction as usize;
        let width = width as usize;
        let mix = Mix::of(facts);
        Self {
            scales: geometry
                .ratios
                .iter()
                .map(|(across, down)| Scale::new(reduction, *across, *down))
                .collect(),
            mix,
            rows: geometry.tall * BLOCK / reduction,
            held: None,
            above: vec![Vec::new(); geometry.ratios.len()],
            lines: vec![vec![0; width]; geometry.ratios.len()],
            line: vec![0; width * mix.channels()],
        }
    }

    /// Takes a stripe and gives back an empty one.
    pub(super) fn take(&mut self, stripe: Stripe, intake: &mut Intake) -> Stripe {
        let Some(held) = self.held.take() else {
            let twin = stripe.twin();
            self.held = Some(stripe);
            return twin;
        };
        self.emit(&held, Some(&stripe), intake);
        self.held = Some(stripe);
        held
    }

    /// Writes the rows that waited.
    pub(super) fn finish(mut self, intake: &mut Intake) {
        if let Some(held) = self.held.take() {
            self.emit(&held, None, intake);
        }
    }

    fn emit(&mut self, stripe: &Stripe, next: Option<&Stripe>, intake: &mut Intake) {
        for row in 0..self.rows {
            if intake.is_full() {
                return;
            }
            let parts = self.scales.iter().zip(&stripe.planes).zip(&mut self.lines);
            for (index, ((scale, plane), line)) in parts.enumerate() {
                let above = self.above.get(index).map(Vec::as_slice);
                let below = next
                    .and_then(|next| next.planes.get(index))
                    .map(|plane| plane.row(0));
                scale.line(plane, row, above, below, line);
            }
            if let Some(open) = intake.open_row() {
                self.mix.row(&self.lines, open);
                intake.row_written();
            } else {
                self.mix.row(&self.lines, &mut self.line);
                intake.push(&self.line);
            }
        }
        for (above, plane) in self.above.iter_mut().zip(&stripe.planes) {
            above.clear();
            above.extend_from_slice(plane.last_row());
        }
    }
}
