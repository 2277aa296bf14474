//! What `prepare` answers.

use serde::{Deserialize, Serialize};

/// A picture made ready, or several where it was cut into tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// At least one; tiles stand in reading order.
    pub pictures: Vec<Picture>,
    /// What came in.
    pub source: SourceFacts,
    /// What the reader of the pictures must know, in words for a model.
    pub notes: Vec<Note>,
    /// Full encodes this took.
    pub encodes: u32,
}

/// One picture that leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The encoded file.
    pub bytes: Vec<u8>,
    /// Its format.
    pub format: PictureFormat,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// The part of the upright original it shows.
    pub area: Area,
    /// Whether `bytes` are the bytes that came in.
    pub is_original: bool,
    /// How to map its coordinates to the original, in words; absent where they are the same.
    pub scale_note: Option<String>,
}

impl Picture {
    /// Characters of its whole `data:` URL, which is what a budget limits.
    #[must_use]
    pub fn url_length(&self) -> usize {
        crate::encode::url_length(self.bytes.len(), self.format)
    }
}

/// A rectangle of the upright original, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    /// From the left.
    pub x: u32,
    /// From the top.
    pub y: u32,
    /// Extent.
    pub width: u32,
    /// Extent.
    pub height: u32,
}

/// The formats every provider of the catalogue takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Hash)]
pub enum PictureFormat {
    /// `image/png`.
    Png,
    /// `image/jpeg`.
    Jpeg,
    /// `image/webp`.
    WebP,
}

impl PictureFormat {
    /// The word used in labels and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::WebP => "webp",
        }
    }

    /// The media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::WebP => "image/webp",
        }
    }
}

/// The formats that come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Hash)]
pub enum SourceFormat {
    /// PNG, APNG included.
    Png,
    /// JPEG, MPF included.
    Jpeg,
    /// WebP.
    WebP,
    /// GIF.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// TIFF.
    Tiff,
    /// Windows icon or cursor.
    Ico,
    /// SVG, rasterised.
    Svg,
    /// AVIF.
    Avif,
    /// HEIC or HEIF.
    Heic,
    /// Anything else.
    Unknown,
}

impl SourceFormat {
    /// The word used in labels and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::WebP => "webp",
            Self::Gif => "gif",
            Self::Bmp => "bmp",
            Self::Tiff => "tiff",
            Self::Ico => "ico",
            Self::Svg => "svg",
            Self::Avif => "avif",
            Self::Heic => "heic",
            Self::Unknown => "unknown",
        }
    }
}

/// What came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFacts {
    /// By its bytes.
    pub format: SourceFormat,
    /// Pixels, upright.
    pub width: u32,
    /// Pixels, upright.
    pub height: u32,
    /// Frames of an animation, as far as they were counted; 1 for a still.
    pub frames: u32,
}

/// One thing the reader must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Which.
    pub kind: NoteKind,
    /// A sentence for a model.
    pub text: String,
}

/// The kinds of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Hash)]
pub enum NoteKind {
    /// Scaled down; says both sizes and the factors.
    Downscaled,
    /// A side was under 32 pixels and was padded with white.
    Padded,
    /// The first frame of an animation.
    FirstFrame,
    /// The file is damaged; what could be decoded is shown.
    Damaged,
    /// Too small to read after the fit; names the way out.
    HardToRead,
    /// Cut into tiles.
    Tiled,
    /// Only a region is shown.
    Cropped,
}
