//! Counts what became of the blocks and pictures of a delivery.

use std::collections::BTreeSet;

use talaria_content::{ArtifactKind, BlockFate, BlockRecord, Delivery, Format};
use talaria_telemetry::events;
use talaria_types::{ArtifactId, NoticeCode};
use talaria_vision::Decision;

/// Counts a finished delivery.
pub(super) fn count(delivery: &Delivery, decision: &Decision, format: Format) {
    for block in &delivery.blocks {
        count_block(*block);
    }
    let pictures = delivery
        .artifacts
        .iter()
        .filter(|artifact| artifact.kind == ArtifactKind::Image)
        .count();
    if pictures == 0 {
        return;
    }
    if decision.open && has_place(delivery, format) {
        count_pictures(delivery, pictures);
    } else if decision.is_surprising() {
        events::pixels_kept_out(decision.cause.as_str(), &decision.reason, pictures);
    }
}

/// Whether the format would have carried the pictures.
fn has_place(delivery: &Delivery, format: Format) -> bool {
    let is_words = delivery.is_error && format.tells_failures_in_words();
    format.image_limits().is_some() && !is_words
}

fn count_block(block: BlockRecord) {
    let (fate, code) = match block.fate {
        BlockFate::Delivered => ("delivered", None),
        BlockFate::Saved => ("saved", None),
        BlockFate::Spilled => ("spilled", None),
        BlockFate::Refused(code) => ("refused", Some(code)),
    };
    events::block_settled(block.kind, fate, code);
}

/// Every picture is counted once; what is neither attached nor refused was over the limit.
fn count_pictures(delivery: &Delivery, pictures: usize) {
    let attached: BTreeSet<&ArtifactId> = delivery
        .attachments
        .iter()
        .map(|attachment| &attachment.artifact)
        .collect();
    events::images_settled("attached", None, attached.len());
    let mut settled = attached.len();
    for notice in &delivery.notices {
        if settled >= pictures {
            break;
        }
        let outcome = if notice.code == NoticeCode::ImageDuplicate {
            "duplicate"
        } else if is_refusal(notice.code) {
            "refused"
        } else {
            continue;
        };
        settled += 1;
        events::images_settled(outcome, Some(notice.code), 1);
    }
    events::images_settled("left_out", None, pictures.saturating_sub(settled));
}

/// Whether a notice says why one picture has no pixels.
fn is_refusal(code: NoticeCode) -> bool {
    [
        NoticeCode::NotAnImage,
        NoticeCode::ImageNotDecodable,
        NoticeCode::ImageUnsupported,
        NoticeCode::ImageTooLarge,
        NoticeCode::ImageTooComplex,
        NoticeCode::ImageOverBudget,
        NoticeCode::ImageBusy,
        NoticeCode::ImageLate,
        NoticeCode::ImageFailed,
        NoticeCode::ImageRepeatLimit,
    ]
    .contains(&code)
}
