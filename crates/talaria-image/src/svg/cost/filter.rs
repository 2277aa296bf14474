//! What a step of a filter takes per pixel.

use resvg::tiny_skia::Transform;
use resvg::usvg::filter::Kind;

use super::Extent;

/// Nanoseconds of one pixel.
pub(super) fn per_pixel(kind: &Kind, transform: Transform, layer: Extent) -> f64 {
    let (across, down) = transform.get_scale();
    match kind {
        Kind::Flood(_) | Kind::Offset(_) | Kind::Tile(_) => 8.0,
        Kind::Blend(_) | Kind::Composite(_) | Kind::Image(_) => 20.0,
        Kind::Merge(merge) => 10.0 * count(merge.inputs().len()),
        Kind::ColorMatrix(_) | Kind::ComponentTransfer(_) | Kind::DisplacementMap(_) => 40.0,
        Kind::GaussianBlur(_) | Kind::DropShadow(_) => 200.0,
        Kind::DiffuseLighting(_) | Kind::SpecularLighting(_) => 120.0,
        Kind::Turbulence(turbulence) => 170.0 * f64::from(turbulence.num_octaves().max(1)),
        Kind::ConvolveMatrix(convolve) => {
            10.0 + 5.0
                * f64::from(convolve.matrix().columns())
                * f64::from(convolve.matrix().rows())
        }
        // Looks at every pixel within the radius.
        Kind::Morphology(morphology) => {
            let reach = |radius: f32, scale: f32, most: f64| {
                (2.0 * f64::from(radius) * f64::from(scale) + 2.0).min(most)
            };
            let wide = reach(morphology.radius_x().get(), across, layer.width);
            let tall = reach(morphology.radius_y().get(), down, layer.height);
            10.0 + 3.0 * wide * tall
        }
    }
}

fn count(number: usize) -> f64 {
    f64::from(u16::try_from(number).unwrap_or(u16::MAX))
}
