//! Fewer colours: a histogram of 15-bit colours, split where the variance is largest.

mod exact;

pub(crate) use exact::Exact;

use crate::raster::{Layout, Raster};
use crate::scratch;

/// Distinct keys: five bits for each of red, green and blue.
const KEYS: usize = 1 << 15;
/// Rows of a band of [`Histogram::sample`], enough for a line of text.
const SAMPLE_ROWS: usize = 24;
/// One band in so many is sampled.
const SAMPLE_EVERY: usize = 4;
/// Times the colours of a small palette are moved to the middle of what they stand for.
const ROUNDS: u32 = 4;

/// The colours of a picture, counted.
pub(crate) struct Histogram {
    bins: Vec<Bin>,
    /// One key per pixel.
    keys: Vec<u16>,
    width: usize,
}

/// Colours of a picture that share a key.
#[derive(Clone, Copy)]
struct Bin {
    key: u16,
    count: f32,
    mean: [f32; 3],
}

/// A picture as one palette key per pixel.
#[derive(Clone, Copy)]
pub(crate) struct Indices<'a> {
    keys: &'a [u16],
    width: usize,
}

impl<'a> Indices<'a> {
    pub(crate) const fn new(keys: &'a [u16], width: usize) -> Self {
        Self { keys, width }
    }

    /// Pixels per row.
    pub(crate) const fn width(self) -> usize {
        self.width
    }

    /// Rows.
    pub(crate) fn height(self) -> usize {
        self.keys.len() / self.width.max(1)
    }

    /// Rows of keys from the top.
    pub(crate) fn rows(self) -> impl Iterator<Item = &'a [u16]> {
        self.keys.chunks_exact(self.width.max(1))
    }
}

/// Colours and, for every key, which of them is closest.
pub(crate) struct Palette {
    pub(crate) colours: Vec<[u8; 3]>,
    index: Box<[u8; KEYS]>,
    /// Mean squared distance of a pixel to its colour.
    pub(crate) error: f32,
}

impl Palette {
    /// The colour that stands for a key.
    pub(crate) fn index(&self, key: u16) -> u8 {
        self.index
            .get(usize::from(key))
            .copied()
            .unwrap_or_default()
    }
}

/// The 15-bit key of a colour.
fn key(colour: [u8; 3]) -> u16 {
    let [red, green, blue] = colour.map(|channel| u16::from(channel >> 3));
    red << 10 | green << 5 | blue
}

impl Drop for Histogram {
    fn drop(&mut self) {
        scratch::keep_keys(std::mem::take(&mut self.keys));
    }
}

impl Histogram {
    /// Counts the colours of an opaque picture.
    pub(crate) fn of(raster: &Raster) -> Self {
        let mut counter = Counter::new(raster.pixels.len() / raster.layout.channels());
        match raster.layout {
            Layout::Grey => counter.count(raster.pixels.iter().map(|&grey| [grey; 3])),
            Layout::Rgb => counter.count(raster.pixels.as_chunks::<3>().0.iter().copied()),
        }
        counter.finish(usize::try_from(raster.width).unwrap_or(usize::MAX))
    }

    /// The picture, a key per pixel.
    pub(crate) fn indices(&self) -> Indices<'_> {
        Indices::new(&self.keys, self.width)
    }

    /// Bands of rows, about a quarter of the picture, one below the other.
    pub(crate) fn sample(&self) -> Vec<u16> {
        let band = self.width.saturating_mul(SAMPLE_ROWS).max(1);
        let bands = self.keys.chunks_exact(band).skip(1).step_by(SAMPLE_EVERY);
        let sample: Vec<u16> = bands.flatten().copied().collect();
        if sample.len() < band.saturating_mul(2) {
            return self.keys.clone();
        }
        sample
    }

    /// Pixels per row.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// At most so many colours that stand for the picture best.
    pub(crate) fn palette(&self, most: usize) -> Palette {
        let mut bins = self.bins.clone();
        let mut centres = split(&mut bins, most);
        let rounds = if most > 64 { 1 } else { ROUNDS };
        for _ in 0..rounds {
            recentre(&bins, &mut centres);
        }
        let mut colours = snapped(&bins, &centres);
        colours.sort_unstable_by_key(|&[r, g, b]| {
            u32::from(r) * 299 + u32::from(g) * 587 + u32::from(b) * 114
        });
        colours.dedup();
        self.assigned(colours)
    }

    /// Finds for every key the closest colour.
    fn assigned(&self, colours: Vec<[u8; 3]>) -> Palette {
        let mut index = vec![0; KEYS];
        let centres: Vec<[f32; 3]> = colours.iter().map(|&c| c.map(f32::from)).collect();
        let (mut error, mut total) = (0.0, 0.0);
        for bin in &self.bins {
            let (nearest, distance) = nearest(bin.mean, &centres);
            error += distance * bin.count;
            total += bin.count;
            if let Some(slot) = index.get_mut(usize::from(bin.key)) {
                *slot = u8::try_from(nearest).unwrap_or(u8::MAX);
            }
        }
        Palette {
            colours,
            index: index.try_into().unwrap_or_else(|_| Box::new([0; KEYS])),
            error: error / f32::max(total, 1.0),
        }
    }
}

/// Counts runs of equal pixels.
struct Counter {
    /// Count and sums of red, green and blue, by key.
    sums: Vec<[u32; 4]>,
    keys: Vec<u16>,
}

impl Counter {
    fn new(pixels: usize) -> Self {
        Self {
            sums: vec![[0; 4]; KEYS],
            keys: scratch::keys(pixels),
        }
    }

    fn count(&mut self, pixels: impl Iterator<Item = [u8; 3]>) {
        let mut current = [0; 3];
        let mut current_key = key(current);
        let mut length = 0;
        let sums = &mut self.sums;
        self.keys.extend(pixels.map(|pixel| {
            if pixel != current {
                add(sums, current_key, current, length);
                current = pixel;
                current_key = key(pixel);
                length = 0;
            }
            length += 1;
            current_key
        }));
        add(sums, current_key, current, length);
    }

    #[expect(clippy::cast_precision_loss, reason = "means need few digits")]
    fn finish(self, width: usize) -> Histogram {
        let bins = (0..).zip(&self.sums).filter(|(_, sum)| sum[0] > 0);
        let bins = bins
            .map(|(key, &[count, r, g, b])| Bin {
                key,
                count: count as f32,
                mean: [r, g, b].map(|sum| sum as f32 / count as f32),
            })
            .collect();
        Histogram {
            bins,
            keys: self.keys,
            width,
        }
    }
}

fn add(sums: &mut [[u32; 4]], key: u16, colour: [u8; 3], length: u32) {
    if let Some(sum) = sums.get_mut(usize::from(key)) {
        let [r, g, b] = colour.map(|channel| u32::from(channel) * length);
        *sum = [sum[0] + length, sum[1] + r, sum[2] + g, sum[3] + b];
    }
}

/// A run of bins that shall share a colour.
struct Group {
    start: usize,
    end: usize,
    mean: [f32; 3],
    /// The axis along which they differ most, and how much, weighted.
    axis: usize,
    spread: f32,
}

impl Group {
    fn of(bins: &[Bin], start: usize, end: usize) -> Self {
        let mut total = 0.0;
        let (mut sum, mut squares) = ([0.0; 3], [0.0; 3]);
        for bin in bins.get(start..end).unwrap_or_default() {
            let weight = weight(bin);
            total += weight;
            for ((sum, square), value) in sum.iter_mut().zip(&mut squares).zip(bin.mean) {
                *sum += weight * f64::from(value);
                *square += weight * f64::from(value) * f64::from(value);
            }
        }
        let mut group = Self {
            start,
            end,
            mean: [0.0; 3],
            axis: 0,
            spread: 0.0,
        };
        for (axis, (sum, square)) in sum.into_iter().zip(squares).enumerate() {
            let mean = sum / f64::max(total, 1e-9);
            let spread = narrowed(square - sum * mean);
            if let Some(slot) = group.mean.get_mut(axis) {
                *slot = narrowed(mean);
            }
            if spread > group.spread {
                group.spread = spread;
                group.axis = axis;
            }
        }
        group
    }
}

/// What a bin counts for: rare colours more than their share, so that a red word stays red.
fn weight(bin: &Bin) -> f64 {
    f64::from(bin.count).powf(WEIGHT)
}

/// Exponent of [`weight`].
const WEIGHT: f64 = 0.75;

#[expect(clippy::cast_possible_truncation, reason = "colours need few digits")]
const fn narrowed(value: f64) -> f32 {
    value as f32
}

/// Splits the bins into at most so many groups and answers their means.
fn split(bins: &mut [Bin], most: usize) -> Vec<[f32; 3]> {
    let mut groups = vec![Group::of(bins, 0, bins.len())];
    while groups.len() < most {
        let widest = groups
            .iter()
            .enumerate()
            .max_by(|(_, a), (_, b)| a.spread.total_cmp(&b.spread))
            .filter(|(_, group)| group.spread > 0.5)
            .map(|(index, _)| index);
        let Some(group) = widest.map(|index| groups.swap_remove(index)) else {
            break;
        };
        let middle = group.start + partition(bins, &group);
        if middle == group.start || middle == group.end {
            // Too close together for the digits of a mean.
            groups.push(Group {
                spread: 0.0,
                ..group
            });
            continue;
        }
        groups.push(Group::of(bins, group.start, middle));
        groups.push(Group::of(bins, middle, group.end));
    }
    groups.into_iter().map(|group| group.mean).collect()
}

/// Moves the bins of a group that lie below its mean to the front; answers how many they are.
fn partition(bins: &mut [Bin], group: &Group) -> usize {
    let along = |values: [f32; 3]| values.get(group.axis).copied().unwrap_or_default();
    let limit = along(group.mean);
    let part = bins.get_mut(group.start..group.end).unwrap_or_default();
    let mut below = 0;
    for index in 0..part.len() {
        if part.get(index).is_some_and(|bin| along(bin.mean) < limit) {
            part.swap(index, below);
            below += 1;
        }
    }
    below
}

/// Moves every centre to the mean of the bins it is closest to.
fn recentre(bins: &[Bin], centres: &mut [[f32; 3]]) {
    let mut sums = vec![[0.0_f64; 4]; centres.len()];
    for bin in bins {
        let (index, _) = nearest(bin.mean, centres);
        let weight = weight(bin);
        if let Some(sum) = sums.get_mut(index) {
            let [r, g, b] = bin.mean.map(|value| f64::from(value) * weight);
            *sum = [sum[0] + weight, sum[1] + r, sum[2] + g, sum[3] + b];
        }
    }
    for (centre, [weight, r, g, b]) in centres.iter_mut().zip(sums) {
        if weight > 0.0 {
            *centre = [r, g, b].map(|sum| narrowed(sum / weight));
        }
    }
}

/// Centres as colours; one that mostly stands for a single bin becomes exactly its colour, so
/// that a white page stays white.
fn snapped(bins: &[Bin], centres: &[[f32; 3]]) -> Vec<[u8; 3]> {
    let mut heaviest = vec![(0.0_f32, 0.0_f32, [0.0; 3]); centres.len()];
    for bin in bins {
        let (index, _) = nearest(bin.mean, centres);
        if let Some((total, most, mean)) = heaviest.get_mut(index) {
            *total += bin.count;
            if bin.count > *most {
                *most = bin.count;
                *mean = bin.mean;
            }
        }
    }
    centres
        .iter()
        .zip(heaviest)
        .map(|(&centre, (total, most, mean))| if most * 2.0 > total { mean } else { centre })
        .map(|centre| centre.map(rounded))
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "held between 0 and 255"
)]
const fn rounded(value: f32) -> u8 {
    value.round().clamp(0.0, 255.0) as u8
}

/// The centre closest to a colour, and its squared distance.
fn nearest([r, g, b]: [f32; 3], centres: &[[f32; 3]]) -> (usize, f32) {
    let mut best = (0, f32::INFINITY);
    for (index, &[x, y, z]) in centres.iter().enumerate() {
        let (x, y, z) = (x - r, y - g, z - b);
        let distance = x * x + y * y + z * z;
        if distance < best.1 {
            best = (index, distance);
        }
    }
    best
}
