//! Which format and how many colours: by content, then by what fits.
//!
//! Drawn pictures (screens, pages, charts) become PNGs with few colours, which keeps the edges
//! of letters; photos become JPEG. Colours go before pixels, because text that lost half its
//! pixels is lost, and text in four colours is not.

mod drawn;
mod lossy;

use crate::encode::{self, raw_limit};
use crate::fit::{self, Crop};
use crate::grain::Grain;
use crate::palette::Histogram;
use crate::prepared::PictureFormat;
use crate::raster::Raster;
use crate::refusal::{Refusal, RefusalKind};
use crate::watch::Watch;

/// Share of strong steps from which a picture counts as drawn: letters, lines, edges of windows.
///
/// Photos lie below 0.02, screens with photos above 0.1.
pub(crate) const DRAWN: f64 = 0.06;
/// Share of strong steps from which a picture counts as text-like.
///
/// Pages of text lie above 0.3.
const TEXT_LIKE: f64 = 0.2;
/// Mean squared error of 16 colours above which they do not do for a text-like picture.
///
/// Pages of text lie below 75, screens with photos above 190.
const TEXT_ERROR: f32 = 110.0;
/// Pictures of at most so many pixels are written without loss where that fits.
const TINY: usize = 128 * 128;
/// Share of the budget's bytes that a smaller copy aims at.
const AIM: f64 = 0.94;
/// Shortest side that providers take; shorter ones are padded with white (design decision 16).
pub(crate) const LEAST_SIDE: u32 = 32;

/// What the file must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// Characters of `data:` URL.
    pub(crate) budget: usize,
    /// Whether WebP is allowed.
    pub(crate) webp: bool,
}

impl Wish {
    /// Bytes a file of this format may have.
    fn limit(self, format: PictureFormat) -> usize {
        raw_limit(self.budget, format)
    }

    /// Whether a file keeps the budget.
    fn takes(self, format: PictureFormat, file: &[u8]) -> bool {
        file.len() <= self.limit(format)
    }
}

/// A file within the budget.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) file: Vec<u8>,
    pub(crate) format: PictureFormat,
    /// Of the file.
    pub(crate) size: (u32, u32),
    /// Of what the file shows of the picture, without padding.
    pub(crate) shown: (u32, u32),
    pub(crate) encodes: u32,
}

/// What became of one size of a picture.
enum Attempt {
    /// It fits.
    Fits(PictureFormat, Vec<u8>),
    /// It does not; the smallest file has so many bytes.
    Over(usize),
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Text and flat areas.
    Text,
    /// A screen with photos on it.
    Mixed,
    /// A photo.
    Photo,
}

impl Content {
    fn of(raster: &Raster) -> Self {
        let sharpness = Grain::of(raster).sharpness;
        if sharpness >= TEXT_LIKE {
            Self::Text
        } else if sharpness >= DRAWN {
            Self::Mixed
        } else {
            Self::Photo
        }
    }
}

/// Writes an opaque picture within the budget, smaller only where nothing else is left.
///
/// # Errors
/// `OverBudget` when not even a very small copy fits, `Abandoned` when nobody waits any more.
pub(crate) fn choose(raster: Raster, wish: Wish, watch: &Watch) -> Result<Chosen, Refusal> {
    let mut encodes = 0;
    let mut shown = (raster.width, raster.height);
    let mut current = fit::padded(raster, LEAST_SIDE);
    loop {
        let bytes = match attempt(&current, wish, &mut encodes, watch)? {
            Attempt::Fits(format, file) => {
                return Ok(Chosen {
                    file,
                    format,
                    size: (current.width, current.height),
                    shown,
                    encodes,
                });
            }
            Attempt::Over(bytes) => bytes,
        };
        let next = fit::scaled(shown, shrink_factor(wish, bytes));
        if next.0.max(next.1) < LEAST_SIDE || next == shown {
            return Err(over_budget(wish, shown, bytes));
        }
        let crop = Crop {
            left: 0.0,
            top: 0.0,
            width: f64::from(shown.0),
            height: f64::from(shown.1),
        };
        current = fit::padded(fit::resized(&current, Some(crop), next)?, LEAST_SIDE);
        shown = next;
    }
}

/// By the square root of what is too much, because bytes follow the area.
#[expect(clippy::cast_precision_loss, reason = "a factor needs few digits")]
fn shrink_factor(wish: Wish, bytes: usize) -> f64 {
    let allowed = wish.limit(PictureFormat::Jpeg) as f64 * AIM;
    (allowed / bytes.max(1) as f64).sqrt().clamp(0.25, 0.95)
}

fn attempt(
    raster: &Raster,
    wish: Wish,
    encodes: &mut u32,
    watch: &Watch,
) -> Result<Attempt, Refusal> {
    if let Some(file) = drawn::lossless(raster, wish, encodes)? {
        return Ok(Attempt::Fits(PictureFormat::Png, file));
    }
    check(watch)?;
    let content = Content::of(raster);
    if content == Content::Photo {
        return lossy::photo(raster, wish, encodes, watch);
    }
    let histogram = Histogram::of(raster);
    let sixteen = histogram.palette(16);
    if (content == Content::Mixed || sixteen.error > TEXT_ERROR)
        && let Some(attempt) = lossy::mixed(raster, wish, encodes, watch)?
    {
        return Ok(attempt);
    }
    drawn::fewer_colours(&histogram, sixteen, wish, encodes, watch)
}

/// Stops between steps when nobody waits any more.
pub(crate) fn check(watch: &Watch) -> Result<(), Refusal> {
    if watch.is_over() {
        return Err(Refusal {
            kind: RefusalKind::Abandoned,
            detail: "nobody waited for the picture any more".to_owned(),
        });
    }
    Ok(())
}

fn over_budget(wish: Wish, size: (u32, u32), bytes: usize) -> Refusal {
    Refusal {
        kind: RefusalKind::OverBudget,
        detail: format!(
            "even {}×{} pixels need {} characters; {} are allowed",
            size.0,
            size.1,
            encode::url_length(bytes, PictureFormat::Jpeg),
            wish.budget
        ),
    }
}
