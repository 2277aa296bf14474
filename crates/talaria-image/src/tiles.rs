//! Where a picture is cut when one fit would make it unreadable.

use crate::prepared::Area;

/// Pixels that neighbouring tiles share, so that no line of text is cut in both.
const OVERLAP: u32 = 64;
/// The overlap is at most one part in so many of a tile.
const OVERLAP_PART: u32 = 8;
/// Tiles that shrink no more than this can be read; more of them cost more than they show.
pub(crate) const READABLE_FACTOR: f64 = 1.3;

/// The tiles of a picture in reading order, at most `most`; one where nothing is gained.
///
/// No more of them than it takes for each to shrink by at most `enough`.
pub(crate) fn tiles(
    (width, height): (u32, u32),
    max_side: u32,
    most: usize,
    enough: f64,
) -> Vec<Area> {
    let most = u32::try_from(most).unwrap_or(u32::MAX).clamp(1, 64);
    let mut best = Grid::new(width, height, 1, 1);
    for count in 2..=most {
        if best.factor(max_side) <= enough {
            break;
        }
        for columns in (1..=count).filter(|columns| count.is_multiple_of(*columns)) {
            let grid = Grid::new(width, height, columns, count / columns);
            if grid.factor(max_side) < best.factor(max_side) {
                best = grid;
            }
        }
    }
    best.areas()
}

/// Columns and rows of equal tiles.
#[derive(Clone, Copy)]
struct Grid {
    across: Cuts,
    down: Cuts,
}

impl Grid {
    fn new(width: u32, height: u32, columns: u32, rows: u32) -> Self {
        Self {
            across: Cuts::new(width, columns),
            down: Cuts::new(height, rows),
        }
    }

    /// By how much a tile has to shrink.
    fn factor(&self, max_side: u32) -> f64 {
        let long = self.across.length.max(self.down.length);
        (f64::from(long) / f64::from(max_side.max(1))).max(1.0)
    }

    fn areas(&self) -> Vec<Area> {
        let mut areas = Vec::new();
        for y in self.down.starts() {
            for x in self.across.starts() {
                areas.push(Area {
                    x,
                    y,
                    width: self.across.length,
                    height: self.down.length,
                });
            }
        }
        areas
    }
}

/// A side in equal, overlapping parts.
#[derive(Clone, Copy)]
struct Cuts {
    side: u32,
    parts: u32,
    length: u32,
}

impl Cuts {
    fn new(side: u32, parts: u32) -> Self {
        let overlap = if parts > 1 {
            OVERLAP.min(side / parts / OVERLAP_PART)
        } else {
            0
        };
        let shared = u64::from(overlap) * u64::from(parts.saturating_sub(1));
        let length = (u64::from(side) + shared).div_ceil(u64::from(parts.max(1)));
        Self {
            side,
            parts,
            length: u32::try_from(length).unwrap_or(side).clamp(1, side.max(1)),
        }
    }

    fn starts(&self) -> impl Iterator<Item = u32> {
        let last = u64::from(self.side.saturating_sub(self.length));
        let steps = u64::from(self.parts.saturating_sub(1).max(1));
        (0..self.parts)
            .map(move |part| u32::try_from(last * u64::from(part) / steps).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{READABLE_FACTOR, tiles};
    use crate::prepared::Area;

    #[test]
    fn a_tall_page_is_cut_from_top_to_bottom() {
        let tiles = tiles((1_200, 12_000), 1_568, 4, READABLE_FACTOR);
        let starts: Vec<(u32, u32, u32)> = tiles
            .iter()
            .map(|area| (area.x, area.y, area.height))
            .collect();
        assert_eq!(
            starts,
            [
                (0, 0, 3_048),
                (0, 2_984, 3_048),
                (0, 5_968, 3_048),
                (0, 8_952, 3_048)
            ]
        );
    }

    #[test]
    fn a_large_screen_is_cut_into_quarters_in_reading_order() {
        let corners: Vec<(u32, u32)> = tiles((3_840, 2_160), 1_568, 4, READABLE_FACTOR)
            .iter()
            .map(|area| (area.x, area.y))
            .collect();
        assert_eq!(corners, [(0, 0), (1_888, 0), (0, 1_048), (1_888, 1_048)]);
    }

    #[test]
    fn no_more_tiles_than_needed() {
        let count = |size, most, enough| tiles(size, 1_568, most, enough).len();
        assert_eq!(count((1_500, 3_000), 4, READABLE_FACTOR), 2);
        assert_eq!(count((1_920, 1_080), 4, READABLE_FACTOR), 1);
        assert_eq!(count((1_920, 1_080), 4, 1.0), 2);
        assert_eq!(count((1_568, 1_568), 4, 1.0), 1);
        assert_eq!(count((9_000, 9_000), 1, 1.0), 1);
    }

    proptest! {
        #[test]
        fn tiles_cover_everything_and_overlap(
            width in 1_u32..40_000, height in 1_u32..40_000, most in 1_usize..9,
        ) {
            let tiles = tiles((width, height), 1_568, most, 1.0);
            prop_assert!(!tiles.is_empty() && tiles.len() <= most);
            for tile in &tiles {
                prop_assert!(tile.width >= 1 && tile.x + tile.width <= width);
                prop_assert!(tile.height >= 1 && tile.y + tile.height <= height);
            }
            let in_order = |a: &Area, b: &Area| (a.y, a.x) < (b.y, b.x);
            prop_assert!(tiles.windows(2).all(|pair| in_order(&pair[0], &pair[1])));
            // Along each axis every start lies inside the tile before it.
            for (next, before) in tiles.iter().skip(1).zip(&tiles) {
                if next.y == before.y {
                    prop_assert!(next.x <= before.x + before.width);
                } else {
                    prop_assert!(next.y <= before.y + before.height);
                    prop_assert_eq!(before.x + before.width, width);
                    prop_assert_eq!(next.x, 0);
                }
            }
            let last = tiles.last().unwrap();
            prop_assert_eq!((last.x + last.width, last.y + last.height), (width, height));
        }
    }
}
