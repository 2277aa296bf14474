//! Drawn pictures: without loss where they are simple, otherwise with as many colours as fit.

use super::{Attempt, TINY, Wish, check};
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
/// Numbers of colours to fall back to.
const FEWER_COLOURS: [usize; 4] = [8, 4, 3, 2];
/// How far a trial on a quarter of the rows may be off.
const TRIAL_MARGIN: f64 = 1.03;

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

/// A PNG with as many colours as fit, 16 where there is no clear room for more.
pub(super) fn fewer_colours(
    histogram: &Histogram,
    sixteen: Palette,
    wish: Wish,
    encodes: &mut u32,
    watch: &Watch,
) -> Result<Attempt, Refusal> {
    let limit = wish.limit(PictureFormat::Png);
    let mut smallest = usize::MAX;
    let mut try_fully = |palette: &Palette| -> Result<Option<Attempt>, Refusal> {
        check(watch)?;
        *encodes += 1;
        let file = encode::indexed(histogram.indices(), palette)?;
        smallest = smallest.min(file.len());
        Ok((file.len() <= limit).then_some(Attempt::Fits(PictureFormat::Png, file)))
    };

    let sample = histogram.sample();
    let expected = trial(histogram, &sample, &sixteen)?;
    let room = ratio(limit, expected);
    let more = MORE_COLOURS.iter().find(|(_, needed)| room >= *needed);
    if let Some((colours, _)) = more
        && let Some(fits) = try_fully(&histogram.palette(*colours))?
    {
        return Ok(fits);
    }
    if room * TRIAL_MARGIN >= 1.0
        && let Some(fits) = try_fully(&sixteen)?
    {
        return Ok(fits);
    }
    let mut least = expected;
    for colours in FEWER_COLOURS {
        let palette = histogram.palette(colours);
        least = trial(histogram, &sample, &palette)?;
        if ratio(limit, least) * TRIAL_MARGIN >= 1.0
            && let Some(fits) = try_fully(&palette)?
        {
            return Ok(fits);
        }
    }
    Ok(Attempt::Over(smallest.min(least)))
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
