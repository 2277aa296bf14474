//! Pixels into files.

mod jpeg;
mod png;
mod webp;

pub(crate) use jpeg::jpeg;
pub(crate) use png::{indexed, true_colour};
pub(crate) use webp::webp;

use crate::prepared::PictureFormat;
use crate::refusal::{Refusal, RefusalKind};

/// Most bytes of a file whose whole `data:` URL has at most `budget` characters.
pub(crate) fn raw_limit(budget: usize, format: PictureFormat) -> usize {
    budget.saturating_sub(prefix(format)) / 4 * 3
}

/// Characters of the `data:` URL of so many bytes.
pub(crate) fn url_length(bytes: usize, format: PictureFormat) -> usize {
    prefix(format).saturating_add(bytes.div_ceil(3).saturating_mul(4))
}

/// `data:`, the media type, `;base64,`.
const fn prefix(format: PictureFormat) -> usize {
    "data:".len() + format.media_type().len() + ";base64,".len()
}

/// An encoder refused pixels of ours, which is a fault of ours.
fn failed(format: &str, error: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        kind: RefusalKind::Failed,
        detail: format!("the picture could not be written as {format}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{raw_limit, url_length};
    use crate::prepared::PictureFormat;

    #[test]
    fn e10_the_budget_counts_the_whole_url() {
        assert_eq!(raw_limit(262_144, PictureFormat::Jpeg), 196_590);
        assert_eq!(raw_limit(262_144, PictureFormat::Png), 196_590);
        assert!(url_length(196_590, PictureFormat::Jpeg) <= 262_144);
        assert!(url_length(196_591, PictureFormat::Jpeg) > 262_144);
        assert_eq!(raw_limit(10, PictureFormat::WebP), 0);
    }
}
