//! What drawing would take, in nanoseconds and bytes, before a pixel is drawn.
//!
//! The walk follows the renderer: layers for groups that are drawn apart, tiles for patterns, the
//! pictures of every filter step.
//! The figures are measured on one core of a server and rounded up; they only have to tell
//! milliseconds from minutes.

mod filter;

use resvg::tiny_skia::{PathSegment, Point, Transform};
use resvg::usvg::{self, Group, Image, Node, Paint, Path, Tree};

use super::draw::{bytes, holds_picture};
use super::too_complex;
use crate::header;
use crate::limits::{MAX_SVG_LAYER_BYTES, MAX_SVG_NANOSECONDS, MAX_SVG_PICTURE_PIXELS};
use crate::refusal::Refusal;

/// Nanoseconds of an element, whatever it draws.
const ELEMENT: f64 = 2_000.0;
/// Of one segment of a path.
const SEGMENT: f64 = 120.0;
/// Of one row of pixels that an edge crosses.
const EDGE_ROW: f64 = 120.0;
/// Of one pixel: cleared and laid over another.
const LAYER_PIXEL: f64 = 14.0;
/// Of one pixel filled with one colour, a gradient, a pattern or a picture.
const FLAT_PIXEL: f64 = 1.0;
const GRADIENT_PIXEL: f64 = 12.0;
const SAMPLED_PIXEL: f64 = 16.0;
/// Of one pixel of a picture that is decoded.
const DECODED_PIXEL: f64 = 25.0;
const BYTES_PER_PIXEL: f64 = 4.0;
/// How far beyond the canvas a layer may reach, in canvases to each side.
const OVERHANG: f64 = 2.0;

/// Refuses a document that takes too long or too much memory to draw.
pub(super) fn check(
    tree: &Tree,
    transform: Transform,
    (width, height): (u32, u32),
) -> Result<(), Refusal> {
    let canvas = Extent {
        width: f64::from(width),
        height: f64::from(height),
    };
    let mut bill = Bill::default();
    bill.layers += canvas.area() * BYTES_PER_PIXEL;
    bill.group(tree.root(), transform, canvas)
}

/// The size of what is drawn on.
#[derive(Clone, Copy, Debug)]
struct Extent {
    width: f64,
    height: f64,
}

impl Extent {
    fn area(self) -> f64 {
        self.width * self.height
    }
}

/// What has been added up.
#[derive(Debug, Default)]
struct Bill {
    nanoseconds: f64,
    /// Bytes that are held at this point of the walk.
    layers: f64,
    pictures: u64,
}

impl Bill {
    fn add(&mut self, nanoseconds: f64) -> Result<(), Refusal> {
        self.nanoseconds += nanoseconds;
        // A sum that is no number is no sum.
        if self.nanoseconds <= limit(MAX_SVG_NANOSECONDS) {
            return Ok(());
        }
        Err(too_complex("drawing it would take more than half a second"))
    }

    fn hold(&mut self, bytes: f64) -> Result<(), Refusal> {
        self.layers += bytes;
        if self.layers <= limit(MAX_SVG_LAYER_BYTES) {
            return Ok(());
        }
        Err(too_complex("its layers would take too much memory"))
    }

    fn release(&mut self, bytes: f64) {
        self.layers -= bytes;
    }

    fn group(
        &mut self,
        group: &Group,
        transform: Transform,
        canvas: Extent,
    ) -> Result<(), Refusal> {
        for node in group.children() {
            self.add(ELEMENT)?;
            match node {
                Node::Group(child) => self.child(child, transform, canvas)?,
                Node::Path(path) => self.path(path, transform, canvas)?,
                Node::Image(image) => self.image(image, transform, canvas)?,
                Node::Text(text) => self.child(text.flattened(), transform, canvas)?,
            }
        }
        Ok(())
    }

    /// A group, on a layer of its own where it needs one.
    fn child(
        &mut self,
        child: &Group,
        transform: Transform,
        canvas: Extent,
    ) -> Result<(), Refusal> {
        let transform = transform.pre_concat(child.transform());
        if !child.should_isolate() {
            return self.group(child, transform, canvas);
        }
        let bounds = child.layer_bounding_box().to_rect();
        let layer = if holds_picture(child) {
            canvas
        } else {
            reach(bounds, transform, canvas)
        };
        let pixels = layer.area();
        self.hold(pixels * BYTES_PER_PIXEL)?;
        self.add(pixels * LAYER_PIXEL)?;
        self.group(child, transform, layer)?;
        for filter in child.filters() {
            self.filter(filter, transform, layer)?;
        }
        let mut clip = child.clip_path();
        let mut clip_transform = transform;
        while let Some(own) = clip {
            clip_transform = clip_transform.pre_concat(own.transform());
            self.cover(own.root(), clip_transform, layer)?;
            clip = own.clip_path();
        }
        let mut mask = child.mask();
        while let Some(own) = mask {
            self.cover(own.root(), transform, layer)?;
            mask = own.mask();
        }
        self.release(pixels * BYTES_PER_PIXEL);
        Ok(())
    }

    /// A clip or a mask: a second layer and its coverage.
    fn cover(&mut self, cover: &Group, transform: Transform, layer: Extent) -> Result<(), Refusal> {
        let bytes = layer.area() * (BYTES_PER_PIXEL + 2.0);
        self.hold(bytes)?;
        self.add(layer.area() * LAYER_PIXEL)?;
        self.group(cover, transform, layer)?;
        self.release(bytes);
        Ok(())
    }

    fn path(&mut self, path: &Path, transform: Transform, canvas: Extent) -> Result<(), Refusal> {
        let outline = Outline::of(path.data(), transform, canvas);
        if let Some(fill) = path.fill() {
            let pixels = covered(path.bounding_box(), transform, canvas);
            self.add(outline.edges())?;
            self.paint(fill.paint(), pixels, transform)?;
        }
        if let Some(stroke) = path.stroke() {
            let pixels = covered(path.stroke_bounding_box(), transform, canvas);
            // Two sides and the joins; dashes are cut out of the length.
            let dashes = stroke.dasharray().map_or(0.0, |pattern| {
                let period: f64 = pattern.iter().copied().map(f64::from).sum();
                let parts = f64::from(u16::try_from(pattern.len()).unwrap_or(u16::MAX));
                (outline.length / period.max(1e-6) * parts).min(2e6)
            });
            self.add(outline.edges() * 2.0 + dashes * 8.0 * SEGMENT)?;
            self.paint(stroke.paint(), pixels, transform)?;
        }
        Ok(())
    }

    fn paint(&mut self, paint: &Paint, pixels: f64, transform: Transform) -> Result<(), Refusal> {
        match paint {
            Paint::Color(_) => self.add(pixels * FLAT_PIXEL),
            Paint::LinearGradient(_) | Paint::RadialGradient(_) => {
                self.add(pixels * GRADIENT_PIXEL)
            }
            Paint::Pattern(pattern) => {
                let (across, down) = transform.pre_concat(pattern.transform()).get_scale();
                let tile = Extent {
                    width: (f64::from(pattern.rect().width()) * f64::from(across)).ceil(),
                    height: (f64::from(pattern.rect().height()) * f64::from(down)).ceil(),
                };
                self.hold(tile.area() * BYTES_PER_PIXEL)?;
                self.add(pixels * SAMPLED_PIXEL + tile.area())?;
                self.group(pattern.root(), Transform::from_scale(across, down), tile)?;
                self.release(tile.area() * BYTES_PER_PIXEL);
                Ok(())
            }
        }
    }

    fn image(
        &mut self,
        image: &Image,
        transform: Transform,
        canvas: Extent,
    ) -> Result<(), Refusal> {
        let pixels = covered(image.bounding_box(), transform, canvas);
        self.add(pixels * SAMPLED_PIXEL)?;
        let Some(header) = bytes(image).and_then(|bytes| header::read(bytes).ok()) else {
            return Ok(());
        };
        let decoded = header::pixels(header.width, header.height);
        self.pictures = self.pictures.saturating_add(decoded);
        if self.pictures > MAX_SVG_PICTURE_PIXELS {
            return Err(too_complex("the pictures in it are too large"));
        }
        let held = limit(decoded) * (BYTES_PER_PIXEL + 4.0);
        self.hold(held)?;
        self.release(held);
        self.add(limit(decoded) * DECODED_PIXEL)
    }

    fn filter(
        &mut self,
        filter: &usvg::filter::Filter,
        transform: Transform,
        layer: Extent,
    ) -> Result<(), Refusal> {
        // Every step keeps its result, and most work on a copy.
        let steps = f64::from(u16::try_from(filter.primitives().len()).unwrap_or(u16::MAX));
        let bytes = layer.area() * BYTES_PER_PIXEL * (steps + 3.0);
        self.hold(bytes)?;
        for primitive in filter.primitives() {
            self.add(layer.area() * filter::per_pixel(primitive.kind(), transform, layer))?;
            if let usvg::filter::Kind::Image(image) = primitive.kind() {
                self.group(image.root(), transform, layer)?;
            }
        }
        self.release(bytes);
        Ok(())
    }
}

/// A limit as a number to compare with.
#[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
const fn limit(limit: u64) -> f64 {
    limit as f64
}

/// Pixels of the canvas that a shape covers at most.
fn covered(bounds: usvg::Rect, transform: Transform, canvas: Extent) -> f64 {
    let Some(bounds) = bounds.transform(transform) else {
        return canvas.area();
    };
    let extent = |start: f32, end: f32, most: f64| {
        let start = f64::from(start).clamp(0.0, most);
        let end = f64::from(end).clamp(0.0, most);
        (end - start).ceil() + 1.0
    };
    extent(bounds.left(), bounds.right(), canvas.width)
        * extent(bounds.top(), bounds.bottom(), canvas.height)
}

/// The layer of a group: its bounds, as far as they lie around the canvas.
fn reach(bounds: usvg::Rect, transform: Transform, canvas: Extent) -> Extent {
    let whole = Extent {
        width: canvas.width * (OVERHANG * 2.0 + 1.0),
        height: canvas.height * (OVERHANG * 2.0 + 1.0),
    };
    let Some(bounds) = bounds.transform(transform) else {
        return whole;
    };
    let extent = |start: f32, end: f32, side: f64| {
        let start = f64::from(start).clamp(-side * OVERHANG, side * (OVERHANG + 1.0));
        let end = f64::from(end).clamp(-side * OVERHANG, side * (OVERHANG + 1.0));
        (end - start).ceil() + 4.0
    };
    Extent {
        width: extent(bounds.left(), bounds.right(), canvas.width),
        height: extent(bounds.top(), bounds.bottom(), canvas.height),
    }
}

/// The lines of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Outline {
    segments: f64,
    /// Length in the path's own units.
    length: f64,
    /// Rows of pixels crossed.
    rows: f64,
}

impl Outline {
    fn of(data: &resvg::tiny_skia::Path, transform: Transform, canvas: Extent) -> Self {
        let mut outline = Self::default();
        let mut last = Point::zero();
        let mut start = last;
        for segment in data.segments() {
            // A curve is as long as its control points at most.
            let points: &[Point] = match &segment {
                PathSegment::MoveTo(point) => {
                    last = *point;
                    start = *point;
                    continue;
                }
                PathSegment::LineTo(point) => std::slice::from_ref(point),
                PathSegment::QuadTo(a, b) => &[*a, *b],
                PathSegment::CubicTo(a, b, c) => &[*a, *b, *c],
                PathSegment::Close => &[start],
            };
            for point in points {
                outline.line(last, *point, transform, canvas);
                last = *point;
            }
        }
        outline
    }

    fn line(&mut self, from: Point, to: Point, transform: Transform, canvas: Extent) {
        self.segments += 1.0;
        self.length += f64::from(from.distance(to));
        let mut ends = [from, to];
        transform.map_points(&mut ends);
        let [from, to] = ends.map(|point| f64::from(point.y).clamp(0.0, canvas.height));
        self.rows += (to - from).abs();
    }

    fn edges(&self) -> f64 {
        self.segments * SEGMENT + self.rows * EDGE_ROW
    }
}
