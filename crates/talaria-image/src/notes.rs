//! Words for a model: what happened to the picture, and how to find the way back.

use crate::prepared::{Area, Note, NoteKind};

/// How coordinates in a picture map to the upright original; `None` where they are the same.
///
/// `size` is the size of what is shown of the original, without padding.
pub(crate) fn scale_note(area: Area, size: (u32, u32)) -> Option<String> {
    let offset =
        (area.x != 0 || area.y != 0).then(|| format!("add {} to x and {} to y", area.x, area.y));
    let scale = ((area.width, area.height) != size).then(|| {
        format!(
            "downscaled from {}×{} to {}×{}; multiply coordinates by {}",
            area.width,
            area.height,
            size.0,
            size.1,
            factors(area, size)
        )
    });
    match (scale, offset) {
        (Some(scale), Some(offset)) => Some(format!("{scale}, then {offset}")),
        (Some(scale), None) => Some(scale),
        (None, Some(offset)) => Some(format!("{offset} to get coordinates of the original")),
        (None, None) => None,
    }
}

/// One factor where both agree at two decimals, otherwise both.
fn factors(area: Area, size: (u32, u32)) -> String {
    let x = format!("{:.2}", f64::from(area.width) / f64::from(size.0));
    let y = format!("{:.2}", f64::from(area.height) / f64::from(size.1));
    if x == y {
        x
    } else {
        format!("{x} (x) and {y} (y)")
    }
}

/// The picture is smaller than the original.
pub(crate) fn downscaled(area: Area, shown: (u32, u32)) -> Note {
    note(
        NoteKind::Downscaled,
        format!(
            "Downscaled from {}×{} to {}×{}; multiply coordinates by {}.",
            area.width,
            area.height,
            shown.0,
            shown.1,
            factors(area, shown)
        ),
    )
}

/// A side was too short for providers.
pub(crate) fn padded(shown: (u32, u32), size: (u32, u32)) -> Note {
    note(
        NoteKind::Padded,
        format!(
            "The picture is {}×{}; white on the right and below makes it {}×{}.",
            shown.0, shown.1, size.0, size.1
        ),
    )
}

/// Only the first frame of an animation is shown.
pub(crate) fn first_frame(frames: u32) -> Note {
    let text = if frames > 1 {
        format!("This is the first of {frames} frames of an animation, as a still picture.")
    } else {
        "This is the first frame of an animation, as a still picture.".to_owned()
    };
    note(NoteKind::FirstFrame, text)
}

/// The file is damaged.
pub(crate) fn damaged(damage: &str) -> Note {
    note(
        NoteKind::Damaged,
        format!("The file is damaged ({damage}); what could be decoded is shown."),
    )
}

/// Only a part is shown.
pub(crate) fn cropped(area: Area, whole: (u32, u32)) -> Note {
    note(
        NoteKind::Cropped,
        format!(
            "Only the region ({}, {}) to ({}, {}) of the {}×{} original is shown.",
            area.x,
            area.y,
            area.x.saturating_add(area.width),
            area.y.saturating_add(area.height),
            whole.0,
            whole.1
        ),
    )
}

/// Cut into tiles; they follow in reading order.
pub(crate) fn tiled(areas: &[Area], whole: Area) -> Note {
    let corners: Vec<String> = areas
        .iter()
        .enumerate()
        .map(|(index, area)| {
            format!(
                "{} shows ({}, {}) to ({}, {})",
                index.saturating_add(1),
                area.x,
                area.y,
                area.x.saturating_add(area.width),
                area.y.saturating_add(area.height)
            )
        })
        .collect();
    note(
        NoteKind::Tiled,
        format!(
            "The {}×{} picture is sent as {} overlapping tiles in reading order: {}.",
            whole.width,
            whole.height,
            areas.len(),
            corners.join("; ")
        ),
    )
}

/// Text on it is too small after the fit.
pub(crate) fn hard_to_read(area: Area, size: (u32, u32), max_side: u32) -> Note {
    note(
        NoteKind::HardToRead,
        format!(
            "Small text may be unreadable at {}×{}. To read it, ask POST /v1/images/deliver for a \
             `region` of the {}×{} original (up to {max_side} pixels per side keep full size), or \
             set `tiles: auto`.",
            size.0, size.1, area.width, area.height
        ),
    )
}

const fn note(kind: NoteKind, text: String) -> Note {
    Note { kind, text }
}

#[cfg(test)]
mod tests {
    use super::{downscaled, scale_note};
    use crate::prepared::Area;

    const fn whole(width: u32, height: u32) -> Area {
        Area {
            x: 0,
            y: 0,
            width,
            height,
        }
    }

    #[test]
    fn e12_one_factor_where_both_agree_at_two_decimals() {
        assert_eq!(
            scale_note(whole(3840, 2160), (1568, 882)).unwrap(),
            "downscaled from 3840×2160 to 1568×882; multiply coordinates by 2.45"
        );
        assert_eq!(
            scale_note(whole(25_000, 4_000), (1568, 251)).unwrap(),
            "downscaled from 25000×4000 to 1568×251; multiply coordinates by 15.94"
        );
        assert_eq!(
            scale_note(whole(1_600, 900), (1568, 882)).unwrap(),
            "downscaled from 1600×900 to 1568×882; multiply coordinates by 1.02"
        );
    }

    #[test]
    fn e12_both_factors_where_they_differ() {
        assert_eq!(
            scale_note(whole(2_000, 30), (1568, 24)).unwrap(),
            "downscaled from 2000×30 to 1568×24; multiply coordinates by 1.28 (x) and 1.25 (y)"
        );
    }

    #[test]
    fn a_crop_adds_its_offset() {
        let area = Area {
            x: 10,
            y: 20,
            width: 300,
            height: 200,
        };
        assert_eq!(
            scale_note(area, (300, 200)).unwrap(),
            "add 10 to x and 20 to y to get coordinates of the original"
        );
        assert_eq!(
            scale_note(area, (150, 100)).unwrap(),
            "downscaled from 300×200 to 150×100; multiply coordinates by 2.00, then add 10 to x \
             and 20 to y"
        );
        assert_eq!(scale_note(whole(5, 5), (5, 5)), None);
    }

    #[test]
    fn a_note_is_a_sentence() {
        assert_eq!(
            downscaled(whole(3_000, 2_000), (1_568, 1_045)).text,
            "Downscaled from 3000×2000 to 1568×1045; multiply coordinates by 1.91."
        );
    }
}
