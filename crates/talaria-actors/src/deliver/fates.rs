//! Counts what became of the blocks and pictures of a delivery.

use std::collections::{BTreeMap, BTreeSet};

use talaria_content::{ArtifactKind, BlockFate, BlockRecord, Delivery, Format};
use talaria_telemetry::events;
use talaria_types::{ArtifactId, NoticeCode};
use talaria_vision::Decision;

/// Blocks that are counted at a time; a delivery may hold a million of them.
const BLOCKS_AT_A_TIME: usize = 4096;

/// Counts a finished delivery, without holding up the loop.
pub(super) async fn count(delivery: &Delivery, decision: &Decision, format: Format) {
    for ((kind, fate, code), blocks) in tally(&delivery.blocks).await {
        events::blocks_settled(kind, fate, code, blocks);
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

/// What a block is counted under: its kind, its fate and why.
type Labels = (&'static str, &'static str, Option<NoticeCode>);

async fn tally(blocks: &[BlockRecord]) -> BTreeMap<Labels, usize> {
    let mut settled = BTreeMap::new();
    for some in blocks.chunks(BLOCKS_AT_A_TIME) {
        for block in some {
            *settled.entry(labels(*block)).or_default() += 1;
        }
        if some.len() == BLOCKS_AT_A_TIME {
            tokio::task::yield_now().await;
        }
    }
    settled
}

const fn labels(block: BlockRecord) -> Labels {
    let (fate, code) = match block.fate {
        BlockFate::Delivered => ("delivered", None),
        BlockFate::Saved => ("saved", None),
        BlockFate::Spilled => ("spilled", None),
        BlockFate::Refused(code) => ("refused", Some(code)),
    };
    (block.kind, fate, code)
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

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn many_blocks_are_counted_a_few_at_a_time() {
        let block = |fate| BlockRecord { kind: "text", fate };
        let mut blocks = vec![block(BlockFate::Delivered); 3 * BLOCKS_AT_A_TIME];
        blocks.push(block(BlockFate::Spilled));
        let mut counting = pin!(tally(&blocks));
        let mut ctx = Context::from_waker(Waker::noop());
        let mut turns = 1;
        let settled = loop {
            match counting.as_mut().poll(&mut ctx) {
                Poll::Ready(settled) => break settled,
                Poll::Pending => turns += 1,
            }
        };
        assert_eq!(turns, 4, "others have their turn in between");
        let expected = [
            (("text", "delivered", None), 3 * BLOCKS_AT_A_TIME),
            (("text", "spilled", None), 1),
        ];
        assert_eq!(settled, BTreeMap::from(expected));
    }
}
