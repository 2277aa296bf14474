//! Pictures in words: what a delivery asks, when, and what it says of the answers.

use talaria_config::DescribeImages;
use talaria_image::Region;
use talaria_types::{NoticeCode, RawResult};
use talaria_vision::describe::FaultKind;

use super::pixels::picture;
use super::*;
use crate::vision::tests::stage::{Does, Stage, on_moved_clock};

/// A service whose pictures are described by the backend `a`.
async fn seeing_for_others() -> (Desks, Stage) {
    let stage = Stage::chain(&["a"]).await;
    let desks = desks();
    let service = desks.service.clone().with_vision(stage.vision.clone());
    (Desks { service, ..desks }, stage)
}

fn image(side: u32) -> Value {
    json!({ "type": "image", "mimeType": "image/png", "data": STANDARD.encode(picture(side)) })
}

fn asked(format: Format, describe: Option<DescribeImages>) -> DeliverOptions {
    DeliverOptions {
        format,
        images: ImageWishes {
            describe,
            ..ImageWishes::default()
        },
        ..options(ResultKind::ToolCall)
    }
}

/// Delivers, and moves the clock until that is done.
async fn deliver_moved(
    desks: &Desks,
    stage: &Stage,
    result: Value,
    options: DeliverOptions,
) -> Delivery {
    deliver_within(desks, stage, result, options, Duration::from_secs(60)).await
}

async fn deliver_within(
    desks: &Desks,
    stage: &Stage,
    result: Value,
    options: DeliverOptions,
    within: Duration,
) -> Delivery {
    let ctx = CallContext::new(Deadline::after(within));
    let body = result.to_string().into_bytes();
    let scrubbed = desks.service.read_body(&ctx, body, "").await.unwrap();
    let (service, raw) = (desks.service.clone(), scrubbed.result.unwrap());
    finish(stage, async move {
        service.deliver(&ctx, raw, options).await.unwrap().delivery
    })
    .await
}

async fn finish<T: 'static>(stage: &Stage, work: impl Future<Output = T> + 'static) -> T {
    let working = runtime::spawn_local("test delivery", work);
    stage.until("delivered", || working.is_finished()).await;
    working.await.unwrap()
}

#[test]
fn fr_058_a_closed_gate_leaves_words_and_their_author() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        stage.script("a", Does::Say("VISION-HELPER-OK"));
        let content = json!([{ "type": "text", "text": "chart" }, image(60)]);
        let result = json!({ "content": content });
        let delivery = deliver_moved(&desks, &stage, result, asked(Format::Talaria, None)).await;
        assert!(!delivery.gate.open && delivery.attachments.is_empty());
        for word in ["chart", "VISION-HELPER-OK", "127.0.0.1:9/a", "MEDIA:"] {
            assert!(delivery.text.contains(word), "{}", delivery.text);
        }
        let vision = delivery.vision.unwrap();
        assert_eq!(vision.descriptions.len(), 1);
        assert_eq!(
            vision.descriptions[0].text.as_deref(),
            Some("VISION-HELPER-OK")
        );
        assert_eq!(vision.descriptions[0].attempts[0]["outcome"], "answered");
    });
}

#[test]
fn fr_055_a_failed_result_is_described_and_stays_failed() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        stage.script("a", Does::Say("VISION-HELPER-OK"));
        let result = json!({ "isError": true, "content": [image(60)] });
        let delivery = deliver_moved(&desks, &stage, result, asked(Format::Talaria, None)).await;
        assert!(delivery.is_error && delivery.text.contains("VISION-HELPER-OK"));
    });
}

#[test]
fn fr_199_a_picture_nobody_can_describe_costs_a_note() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        stage.script("a", Does::Fail(FaultKind::Auth));
        let text = |text: &str| json!({ "type": "text", "text": text });
        let result = json!({ "content": [text("table: 3 rows"), image(60), text("end")] });
        let delivery = deliver_moved(&desks, &stage, result, asked(Format::Talaria, None)).await;
        assert!(!delivery.is_error);
        for word in ["table: 3 rows", "end", "authentication", "MEDIA:"] {
            assert!(delivery.text.contains(word), "{}", delivery.text);
        }
        let code = NoticeCode::ImageNotDescribed;
        assert!(delivery.notices.iter().any(|notice| notice.code == code));
    });
}

#[test]
fn who_wishes_what_decides() {
    use DescribeImages::{Auto, False, True};
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        for (number, (format, wish, expected)) in [
            (Format::Talaria, None, true),
            (Format::Anthropic, Some(Auto), true),
            (Format::Text, None, true),
            (Format::Talaria, Some(False), false),
            (Format::Hermes, None, false),
            (Format::Hermes, Some(Auto), false),
            (Format::Hermes, Some(True), true),
        ]
        .into_iter()
        .enumerate()
        {
            stage.script("a", Does::Say("a grey square"));
            let side = 40 + u32::try_from(number).unwrap();
            let result = json!({ "content": [image(side)] });
            let delivery = deliver_moved(&desks, &stage, result, asked(format, wish)).await;
            let is_described = delivery.text.contains("a grey square");
            assert_eq!(
                is_described, expected,
                "{format:?} {wish:?}: {}",
                delivery.text
            );
        }
    });
}

#[test]
fn fr_200_four_of_six_are_described_at_a_time_and_the_others_named() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        stage.script("a", Does::Take(Duration::from_secs(1), "a grey square"));
        let content: Vec<Value> = (40..46).map(image).collect();
        let result = json!({ "content": content });
        let delivery = deliver_moved(&desks, &stage, result, asked(Format::Talaria, None)).await;
        assert_eq!(stage.most_open(), 4);
        assert_eq!(delivery.text.matches("a grey square").count(), 4);
        assert!(delivery.text.contains("4 of 6"), "{}", delivery.text);
    });
}

#[test]
fn descriptions_leave_the_delivery_its_time() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        stage.script("a", Does::Stall);
        let result = json!({ "content": [image(60)] });
        let within = Duration::from_secs(5);
        let delivering =
            deliver_within(&desks, &stage, result, asked(Format::Talaria, None), within);
        let (delivery, took) = stage.timed(delivering).await;
        assert!(took <= within, "{took:?}");
        assert!(delivery.text.contains("MEDIA:") && delivery.attachments.is_empty());
        assert!(
            delivery.text.contains("no answer in time"),
            "{}",
            delivery.text
        );
    });
}

#[test]
fn a_wish_nobody_can_grant_leaves_a_note() {
    on_moved_clock(async {
        let stage = Stage::chain(&[]).await;
        let desks = desks();
        let wish = Some(DescribeImages::True);
        let result = json!({ "content": [image(60)] });
        let delivery = deliver_moved(&desks, &stage, result, asked(Format::Talaria, wish)).await;
        assert!(
            delivery.text.contains("auxiliary.vision"),
            "{}",
            delivery.text
        );
    });
}

fn request(question: Option<&str>, region: Option<Region>) -> PictureRequest {
    PictureRequest {
        source: ImageSource::VisionAnalyze,
        input: PictureInput::Bytes(picture(200), None),
        question: question.map(ToOwned::to_owned),
        region,
        format: Format::Hermes,
        images: ImageWishes::default(),
    }
}

async fn deliver_alone(
    desks: &Desks,
    stage: &Stage,
    request: PictureRequest,
) -> Result<Delivery, Failure> {
    let service = desks.service.clone();
    let ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
    finish(stage, async move {
        let delivered = service.deliver_picture(&ctx, request).await;
        delivered.map(|delivered| delivered.delivery)
    })
    .await
}

#[test]
fn a_picture_that_is_handed_over_is_described_with_its_question() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        stage.script("a", Does::Say("a grey square"));
        let part = |x2| Region {
            x1: 10,
            y1: 0,
            x2,
            y2: 40,
        };
        let request_of = request(Some("Which colour?"), Some(part(110)));
        let delivery = deliver_alone(&desks, &stage, request_of).await.unwrap();
        assert!(delivery.text.contains("a grey square"), "{}", delivery.text);
        let sent = stage.seen("a");
        assert!(sent[0].prompt.ends_with("Which colour?"));
        assert_eq!(sent[0].size(), (100, 40));
        let outside = request(
            None,
            Some(Region {
                x1: 300,
                ..part(400)
            }),
        );
        let refused = deliver_alone(&desks, &stage, outside).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidRequest);
        assert_eq!(stage.seen("a").len(), 1);
    });
}

/// The first bytes of a PNG that says to have this side.
fn png_head(side: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = png::Encoder::new(&mut bytes, side, side);
    drop(encoder.write_header().unwrap());
    bytes.truncate(40);
    bytes
}

#[test]
fn a_picture_that_cannot_be_used_is_delivered_with_what_is_wrong_with_it() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        stage.script("a", Does::Say("never"));
        for (side, code) in [
            (60, NoticeCode::ImageNotDecodable),
            (60_000, NoticeCode::ImageTooLarge),
        ] {
            let request = PictureRequest {
                input: PictureInput::Bytes(png_head(side), None),
                ..request(Some("What?"), None)
            };
            let delivery = deliver_alone(&desks, &stage, request).await.unwrap();
            assert!(delivery.text.contains("MEDIA:"), "{}", delivery.text);
            let codes: Vec<_> = delivery.notices.iter().map(|notice| notice.code).collect();
            assert!(codes.contains(&code), "{codes:?}");
        }
        assert!(stage.seen("a").is_empty());
    });
}

#[test]
fn an_analysis_keeps_its_picture() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        stage.script("a", Does::Say("a grey square"));
        let service = desks.service.clone();
        let ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
        let input = PictureInput::Bytes(picture(50), Some("image/gif".to_owned()));
        let analyzed = finish(&stage, async move {
            service
                .analyze(&ctx, input, Some("What?".to_owned()), None)
                .await
        })
        .await;
        let (analysis, artifact) = analyzed.unwrap();
        assert_eq!(analysis.answer.unwrap().text, "a grey square");
        assert_eq!(artifact.media_type, "image/png");
        assert_eq!(std::fs::read(&artifact.path).unwrap(), picture(50));
        assert!(desks.service.has_vision());

        let service = desks.service.clone();
        let ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
        let input = PictureInput::Bytes(b"<html>gone".to_vec(), None);
        let refused = finish(&stage, async move {
            service.analyze(&ctx, input, None, None).await
        })
        .await;
        assert_eq!(refused.unwrap_err().code().class().status(), 400);
        let none = super::desks();
        let ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
        let input = PictureInput::Bytes(picture(50), None);
        let refused = none.service.analyze(&ctx, input, None, None).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::VisionNotConfigured);
    });
}

#[test]
fn a_result_without_a_picture_asks_nobody() {
    on_moved_clock(async {
        let (desks, stage) = seeing_for_others().await;
        let raw = RawResult::from_json(json!({ "content": [{ "type": "text", "text": "hello" }] }));
        let ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
        let options = asked(Format::Talaria, Some(DescribeImages::True));
        let delivered = desks.service.deliver(&ctx, raw, options).await.unwrap();
        assert_eq!(delivered.delivery.text, "hello");
        assert!(delivered.delivery.vision.is_none() && stage.seen("a").is_empty());
    });
}
