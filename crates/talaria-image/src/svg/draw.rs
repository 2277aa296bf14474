//! Drawing, with the pictures inside the document.
//!
//! The renderer draws shapes and text. It is built without its own decoders, so groups that hold
//! pictures are walked here, and the pictures come out of ours.

use resvg::tiny_skia::{
    FillRule, FilterQuality, Mask, MaskType, Paint, PathBuilder, Pattern, Pixmap, PixmapPaint,
    Rect, SpreadMode, Transform,
};
use resvg::usvg::{self, BlendMode, ClipPath, Group, ImageKind, Node, Tree};

use crate::decode::{self, Need};
use crate::header;
use crate::limits::MAX_SIDE;
use crate::raster::Layout;
use crate::watch::Watch;

/// Draws the whole document.
pub(super) fn tree(tree: &Tree, transform: Transform, canvas: &mut Pixmap) {
    if holds_picture(tree.root()) {
        group(tree.root(), transform, canvas);
    } else {
        resvg::render(tree, transform, &mut canvas.as_mut());
    }
}

/// Whether a picture stands anywhere in the group.
pub(super) fn holds_picture(group: &Group) -> bool {
    group.children().iter().any(|node| match node {
        Node::Image(image) => bytes(image).is_some(),
        Node::Group(group) => holds_picture(group),
        Node::Path(_) | Node::Text(_) => false,
    })
}

/// The file of a picture.
pub(super) fn bytes(image: &usvg::Image) -> Option<&[u8]> {
    match image.kind() {
        ImageKind::JPEG(data)
        | ImageKind::PNG(data)
        | ImageKind::GIF(data)
        | ImageKind::WEBP(data) => Some(data),
        ImageKind::SVG(_) => None,
    }
}

fn group(parent: &Group, transform: Transform, canvas: &mut Pixmap) {
    for node in parent.children() {
        match node {
            Node::Image(image) if bytes(image).is_some() => picture(image, transform, canvas),
            Node::Group(child) if holds_picture(child) => {
                let transform = transform.pre_concat(child.transform());
                if child.should_isolate() {
                    layer(child, transform, canvas);
                } else {
                    group(child, transform, canvas);
                }
            }
            Node::Group(_) | Node::Path(_) | Node::Image(_) | Node::Text(_) => {
                in_place(node, transform, canvas);
            }
        }
    }
}

/// Draws a node where it belongs; the renderer alone would move it into the corner.
fn in_place(node: &Node, transform: Transform, canvas: &mut Pixmap) {
    if let Some(bounds) = node.abs_layer_bounding_box() {
        let transform = transform.pre_translate(bounds.x(), bounds.y());
        let _drawn = resvg::render_node(node, transform, &mut canvas.as_mut());
    }
}

/// A group that is drawn apart: clipped, masked, or let through in part. Filters are left out.
fn layer(child: &Group, transform: Transform, canvas: &mut Pixmap) {
    let Some(mut layer) = Pixmap::new(canvas.width(), canvas.height()) else {
        return;
    };
    group(child, transform, &mut layer);
    if let Some(clip) = child.clip_path() {
        clip_away(clip, transform, &mut layer);
    }
    if let Some(mask) = child.mask() {
        mask_away(mask, transform, &mut layer);
    }
    let paint = PixmapPaint {
        opacity: child.opacity().get(),
        blend_mode: blend(child.blend_mode()),
        quality: FilterQuality::Nearest,
    };
    canvas.draw_pixmap(0, 0, layer.as_ref(), &paint, Transform::identity(), None);
}

fn clip_away(clip: &ClipPath, transform: Transform, layer: &mut Pixmap) {
    if let Some(outer) = clip.clip_path() {
        clip_away(outer, transform, layer);
    }
    let transform = transform.pre_concat(clip.transform());
    keep(clip.root(), MaskType::Alpha, transform, layer);
}

fn mask_away(mask: &usvg::Mask, transform: Transform, layer: &mut Pixmap) {
    if let Some(outer) = mask.mask() {
        mask_away(outer, transform, layer);
    }
    let kind = match mask.kind() {
        usvg::MaskType::Luminance => MaskType::Luminance,
        usvg::MaskType::Alpha => MaskType::Alpha,
    };
    keep(mask.root(), kind, transform, layer);
}

/// Keeps of the layer what the group covers.
fn keep(cover: &Group, kind: MaskType, transform: Transform, layer: &mut Pixmap) {
    let Some(mut pixmap) = Pixmap::new(layer.width(), layer.height()) else {
        return;
    };
    for node in cover.children() {
        in_place(node, transform, &mut pixmap);
    }
    layer.apply_mask(&Mask::from_pixmap(pixmap.as_ref(), kind));
}

fn picture(image: &usvg::Image, transform: Transform, canvas: &mut Pixmap) {
    let Some(pixels) = bytes(image).and_then(pixels) else {
        return;
    };
    if !image.is_visible() {
        return;
    }
    let quality = match image.rendering_mode() {
        usvg::ImageRendering::OptimizeSpeed
        | usvg::ImageRendering::CrispEdges
        | usvg::ImageRendering::Pixelated => FilterQuality::Nearest,
        usvg::ImageRendering::OptimizeQuality
        | usvg::ImageRendering::Smooth
        | usvg::ImageRendering::HighQuality => FilterQuality::Bilinear,
    };
    // The document knows its picture by the size of the file, whatever was decoded of it.
    let size = image.size();
    let Some(frame) = Rect::from_xywh(0.0, 0.0, size.width(), size.height()) else {
        return;
    };
    let (Some(across), Some(down)) = (
        ratio(size.width(), pixels.width()),
        ratio(size.height(), pixels.height()),
    ) else {
        return;
    };
    let paint = Paint {
        shader: Pattern::new(
            pixels.as_ref(),
            SpreadMode::Pad,
            quality,
            1.0,
            Transform::from_scale(across, down),
        ),
        ..Paint::default()
    };
    let path = PathBuilder::from_rect(frame);
    canvas.fill_path(&path, &paint, FillRule::Winding, transform, None);
}

#[expect(clippy::cast_precision_loss, reason = "sides are far below 2^24")]
fn ratio(length: f32, pixels: u32) -> Option<f32> {
    (pixels > 0).then(|| length / pixels as f32)
}

/// The pixels of a file; only PNG keeps its transparency.
fn pixels(data: &[u8]) -> Option<Pixmap> {
    let header = header::read(data).ok()?;
    if header.has_alpha && data.starts_with(b"\x89PNG") {
        return Pixmap::decode_png(data).ok();
    }
    let need = Need {
        max_side: MAX_SIDE,
        region: None,
    };
    let raster = decode::decode(data, &header, &need, &Watch::never())
        .ok()?
        .raster;
    let mut pixmap = Pixmap::new(raster.width, raster.height)?;
    let (colours, _) = pixmap.data_mut().as_chunks_mut::<4>();
    match raster.layout {
        Layout::Grey => {
            for (colour, level) in colours.iter_mut().zip(&raster.pixels) {
                *colour = [*level, *level, *level, u8::MAX];
            }
        }
        Layout::Rgb => {
            let pixels = raster.pixels.chunks_exact(raster.layout.channels());
            for (colour, pixel) in colours.iter_mut().zip(pixels) {
                if let [red, green, blue, ..] = pixel {
                    *colour = [*red, *green, *blue, u8::MAX];
                }
            }
        }
    }
    Some(pixmap)
}

fn blend(mode: BlendMode) -> resvg::tiny_skia::BlendMode {
    use resvg::tiny_skia::BlendMode as To;
    match mode {
        BlendMode::Normal => To::SourceOver,
        BlendMode::Multiply => To::Multiply,
        BlendMode::Screen => To::Screen,
        BlendMode::Overlay => To::Overlay,
        BlendMode::Darken => To::Darken,
        BlendMode::Lighten => To::Lighten,
        BlendMode::ColorDodge => To::ColorDodge,
        BlendMode::ColorBurn => To::ColorBurn,
        BlendMode::HardLight => To::HardLight,
        BlendMode::SoftLight => To::SoftLight,
        BlendMode::Difference => To::Difference,
        BlendMode::Exclusion => To::Exclusion,
        BlendMode::Hue => To::Hue,
        BlendMode::Saturation => To::Saturation,
        BlendMode::Color => To::Color,
        BlendMode::Luminosity => To::Luminosity,
        BlendMode::PlusLighter => To::Plus,
    }
}
