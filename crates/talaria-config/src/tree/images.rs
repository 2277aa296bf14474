//! Preparation and placing of pictures.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::defaults;

/// `talaria.images` and the section `vision`.
#[derive(Clone, Debug, PartialEq)]
pub struct ImagesConfig {
    /// Threads that prepare pictures; one per processor where absent.
    pub workers: Option<NonZeroUsize>,
    /// Pictures that may wait for a worker.
    pub queue: NonZeroUsize,
    /// Directories besides the media store from which pictures may be read; absolute.
    pub allowed_roots: Vec<PathBuf>,
    /// Whether large pictures are cut into tiles.
    pub tiles: Tiles,
    /// Where pictures go on routes that take none in tool results.
    pub image_delivery: ImageDelivery,
    /// `vision.embed_target_bytes`, clamped: most characters of a picture's data URL.
    pub budget: usize,
    /// `vision.max_calls_per_image`: how often a session may be shown one picture; 0 is
    /// unlimited.
    pub max_calls_per_image: u32,
}

impl Default for ImagesConfig {
    fn default() -> Self {
        Self {
            workers: None,
            queue: defaults::IMAGE_QUEUE,
            allowed_roots: Vec::new(),
            tiles: Tiles::Off,
            image_delivery: ImageDelivery::ToolResult,
            budget: defaults::EMBED_TARGET_BYTES,
            max_calls_per_image: 0,
        }
    }
}

/// `talaria.images.tiles`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiles {
    /// One picture, scaled to fit.
    Off,
    /// Tiles wherever the picture is larger than the fit.
    On,
    /// Tiles where scaling would make it unreadable.
    Auto,
}

impl Tiles {
    /// Every value.
    pub const ALL: &'static [Self] = &[Self::Off, Self::On, Self::Auto];

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Auto => "auto",
        }
    }
}

/// `talaria.images.image_delivery`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageDelivery {
    /// In the tool result, or not at all.
    ToolResult,
    /// In a user message after the tool result where the tool result takes none.
    UserMessage,
}

impl ImageDelivery {
    /// Every value.
    pub const ALL: &'static [Self] = &[Self::ToolResult, Self::UserMessage];

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolResult => "tool_result",
            Self::UserMessage => "user_message",
        }
    }
}
