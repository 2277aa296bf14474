//! Reads `talaria.images` and the section `vision`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::defaults::{self, MAX_IMAGE_WORKERS};
use crate::problem::Findings;
use crate::schema::Kind;
use crate::section::{Section, fill, read_size, scalar_text};
use crate::tree::{ImageDelivery, ImagesConfig, Tiles};

/// Reads both sections.
pub(crate) fn read(
    images: &Section<'_>,
    vision: &Section<'_>,
    findings: &mut Findings,
) -> ImagesConfig {
    let default = ImagesConfig::default();
    ImagesConfig {
        workers: read_workers(images, findings),
        queue: images.count(findings, "queue").unwrap_or(default.queue),
        allowed_roots: read_roots(images, findings),
        tiles: read_tiles(images, findings).unwrap_or(default.tiles),
        image_delivery: read_delivery(images, findings).unwrap_or(default.image_delivery),
        budget: read_budget(vision, findings),
        max_calls_per_image: read_max_calls(vision, findings),
    }
}

fn read_workers(section: &Section<'_>, findings: &mut Findings) -> Option<NonZeroUsize> {
    let text = section.text(findings, "workers", Kind::Any)?;
    let text = text.trim();
    if text.eq_ignore_ascii_case("auto") {
        return None;
    }
    let workers = text
        .parse()
        .ok()
        .filter(|workers: &NonZeroUsize| workers.get() <= MAX_IMAGE_WORKERS);
    if workers.is_none() {
        let message = format!("must be `auto` or a whole number, 1 to {MAX_IMAGE_WORKERS}");
        findings.error(&section.path("workers"), message);
    }
    workers
}

fn read_roots(section: &Section<'_>, findings: &mut Findings) -> Vec<PathBuf> {
    let path = section.path("allowed_roots");
    let texts = section.text_list(findings, "allowed_roots");
    let mut roots = Vec::new();
    for text in texts.unwrap_or_default() {
        let root = section.variables().expand_tilde(text.trim());
        match root.map(PathBuf::from) {
            Some(root) if root.is_absolute() && !text.contains('\0') => roots.push(root),
            Some(_) | None => findings.error(
                &path,
                format!("`{text}` must be the absolute path of a directory"),
            ),
        }
    }
    roots
}

/// YAML 1.1 files write `off` and `on` as booleans.
fn read_tiles(section: &Section<'_>, findings: &mut Findings) -> Option<Tiles> {
    match section.get("tiles") {
        Some(Value::Bool(true)) => Some(Tiles::On),
        Some(Value::Bool(false)) => Some(Tiles::Off),
        _ => section.one_of(findings, "tiles", Tiles::ALL, |it| it.as_str()),
    }
}

fn read_delivery(section: &Section<'_>, findings: &mut Findings) -> Option<ImageDelivery> {
    section.one_of(findings, "image_delivery", ImageDelivery::ALL, |it| {
        it.as_str()
    })
}

/// Clamped as in Hermes; what is no number means the default (case E11).
fn read_budget(section: &Section<'_>, findings: &mut Findings) -> usize {
    let Some(value) = section.get("embed_target_bytes") else {
        return defaults::EMBED_TARGET_BYTES;
    };
    let path = section.path("embed_target_bytes");
    let Some(wanted) = number(section, findings, &path, value) else {
        let default = defaults::EMBED_TARGET_BYTES;
        findings.warn(
            &path,
            format!("is not a number of bytes; {default} is used"),
        );
        return default;
    };
    let bounds = defaults::EMBED_TARGET_BOUNDS;
    let used = wanted.clamp(*bounds.start(), *bounds.end());
    if used != wanted {
        findings.warn(
            &path,
            format!(
                "must be {} to {}; {used} is used",
                bounds.start(),
                bounds.end()
            ),
        );
    }
    used
}

/// A whole number of bytes; fractions are cut, what is below zero counts as zero.
fn number(
    section: &Section<'_>,
    findings: &mut Findings,
    path: &str,
    value: &Value,
) -> Option<usize> {
    if value.is_boolean() || scalar_text(value).is_none() {
        return None;
    }
    let text = fill(findings, section.variables(), path, value, Kind::Any)?;
    if let Some(size) = read_size(&text, false) {
        return Some(usize::try_from(size).unwrap_or(usize::MAX));
    }
    let number: f64 = text.trim().parse().ok()?;
    if number.is_nan() {
        return None;
    }
    let whole = Duration::try_from_secs_f64(number.max(0.0)).map(|cut| cut.as_secs());
    Some(whole.map_or(usize::MAX, |size| {
        usize::try_from(size).unwrap_or(usize::MAX)
    }))
}

/// A count; what is no count means unlimited, as does 0.
fn read_max_calls(section: &Section<'_>, findings: &mut Findings) -> u32 {
    let Some(value) = section.get("max_calls_per_image") else {
        return 0;
    };
    let path = section.path("max_calls_per_image");
    let text = if value.is_boolean() || scalar_text(value).is_none() {
        None
    } else {
        fill(findings, section.variables(), &path, value, Kind::Any)
    };
    text.and_then(|text| text.trim().parse().ok())
        .unwrap_or_else(|| {
            findings.warn(&path, "is not a whole number from 0; 0, unlimited, is used");
            0
        })
}
