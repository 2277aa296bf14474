//! Basic metadata of a file, by type.

use std::fmt;

use serde::Serialize;

use crate::table::count;

/// How many names of an archive are shown.
const NAMES_SHOWN: usize = 5;

/// What was read from a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Details {
    /// A PDF.
    Pdf {
        /// Pages.
        pages: usize,
    },
    /// A ZIP archive.
    Archive {
        /// Names of its entries.
        entries: Vec<String>,
    },
    /// A Word document.
    Document {
        /// Parts in its package.
        parts: usize,
    },
    /// An Excel workbook.
    Workbook {
        /// Sheets.
        sheets: usize,
    },
    /// A PowerPoint presentation.
    Presentation {
        /// Slides.
        slides: usize,
    },
    /// A picture.
    Image {
        /// Pixels.
        width: usize,
        /// Pixels.
        height: usize,
    },
    /// Uncompressed sound.
    Wave {
        /// Duration.
        milliseconds: u64,
        /// Channels.
        channels: u16,
        /// Samples per second.
        sample_rate: u32,
    },
    /// Text.
    Text {
        /// Lines.
        lines: usize,
        /// Characters.
        characters: usize,
    },
    /// A type that this program does not look into.
    Opaque,
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pdf { pages } => write!(f, "PDF, {}", count(*pages, "page")),
            Self::Archive { entries } => {
                let shown: Vec<&str> = entries
                    .iter()
                    .take(NAMES_SHOWN)
                    .map(String::as_str)
                    .collect();
                let more = if entries.len() > NAMES_SHOWN {
                    ", …"
                } else {
                    ""
                };
                write!(
                    f,
                    "ZIP, {}: {}{more}",
                    count(entries.len(), "entry"),
                    shown.join(", ")
                )
            }
            Self::Document { parts } => write!(f, "Word, {}", count(*parts, "part")),
            Self::Workbook { sheets } => write!(f, "Excel, {}", count(*sheets, "sheet")),
            Self::Presentation { slides } => {
                write!(f, "PowerPoint, {}", count(*slides, "slide"))
            }
            Self::Image { width, height } => write!(f, "image, {width} × {height} px"),
            Self::Wave {
                milliseconds,
                channels,
                sample_rate,
            } => {
                let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
                let channels = count(usize::from(*channels), "channel");
                write!(
                    f,
                    "WAV, {seconds}.{rest:03} s, {channels}, {sample_rate} Hz"
                )
            }
            Self::Text { lines, characters } => {
                write!(
                    f,
                    "text, {}, {}",
                    count(*lines, "line"),
                    count(*characters, "character")
                )
            }
            Self::Opaque => f.write_str("not looked into"),
        }
    }
}
