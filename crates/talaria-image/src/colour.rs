//! From whatever a profile says to sRGB.

use std::fmt;
use std::sync::Arc;

use moxcms::{
    ColorProfile, DataColorSpace, Layout, RenderingIntent, TransformExecutor, TransformOptions,
};

/// What the samples of a source mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Grey,
    Rgb,
    /// Ink amounts: 0 is none, 255 is full.
    Cmyk,
}

/// Levels by which a colour may differ and still count as the same.
const SAME: u8 = 2;
/// Colours that tell a profile from sRGB: its corners, greys and some between.
const PROBES: [[u8; 3]; 12] = [
    [0, 0, 0],
    [255, 255, 255],
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
    [32, 32, 32],
    [96, 96, 96],
    [192, 192, 192],
    [200, 120, 40],
    [40, 200, 120],
    [120, 40, 200],
    [230, 220, 180],
];

/// A way to sRGB that changes something.
#[derive(Clone)]
pub(crate) enum Conversion {
    /// Grey by a table.
    Grey(Box<[u8; 256]>),
    /// Three or four bytes per pixel to three.
    Colour(Arc<dyn TransformExecutor<u8> + Send + Sync>),
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grey(_) => "Grey",
            Self::Colour(_) => "Colour",
        })
    }
}

impl Conversion {
    /// The way from `profile` to sRGB; none where the profile is sRGB, is of another space or
    /// is broken: then the samples are taken as they are.
    pub(crate) fn from_icc(profile: &[u8], space: Space) -> Option<Self> {
        let source = ColorProfile::new_from_slice(profile).ok()?;
        let layout = match (space, source.color_space) {
            (Space::Grey, DataColorSpace::Gray) => Layout::Gray,
            (Space::Rgb, DataColorSpace::Rgb) => Layout::Rgb,
            (Space::Cmyk, DataColorSpace::Cmyk) => Layout::Rgba,
            _ => return None,
        };
        let options = TransformOptions {
            rendering_intent: RenderingIntent::RelativeColorimetric,
            ..TransformOptions::default()
        };
        let way = source
            .create_transform_8bit(layout, &ColorProfile::new_srgb(), Layout::Rgb, options)
            .ok()?;
        match space {
            Space::Grey => grey_table(way.as_ref()).map(|table| Self::Grey(Box::new(table))),
            Space::Rgb if is_identity(way.as_ref()) => None,
            Space::Rgb | Space::Cmyk => Some(Self::Colour(way)),
        }
    }
}

fn grey_table(way: &(dyn TransformExecutor<u8> + Send + Sync)) -> Option<[u8; 256]> {
    let levels: [u8; 256] = std::array::from_fn(|level| u8::try_from(level).unwrap_or(u8::MAX));
    let mut colours = [0; 256 * 3];
    way.transform(&levels, &mut colours).ok()?;
    let (colours, _) = colours.as_chunks::<3>();
    let mut table = [0; 256];
    for (entry, [red, _, _]) in table.iter_mut().zip(colours) {
        *entry = *red;
    }
    let changes = levels
        .iter()
        .zip(&table)
        .any(|(a, b)| a.abs_diff(*b) > SAME);
    changes.then_some(table)
}

fn is_identity(way: &(dyn TransformExecutor<u8> + Send + Sync)) -> bool {
    let colours = PROBES.as_flattened();
    let mut converted = [0; PROBES.len() * 3];
    // A profile that does not even convert these is left alone.
    way.transform(colours, &mut converted).is_err()
        || colours
            .iter()
            .zip(&converted)
            .all(|(a, b)| a.abs_diff(*b) <= SAME)
}

/// One row of ink amounts as sRGB, without a profile.
pub(crate) fn cmyk_row(inks: &[u8], row: &mut [u8]) {
    let (inks, _) = inks.as_chunks::<4>();
    let (row, _) = row.as_chunks_mut::<3>();
    for ([cyan, magenta, yellow, black], pixel) in inks.iter().zip(row) {
        let mix = |ink: u8| unpaint(255 - ink, 255 - black);
        *pixel = [mix(*cyan), mix(*magenta), mix(*yellow)];
    }
}

/// `a × b / 255`, rounded.
fn unpaint(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    u8::try_from((product + (product >> 8)) >> 8).unwrap_or(u8::MAX)
}

/// `colour` over white.
pub(crate) fn over_white(colour: u8, alpha: u8) -> u8 {
    unpaint(colour, alpha).saturating_add(255 - alpha)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_srgb_as_it_is() {
        let profile = ColorProfile::new_srgb().encode().unwrap();
        assert!(Conversion::from_icc(&profile, Space::Rgb).is_none());
    }

    #[test]
    fn converts_wide_colours() {
        let profile = ColorProfile::new_display_p3().encode().unwrap();
        let Some(Conversion::Colour(way)) = Conversion::from_icc(&profile, Space::Rgb) else {
            panic!("Display P3 differs from sRGB");
        };
        let mut out = [0; 3];
        way.transform(&[200, 100, 50], &mut out).unwrap();
        // By the matrices of both spaces: 215.2, 92.6, 30.9.
        for (is, due) in out.iter().zip([215_u8, 93, 31]) {
            assert!(is.abs_diff(due) <= 1, "{out:?}");
        }
    }

    #[test]
    fn leaves_the_samples_alone_when_the_profile_is_broken() {
        let whole = ColorProfile::new_display_p3().encode().unwrap();
        assert!(Conversion::from_icc(b"", Space::Rgb).is_none());
        assert!(Conversion::from_icc(&whole, Space::Cmyk).is_none());
        for length in (0..whole.len()).step_by(7) {
            // Never a panic, whatever is missing.
            let _way = Conversion::from_icc(&whole[..length], Space::Rgb);
        }
    }

    #[test]
    fn mixes_ink_as_pillow_does() {
        let mut row = [0; 9];
        cmyk_row(&[0, 0, 0, 0, 255, 0, 0, 0, 10, 200, 30, 40], &mut row);
        assert_eq!(row, [255, 255, 255, 0, 255, 255, 207, 46, 190]);
    }

    #[test]
    fn lays_colours_over_white() {
        assert_eq!(over_white(0, 0), 255);
        assert_eq!(over_white(7, 255), 7);
        assert_eq!(over_white(0, 128), 127);
    }
}
