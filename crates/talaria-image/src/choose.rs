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

/// Mean squared error above which a palette does not do for a text-like picture.
///
/// With 16 colours pages of text lie below 75, colourful charts and photos above 170.
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

    /// The same, but no more bytes than these.
    fn within(self, bytes: usize) -> Self {
        let whole_groups = bytes - bytes % 3;
        let budget = encode::url_length(whole_groups, PictureFormat::Jpeg);
        Self {
            budget: budget.min(self.budget),
            ..self
        }
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
        let grain = Grain::of(raster);
        if grain.is_text_like() {
            Self::Text
        } else if grain.is_drawn() {
            Self::Mixed
        } else {
            Self::Photo
        }
    }
}

/// Writes an opaque picture within the budget, smaller only where nothing else is left.
///
/// `own` are the bytes of a source that would have fitted but may not leave as it is: no more
/// are taken where that costs little.
///
/// # Errors
/// `OverBudget` when not even a very small copy fits, `Abandoned` when nobody waits any more.
pub(crate) fn choose(
    raster: Raster,
    wish: Wish,
    own: Option<usize>,
    watch: &Watch,
) -> Result<Chosen, Refusal> {
    let mut encodes = 0;
    let mut shown = (raster.width, raster.height);
    let mut current = fit::padded(raster, LEAST_SIDE);
    let chosen = |(format, file), current: &Raster, shown, encodes| Chosen {
        file,
        format,
        size: (current.width, current.height),
        shown,
        encodes,
    };
    if let Some(own) = own
        && let Some(fits) = modest(&current, wish.within(own), &mut encodes, watch)?
    {
        return Ok(chosen(fits, &current, shown, encodes));
    }
    loop {
        let bytes = match attempt(&current, wish, &mut encodes, watch)? {
            Attempt::Fits(format, file) => {
                return Ok(chosen((format, file), &current, shown, encodes));
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

/// One size of a picture, in the form that suits what it shows.
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
    if content == Content::Mixed
        // Mostly a JPEG, for which nobody has to count colours.
        && let Some(attempt) = lossy::mixed(raster, wish, encodes, watch)?
    {
        return Ok(attempt);
    }
    let histogram = Histogram::of(raster);
    let sixteen = histogram.palette(16);
    if content == Content::Text && sixteen.error > TEXT_ERROR {
        let many = drawn::many_colours(&histogram, wish, encodes, watch)?;
        if let Attempt::Fits(..) = many {
            return Ok(many);
        }
        if let Some(attempt) = lossy::mixed(raster, wish, encodes, watch)? {
            return Ok(attempt);
        }
    }
    drawn::ladder(&histogram, &sixteen, wish, encodes, watch)
}

/// One size of a picture within the bytes of its source, where that costs little quality.
fn modest(
    raster: &Raster,
    wish: Wish,
    encodes: &mut u32,
    watch: &Watch,
) -> Result<Option<(PictureFormat, Vec<u8>)>, Refusal> {
    if let Some(file) = drawn::lossless(raster, wish, encodes)? {
        return Ok(Some((PictureFormat::Png, file)));
    }
    let attempt = if Content::of(raster) == Content::Text {
        let histogram = Histogram::of(raster);
        let sixteen = histogram.palette(16);
        drawn::sixteen_colours(&histogram, &sixteen, wish, encodes)?
    } else {
        Attempt::Over(usize::MAX)
    };
    let attempt = match attempt {
        Attempt::Over(_) => lossy::modest(raster, wish, encodes, watch)?,
        fits @ Attempt::Fits(..) => fits,
    };
    Ok(match attempt {
        Attempt::Fits(format, file) => Some((format, file)),
        Attempt::Over(_) => None,
    })
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
