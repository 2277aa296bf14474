//! Pixels in the formats of agents and providers.

use serde_json::{Value, json};

use crate::scene::{assert_no_pixels, bars, builder, image_block, post, result, seen, service};

fn result_with_words() -> Value {
    json!({"content": [{"type": "text", "text": "the screen"}, image_block(&bars(4))]})
}

/// A delivery in a format, to a route that takes pictures in tool results in every shape.
async fn rendered(format: &str) -> Value {
    let body = json!({
        "result": result_with_words(), "tool": "shot", "format": format, "call_id": "call_1",
        "route": {"provider": "openrouter", "model": "sees"},
    });
    post(&service().await, "/v1/results/deliver", &body).await
}

/// The picture behind a `data:` URL.
fn of_url(url: &Value) -> usize {
    let (head, data) = url.as_str().unwrap().split_once(";base64,").unwrap();
    let picture = seen(data);
    assert_eq!(head, format!("data:{}", picture.media_type));
    picture.bars()
}

#[tokio::test]
async fn anthropic_gets_a_tool_result_with_an_image() {
    let block = rendered("anthropic").await;
    assert_eq!(
        (&block["type"], &block["tool_use_id"]),
        (&json!("tool_result"), &json!("call_1"))
    );
    let content = block["content"].as_array().unwrap();
    let image = content.iter().find(|part| part["type"] == "image").unwrap();
    assert_eq!(image["source"]["type"], "base64");
    let picture = seen(image["source"]["data"].as_str().unwrap());
    assert_eq!(
        (picture.bars(), &image["source"]["media_type"]),
        (4, &json!(picture.media_type))
    );
    assert!(content[0]["text"].as_str().unwrap().contains("the screen"));
}

#[tokio::test]
async fn responses_get_an_output_item_with_an_input_image() {
    let item = rendered("openai-responses").await;
    assert_eq!(
        (&item["type"], &item["call_id"]),
        (&json!("function_call_output"), &json!("call_1"))
    );
    let output = item["output"].as_array().unwrap();
    let image = output
        .iter()
        .find(|part| part["type"] == "input_image")
        .unwrap();
    assert_eq!(of_url(&image["image_url"]), 4);
}

#[tokio::test]
async fn gemini_gets_a_function_response_with_inline_data() {
    let part = rendered("gemini").await;
    let shown = part.to_string();
    assert_eq!(part["functionResponse"]["name"], "shot", "{shown}");
    assert!(shown.contains("inlineData"), "{shown}");
}

#[tokio::test]
async fn mcp_gets_a_clean_tool_result() {
    let result = rendered("mcp").await;
    let content = result["content"].as_array().unwrap();
    let image = content
        .iter()
        .find(|block| block["type"] == "image")
        .unwrap();
    assert_eq!(seen(image["data"].as_str().unwrap()).bars(), 4);
}

#[tokio::test]
async fn hermes_gets_its_envelope() {
    let envelope = rendered("hermes").await;
    assert_eq!(envelope["_multimodal"], true);
    let content = envelope["content"].as_array().unwrap();
    let inner: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
    assert!(
        inner["result"].as_str().unwrap().contains("MEDIA:"),
        "{inner}"
    );
    let image = content
        .iter()
        .find(|part| part["type"] == "image_url")
        .unwrap();
    assert_eq!(of_url(&image["image_url"]["url"]), 4);
    assert_eq!(envelope["text_summary"], content[0]["text"]);
}

#[tokio::test]
async fn openais_chat_takes_pictures_in_a_message_of_the_user_where_that_is_allowed() {
    let body = json!({
        "result": result_with_words(), "format": "openai-chat", "call_id": "call_1",
        "route": {"provider": "openai", "model": "sees"},
    });
    let closed = service().await;
    let answer = post(&closed, "/v1/results/deliver", &body).await;
    assert_no_pixels(&answer.to_string());
    let allowed = builder()
        .set(&["talaria", "images", "image_delivery"], "user_message")
        .start()
        .await
        .unwrap();
    let answer = post(&allowed, "/v1/results/deliver", &body).await;
    let messages = answer.as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["tool", "user"]);
    assert_eq!(messages[0]["tool_call_id"], "call_1");
    assert_no_pixels(&messages[0].to_string());
    let parts = messages[1]["content"].as_array().unwrap();
    let image = parts
        .iter()
        .find(|part| part["type"] == "image_url")
        .unwrap();
    assert_eq!(of_url(&image["image_url"]["url"]), 4);
}

#[tokio::test]
async fn a_provider_format_without_the_call_it_answers_is_refused() {
    let service = service().await;
    for format in ["anthropic", "openai-responses", "openai-chat"] {
        let body = json!({"result": result(&[bars(1)]), "format": format});
        let answer = service.post("/v1/results/deliver", &body).await.unwrap();
        assert_eq!(answer.status, 400);
        let detail = answer.problem().unwrap()["detail"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            detail.contains("call_id") && detail.contains(format),
            "{detail}"
        );
    }
}
