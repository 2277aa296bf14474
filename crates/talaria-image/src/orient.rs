//! Turning stored pixels upright.

use crate::decode::Rect;
use crate::raster::Raster;
use crate::scratch;

/// How a stored picture has to be turned, as EXIF and TIFF number it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Orientation {
    /// 1: as stored.
    #[default]
    Upright,
    /// 2: mirrored left to right.
    Mirrored,
    /// 3: upside down.
    UpsideDown,
    /// 4: mirrored top to bottom.
    Flipped,
    /// 5: mirrored at the falling diagonal.
    Transposed,
    /// 6: to be turned a quarter clockwise.
    QuarterRight,
    /// 7: mirrored at the rising diagonal.
    Transversed,
    /// 8: to be turned a quarter counter-clockwise.
    QuarterLeft,
}

impl Orientation {
    /// The orientation of that number; anything unknown is upright.
    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            2 => Self::Mirrored,
            3 => Self::UpsideDown,
            4 => Self::Flipped,
            5 => Self::Transposed,
            6 => Self::QuarterRight,
            7 => Self::Transversed,
            8 => Self::QuarterLeft,
            _ => Self::Upright,
        }
    }

    /// Whether width and height change places.
    pub(crate) const fn swaps_sides(self) -> bool {
        matches!(
            self,
            Self::Transposed | Self::QuarterRight | Self::Transversed | Self::QuarterLeft
        )
    }

    /// The size a reader sees of a picture stored as `width` × `height`.
    pub(crate) const fn upright_size(self, width: u32, height: u32) -> (u32, u32) {
        if self.swaps_sides() {
            (height, width)
        } else {
            (width, height)
        }
    }

    /// Whether stored columns run against the upright axis they lie on.
    const fn is_column_reversed(self) -> bool {
        matches!(
            self,
            Self::Mirrored | Self::UpsideDown | Self::Transversed | Self::QuarterLeft
        )
    }

    /// Whether stored rows run against the upright axis they lie on.
    const fn is_row_reversed(self) -> bool {
        matches!(
            self,
            Self::UpsideDown | Self::Flipped | Self::QuarterRight | Self::Transversed
        )
    }

    /// Where a rectangle of the upright picture lies in one stored as `width` × `height`.
    /// The rectangle lies inside the picture.
    pub(crate) const fn stored_rect(self, upright: Rect, width: u32, height: u32) -> Rect {
        let lying = if self.swaps_sides() {
            Rect {
                x: upright.y,
                y: upright.x,
                width: upright.height,
                height: upright.width,
            }
        } else {
            upright
        };
        Rect {
            x: if self.is_column_reversed() {
                width.saturating_sub(lying.x).saturating_sub(lying.width)
            } else {
                lying.x
            },
            y: if self.is_row_reversed() {
                height.saturating_sub(lying.y).saturating_sub(lying.height)
            } else {
                lying.y
            },
            ..lying
        }
    }
}

/// The picture upright.
pub(crate) fn orient(raster: Raster, orientation: Orientation) -> Raster {
    if orientation == Orientation::Upright || raster.pixels.is_empty() {
        return raster;
    }
    match raster.layout.channels() {
        1 => turn::<1>(&raster, orientation),
        3 => turn::<3>(&raster, orientation),
        _ => turn::<4>(&raster, orientation),
    }
}

fn turn<const N: usize>(raster: &Raster, orientation: Orientation) -> Raster {
    let (stored, _) = raster.pixels.as_chunks::<N>();
    let columns = raster.width as usize;
    let rows = raster.height as usize;
    let place = |index: usize, count: usize, reversed: bool| {
        if reversed { count - 1 - index } else { index }
    };
    let mut pixels = scratch::bytes(raster.pixels.len());
    let mut put = |x: usize, y: usize| {
        let x = place(x, columns, orientation.is_column_reversed());
        let y = place(y, rows, orientation.is_row_reversed());
        if let Some(pixel) = stored.get(y * columns + x) {
            pixels.extend_from_slice(pixel);
        }
    };
    if orientation.swaps_sides() {
        for x in 0..columns {
            for y in 0..rows {
                put(x, y);
            }
        }
    } else {
        for y in 0..rows {
            for x in 0..columns {
                put(x, y);
            }
        }
    }
    let (width, height) = orientation.upright_size(raster.width, raster.height);
    Raster {
        width,
        height,
        layout: raster.layout,
        pixels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raster::Layout;

    /// 3 × 2: the letters a to f row by row.
    fn stored() -> Raster {
        Raster {
            width: 3,
            height: 2,
            layout: Layout::Grey,
            pixels: b"abcdef".to_vec(),
        }
    }

    #[test]
    fn turns_all_eight_orientations_upright() {
        for (number, size, expected) in [
            (1, (3, 2), "abcdef"),
            (2, (3, 2), "cbafed"),
            (3, (3, 2), "fedcba"),
            (4, (3, 2), "defabc"),
            (5, (2, 3), "adbecf"),
            (6, (2, 3), "daebfc"),
            (7, (2, 3), "fcebda"),
            (8, (2, 3), "cfbead"),
        ] {
            let turned = orient(stored(), Orientation::from_number(number));
            assert_eq!((turned.width, turned.height), size, "{number}");
            assert_eq!(turned.pixels, expected.as_bytes(), "{number}");
        }
    }

    #[test]
    fn finds_a_region_where_it_is_stored() {
        for number in 1..=8 {
            let orientation = Orientation::from_number(number);
            let whole = orient(stored(), orientation);
            let (width, height) = orientation.upright_size(3, 2);
            for (x, y) in (0..width).flat_map(|x| (0..height).map(move |y| (x, y))) {
                let one = Rect {
                    x,
                    y,
                    width: 1,
                    height: 1,
                };
                let lies = orientation.stored_rect(one, 3, 2);
                let seen = whole.pixels[(y * width + x) as usize];
                let kept = stored().pixels[(lies.y * 3 + lies.x) as usize];
                assert_eq!(seen, kept, "{number} {x} {y}");
            }
        }
    }

    #[test]
    fn keeps_colours_together() {
        let raster = Raster {
            width: 2,
            height: 1,
            layout: Layout::Rgb,
            pixels: vec![1, 2, 3, 4, 5, 6],
        };
        let turned = orient(raster, Orientation::QuarterRight);
        assert_eq!((turned.width, turned.height), (1, 2));
        assert_eq!(turned.pixels, [1, 2, 3, 4, 5, 6]);
    }
}
