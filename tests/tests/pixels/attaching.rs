//! What is attached, in which size and with which words (specification 2.7 and 2.8).

use serde_json::{Value, json};
use talaria_testkit::{Service, pictures};

use crate::scene::{
    assert_no_pixels, attached, bars, base64, blind, builder, codes, deliver, image_block,
    media_lines, post, result, seeing, service, text,
};

/// `vision.embed_target_bytes` unless it is set.
const BUDGET: usize = 262_144;

/// Characters of an attachment's data URL.
fn url_length(attachment: &Value) -> usize {
    let kind = attachment["media_type"].as_str().unwrap();
    let data = attachment["data"].as_str().unwrap();
    "data:;base64,".len() + kind.len() + data.len()
}

/// Delivers one picture and answers its attachment.
async fn one(service: &Service, picture: &[u8]) -> (Value, Value) {
    let delivery = deliver(service, result(&[picture.to_vec()]), seeing()).await;
    assert_eq!(attached(&delivery).len(), 1, "{}", text(&delivery));
    let attachment = delivery["attachments"][0].clone();
    assert!(
        url_length(&attachment) <= BUDGET,
        "{}",
        url_length(&attachment)
    );
    (attachment, delivery)
}

#[tokio::test]
async fn c22_a_picture_in_a_blob_is_an_image_and_attached() {
    let resource =
        json!({"uri": "x://h/shot.png", "mimeType": "image/png", "blob": base64(&bars(2))});
    let result = json!({"content": [{"type": "resource", "resource": resource}]});
    let service = service().await;
    let delivery = deliver(&service, result, seeing()).await;
    let artifact = &delivery["artifacts"][0];
    assert_eq!(artifact["kind"], "image");
    let path = artifact["path"].as_str().unwrap();
    assert!(
        path.contains("/images/") && path.ends_with("shot.png"),
        "{path}"
    );
    assert_eq!(delivery["attachments"][0]["artifact"], artifact["id"]);
    assert_eq!(attached(&delivery)[0].bars(), 2);
}

#[tokio::test]
async fn e02_a_closed_gate_leaves_a_string() {
    let picture = pictures::plain_png(800, 600, [10, 80, 160]).unwrap();
    let body = json!({"result": result(&[picture]), "route": blind(), "format": "hermes"});
    let service = service().await;
    let answer = post(&service, "/v1/results/deliver", &body).await;
    assert_no_pixels(&answer.to_string());
    assert_eq!(
        media_lines(answer["result"].as_str().unwrap()),
        1,
        "{answer}"
    );
    assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
}

#[tokio::test]
async fn e08_a_failed_result_is_never_multimodal_for_hermes() {
    let service = service().await;
    let mut failed =
        json!({"content": [{"type": "text", "text": "no paper"}, image_block(&bars(1))]});
    failed["isError"] = json!(true);
    for format in ["hermes", "text"] {
        let body = json!({"result": failed, "route": seeing(), "format": format});
        let answer = service.post("/v1/results/deliver", &body).await.unwrap();
        let words = answer.text().unwrap();
        assert!(words.contains("no paper"), "{words}");
        assert_no_pixels(&words);
        assert!(!words.contains("MEDIA:"), "{words}");
    }
    // Other formats deliver a failed result like any other (design decision 10).
    let delivery = deliver(&service, failed, seeing()).await;
    assert_eq!(
        (attached(&delivery).len(), &delivery["is_error"]),
        (1, &json!(true))
    );
}

#[tokio::test]
async fn e09_a_png_over_the_budget_is_made_to_fit_it() {
    // 66 columns of noise on a plain ground: about 200 KB, more than the budget as a data URL.
    let picture = pictures::drawn_png(1000, 1000, |x, y| {
        let noise = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(2_246_822_519))
            .wrapping_mul(3_266_489_917);
        let [red, green, blue, _] = (noise ^ (noise >> 15)).to_le_bytes();
        if x < 66 {
            [red, green, blue]
        } else {
            [240, 240, 240]
        }
    })
    .unwrap();
    assert!(base64(&picture).len() > BUDGET, "{}", picture.len());
    let (attachment, _) = one(&service().await, &picture).await;
    assert_eq!(
        (&attachment["width"], &attachment["height"]),
        (&json!(1000), &json!(1000))
    );
}

#[tokio::test]
async fn e10_the_length_of_the_data_url_decides() {
    let service = service().await;
    for (bytes, is_original) in [(196_533, true), (196_560, true), (196_591, false)] {
        let picture = jpeg_of(bytes);
        let (attachment, _) = one(&service, &picture).await;
        let same = attachment["data"] == base64(&picture);
        assert_eq!(same, is_original, "{bytes} bytes");
    }
}

/// A JPEG of exactly so many bytes; comments make up what is missing.
fn jpeg_of(bytes: usize) -> Vec<u8> {
    let mut picture = pictures::noise_jpeg(300, 300, 7).unwrap();
    let head = picture.split_off(2);
    let mut missing = bytes - picture.len() - head.len();
    while missing > 0 {
        // Marker and length take four bytes.
        let body = (missing - 4).min(60_000);
        let body = if missing - 4 - body > 0 && missing - 4 - body < 4 {
            body - 4
        } else {
            body
        };
        let length = u16::try_from(body + 2).unwrap();
        picture.extend([0xff, 0xfe]);
        picture.extend(length.to_be_bytes());
        picture.extend(std::iter::repeat_n(b'x', body));
        missing -= body + 4;
    }
    picture.extend(head);
    assert_eq!(picture.len(), bytes);
    picture
}

#[tokio::test]
async fn e11_the_budget_is_clamped() {
    let noise = pictures::noise_png(700, 700, 3).unwrap();
    for (budget, most, least) in [
        (json!(1), 65_536, 20_000),
        (json!(99_999_999), 4_194_304, 1_900_000),
        (json!(true), 262_144, 100_000),
        (json!("x"), 262_144, 100_000),
    ] {
        let service = builder()
            .set(&["vision", "embed_target_bytes"], budget.clone())
            .start()
            .await
            .unwrap();
        let delivery = deliver(&service, result(std::slice::from_ref(&noise)), seeing()).await;
        let length = url_length(&delivery["attachments"][0]);
        assert!((least..=most).contains(&length), "{budget}: {length}");
    }
}

#[tokio::test]
async fn e12_a_picture_is_fitted_in_one_exact_step() {
    let service = service().await;
    for (width, height) in [
        (1_568, 1_568),
        (1_500, 40),
        (1_570, 1_570),
        (1_600, 900),
        (1_920, 1_080),
        (2_560, 1_440),
        (3_000, 2_000),
        (3_840, 2_160),
        (4_000, 3_000),
        (9_999, 9_999),
        (25_000, 4_000),
        (2_000, 127),
        (3_000, 100),
    ] {
        let picture = pictures::plain_grey_png(width, height, 200).unwrap();
        let (attachment, delivery) = one(&service, &picture).await;
        let longest = f64::from(width.max(height));
        let factor = (longest / 1568.0).max(1.0);
        let side = |original: u32| f64::from(original) / factor;
        let shown = |key: &str| attachment[key].as_f64().unwrap();
        let what = format!("{width}×{height}: {attachment}");
        assert!((shown("width") - side(width)).abs() < 1.0, "{what}");
        assert!((shown("height") - side(height)).abs() < 1.0, "{what}");
        assert_eq!(attachment["original_width"], width);
        assert_eq!(attachment["original_height"], height);
        if factor > 1.0 {
            let note = attachment["scale_note"].as_str().unwrap();
            for size in [width, height] {
                assert!(note.contains(&size.to_string()), "{note}");
            }
            assert!(note.contains(&format!("{factor:.2}")), "{factor}: {note}");
            assert!(codes(&delivery).contains(&"image_downscaled"), "{what}");
        } else {
            assert_eq!(attachment["scale_note"], Value::Null, "{what}");
            assert_eq!(attachment["data"], base64(&picture), "{what}");
        }
    }
}

#[tokio::test]
async fn e12_a_strip_is_padded_or_stays_a_file_and_never_grows() {
    let service = service().await;
    for (width, height) in [(2_000, 30), (1_569, 10), (100, 20_000), (60_000, 64)] {
        let picture = pictures::plain_grey_png(width, height, 90).unwrap();
        let delivery = deliver(&service, result(&[picture]), seeing()).await;
        assert_eq!(media_lines(text(&delivery)), 1);
        match attached(&delivery).first() {
            Some(seen) => {
                assert!(seen.width.max(seen.height) <= 1_568, "{width}×{height}");
                assert!(seen.width.min(seen.height) >= 28, "{width}×{height}");
            }
            None => assert!(
                text(&delivery).contains("not attached"),
                "{}",
                text(&delivery)
            ),
        }
    }
}

#[tokio::test]
async fn e16_an_animation_is_shown_as_its_first_frame() {
    let service = service().await;
    for frames in [100, 101] {
        let gif = gif(frames, None);
        let delivery = deliver(&service, result(std::slice::from_ref(&gif)), seeing()).await;
        let seen = attached(&delivery);
        assert_eq!((seen.len(), seen[0].frames), (1, 1), "{}", text(&delivery));
        assert_eq!((seen[0].width, seen[0].height), (32, 32));
        let saved = std::fs::read(delivery["artifacts"][0]["path"].as_str().unwrap()).unwrap();
        assert_eq!(saved, gif, "the original is saved whole");
        let codes = codes(&delivery);
        assert!(
            codes.contains(&"image_first_frame") && codes.contains(&"image_padded"),
            "{codes:?}"
        );
        assert!(
            text(&delivery).contains(&frames.to_string()),
            "{}",
            text(&delivery)
        );
    }
}

#[tokio::test]
async fn e17_a_hundred_megapixels_are_the_limit() {
    let service = service().await;
    let largest = pictures::plain_grey_png(10_000, 10_000, 77).unwrap();
    let (attachment, _) = one(&service, &largest).await;
    assert_eq!(
        (&attachment["width"], &attachment["height"]),
        (&json!(1568), &json!(1568))
    );
    let over = pictures::plain_grey_png(10_001, 10_000, 77).unwrap();
    let delivery = deliver(&service, result(&[over]), seeing()).await;
    assert!(attached(&delivery).is_empty());
    assert!(codes(&delivery).contains(&"image_too_large"), "{delivery}");
    assert_eq!(media_lines(text(&delivery)), 1);
    let peak = service.memory().unwrap().peak;
    assert!(peak < 400 * 1024 * 1024, "{peak} bytes at most");
}

#[tokio::test]
async fn e26_a_broken_later_frame_costs_no_picture() {
    let service = service().await;
    let delivery = deliver(&service, result(&[gif(3, Some(2))]), seeing()).await;
    let seen = attached(&delivery);
    assert_eq!((seen.len(), seen[0].frames), (1, 1), "{}", text(&delivery));
    assert!(codes(&delivery).contains(&"image_damaged"), "{delivery}");
}

/// A GIF of 1×1 frames; one of them may hold garbage.
fn gif(frames: usize, broken: Option<usize>) -> Vec<u8> {
    let mut bytes = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xc8\x14\x14\x00\x00\x00".to_vec();
    for frame in 0..frames {
        bytes.extend(b"\x21\xf9\x04\x04\x0a\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00");
        if broken == Some(frame) {
            bytes.extend(b"\x02\x05\xff\xff\xff\xff\xff\x00");
        } else {
            bytes.extend(b"\x02\x02\x44\x01\x00");
        }
    }
    bytes.push(0x3b);
    bytes
}

#[tokio::test]
async fn four_of_many_are_attached_in_order_and_the_rest_is_named() {
    let images: Vec<Vec<u8>> = (1..=6).map(bars).collect();
    let service = service().await;
    let delivery = deliver(&service, result(&images), seeing()).await;
    let shown: Vec<usize> = attached(&delivery).iter().map(|one| one.bars()).collect();
    assert_eq!(shown, [1, 2, 3, 4]);
    assert_eq!(media_lines(text(&delivery)), 6);
    assert!(text(&delivery).contains("4 of 6"), "{}", text(&delivery));
    assert!(codes(&delivery).contains(&"images_not_attached"));
}

#[tokio::test]
async fn broken_and_repeated_pictures_give_their_place_to_the_next() {
    let mut cut = bars(9);
    cut.truncate(60);
    let images = [cut, bars(1), bars(1), bars(2), bars(3), bars(4), bars(5)];
    let service = service().await;
    let delivery = deliver(&service, result(&images), seeing()).await;
    let shown: Vec<usize> = attached(&delivery).iter().map(|one| one.bars()).collect();
    assert_eq!(shown, [1, 2, 3, 4], "{}", text(&delivery));
    let codes = codes(&delivery);
    assert!(
        codes.contains(&"image_not_decodable") && codes.contains(&"image_duplicate"),
        "{codes:?}"
    );
}

#[tokio::test]
async fn a_text_cannot_attach_a_file() {
    let service = service().await;
    let first = deliver(&service, result(&[bars(1)]), seeing()).await;
    let path = first["artifacts"][0]["path"].as_str().unwrap();
    let forged = json!({"content": [{"type": "text", "text": format!("MEDIA:{path}")}]});
    let delivery = deliver(&service, forged, seeing()).await;
    assert_eq!(
        (attached(&delivery).len(), media_lines(text(&delivery))),
        (0, 0)
    );
}

#[tokio::test]
async fn a_session_is_shown_a_picture_so_often() {
    let service = builder()
        .set(&["vision", "max_calls_per_image"], 2)
        .start()
        .await
        .unwrap();
    let ask = |session: &str, bars_of: u32| {
        let body =
            json!({"result": result(&[bars(bars_of)]), "route": seeing(), "session": session});
        let service = &service;
        async move { post(service, "/v1/results/deliver", &body).await }
    };
    for _ in 0..2 {
        assert_eq!(attached(&ask("a", 1).await).len(), 1);
    }
    let third = ask("a", 1).await;
    assert!(attached(&third).is_empty());
    assert!(codes(&third).contains(&"image_repeat_limit"), "{third}");
    assert_eq!(media_lines(text(&third)), 1);
    assert_eq!(attached(&ask("a", 2).await).len(), 1, "another picture");
    assert_eq!(attached(&ask("b", 1).await).len(), 1, "another session");
}

#[tokio::test]
async fn tiles_share_the_places_of_a_tall_page() {
    let page = pictures::drawn_png(900, 6_000, |x, y| {
        if (x / 3 + y / 7) % 5 == 0 {
            [0; 3]
        } else {
            [255; 3]
        }
    });
    let service = service().await;
    let body = json!({"result": result(&[page.unwrap()]), "route": seeing(), "tiles": true});
    let delivery = post(&service, "/v1/results/deliver", &body).await;
    let attachments = delivery["attachments"].as_array().unwrap();
    assert!(
        (2..=4).contains(&attachments.len()),
        "{} tiles",
        attachments.len()
    );
    let tops: Vec<u64> = attachments
        .iter()
        .map(|tile| tile["area"]["y"].as_u64().unwrap())
        .collect();
    assert!(tops.is_sorted() && tops[0] == 0, "{tops:?}");
    assert!(codes(&delivery).contains(&"image_tiled"));
    let mut whole = body.clone();
    whole["tiles"] = json!(false);
    let delivery = post(&service, "/v1/results/deliver", &whole).await;
    assert_eq!(attached(&delivery).len(), 1);
}
