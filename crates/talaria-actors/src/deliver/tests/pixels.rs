//! Pictures of a result, through a real pool.

use talaria_content::{Area, Candidate, ReadyImage, ReadyPicture};
use talaria_types::{NoticeCode, Route, SessionKey};

use crate::deliver::pictures::{Counted, Made};
use crate::deliver::repeats::RepeatGuard;

use super::*;

/// A route that sees, by the shipped catalogue.
fn seeing() -> Route {
    Route {
        provider: "anthropic".to_owned(),
        model: "claude-sonnet-4-5".to_owned(),
        api: None,
    }
}

fn ctx() -> CallContext {
    let mut ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
    ctx.route = Some(seeing());
    ctx
}

/// A PNG of one grey, each of another size.
pub(super) fn picture(side: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side, 40);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    let pixels = vec![90; usize::try_from(side * 40).unwrap()];
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    bytes
}

fn pictures(sides: impl IntoIterator<Item = u32>) -> RawResult {
    let block = |side| {
        let data = STANDARD.encode(picture(side));
        json!({"type": "image", "mimeType": "image/png", "data": data})
    };
    let blocks: Vec<Value> = sides.into_iter().map(block).collect();
    RawResult::from_json(json!({ "content": blocks }))
}

async fn deliver_pictures(desks: &Desks, ctx: &CallContext, raw: RawResult) -> Delivery {
    let options = options(ResultKind::ToolCall);
    let delivered = desks.service.deliver(ctx, raw, options).await;
    delivered.unwrap().delivery
}

fn codes(delivery: &Delivery) -> Vec<&'static str> {
    let notices = delivery.notices.iter();
    notices.map(|notice| notice.code.as_str()).collect()
}

#[test]
fn pictures_are_attached_in_block_order_and_their_files_stay() {
    block_on(async {
        let desks = desks();
        let delivery = deliver_pictures(&desks, &ctx(), pictures([40, 50, 60, 70, 80])).await;
        assert!(delivery.gate.open, "{}", delivery.gate.reason);
        let widths: Vec<u32> = delivery.attachments.iter().map(|one| one.width).collect();
        assert_eq!(widths, [40, 50, 60, 70]);
        let lines = delivery.text.lines();
        assert_eq!(lines.filter(|line| line.starts_with("MEDIA:")).count(), 5);
        assert!(codes(&delivery).contains(&"images_not_attached"));
    });
}

#[test]
fn a_pool_that_is_closed_costs_pixels_and_nothing_else() {
    block_on(async {
        let desks = desks();
        assert!(desks.pool.close(ctx().deadline).await);
        let delivery = deliver_pictures(&desks, &ctx(), pictures([40, 50])).await;
        assert!(delivery.gate.open && delivery.attachments.is_empty());
        assert_eq!(delivery.artifacts.len(), 2);
        let codes = codes(&delivery);
        assert_eq!(codes.len(), 2, "{codes:?}");
        assert!(
            codes.iter().all(|code| code.starts_with("image_")),
            "{codes:?}"
        );
        assert!(delivery.text.contains("not attached"), "{}", delivery.text);
    });
}

#[test]
fn a_picture_that_cannot_be_read_is_told_so() {
    block_on(async {
        let desks = desks();
        let ctx = ctx();
        let decision = desks
            .service
            .decide(&ctx, Format::Talaria, None, ImageSource::Mcp, true);
        let terms = desks.service.pictures.terms(&decision.await, None, None);
        let input = talaria_image::Input::File {
            path: "/nowhere/at/all.png".into(),
            bytes: 10,
        };
        let unready = desks.service.pictures.prepare(&ctx, input, &terms, 4).await;
        assert_eq!(unready.unwrap_err().code, NoticeCode::ImageFailed);
    });
}

#[test]
fn what_was_not_attached_is_not_counted_for_the_session() {
    block_on(async {
        let desks = desks_with(|config| config.talaria.images.max_calls_per_image = 1);
        let mut ctx = ctx();
        ctx.session = Some("s".into());
        let delivery = deliver_pictures(&desks, &ctx, pictures([40, 40])).await;
        assert_eq!(delivery.attachments.len(), 1, "{}", delivery.text);
        let again = deliver_pictures(&desks, &ctx, pictures([40, 50])).await;
        let widths: Vec<u32> = again.attachments.iter().map(|one| one.width).collect();
        assert_eq!(widths, [50], "{}", again.text);
        assert!(codes(&again).contains(&"image_repeat_limit"));
        // Another token may call its session by the same name.
        ctx.token = Some(TokenName::from("other"));
        let other = deliver_pictures(&desks, &ctx, pictures([40])).await;
        assert_eq!(other.attachments.len(), 1);
    });
}

#[test]
fn pixels_of_two_files_stay_counted_when_only_the_second_is_attached() {
    block_on(async {
        let mut delivery = deliver_pictures(&desks(), &ctx(), pictures([40, 50])).await;
        let (guard, session) = (RepeatGuard::new(1), SessionKey::from("s"));
        let mut counted = Counted::default();
        for attachment in &delivery.attachments {
            let candidate = Candidate {
                index: 0,
                artifact: attachment.artifact.clone(),
                path: "/p.png".into(),
                bytes: 1,
                media_type: "image/png".to_owned(),
                most: 1,
            };
            let made = Made {
                ready: alike(),
                identities: vec!["pixels".to_owned()],
            };
            let counting = counted.count(&guard, Some(&session), &candidate, made);
            assert_eq!(counting.unwrap(), alike());
        }
        delivery.attachments.remove(0);
        counted.keep_attached(&delivery);
        assert!(guard.reserve(Some(&session), "pixels").is_err());
    });
}

fn alike() -> ReadyPicture {
    let image = ReadyImage {
        media_type: "image/png",
        bytes: vec![1],
        width: 1,
        height: 1,
        area: Area {
            x: 0,
            y: 0,
            width: 1,
            height: 1,
        },
        scale_note: None,
    };
    ReadyPicture {
        images: vec![image],
        notes: Vec::new(),
        original_width: 1,
        original_height: 1,
    }
}
