//! The picture as a backend gets it: fitted, cut out, padded, still.

use serde_json::{Value, json};
use talaria_testkit::{Reply, VisionEndpoint, pictures, samples};

use crate::scene::{
    ANALYZE, SERVER, VIA_TOOL, builder, chained, deliver, described, endpoint, eyes, result,
    service, text, tool_link, with_tool,
};

/// 4,000×3,000, blue with a red field.
fn large() -> Vec<u8> {
    let drawn = pictures::drawn_png(4_000, 3_000, |x, y| {
        if (2_000..2_400).contains(&x) && (1_000..1_300).contains(&y) {
            [200, 10, 10]
        } else {
            [10, 10, 200]
        }
    });
    drawn.unwrap()
}

#[tokio::test]
async fn a_large_picture_is_fitted_and_the_scale_is_told() {
    let first = endpoint(Reply::chat("blue"));
    let service = service(&first).await;
    let answer = described(&service, &large()).await;
    let seen = first.asked()[0].picture().unwrap();
    assert_eq!((seen.width, seen.height), (1_568, 1_176));
    let note = answer["scale_note"].as_str().unwrap();
    assert!(note.contains("4000") && note.contains("2.55"), "{note}");
    // What cannot be enlarged by guessing has no note.
    let small = described(&service, &crate::scene::picture(1)).await;
    assert!(small["scale_note"].is_null(), "{small}");
}

#[tokio::test]
async fn a_region_is_cut_out_before_it_is_described() {
    let first = endpoint(Reply::chat("red"));
    let service = service(&first).await;
    let body = json!({"image": {"data": samples::base64(&large())}, "prompt": "Which colour?",
                      "region": [2_000, 1_000, 2_400, 1_300]});
    service.post(ANALYZE, &body).await.unwrap().ok().unwrap();
    let seen = first.asked()[0].picture().unwrap();
    assert_eq!((seen.width, seen.height), (400, 300));
    assert_eq!(
        seen.centre()
            .map(|[red, _, blue, _]| red > 150 && blue < 80),
        Some(true)
    );
}

#[tokio::test]
async fn a_region_reaches_a_tool_as_a_file_of_its_own() {
    let builder = builder().stdio(SERVER, eyes()).unwrap();
    let service = chained(builder, None, Vec::new(), vec![tool_link(SERVER)])
        .start()
        .await
        .unwrap();
    let body = json!({"image": {"data": samples::base64(&large())}, "prompt": "Which colour?",
                      "region": [2_000, 1_000, 2_400, 1_300]});
    let answer = service.post(ANALYZE, &body).await.unwrap().ok().unwrap();
    let analysis = answer["analysis"].as_str().unwrap();
    assert!(
        analysis.contains("400x300") && analysis.contains("200,10,10"),
        "{answer}"
    );
}

#[tokio::test]
async fn tiny_pictures_are_padded_before_they_are_shown_to_anybody() {
    let first = endpoint(Reply::chat("a dot"));
    let service = service(&first).await;
    for (width, height) in [(1, 1), (2, 2), (1, 500), (31, 31)] {
        let tiny = pictures::plain_png(width, height, [9, 90, 9]).unwrap();
        described(&service, &tiny).await;
        let seen = first.asked().last().unwrap().picture().unwrap();
        assert!(
            seen.width >= 32 && seen.height >= 32,
            "{width}x{height}: {seen:?}"
        );
    }
    // In a delivery as well.
    let tiny = pictures::plain_png(3, 3, [9, 9, 90]).unwrap();
    let delivery = deliver(&service, result(&[tiny])).await;
    assert!(text(&delivery).contains("a dot"), "{delivery}");
    let seen = first.asked().last().unwrap().picture().unwrap();
    assert!(seen.width >= 28 && seen.height >= 28, "{seen:?}");
}

#[tokio::test]
async fn what_no_backend_takes_is_converted_first() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/images");
    for name in [
        "anim.gif",
        "photo.avif",
        "photo_cmyk.jpg",
        "photo_exif6.jpg",
    ] {
        let bytes = std::fs::read(root.join(name)).unwrap();
        let answer = crate::scene::analyze(&service, &bytes).await;
        if name == "photo.avif" && answer.status != 200 {
            // A format that is not decoded here is told so; no backend gets it raw.
            assert!(!answer.excerpt().contains("\"success\":true"));
            continue;
        }
        assert_eq!(answer.status, 200, "{name}: {}", answer.excerpt());
        let seen = first.asked().last().unwrap().picture().unwrap();
        assert!(
            ["image/png", "image/jpeg"].contains(&seen.media_type),
            "{name}: {seen:?}"
        );
        assert_eq!(seen.frames, 1, "{name}");
    }
}

#[tokio::test]
async fn a_picture_that_does_not_decode_is_shown_to_nobody() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    let mut cut = pictures::noise_png(64, 64, 3).unwrap();
    cut.truncate(90);
    let answer = crate::scene::analyze(&service, &cut).await;
    assert!((400..600).contains(&answer.status), "{}", answer.excerpt());
    let delivery = deliver(&service, result(&[cut])).await;
    assert!(!text(&delivery).contains("seen"), "{delivery}");
    assert_eq!(first.count(), 0);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_made_smaller_once() {
    for status in [413, 400] {
        let first = VisionEndpoint::start([
            Reply::error(status, "request_too_large", "image exceeds the size limit"),
            Reply::chat("now it fits"),
        ])
        .unwrap();
        let service = service(&first).await;
        let noise = pictures::noise_jpeg(1_500, 1_200, 5).unwrap();
        let answer = described(&service, &noise).await;
        assert_eq!(answer["analysis"], "now it fits", "{status}");
        let sizes: Vec<usize> = first
            .asked()
            .iter()
            .map(|asked| asked.pictures()[0].len())
            .collect();
        assert!(
            sizes.len() == 2 && sizes[1] < sizes[0],
            "{status}: {sizes:?}"
        );
    }
    let first = endpoint(Reply::error(413, "request_too_large", "still too large"));
    let service = with_tool(&first.base()).await;
    let noise = pictures::noise_jpeg(900, 700, 6).unwrap();
    let answer = described(&service, &noise).await;
    assert_eq!(answer["via"], VIA_TOOL);
    assert_eq!(first.count(), 2, "once, and no more");
}

#[tokio::test]
async fn a_tool_gets_a_file_that_stays_only_as_long_as_it_is_needed() {
    let builder = builder().stdio(SERVER, eyes()).unwrap();
    let service = chained(builder, None, Vec::new(), vec![tool_link(SERVER)])
        .start()
        .await
        .unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/images");
    let gif = std::fs::read(root.join("anim.gif")).unwrap();
    let answer: Value = described(&service, &gif).await;
    assert!(
        answer["analysis"].as_str().unwrap().contains("image/"),
        "{answer}"
    );
    let calls = crate::scene::tool_calls(&service);
    let path = std::path::Path::new(calls[0]["image_source"].as_str().unwrap()).to_owned();
    assert!(
        !path.to_str().unwrap().ends_with(".gif"),
        "{}",
        path.display()
    );
    crate::scene::settles("the still to be removed", &false, || path.exists()).await;
}
