//! Components mixed to pixels.

use crate::header::JpegFacts;

/// What the components mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mix {
    Grey,
    Rgb,
    YCbCr,
    /// Stored inverted, as Adobe does and everybody expects.
    Cmyk,
    /// The same behind a colour transform.
    Ycck,
}

impl Mix {
    /// As libjpeg decides it.
    pub(super) fn of(facts: &JpegFacts<'_>) -> Self {
        let ids: Vec<u8> = facts.components.iter().map(|one| one.id).collect();
        match ids.as_slice() {
            [_] => Self::Grey,
            [_, _, _] => match (facts.has_jfif, facts.adobe) {
                (false, Some(0)) => Self::Rgb,
                (false, None) if ids == *b"RGB" => Self::Rgb,
                _ => Self::YCbCr,
            },
            _ if facts.adobe == Some(2) => Self::Ycck,
            _ => Self::Cmyk,
        }
    }

    pub(super) const fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb | Self::YCbCr => 3,
            Self::Cmyk | Self::Ycck => 4,
        }
    }

    /// One row of pixels from one line of each component; ink amounts for CMYK.
    pub(super) fn row(self, lines: &[Vec<u8>], row: &mut [u8]) {
        match (self, lines) {
            (Self::Grey, [grey]) => row.copy_from_slice(grey),
            (Self::Rgb, [red, green, blue]) => {
                let (row, _) = row.as_chunks_mut::<3>();
                for (((out, red), green), blue) in row.iter_mut().zip(red).zip(green).zip(blue) {
                    *out = [*red, *green, *blue];
                }
            }
            (Self::YCbCr, [luma, blue, red]) => {
                let (row, _) = row.as_chunks_mut::<3>();
                for (((out, y), cb), cr) in row.iter_mut().zip(luma).zip(blue).zip(red) {
                    *out = rgb(*y, *cb, *cr);
                }
            }
            (Self::Cmyk, [cyan, magenta, yellow, black]) => {
                let (row, _) = row.as_chunks_mut::<4>();
                let inks = cyan.iter().zip(magenta).zip(yellow).zip(black);
                for (out, (((c, m), y), k)) in row.iter_mut().zip(inks) {
                    *out = [*c, *m, *y, *k].map(|level| 255 - level);
                }
            }
            (Self::Ycck, [luma, blue, red, black]) => {
                let (row, _) = row.as_chunks_mut::<4>();
                let inks = luma.iter().zip(blue).zip(red).zip(black);
                for (out, (((y, cb), cr), k)) in row.iter_mut().zip(inks) {
                    let [cyan, magenta, yellow] = rgb(*y, *cb, *cr);
                    *out = [cyan, magenta, yellow, 255 - *k];
                }
            }
            _ => {}
        }
    }
}

/// JFIF's transform with 16 bits behind the point.
#[inline]
fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let y = (i32::from(y) << 16) + HALF;
    let cb = i32::from(cb) - 128;
    let cr = i32::from(cr) - 128;
    [
        clamp((y + 91_881 * cr) >> 16),
        clamp((y - 22_554 * cb - 46_802 * cr) >> 16),
        clamp((y + 116_130 * cb) >> 16),
    ]
}

#[inline]
fn clamp(value: i32) -> u8 {
    value.clamp(0, 255).to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_the_corners_of_the_colour_cube() {
        // As libjpeg converts them.
        for (ycc, expected) in [
            ([0, 128, 128], [0, 0, 0]),
            ([255, 128, 128], [255, 255, 255]),
            ([76, 85, 255], [254, 0, 0]),
            ([150, 44, 21], [0, 255, 1]),
            ([29, 255, 107], [0, 0, 254]),
        ] {
            let [y, cb, cr] = ycc;
            assert_eq!(rgb(y, cb, cr), expected, "{ycc:?}");
        }
    }
}
