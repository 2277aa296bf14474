//! The one function: bytes in, pictures within the budget out.

use crate::choose::{self, Chosen, LEAST_SIDE, Wish};
use crate::decode::{self, Decoded, Need, Rect};
use crate::encode::url_length;
use crate::fit::{self, Crop};
use crate::header::{self, Header};
use crate::legible;
use crate::notes;
use crate::orient::{Orientation, orient};
use crate::prepared::{
    Area, Note, NoteKind, Picture, PictureFormat, Prepared, SourceFacts, SourceFormat,
};
use crate::raster::Raster;
use crate::refusal::{Refusal, RefusalKind};
use crate::target::{Region, Target, Tiling};
use crate::tiles::{READABLE_FACTOR, tiles};
use crate::watch::Watch;

/// Makes a picture ready for a model: upright, within the side limit and the budget.
///
/// Pure and synchronous; one thread; asks `watch` between its steps.
///
/// # Errors
/// Why nothing can be shown, in words and as a kind.
pub fn prepare(bytes: &[u8], target: &Target, watch: &Watch) -> Result<Prepared, Refusal> {
    choose::check(watch)?;
    let header = header::read(bytes)?;
    prepare_read(bytes, &header, target, watch)
}

/// The same for bytes whose header was read.
pub(crate) fn prepare_read(
    bytes: &[u8],
    header: &Header,
    target: &Target,
    watch: &Watch,
) -> Result<Prepared, Refusal> {
    choose::check(watch)?;
    let whole = whole(header);
    let area = match target.region {
        Some(region) => inside(region, whole)?,
        None => whole,
    };
    let source = SourceFacts {
        format: header.format,
        width: whole.width,
        height: whole.height,
        frames: header.frames,
    };
    let need = need(header, area, whole, target);
    let Decoded { raster, damage } = decode::decode(bytes, header, &need, watch)?;

    let is_untouched = area == whole && damage.is_none();
    if let Some(format) = passing(header, bytes, target).filter(|_| is_untouched)
        && decode::is_exact(bytes, header, watch)?
    {
        return Ok(Prepared {
            pictures: vec![Picture {
                bytes: bytes.to_vec(),
                format,
                width: whole.width,
                height: whole.height,
                area: whole,
                is_original: true,
                scale_note: None,
            }],
            source,
            notes: Vec::new(),
            encodes: 0,
        });
    }

    let mut notes = Vec::new();
    if header.is_animated {
        notes.push(notes::first_frame(header.frames));
    }
    if let Some(damage) = damage {
        notes.push(notes::damaged(&damage));
    }
    if area != whole {
        notes.push(notes::cropped(area, (whole.width, whole.height)));
    }
    let work = Work {
        raster,
        area,
        orientation: header.orientation,
        max_side: target.max_side.max(LEAST_SIDE),
        wish: Wish {
            budget: target.budget,
            webp: target.webp,
        },
        // A part of it is asked for to be read, and may take more bytes than the whole.
        own: (area == whole && fits_already(whole, bytes, target)).then_some(bytes.len()),
    };
    let (pictures, encodes) = work.pictures(target.tiling, &mut notes, watch)?;
    Ok(Prepared {
        pictures,
        source,
        notes,
        encodes,
    })
}

/// What a file says of itself, after the limits were checked; nothing is decoded.
///
/// # Errors
/// As [`prepare`] for what its header shows.
pub fn inspect(bytes: &[u8]) -> Result<SourceFacts, Refusal> {
    let header = header::read(bytes)?;
    let (width, height) = header.upright_size();
    Ok(SourceFacts {
        format: header.format,
        width,
        height,
        frames: header.frames,
    })
}

fn whole(header: &Header) -> Area {
    let (width, height) = header.upright_size();
    Area {
        x: 0,
        y: 0,
        width,
        height,
    }
}

/// The part of a region that lies inside the picture.
fn inside(region: Region, whole: Area) -> Result<Area, Refusal> {
    let held = |at: i64, side: u32| u32::try_from(at.clamp(0, i64::from(side))).unwrap_or(side);
    let (x1, x2) = (held(region.x1, whole.width), held(region.x2, whole.width));
    let (y1, y2) = (held(region.y1, whole.height), held(region.y2, whole.height));
    if x2 <= x1 || y2 <= y1 {
        return Err(Refusal {
            kind: RefusalKind::BadRegion,
            detail: format!(
                "the region ({}, {}) to ({}, {}) shows nothing of the {}×{} picture",
                region.x1, region.y1, region.x2, region.y2, whole.width, whole.height
            ),
        });
    }
    Ok(Area {
        x: x1,
        y: y1,
        width: x2 - x1,
        height: y2 - y1,
    })
}

/// What the decoder has to deliver: enough pixels for one fit, or for every tile.
fn need(header: &Header, area: Area, whole: Area, target: &Target) -> Need {
    let region = (area != whole).then(|| {
        let upright = Rect {
            x: area.x,
            y: area.y,
            width: area.width,
            height: area.height,
        };
        header
            .orientation
            .stored_rect(upright, header.width, header.height)
    });
    let long = area.width.max(area.height);
    let most = match target.tiling {
        Tiling::Off => 1,
        Tiling::Auto { .. } if !legible::may_lose_text(long, target.max_side) => 1,
        Tiling::Auto { most } | Tiling::On { most } => u32::try_from(most).unwrap_or(u32::MAX),
    };
    // Tiles in a row show so many times more than one picture does.
    let max_side = target.max_side.saturating_mul(most.max(1)).min(long);
    Need {
        max_side: max_side.max(LEAST_SIDE),
        region,
    }
}

/// Whether the bytes keep the budget and the side limit, whatever they are.
fn fits_already(whole: Area, bytes: &[u8], target: &Target) -> bool {
    whole.width.max(whole.height) <= target.max_side
        && url_length(bytes.len(), PictureFormat::Jpeg) <= target.budget
}

/// The format under which the original bytes may leave, should they decode.
fn passing(header: &Header, bytes: &[u8], target: &Target) -> Option<PictureFormat> {
    let format = match header.format {
        SourceFormat::Png => PictureFormat::Png,
        SourceFormat::Jpeg => PictureFormat::Jpeg,
        SourceFormat::WebP if target.webp => PictureFormat::WebP,
        SourceFormat::WebP
        | SourceFormat::Gif
        | SourceFormat::Bmp
        | SourceFormat::Tiff
        | SourceFormat::Ico
        | SourceFormat::Svg
        | SourceFormat::Avif
        | SourceFormat::Heic
        | SourceFormat::Unknown => return None,
    };
    let (short, long) = (
        header.width.min(header.height),
        header.width.max(header.height),
    );
    let fits = short >= LEAST_SIDE
        && long <= target.max_side
        && url_length(bytes.len(), format) <= target.budget;
    (fits && header.is_plain).then_some(format)
}

/// Pixels on their way out.
struct Work {
    /// What was decoded of `area`, as stored, perhaps reduced.
    raster: Raster,
    /// The part of the upright original.
    area: Area,
    orientation: Orientation,
    max_side: u32,
    wish: Wish,
    /// Bytes of a source that keeps the budget and the side limit.
    own: Option<usize>,
}

impl Work {
    fn pictures(
        mut self,
        tiling: Tiling,
        notes: &mut Vec<Note>,
        watch: &Watch,
    ) -> Result<(Vec<Picture>, u32), Refusal> {
        let areas = self.areas(tiling);
        let is_hard = areas.first().is_some_and(|area| self.loses_text(*area));
        let mut encodes = 0;
        let mut pictures = Vec::with_capacity(areas.len());
        let mut rest = areas.as_slice();
        while let [area, others @ ..] = rest {
            choose::check(watch)?;
            let small = self.fitted(*area, others.is_empty())?;
            let upright = orient(small, self.orientation);
            let chosen = choose::choose(upright, self.wish, self.own, watch)?;
            encodes += chosen.encodes;
            note_changes(*area, &chosen, areas.len() > 1, notes);
            pictures.push(picture(*area, chosen));
            rest = others;
        }
        if areas.len() > 1 {
            notes.push(notes::tiled(&areas, self.area));
        }
        if is_hard && let Some(first) = pictures.first() {
            notes.push(notes::hard_to_read(
                first.area,
                (first.width, first.height),
                self.max_side,
            ));
        }
        Ok((pictures, encodes))
    }

    /// What the pictures show, in reading order.
    fn areas(&self, tiling: Tiling) -> Vec<Area> {
        let (most, enough) = match tiling {
            Tiling::Auto { most } if self.loses_text(self.area) => (most, READABLE_FACTOR),
            Tiling::On { most } => (most, 1.0),
            Tiling::Off | Tiling::Auto { .. } => (1, 1.0),
        };
        let size = (self.area.width, self.area.height);
        let mut areas = tiles(size, self.max_side, most, enough);
        for area in &mut areas {
            area.x = area.x.saturating_add(self.area.x);
            area.y = area.y.saturating_add(self.area.y);
        }
        areas
    }

    /// Whether one fit of this part makes its text unreadable.
    fn loses_text(&self, area: Area) -> bool {
        let (across, _) = self.reduction();
        let long = f64::from(area.width.max(area.height)) * across;
        legible::loses_text(&self.raster, long / f64::from(self.max_side))
    }

    /// Pixels of the raster per pixel of the original, along stored rows and columns.
    fn reduction(&self) -> (f64, f64) {
        let (width, height) = self.stored_size();
        (
            f64::from(self.raster.width) / f64::from(width.max(1)),
            f64::from(self.raster.height) / f64::from(height.max(1)),
        )
    }

    /// The size of `area` as it is stored.
    const fn stored_size(&self) -> (u32, u32) {
        self.orientation
            .upright_size(self.area.width, self.area.height)
    }

    /// A part of the original, brought to the size it leaves with; still as stored.
    ///
    /// The last one takes the raster along, so that its memory is free before encoding.
    fn fitted(&mut self, area: Area, is_last: bool) -> Result<Raster, Refusal> {
        let (width, height) = fit::fitted(area.width, area.height, self.max_side);
        let size = self.orientation.upright_size(width, height);
        let is_all = area == self.area;
        if is_all && is_last && size == (self.raster.width, self.raster.height) {
            return Ok(self.take());
        }
        let crop = (!is_all).then(|| self.crop(area));
        let small = fit::resized(&self.raster, crop, size)?;
        if is_last {
            drop(self.take());
        }
        Ok(small)
    }

    fn take(&mut self) -> Raster {
        let empty = Raster {
            width: 0,
            height: 0,
            layout: self.raster.layout,
            pixels: Vec::new(),
        };
        std::mem::replace(&mut self.raster, empty)
    }

    /// Where a part of the original lies in the raster.
    fn crop(&self, area: Area) -> Crop {
        let upright = Rect {
            x: area.x.saturating_sub(self.area.x),
            y: area.y.saturating_sub(self.area.y),
            width: area.width,
            height: area.height,
        };
        let (width, height) = self.stored_size();
        let stored = self.orientation.stored_rect(upright, width, height);
        let (across, down) = self.reduction();
        Crop {
            left: f64::from(stored.x) * across,
            top: f64::from(stored.y) * down,
            width: f64::from(stored.width) * across,
            height: f64::from(stored.height) * down,
        }
    }
}

fn picture(area: Area, chosen: Chosen) -> Picture {
    Picture {
        bytes: chosen.file,
        format: chosen.format,
        width: chosen.size.0,
        height: chosen.size.1,
        area,
        is_original: false,
        scale_note: notes::scale_note(area, chosen.shown),
    }
}

/// Notes what choosing changed; tiles carry their scale in the picture itself.
fn note_changes(area: Area, chosen: &Chosen, is_tile: bool, notes: &mut Vec<Note>) {
    if chosen.shown != (area.width, area.height) && !is_tile {
        notes.push(notes::downscaled(area, chosen.shown));
    }
    if chosen.shown != chosen.size && notes.iter().all(|note| note.kind != NoteKind::Padded) {
        notes.push(notes::padded(chosen.shown, chosen.size));
    }
}
