//! SVG: the size it gives itself.

use super::Header;
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::Refusal;
use crate::svg;

pub(super) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let (width, height) = svg::size(bytes)?;
    Ok(Header {
        format: SourceFormat::Svg,
        width,
        height,
        orientation: Orientation::Upright,
        frames: 1,
        is_animated: false,
        // Drawn on white.
        has_alpha: false,
        is_plain: false,
    })
}
