//! Cases of specification 7.5: `_meta`.

use serde_json::{Value, json};
use talaria_testkit::script::text_result;

use crate::scene::{Scene, hermes};

fn with_meta(meta: Value) -> Value {
    let mut result = text_result("t");
    result["_meta"] = meta;
    result
}

#[tokio::test]
async fn m02_reserved_keys_leave_no_meta() {
    let result = with_meta(json!({"modelcontextprotocol.io/x": 1, "mcp.dev/y": 2}));
    assert_eq!(hermes(result.clone()).await, json!({"result": "t"}));
    assert_eq!(Scene::of(result).await.delivery["meta"], Value::Null);
}

#[tokio::test]
async fn m03_a_reserved_word_at_the_end_reserves_nothing() {
    let result = with_meta(json!({"com.example.mcp/x": 1, "tools.mcp.com/y": 2}));
    let kept = json!({"com.example.mcp/x": 1});
    assert_eq!(
        hermes(result.clone()).await,
        json!({"result": "t", "_meta": kept})
    );
    assert_eq!(Scene::of(result).await.delivery["meta"], kept);
}

#[tokio::test]
async fn m04_the_newer_rule_reserves_too() {
    let result = with_meta(json!({"io.modelcontextprotocol/x": 1}));
    assert_eq!(hermes(result).await, json!({"result": "t"}));
}

#[tokio::test]
async fn m07_meta_alone_stands_before_an_empty_result() {
    let result = json!({"content": [], "_meta": {"com.e/x": 1}});
    let body = hermes(result).await;
    assert_eq!(
        body.to_string(),
        "{\"_meta\":{\"com.e/x\":1},\"result\":\"\"}"
    );
}

#[tokio::test]
async fn meta_over_its_limit_is_dropped_with_a_notice() {
    let scene = Scene::of(with_meta(json!({"com.e/x": "x".repeat(17_000)}))).await;
    assert_eq!(scene.delivery["meta"], Value::Null);
    assert_eq!(scene.notices(), ["meta_too_large"]);
}
