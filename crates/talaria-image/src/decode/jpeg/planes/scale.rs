//! One component's samples brought to the grid of the pixels.

use super::Plane;

/// How one component becomes lines of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    across: Step,
    down: Step,
}

/// One direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// So many samples are averaged.
    Shrink(usize),
    /// One sample stands for so many pixels.
    Grow(usize),
}

impl Step {
    fn new(reduction: usize, ratio: usize) -> Self {
        if ratio > reduction {
            Self::Grow(ratio / reduction)
        } else {
            Self::Shrink(reduction / ratio)
        }
    }
}

impl Scale {
    pub(super) fn new(reduction: usize, across: usize, down: usize) -> Self {
        Self {
            across: Step::new(reduction, across),
            down: Step::new(reduction, down),
        }
    }

    /// Line `row` of the stripe; `above` and `below` are the plane's rows next to it.
    pub(super) fn line(
        &self,
        plane: &Plane,
        row: usize,
        above: Option<&[u8]>,
        below: Option<&[u8]>,
        line: &mut [u8],
    ) {
        match (self.down, self.across) {
            (Step::Shrink(1), across) => widen(plane.row(clip(row, plane)), across, line),
            (Step::Shrink(2), Step::Shrink(2)) => {
                let upper = plane.row(clip(row * 2, plane));
                let lower = plane.row(clip(row * 2 + 1, plane));
                halve(upper, lower, line);
            }
            (Step::Shrink(rows), across) => {
                let mut sums = vec![0_u16; plane.width];
                let first = (row * rows).min(plane.rows.saturating_sub(1));
                let last = (first + rows).min(plane.rows);
                for index in first..last {
                    for (sum, sample) in sums.iter_mut().zip(plane.row(index)) {
                        *sum += u16::from(*sample);
                    }
                }
                shrink(&sums, (last - first).max(1), across, line);
            }
            (Step::Grow(2), Step::Grow(2) | Step::Shrink(1)) => {
                let near = row / 2;
                let far = if row.is_multiple_of(2) {
                    near.checked_sub(1)
                        .map_or(above, |far| Some(plane.row(far)))
                } else if near + 1 < plane.rows {
                    Some(plane.row(near + 1))
                } else {
                    below
                };
                let near = plane.row(clip(near, plane));
                let far = far.filter(|far| far.len() == near.len()).unwrap_or(near);
                if self.across == Step::Shrink(1) {
                    between(near, far, line);
                } else {
                    spread(near, far, line);
                }
            }
            (Step::Grow(times), across) => {
                widen(plane.row(clip(row / times, plane)), across, line);
            }
        }
    }
}

fn clip(row: usize, plane: &Plane) -> usize {
    row.min(plane.rows.saturating_sub(1))
}

/// A line from one row.
fn widen(row: &[u8], across: Step, line: &mut [u8]) {
    match across {
        Step::Shrink(1) => {
            for (out, sample) in line.iter_mut().zip(row) {
                *out = *sample;
            }
        }
        Step::Shrink(columns) => {
            for (out, block) in line.iter_mut().zip(row.chunks(columns)) {
                let sum: usize = block.iter().map(|sample| usize::from(*sample)).sum();
                *out = mean(sum, block.len());
            }
        }
        Step::Grow(2) => spread(row, row, line),
        Step::Grow(times) => {
            for (out, sample) in line.chunks_mut(times).zip(row) {
                out.fill(*sample);
            }
        }
    }
}

fn mean(sum: usize, count: usize) -> u8 {
    u8::try_from((sum + count / 2) / count.max(1)).unwrap_or(u8::MAX)
}

/// The mean of every two by two samples.
fn halve(upper: &[u8], lower: &[u8], line: &mut [u8]) {
    let (upper, upper_end) = upper.as_chunks::<2>();
    let (lower, lower_end) = lower.as_chunks::<2>();
    let mut out = line.iter_mut();
    // The line comes last: what ends first must not swallow a pixel of it.
    for (([a, b], [c, d]), out) in upper.iter().zip(lower).zip(out.by_ref()) {
        let sum = u16::from(*a) + u16::from(*b) + u16::from(*c) + u16::from(*d);
        *out = low((sum + 2) >> 2);
    }
    // A last column that stands alone.
    let ends = upper_end.iter().zip(lower_end);
    for (out, (a, b)) in out.zip(ends) {
        *out = low((u16::from(*a) + u16::from(*b) + 1) >> 1);
    }
}

/// The low byte of what fits one.
const fn low(value: u16) -> u8 {
    value.to_le_bytes()[0]
}

fn shrink(sums: &[u16], rows: usize, across: Step, line: &mut [u8]) {
    match across {
        Step::Shrink(columns) => {
            for (out, block) in line.iter_mut().zip(sums.chunks(columns)) {
                let sum: usize = block.iter().map(|sum| usize::from(*sum)).sum();
                *out = mean(sum, block.len() * rows);
            }
        }
        Step::Grow(times) => {
            for (out, sum) in line.chunks_mut(times).zip(sums) {
                out.fill(mean(usize::from(*sum), rows));
            }
        }
    }
}

/// Three parts of the near row, one of the far.
fn between(near: &[u8], far: &[u8], line: &mut [u8]) {
    for ((out, near), far) in line.iter_mut().zip(near).zip(far) {
        *out = low((u16::from(*near) * 3 + u16::from(*far) + 2) >> 2);
    }
}

/// Twice as wide: three parts of the nearer sample, one of the farther, in both directions.
fn spread(near: &[u8], far: &[u8], line: &mut [u8]) {
    let mixed = |index: usize| {
        let near = near.get(index)?;
        let far = far.get(index)?;
        Some(u16::from(*near) * 3 + u16::from(*far))
    };
    let Some(mut own) = mixed(0) else { return };
    let mut left = own;
    for (index, out) in line.chunks_mut(2).enumerate() {
        let right = mixed(index + 1).unwrap_or(own);
        let pair = [
            low((own * 3 + left + 8) >> 4),
            low((own * 3 + right + 7) >> 4),
        ];
        for (out, value) in out.iter_mut().zip(pair) {
            *out = value;
        }
        left = own;
        own = right;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(width: usize, samples: &[u8]) -> Plane {
        Plane {
            width,
            rows: samples.len() / width,
            samples: samples.to_vec(),
        }
    }

    #[test]
    fn halves_even_and_odd_widths() {
        let plane = plane(3, &[10, 20, 30, 30, 40, 51]);
        let mut line = [0; 2];
        Scale::new(2, 1, 1).line(&plane, 0, None, None, &mut line);
        assert_eq!(line, [25, 41]);
    }

    #[test]
    fn averages_larger_blocks() {
        let samples: Vec<u8> = (0..32).collect();
        let plane = plane(8, &samples);
        let mut line = [0; 2];
        Scale::new(4, 1, 1).line(&plane, 0, None, None, &mut line);
        assert_eq!(line, [14, 18]);
    }

    #[test]
    fn leaves_coarse_components_alone_when_pixels_are_as_coarse() {
        let plane = plane(2, &[1, 2, 3, 4]);
        let mut line = [0; 2];
        Scale::new(2, 2, 2).line(&plane, 1, None, None, &mut line);
        assert_eq!(line, [3, 4]);
    }

    #[test]
    fn spreads_as_libjpeg_does() {
        let plane = plane(2, &[0, 160]);
        let mut line = [0; 4];
        Scale::new(1, 2, 1).line(&plane, 0, None, None, &mut line);
        assert_eq!(line, [0, 40, 120, 160]);
    }

    #[test]
    fn looks_at_the_rows_of_its_neighbours() {
        let plane = plane(1, &[80]);
        let mut line = [0; 2];
        Scale::new(1, 2, 2).line(&plane, 0, Some(&[0]), Some(&[160]), &mut line);
        assert_eq!(line, [60, 60]);
        Scale::new(1, 2, 2).line(&plane, 1, Some(&[0]), Some(&[160]), &mut line);
        assert_eq!(line, [100, 100]);
    }
}
