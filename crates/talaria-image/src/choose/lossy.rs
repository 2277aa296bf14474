//! Photos, and screens with photos: JPEG, and WebP where JPEG would show.

use std::ops::RangeInclusive;

use super::{Attempt, Wish, check};
use crate::encode;
use crate::prepared::PictureFormat;
use crate::raster::Raster;
use crate::refusal::Refusal;
use crate::scratch;
use crate::watch::Watch;

/// Best JPEG quality of a photo; above it bytes buy noise.
const PHOTO_BEST: u8 = 88;
/// Best JPEG quality of a screen with photos, whose letters ring earlier.
const MIXED_BEST: u8 = 92;
/// JPEG quality of a screen with photos below which letters suffer.
const MIXED_LEAST: u8 = 50;
/// JPEG quality of a photo below which WebP is better, and fewer pixels are.
const PHOTO_LEAST: u8 = 40;
/// JPEG quality at which a picture of 1,568 pixels mostly fills the budget: the first that is
/// tried.
const USUAL: u8 = 80;
/// Best WebP quality looked for.
const WEBP_BEST: u8 = 90;
/// WebP quality from which hardly anything shows.
const WEBP_GOOD: u8 = 40;
/// WebP quality below which fewer pixels are better.
const WEBP_LEAST: u8 = 4;
/// Share of the limit a first full encode aims at.
const AIM: f64 = 0.955;
/// Share of the limit a correction aims at.
const SECOND_AIM: f64 = 0.97;
/// Share of the limit that a fitting file should use, unless its quality is good anyway.
const GOOD_USE: f64 = 0.8;
/// Quality from which unused bytes do not matter.
const GOOD_QUALITY: u8 = 70;
/// Shares of the aim from which a quality can be judged without another trial.
const CLOSE: RangeInclusive<f64> = 0.85..=1.15;
/// Most trials on a sample before all of the picture is encoded.
const MOST_TRIALS: u32 = 4;
/// Rows of a block of a sample: one row of JPEG's and WebP's macroblocks.
const STRIP: usize = 16;
/// Columns of a block of a sample.
const BLOCK: usize = 64;
/// One block in so many is tried: more of them where a sample would be too small.
const EVERY: [usize; 3] = [8, 4, 2];
/// A sample with fewer rows says too little; all of the picture is tried instead.
const LEAST_ROWS: u32 = 512;
/// Most rows a sample may have: what WebP can write.
const MOST_ROWS: u32 = 16_383;

/// A photo as JPEG, or as WebP where JPEG would have to be poor.
pub(super) fn photo(
    raster: &Raster,
    wish: Wish,
    encodes: &mut u32,
    watch: &Watch,
) -> Result<Attempt, Refusal> {
    let attempt = Search::jpeg(raster, wish, PHOTO_LEAST..=PHOTO_BEST).run(encodes, watch)?;
    if matches!(attempt, Attempt::Over(_)) && wish.webp {
        return Search::webp(raster, wish, WEBP_LEAST..=WEBP_BEST).run(encodes, watch);
    }
    Ok(attempt)
}

/// A screen with photos as JPEG of good quality or as WebP; `None` where neither is possible.
pub(super) fn mixed(
    raster: &Raster,
    wish: Wish,
    encodes: &mut u32,
    watch: &Watch,
) -> Result<Option<Attempt>, Refusal> {
    let attempt = Search::jpeg(raster, wish, MIXED_LEAST..=MIXED_BEST).run(encodes, watch)?;
    if matches!(attempt, Attempt::Fits(..)) {
        return Ok(Some(attempt));
    }
    if !wish.webp {
        return Ok(None);
    }
    Search::webp(raster, wish, WEBP_LEAST..=WEBP_BEST)
        .run(encodes, watch)
        .map(Some)
}

/// Any picture as JPEG or WebP of good quality.
pub(super) fn modest(
    raster: &Raster,
    wish: Wish,
    encodes: &mut u32,
    watch: &Watch,
) -> Result<Attempt, Refusal> {
    let attempt = Search::jpeg(raster, wish, MIXED_LEAST..=MIXED_BEST).run(encodes, watch)?;
    if matches!(attempt, Attempt::Over(_)) && wish.webp {
        return Search::webp(raster, wish, WEBP_GOOD..=WEBP_BEST).run(encodes, watch);
    }
    Ok(attempt)
}

/// Looks for the best quality that fits.
struct Search<'a> {
    raster: &'a Raster,
    format: PictureFormat,
    limit: usize,
    least: u8,
    best: u8,
}

impl<'a> Search<'a> {
    fn jpeg(raster: &'a Raster, wish: Wish, qualities: RangeInclusive<u8>) -> Self {
        Self::of(raster, wish, PictureFormat::Jpeg, qualities)
    }

    fn webp(raster: &'a Raster, wish: Wish, qualities: RangeInclusive<u8>) -> Self {
        Self::of(raster, wish, PictureFormat::WebP, qualities)
    }

    fn of(
        raster: &'a Raster,
        wish: Wish,
        format: PictureFormat,
        qualities: RangeInclusive<u8>,
    ) -> Self {
        Self {
            raster,
            format,
            limit: wish.limit(format),
            least: *qualities.start(),
            best: *qualities.end(),
        }
    }

    /// Judges qualities by a sample of the picture, then encodes all of it, mostly once.
    fn run(&self, encodes: &mut u32, watch: &Watch) -> Result<Attempt, Refusal> {
        let mut quality = match self.judged(watch)? {
            Judgement::Try(quality) => quality,
            Judgement::Over(bytes) => return Ok(Attempt::Over(bytes)),
        };
        let mut curve = Curve::new(self);
        let mut kept: Option<(u8, Vec<u8>)> = None;
        loop {
            check(watch)?;
            *encodes += 1;
            let file = self.write(self.raster, quality)?;
            let bytes = file.len();
            curve.add(quality, bytes);
            if bytes > self.limit && quality == self.least {
                return Ok(Attempt::Over(bytes));
            }
            if bytes <= self.limit {
                let uses_enough = exact(bytes) >= GOOD_USE * exact(self.limit);
                let is_best =
                    kept.is_some() || uses_enough || quality >= GOOD_QUALITY.min(self.best);
                if is_best {
                    return Ok(Attempt::Fits(self.format, file));
                }
                kept = Some((quality, file));
            } else if let Some((_, file)) = kept {
                return Ok(Attempt::Fits(self.format, file));
            }
            let next = curve.guess(SECOND_AIM * exact(self.limit));
            match kept {
                Some((best, file)) if next <= best => {
                    return Ok(Attempt::Fits(self.format, file));
                }
                _ => quality = next,
            }
        }
    }

    /// What a sample of the picture speaks for.
    fn judged(&self, watch: &Watch) -> Result<Judgement, Refusal> {
        let Some(sample) = Sample::of(self.raster) else {
            return Ok(Judgement::Try(self.best));
        };
        let aim = AIM * exact(self.limit);
        let mut curve = Curve::new(self);
        let mut quality = match self.format {
            PictureFormat::WebP => self.best,
            PictureFormat::Jpeg | PictureFormat::Png => self.best.min(USUAL),
        };
        for _ in 0..MOST_TRIALS {
            check(watch)?;
            let bytes = sample.whole(self.write(&sample.raster, quality)?.len());
            curve.add(quality, bytes);
            if exact(bytes) <= aim && quality == self.best {
                break;
            }
            if exact(bytes) > aim && quality == self.least {
                return Ok(Judgement::Over(bytes));
            }
            quality = curve.guess(aim);
            if CLOSE.contains(&(exact(bytes) / aim)) {
                break;
            }
        }
        Ok(Judgement::Try(quality))
    }

    fn write(&self, raster: &Raster, quality: u8) -> Result<Vec<u8>, Refusal> {
        match self.format {
            PictureFormat::WebP => encode::webp(raster, quality),
            PictureFormat::Jpeg | PictureFormat::Png => encode::jpeg(raster, quality),
        }
    }
}

/// What a sample speaks for.
enum Judgement {
    /// This quality should fit.
    Try(u8),
    /// Even the least quality takes so many bytes.
    Over(usize),
}

/// Qualities that were tried and the bytes they took.
struct Curve {
    format: PictureFormat,
    least: u8,
    best: u8,
    points: Vec<(u8, f64)>,
}

impl Curve {
    const fn new(search: &Search<'_>) -> Self {
        Self {
            format: search.format,
            least: search.least,
            best: search.best,
            points: Vec::new(),
        }
    }

    fn add(&mut self, quality: u8, bytes: usize) {
        self.points.push((quality, exact(bytes).max(1.0)));
    }

    /// The quality that should take `bytes`, one that was not tried where there is one.
    fn guess(&self, bytes: f64) -> u8 {
        let fitting = self.points.iter().filter(|(_, taken)| *taken <= bytes);
        let below = fitting.max_by_key(|(quality, _)| *quality).copied();
        let excess = self.points.iter().filter(|(_, taken)| *taken > bytes);
        let above = excess.min_by_key(|(quality, _)| *quality).copied();
        let (from, slope) = match (below, above) {
            (Some(below), Some(above)) => (below, self.slope(below, above)),
            (Some(only), None) | (None, Some(only)) => (only, self.usual_slope()),
            (None, None) => return self.best,
        };
        let position = self.position(from.0) + (bytes / from.1).ln() / slope;
        let least = below.map_or(self.least, |(quality, _)| quality);
        let most = above.map_or(self.best, |(quality, _)| quality.saturating_sub(1));
        self.quality(position).min(most).max(least)
    }

    fn slope(&self, below: (u8, f64), above: (u8, f64)) -> f64 {
        let slope = (above.1 / below.1).ln() / (self.position(above.0) - self.position(below.0));
        if slope.is_finite() && slope > 0.0 {
            slope
        } else {
            self.usual_slope()
        }
    }

    /// How fast the logarithm of the bytes grows along [`Self::position`].
    const fn usual_slope(&self) -> f64 {
        match self.format {
            PictureFormat::WebP => 0.013,
            PictureFormat::Jpeg | PictureFormat::Png => 0.65,
        }
    }

    /// Where a quality stands on a scale along which bytes grow evenly.
    fn position(&self, quality: u8) -> f64 {
        match self.format {
            PictureFormat::WebP => f64::from(quality),
            // The factor of JPEG's quantisation tables.
            PictureFormat::Jpeg | PictureFormat::Png => {
                let quality = f64::from(quality).clamp(1.0, 99.0);
                let factor = if quality < 50.0 {
                    5_000.0 / quality
                } else {
                    200.0 - 2.0 * quality
                };
                -factor.ln()
            }
        }
    }

    /// The highest quality that does not stand above a position.
    fn quality(&self, position: f64) -> u8 {
        (self.least..=self.best)
            .rev()
            .find(|&quality| self.position(quality) <= position)
            .unwrap_or(self.least)
    }
}

/// A part of a picture, cut into blocks that lie all over it, one below the other.
struct Sample {
    raster: Raster,
    /// Pixels of all of the picture over pixels of the sample.
    share: f64,
}

impl Sample {
    /// `None` for pictures so small or so odd that a sample would say too little.
    fn of(raster: &Raster) -> Option<Self> {
        let channels = raster.layout.channels();
        let rows = raster.pixels.len() / (BLOCK * channels);
        let enough = usize::try_from(LEAST_ROWS).unwrap_or(usize::MAX);
        let every = EVERY.into_iter().find(|every| rows / every >= enough)?;
        let row = usize::try_from(raster.width).unwrap_or(usize::MAX) * channels;
        let block = BLOCK * channels;
        let mut pixels = scratch::bytes(raster.pixels.len().div_ceil(every));
        let strip = row.saturating_mul(STRIP).max(1);
        for (number, strip) in raster.pixels.chunks_exact(strip).enumerate() {
            // Each strip begins one block further, so that no column is left out.
            for column in (number % every..row / block.max(1)).step_by(every) {
                for line in strip.chunks_exact(row.max(1)) {
                    let start = column * block;
                    pixels.extend_from_slice(line.get(start..start + block).unwrap_or_default());
                }
            }
        }
        let height = u32::try_from(pixels.len() / block.max(1)).unwrap_or(u32::MAX);
        (LEAST_ROWS..=MOST_ROWS).contains(&height).then(|| Self {
            share: exact(raster.pixels.len()) / exact(pixels.len()),
            raster: Raster {
                width: u32::try_from(BLOCK).unwrap_or(u32::MAX),
                height,
                pixels,
                ..*raster
            },
        })
    }

    /// Bytes of the whole picture where the sample takes so many.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size of a file, times a share above 1"
    )]
    fn whole(&self, bytes: usize) -> usize {
        (exact(bytes) * self.share) as usize
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of files are far below 2^53"
)]
const fn exact(bytes: usize) -> f64 {
    bytes as f64
}
