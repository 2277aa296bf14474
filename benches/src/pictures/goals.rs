//! How much faster ours has to be, per picture.

/// Which decoders a worker of ours was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Safe Rust only, as it ships.
    Safe,
    /// With the feature `c-decoders`.
    C,
}

/// Least ratios, time of the peer over ours; `None` where nothing was promised.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goals {
    /// The reference agent's ladder.
    pub ladder: Option<f64>,
    /// Pillow used well.
    pub well: Option<f64>,
    /// sharp.
    pub sharp: Option<f64>,
}

/// The goals of a picture by the name of its file without extension.
#[must_use]
pub fn of(picture: &str, build: Build) -> Goals {
    let (ladder, sharp) = match (picture, build) {
        ("doc1080" | "doc1440", _) => (Some(2.5), Some(2.0)),
        ("web1080" | "web1440" | "edit1440" | "desk1080", _) => (Some(2.5), Some(1.3)),
        ("doc4k2x", _) => (Some(4.5), Some(2.0)),
        ("doc4k1x", _) => (Some(4.5), Some(1.3)),
        ("desk4k2x", _) => (Some(4.0), Some(1.3)),
        ("photo12", Build::C) => (Some(6.0), Some(1.3)),
        ("photo24", Build::C) => (Some(9.0), Some(1.3)),
        ("photo12", Build::Safe) => (Some(3.0), None),
        ("photo24", Build::Safe) => (Some(4.0), None),
        ("photo16", _) | ("photo", Build::C) => (None, Some(1.3)),
        _ => return Goals::default(),
    };
    Goals {
        ladder,
        well: Some(2.0),
        sharp,
    }
}
