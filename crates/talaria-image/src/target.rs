//! What a picture must become.

use serde::{Deserialize, Serialize};

/// `vision.embed_target_bytes`: characters of data URL (specification 2.8).
pub const DEFAULT_BUDGET: usize = 262_144;
/// Longest side of what leaves, in pixels (specification 2.7).
pub const DEFAULT_MAX_SIDE: u32 = 1_568;

/// What a picture must become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Most characters of the whole `data:` URL.
    pub budget: usize,
    /// Longest side in pixels.
    pub max_side: u32,
    /// Whether the route takes WebP besides PNG and JPEG.
    pub webp: bool,
    /// The part wanted, in pixels of the upright original; cut out before anything is scaled.
    pub region: Option<Region>,
    /// Whether a picture that one fit makes unreadable is cut into several.
    pub tiling: Tiling,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            budget: DEFAULT_BUDGET,
            max_side: DEFAULT_MAX_SIDE,
            webp: true,
            region: None,
            tiling: Tiling::Off,
        }
    }
}

/// A rectangle by its corners: left, top, right, bottom; right and bottom are excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Left edge.
    pub x1: i64,
    /// Upper edge.
    pub y1: i64,
    /// Right edge, excluded.
    pub x2: i64,
    /// Lower edge, excluded.
    pub y2: i64,
}

/// Whether one picture may become several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tiling {
    /// Never.
    Off,
    /// Where one fit would make it unreadable, at most so many.
    Auto {
        /// Most pictures.
        most: usize,
    },
    /// Wherever the picture has to shrink, at most so many.
    On {
        /// Most pictures.
        most: usize,
    },
}
