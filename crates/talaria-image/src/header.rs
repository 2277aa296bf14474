//! What a file says about itself, read before anything is allocated for it.

mod bitmap;
mod exif;
mod gif;
mod icon;
mod jpeg;
mod png;
mod svg;
pub(crate) mod tiff;
mod webp;

use crate::limits::{MAX_PIXELS, MAX_SIDE};
use crate::orient::Orientation;
use crate::prepared::SourceFormat;
use crate::refusal::{Refusal, RefusalKind};
use crate::sniff;

pub(crate) use self::gif::GifFacts;
pub(crate) use self::icon::IconEntry;
pub(crate) use self::jpeg::{JpegFacts, Sampling};
pub(crate) use self::png::PngFacts;
pub(crate) use self::webp::WebpFacts;

/// What a file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) format: SourceFormat,
    /// Pixels as stored, before it is turned upright.
    pub(crate) width: u32,
    /// Pixels as stored.
    pub(crate) height: u32,
    pub(crate) orientation: Orientation,
    /// Frames of an animation or pages of a document, as far as they were counted.
    pub(crate) frames: u32,
    pub(crate) is_animated: bool,
    pub(crate) has_alpha: bool,
    /// Whether the bytes may leave as they are, once they have been decoded in full:
    /// 8 bits, sRGB, upright, one frame, nothing behind or inside that a reader stumbles over.
    pub(crate) is_plain: bool,
}

impl Header {
    /// The size a reader sees.
    pub(crate) fn upright_size(&self) -> (u32, u32) {
        self.orientation.upright_size(self.width, self.height)
    }
}

/// Reads the header of any known format and checks it against the limits.
pub(crate) fn read(bytes: &[u8]) -> Result<Header, Refusal> {
    let format = sniff::format(bytes);
    let header = match format {
        SourceFormat::Png => png::read(bytes),
        SourceFormat::Jpeg => jpeg::read(bytes),
        SourceFormat::WebP => webp::read(bytes),
        SourceFormat::Gif => gif::read(bytes),
        SourceFormat::Bmp => bitmap::read(bytes),
        SourceFormat::Tiff => tiff::read(bytes),
        SourceFormat::Ico => icon::read(bytes),
        SourceFormat::Svg => svg::read(bytes),
        SourceFormat::Avif => Err(unsupported("AVIF")),
        SourceFormat::Heic => Err(unsupported("HEIC")),
        SourceFormat::Unknown => Err(match sniff::foreign(bytes) {
            Some(name) => unsupported(name),
            None => Refusal {
                kind: RefusalKind::NotAnImage,
                detail: "the bytes are not a picture of any known format".to_owned(),
            },
        }),
    }?;
    check_size(header.width, header.height)?;
    Ok(header)
}

/// Refuses a size over the limits.
pub(crate) fn check_size(width: u32, height: u32) -> Result<(), Refusal> {
    if width == 0 || height == 0 {
        return Err(damaged(format!(
            "the picture claims a size of {width}×{height} pixels"
        )));
    }
    if width > MAX_SIDE || height > MAX_SIDE || pixels(width, height) > MAX_PIXELS {
        return Err(Refusal {
            kind: RefusalKind::TooLarge,
            detail: format!(
                "the picture claims {width}×{height} pixels; \
                 at most {MAX_PIXELS} pixels and {MAX_SIDE} per side are decoded"
            ),
        });
    }
    Ok(())
}

/// Pixels of a size.
pub(crate) fn pixels(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height)
}

/// A refusal because the file does not decode.
pub(crate) fn damaged(detail: impl Into<String>) -> Refusal {
    Refusal {
        kind: RefusalKind::Damaged,
        detail: detail.into(),
    }
}

/// A refusal of what is known but not decoded.
pub(crate) fn unsupported(what: &str) -> Refusal {
    Refusal {
        kind: RefusalKind::Unsupported,
        detail: format!("pictures of this kind are not decoded here: {what}"),
    }
}

fn cut_short(what: &str) -> Refusal {
    damaged(format!("the {what} header is cut short or broken"))
}
