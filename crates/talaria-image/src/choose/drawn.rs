//! Drawn pictures: without loss where they are simple, otherwise with as many colours as fit.

use super::{Attempt, TEXT_ERROR, TINY, Wish, check};
use crate::encode;
use crate::palette::{Exact, Histogram, Indices, Palette};
use crate::prepared::PictureFormat;
use crate::raster::Raster;
use crate::refusal::Refusal;
use crate::watch::Watch;

/// Numbers of colours, and how much room there must be above 16 colours to try them.
///
/// Pages grow by 1.33 to 32 colours, 1.5 to 64 and 1.9 to 256.
const MORE_COLOURS: [(usize, f64); 3] = [(256, 2.0), (64, 1.6), (32, 1.4)];
/// Numbers of colours to try on colourful pictures, where 16 do not do.
const MANY_COLOURS: [usize; 4] = [256, 128, 64, 32];
/// Numbers of colours to fall back to.
const FEWER_COLOURS: [usize; 4] = [8, 4, 3, 2];
/// Mean squared error above which fewer colours spoil a picture more than fewer pixels do.
///
/// Black on white in two colours lies near 1,300 on dense pages, dithered greys far above.
const LADDER_ERROR: f32 = 2_500.0;
/// How much too large a trial on a quarter of the rows may come out.
const TRIAL_MARGIN: f64 = 1.08;

/// A PNG that is the picture itself: up to 256 colours, or few pixels; `None` where neither
/// holds or the file is too large.
pub(super) fn lossless(
    raster: &Raster,
    wish: Wish,
    encodes: &mut u32,
) -> Result<Option<Vec<u8>>, Refusal> {
    let file = if let Some(exact) = Exact::of(raster) {
        encode::indexed(exact.indices(), &exact.palette)?
    } else if raster.pixels.len() / raster.layout.channels() <= TINY {
        encode::true_colour(raster)?
    } else {
        return Ok(None);
    };
    *encodes += 1;
    Ok(Some(file).filter(|file| wish.takes(PictureFormat::Png, file)))
}

/// A PNG with clearly more than 16 colours, where there is room and they do.
pub(super) fn many_colours(
    histogram: &Histogram,
    wish: Wish,
    encodes: &mut u32,
    watch: &Watch,
) -> Result<Attempt, Refusal> {
    let limit = wish.limit(PictureFormat::Png);
    let sample = histogram.sample();
    for colours in MANY_COLOURS {
        let palette = histogram.palette(colours);
        if palette.error > TEXT_ERROR {
            break;
        }
        check(watch)?;
        if ratio(limit, trial(histogram, &sample, &palette)?) < 1.0 {
            continue;
        }
        *encodes += 1;
        let file = encode::indexed(histogram.indices(), &palette)?;
        if file.len() <= limit {
            return Ok(Attempt::Fits(PictureFormat::Png, file));
        }
    }
    Ok(Attempt::Over(usize::MAX))
}

/// A PNG with 16 colours, where they do and it fits.
pub(super) fn sixteen_colours(
    histogram: &Histogram,
    sixteen: &Palette,
    wish: Wish,
    encodes: &mut u32,
) -> Result<Attempt, Refusal> {
    if sixteen.error > TEXT_ERROR {
        return Ok(Attempt::Over(usize::MAX));
    }
    *encodes += 1;
    let file = encode::indexed(histogram.indices(), sixteen)?;
    if wish.takes(PictureFormat::Png, &file) {
        return Ok(Attempt::Fits(PictureFormat::Png, file));
    }
    Ok(Attempt::Over(file.len()))
}

/// A PNG with as many colours as fit, 16 where there is no clear room for more.
pub(super) fn ladder(
    histogram: &Histogram,
    sixteen: &Palette,
    wish: Wish,
    encodes: &mut u32,
    watch: &Watch,
) -> Result<Attempt, Refusal> {
    let limit = wish.limit(PictureFormat::Png);
    let sample = histogram.sample();
    let with_sixteen = trial(histogram, &sample, sixteen)?;
    let room = ratio(limit, with_sixteen);
    if let Some((colours, _)) = MORE_COLOURS.iter().find(|(_, needed)| room >= *needed) {
        *encodes += 1;
        let file = encode::indexed(histogram.indices(), &histogram.palette(*colours))?;
        if file.len() <= limit {
            return Ok(Attempt::Fits(PictureFormat::Png, file));
        }
    }
    let mut smallest = usize::MAX;
    let mut fewer;
    let mut palette = sixteen;
    let mut expected = with_sixteen;
    let mut rest = FEWER_COLOURS.as_slice();
    loop {
        check(watch)?;
        if ratio(limit, expected) * TRIAL_MARGIN >= 1.0 {
            *encodes += 1;
            let file = encode::indexed(histogram.indices(), palette)?;
            if file.len() <= limit {
                return Ok(Attempt::Fits(PictureFormat::Png, file));
            }
            expected = file.len();
        }
        smallest = smallest.min(expected);
        let [colours, others @ ..] = rest else {
            return Ok(Attempt::Over(smallest));
        };
        rest = others;
        fewer = histogram.palette(*colours);
        if fewer.error > LADDER_ERROR {
            return Ok(Attempt::Over(smallest));
        }
        palette = &fewer;
        expected = trial(histogram, &sample, palette)?;
    }
}

/// Bytes that a palette will need, judged by a quarter of the rows.
fn trial(histogram: &Histogram, sample: &[u16], palette: &Palette) -> Result<usize, Refusal> {
    let sample = Indices::new(sample, histogram.width());
    let file = encode::indexed(sample, palette)?;
    let rows = histogram.indices().height();
    Ok(file.len().saturating_mul(rows) / sample.height().max(1))
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs few digits")]
fn ratio(limit: usize, bytes: usize) -> f64 {
    limit as f64 / bytes.max(1) as f64
}
