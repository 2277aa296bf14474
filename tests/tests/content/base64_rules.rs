//! Cases of specification 7.2: what is base64 and how large it may be.

use serde_json::json;
use talaria_testkit::PayloadSpec;
use talaria_testkit::payload::Spelling;
use talaria_testkit::samples::{PNG_1X1, png};

use crate::scene::{Scene, audio, blob};

/// Exactly the limit of every binary.
const LIMIT: usize = 52_428_800;

async fn of_blob(data: &str) -> Scene {
    Scene::of_block(blob("x://h/data.bin", "application/octet-stream", data)).await
}

/// Delivers a generated payload as an embedded blob, or as an image when it begins like one.
async fn of_payload(payload: &PayloadSpec) -> Scene {
    let mut data = Vec::with_capacity(payload.bytes / 3 * 4 + 8);
    payload
        .encoded()
        .for_each(|piece| data.extend_from_slice(&piece));
    // The spelling is that inside a JSON string; undo it, the body is made from a value.
    let data = String::from_utf8(data).unwrap().replace("\\n", "\n");
    let block = if payload.head.is_empty() {
        blob("x://h/data.bin", "application/octet-stream", &data)
    } else {
        json!({"type": "image", "mimeType": "image/png", "data": data})
    };
    Scene::of_block(block).await
}

fn assert_refused(scene: &Scene, code: &str, word: &str) {
    assert_eq!(scene.notices(), [code], "{}", scene.delivery);
    assert!(scene.text().contains(word), "{}", scene.text());
    assert_eq!(scene.delivery["is_error"], false);
    scene.assert_nothing_saved();
}

#[tokio::test]
async fn b02_a_line_end_after_the_padding_is_ignored() {
    assert_eq!(of_blob("aGVsbG8=\n").await.saved(), b"hello");
}

#[tokio::test]
async fn b03_padding_is_optional() {
    assert_eq!(of_blob("aGVsbG8").await.saved(), b"hello");
}

#[tokio::test]
async fn b04_percent_signs_are_not_audio() {
    let scene = Scene::of_block(audio("audio/wav", "%%%%")).await;
    assert_refused(&scene, "not_base64", "could not be decoded");
}

#[tokio::test]
async fn b05_an_empty_blob_is_refused() {
    let scene = of_blob("").await;
    assert!(scene.text().contains("empty"), "{}", scene.text());
    assert_eq!(scene.notices(), ["empty_block"], "{}", scene.delivery);
    scene.assert_nothing_saved();
}

#[tokio::test]
async fn b07_two_texts_in_a_row_are_refused() {
    assert_refused(
        &of_blob("aGU=aGU=").await,
        "not_base64",
        "could not be decoded",
    );
}

#[tokio::test]
async fn b08_the_url_safe_alphabet_is_decoded() {
    assert_eq!(of_blob("-_-_").await.saved(), [0xFB, 0xFF, 0xBF]);
}

#[tokio::test]
async fn b09_a_data_url_is_decoded_without_its_prefix() {
    let data = format!("data:image/png;base64,{PNG_1X1}");
    let scene =
        Scene::of_block(json!({"type": "image", "mimeType": "image/png", "data": data})).await;
    assert_eq!(scene.saved(), png());
}

#[tokio::test]
async fn b11_a_blob_of_exactly_the_limit_is_saved() {
    let payload = PayloadSpec::of(LIMIT);
    let scene = of_payload(&payload).await;
    assert_eq!(scene.artifact()["bytes"], LIMIT);
    payload.compare_file(&scene.path()).unwrap();
}

#[tokio::test]
async fn b12_one_byte_more_is_refused_and_leaves_no_file() {
    let scene = of_payload(&PayloadSpec::of(LIMIT + 1)).await;
    assert_refused(&scene, "payload_too_large", "too large");
    assert!(scene.text().contains("52428801") || scene.text().contains("52,428,801"));
}

#[tokio::test]
async fn b14_line_ends_do_not_count_towards_the_limit() {
    let payload = PayloadSpec::of(LIMIT).spelled(Spelling::Wrapped);
    let scene = of_payload(&payload).await;
    payload.compare_file(&scene.path()).unwrap();
}

#[tokio::test]
async fn b15_an_image_over_the_limit_is_refused() {
    let payload = PayloadSpec::of(60_000_000).with_head("\u{89}PNG\r\n\u{1a}\n");
    assert_refused(
        &of_payload(&payload).await,
        "payload_too_large",
        "too large",
    );
}
