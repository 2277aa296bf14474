//! SVG: what it is, what it would cost, and how it is drawn.
//!
//! Nothing is fetched and no file is read: references lead into the document, pictures come from
//! `data:` URLs, text is set in one bundled font.

mod cost;
mod draw;
mod graph;

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::roxmltree::Document;
use resvg::usvg::{self, ImageHrefResolver, ImageKind, Options, Tree, fontdb};

use crate::decode::Rect;
use crate::header::{self, damaged};
use crate::limits::{MAX_PIXELS, MAX_SIDE, MAX_SVG_CANVAS, MAX_SVG_PICTURE_PIXELS, MAX_SVG_WEIGHT};
use crate::raster::{Layout, Raster};
use crate::refusal::{Refusal, RefusalKind};
use crate::sniff;

/// DejaVu Sans: Latin, Greek, Cyrillic, Arabic, symbols, box drawing.
static FONT: &[u8] = include_bytes!("../fonts/DejaVuSans.ttf");
const FONT_FAMILY: &str = "DejaVu Sans";

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_source(fontdb::Source::Binary(Arc::new(FONT)));
    fonts.set_serif_family(FONT_FAMILY);
    fonts.set_sans_serif_family(FONT_FAMILY);
    fonts.set_monospace_family(FONT_FAMILY);
    fonts.set_cursive_family(FONT_FAMILY);
    fonts.set_fantasy_family(FONT_FAMILY);
    Arc::new(fonts)
});

/// The size in pixels that the document gives itself, brought below the limits.
pub(crate) fn size(bytes: &[u8]) -> Result<(u32, u32), Refusal> {
    let document = text(bytes)?;
    graph::check_text(document)?;
    let document = xml(document)?;
    if let Some(size) = plain_size(&document) {
        return Ok(clamped(size));
    }
    Ok(clamped(parse(bytes)?.size()))
}

/// The size of a document that says it in pixels, as nearly all do.
fn plain_size(document: &Document<'_>) -> Option<usvg::Size> {
    let root = document.root_element();
    let length = |name| {
        let text = root.attribute(name)?.trim();
        text.strip_suffix("px").unwrap_or(text).parse::<f32>().ok()
    };
    let sides = ["width", "height"];
    if sides.iter().any(|side| root.has_attribute(*side)) {
        return usvg::Size::from_wh(length("width")?, length("height")?);
    }
    // Without sides it is as large as its view.
    let view: Vec<f32> = root
        .attribute("viewBox")?
        .split([' ', ','])
        .filter(|part| !part.is_empty())
        .map(|part| part.trim().parse().ok())
        .collect::<Option<_>>()?;
    match view.as_slice() {
        [_, _, width, height] => usvg::Size::from_wh(*width, *height),
        _ => None,
    }
}

fn clamped(size: usvg::Size) -> (u32, u32) {
    let (width, height) = (f64::from(size.width()), f64::from(size.height()));
    let by_side = f64::from(MAX_SIDE) / width.max(height);
    let by_area = (pixel_count(MAX_PIXELS) / (width * height)).sqrt();
    let scale = by_side.min(by_area).min(1.0);
    (pixels(width * scale), pixels(height * scale))
}

#[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
const fn pixel_count(limit: u64) -> f64 {
    limit as f64
}

/// A length in whole pixels, at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the length is clamped to the range of the limits"
)]
fn pixels(length: f64) -> u32 {
    length.round().clamp(1.0, f64::from(MAX_SIDE)) as u32
}

/// Draws `crop` of a document whose header says `width` × `height`, at most `max_side` long.
pub(crate) fn draw(
    bytes: &[u8],
    (width, height): (u32, u32),
    crop: Rect,
    max_side: u32,
) -> Result<Raster, Refusal> {
    let tree = parse(bytes)?;
    let long = crop.width.max(crop.height);
    let by_side = f64::from(max_side) / f64::from(long);
    let area = f64::from(crop.width) * f64::from(crop.height);
    let by_area = (pixel_count(MAX_SVG_CANVAS) / area).sqrt();
    let scale = by_side.min(by_area).min(1.0);
    // The canvas is rounded to pixels; the drawing follows it.
    let canvas = (
        pixels(f64::from(crop.width) * scale),
        pixels(f64::from(crop.height) * scale),
    );
    let transform = placed(&tree, (width, height), crop, canvas);
    cost::check(&tree, transform, canvas)?;
    let mut pixmap = Pixmap::new(canvas.0, canvas.1)
        .ok_or_else(|| damaged("the SVG has no size to draw it at"))?;
    pixmap.fill(Color::WHITE);
    draw::tree(&tree, transform, &mut pixmap);
    let (colours, _) = pixmap.data().as_chunks::<4>();
    let pixels = colours
        .iter()
        .flat_map(|[red, green, blue, _]| [*red, *green, *blue])
        .collect();
    Ok(Raster {
        width: canvas.0,
        height: canvas.1,
        layout: Layout::Rgb,
        pixels,
    })
}

/// From the document's units to pixels of the canvas.
#[expect(clippy::cast_possible_truncation, reason = "a scale may lose digits")]
fn placed(tree: &Tree, size: (u32, u32), crop: Rect, canvas: (u32, u32)) -> Transform {
    let across = f64::from(canvas.0) / f64::from(crop.width);
    let down = f64::from(canvas.1) / f64::from(crop.height);
    let wide = f64::from(size.0) / f64::from(tree.size().width());
    let tall = f64::from(size.1) / f64::from(tree.size().height());
    Transform::from_row(
        (across * wide) as f32,
        0.0,
        0.0,
        (down * tall) as f32,
        (-f64::from(crop.x) * across) as f32,
        (-f64::from(crop.y) * down) as f32,
    )
}

/// The document as shapes, once its references are known to end.
fn parse(bytes: &[u8]) -> Result<Tree, Refusal> {
    let document = text(bytes)?;
    graph::check_text(document)?;
    let document = xml(document)?;
    graph::check(&document)?;
    Tree::from_xmltree(&document, &options()).map_err(|error| {
        if matches!(error, usvg::Error::ElementsLimitReached) {
            too_complex("it has too many elements")
        } else {
            damaged(format!("the SVG cannot be read: {error}"))
        }
    })
}

fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_error| damaged("the SVG is not UTF-8 text"))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn xml(text: &str) -> Result<Document<'_>, Refusal> {
    let parsing = usvg::roxmltree::ParsingOptions {
        allow_dtd: true,
        nodes_limit: u32::try_from(MAX_SVG_WEIGHT * 4).unwrap_or(u32::MAX),
        entity_resolver: None,
    };
    Document::parse_with_options(text, parsing)
        .map_err(|error| damaged(format!("the SVG is not well-formed XML: {error}")))
}

fn options() -> Options<'static> {
    Options {
        resources_dir: None,
        font_family: FONT_FAMILY.to_owned(),
        fontdb: Arc::clone(&FONTS),
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, data, _| picture(data)),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    }
}

/// A picture of a `data:` URL, by its bytes; one over the limits is left out.
fn picture(data: Arc<Vec<u8>>) -> Option<ImageKind> {
    use crate::prepared::SourceFormat;

    let kind: fn(Arc<Vec<u8>>) -> ImageKind = match sniff::format(&data) {
        SourceFormat::Png => ImageKind::PNG,
        SourceFormat::Jpeg => ImageKind::JPEG,
        SourceFormat::Gif => ImageKind::GIF,
        SourceFormat::WebP => ImageKind::WEBP,
        SourceFormat::Bmp
        | SourceFormat::Tiff
        | SourceFormat::Ico
        | SourceFormat::Svg
        | SourceFormat::Avif
        | SourceFormat::Heic
        | SourceFormat::Unknown => return None,
    };
    let header = header::read(&data).ok()?;
    (header::pixels(header.width, header.height) <= MAX_SVG_PICTURE_PIXELS).then(|| kind(data))
}

fn too_complex(why: &str) -> Refusal {
    Refusal {
        kind: RefusalKind::TooComplex,
        detail: format!("the SVG costs too much to draw: {why}"),
    }
}

#[cfg(test)]
mod tests;
