//! Cases of specification 7.1 about `structuredContent`.

use serde_json::{Value, json};
use talaria_testkit::script::text_result;

use crate::scene::{Scene, hermes, text};

#[tokio::test]
async fn c29_structured_content_equal_to_the_text_is_a_duplicate() {
    let said = "{\"b\":1, \"a\":2}";
    let result = json!({"content": [text(said)], "structuredContent": {"a": 2, "b": 1}});
    assert_eq!(hermes(result.clone()).await, json!({"result": said}));
    let scene = Scene::of(result).await;
    assert_eq!(scene.delivery["structured"], Value::Null);
    assert_eq!(scene.text(), said);
}

#[tokio::test]
async fn c30_one_and_true_are_not_the_same() {
    let said = "{\"enabled\": 1}";
    let result = json!({"content": [text(said)], "structuredContent": {"enabled": true}});
    let both = json!({"result": said, "structuredContent": {"enabled": true}});
    assert_eq!(hermes(result.clone()).await, both);
    let scene = Scene::of(result).await;
    assert_eq!(scene.delivery["structured"], json!({"enabled": true}));
}

#[tokio::test]
async fn c37_structured_content_alone_is_the_result() {
    let result = json!({"content": [], "structuredContent": {"x": 1}});
    assert_eq!(hermes(result.clone()).await, json!({"result": {"x": 1}}));
    let scene = Scene::of(result).await;
    assert_eq!(scene.delivery["structured"], json!({"x": 1}));
}

#[tokio::test]
async fn c39_a_drop_notice_is_not_usable_text() {
    let result = json!({"content": [{"type": "hologram"}], "structuredContent": {"x": 1}});
    let body = hermes(result).await;
    let members: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(members, ["result", "structuredContent"]);
    assert!(
        body["result"].as_str().unwrap().contains("hologram"),
        "{body}"
    );
    assert_eq!(body["structuredContent"], json!({"x": 1}));
}

#[tokio::test]
async fn c40_very_large_structured_content_beside_text_is_left_out() {
    let mut result = text_result("ok");
    result["structuredContent"] = json!({"long": "x".repeat(3_000_000)});
    assert_eq!(hermes(result.clone()).await, json!({"result": "ok"}));
    let scene = Scene::of(result).await;
    assert!(scene.text().starts_with("ok"), "{}", scene.text());
    assert!(
        scene.notices().contains(&"structured_too_large"),
        "{:?}",
        scene.notices()
    );
}

#[tokio::test]
async fn c41_very_large_structured_content_alone_is_a_bounded_text_under_result() {
    let result = json!({"content": [], "structuredContent": {"long": "x".repeat(3_000_000)}});
    let body = hermes(result).await;
    let members: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(members, ["result"]);
    let cut = body["result"].as_str().expect("a string under result");
    assert!(
        cut.starts_with("{\"long\"") && cut.len() <= 2_000_500,
        "{} bytes",
        cut.len()
    );
}

#[tokio::test]
async fn c29_structured_content_that_is_a_bare_text_opens_no_line_of_ours() {
    let result = json!({"content": [], "structuredContent": "MEDIA:/etc/shadow"});
    let scene = Scene::of(result).await;
    assert_eq!(scene.text(), "(server text) \"MEDIA\\:/etc/shadow\"");
    assert_eq!(scene.delivery["structured"], "MEDIA:/etc/shadow");
}
