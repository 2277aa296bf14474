//! The APIs that backends speak.

use serde_json::{Value, json};
use talaria_testkit::Reply;

use crate::scene::{builder, chained, described, endpoint, picture};

/// One API: how it is configured, where the request goes, how the key travels, what comes back.
struct Api {
    provider: &'static str,
    api: Option<&'static str>,
    base: &'static str,
    target: &'static str,
    key: &'static str,
    reply: Value,
}

fn apis() -> Vec<Api> {
    let chat = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "a lake"}}]});
    let parts = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "a lake"}]}}]});
    let api = |provider, base, target, reply: &Value| Api {
        provider,
        api: None,
        base,
        target,
        key: "authorization",
        reply: reply.clone(),
    };
    vec![
        api("openai", "/v1", "/v1/chat/completions", &chat),
        api("openai", "", "/v1/chat/completions", &parts),
        api("openrouter", "/api/v1", "/api/v1/chat/completions", &chat),
        api("nous", "/v1/", "/v1/chat/completions", &chat),
        api("ollama", "/v1", "/v1/chat/completions", &chat),
        api("llamacpp", "/v1", "/v1/chat/completions", &chat),
        api("lab", "/v1", "/v1/chat/completions", &chat),
        Api {
            api: Some("openai-responses"),
            ..api(
                "openai",
                "/v1",
                "/v1/responses",
                &json!({"status": "completed", "output": [
                    {"type": "reasoning", "summary": []},
                    {"type": "message", "role": "assistant", "status": "completed",
                     "content": [{"type": "output_text", "text": "a lake", "annotations": []}]}]}),
            )
        },
        Api {
            key: "x-api-key",
            ..api(
                "anthropic",
                "",
                "/v1/messages",
                &json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
                    "content": [{"type": "text", "text": "a lake"}]}),
            )
        },
        Api {
            key: "x-goog-api-key",
            ..api(
                "gemini",
                "/v1beta",
                "/v1beta/models/eyes:generateContent",
                &json!({"candidates": [{"finishReason": "STOP",
                    "content": {"role": "model", "parts": [{"text": "a lake"}]}}]}),
            )
        },
    ]
}

#[tokio::test]
async fn every_api_is_spoken_as_its_servers_do() {
    for api in apis() {
        let host = endpoint(Reply::json(200, &api.reply));
        let mut link = json!({"provider": api.provider, "base_url": host.url(api.base),
                              "model": "eyes", "api_key": "the-key"});
        if let Some(word) = api.api {
            link["api_mode"] = json!(word);
        }
        let service = chained(builder(), Some(link), Vec::new(), Vec::new())
            .start()
            .await
            .unwrap();
        let answer = described(&service, &picture(1)).await;
        assert_eq!(answer["analysis"], "a lake", "{}: {answer}", api.provider);
        let asked = host.asked();
        let [asked] = asked.as_slice() else {
            panic!("{}: {asked:?}", api.provider);
        };
        assert_eq!(
            (asked.method.as_str(), asked.target.as_str()),
            ("POST", api.target)
        );
        assert!(
            asked.header(api.key).contains("the-key"),
            "{:?}",
            asked.headers
        );
        assert!(!asked.target.contains("the-key"));
        let seen = asked.picture().unwrap();
        assert_eq!((seen.width, seen.height), (64, 48), "{}", api.provider);
        assert!(
            asked.words().contains("What is on it?"),
            "{}",
            asked.words()
        );
    }
}

#[tokio::test]
async fn the_variable_of_hermes_names_the_model() {
    let host = endpoint(Reply::chat("a lake"));
    let link = json!({"provider": "custom", "base_url": host.base(), "api_key": "k"});
    let service = chained(builder(), Some(link), Vec::new(), Vec::new())
        .env("AUXILIARY_VISION_MODEL", "eyes-of-the-environment")
        .start()
        .await
        .unwrap();
    described(&service, &picture(1)).await;
    assert_eq!(host.asked()[0].json()["model"], "eyes-of-the-environment");
}

#[tokio::test]
async fn the_main_model_describes_where_it_sees_and_nothing_else_is_named() {
    let main = endpoint(Reply::chat("seen by the main model"));
    let service = builder()
        .set(
            &["model"],
            json!({"provider": "custom", "default": "main", "base_url": main.base(),
                   "api_key": "k", "supports_vision": true}),
        )
        .start()
        .await
        .unwrap();
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "seen by the main model", "{answer}");
    assert_eq!(main.asked()[0].json()["model"], "main");
}
