//! Requests of every API, byte for byte where it matters.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_config::Secret;

use super::*;
use crate::ProviderLimits;

fn backend(api: ApiShape, endpoint: &str, model: &str) -> Backend {
    Backend {
        path: "auxiliary.vision".to_owned(),
        provider: "p".to_owned(),
        model: model.to_owned(),
        endpoint: Url::parse(endpoint).unwrap(),
        key: Some(Secret::from("hunter22".to_owned())),
        twins: 0,
        api,
        timeout: Duration::from_secs(1),
        limits: ProviderLimits::default(),
    }
}

fn made(backend: &Backend, with_temperature: bool) -> (Request, Value) {
    let picture = Encoded {
        media_type: "image/png".to_owned(),
        base64: "aGk=".into(),
    };
    let ask = Ask {
        prompt: "what?",
        picture: &picture,
        temperature: 0.1,
    };
    let request = request(backend, &ask, with_temperature).unwrap();
    let body = serde_json::from_slice(&request.body).unwrap();
    (request, body)
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request
        .headers
        .get(name)
        .map(|value| value.to_str().unwrap())
}

#[test]
fn chat_completions() {
    let asked = backend(ApiShape::OpenaiChat, "https://h.example/v1/", "llava");
    let (request, body) = made(&asked, true);
    assert_eq!(
        request.url.as_str(),
        "https://h.example/v1/chat/completions"
    );
    assert_eq!(header(&request, "authorization"), Some("Bearer hunter22"));
    assert!(!format!("{:?}", request.headers).contains("hunter22"));
    let wanted = json!({
        "model": "llava",
        "messages": [{ "role": "user", "content": [
            { "type": "text", "text": "what?" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } },
        ]}],
        "temperature": 0.1,
    });
    assert_eq!(body, wanted);
}

#[test]
fn responses() {
    let asked = backend(
        ApiShape::OpenaiResponses,
        "https://api.openai.com/v1",
        "gpt-4o",
    );
    let (request, body) = made(&asked, false);
    assert_eq!(request.url.path(), "/v1/responses");
    let wanted = json!({
        "model": "gpt-4o",
        "input": [{ "role": "user", "content": [
            { "type": "input_text", "text": "what?" },
            { "type": "input_image", "image_url": "data:image/png;base64,aGk=" },
        ]}],
        "store": false,
    });
    assert_eq!(body, wanted);
}

#[test]
fn anthropic_messages() {
    let asked = backend(ApiShape::Anthropic, "https://api.anthropic.com", "claude");
    let (request, body) = made(&asked, true);
    assert_eq!(
        request.url.as_str(),
        "https://api.anthropic.com/v1/messages"
    );
    assert_eq!(header(&request, "x-api-key"), Some("hunter22"));
    assert_eq!(header(&request, "anthropic-version"), Some("2023-06-01"));
    assert_eq!(header(&request, "authorization"), None);
    let wanted = json!({
        "model": "claude",
        "max_tokens": 4096,
        "messages": [{ "role": "user", "content": [
            { "type": "image",
              "source": { "type": "base64", "media_type": "image/png", "data": "aGk=" } },
            { "type": "text", "text": "what?" },
        ]}],
        "temperature": 0.1,
    });
    assert_eq!(body, wanted);
    let copy = backend(ApiShape::Anthropic, "https://h.example/anthropic/v1", "m");
    let (request, _) = made(&copy, true);
    assert_eq!(request.url.path(), "/anthropic/v1/messages");
    assert_eq!(header(&request, "authorization"), Some("Bearer hunter22"));
}

#[test]
fn gemini() {
    let endpoint = "https://generativelanguage.googleapis.com/v1beta";
    let asked = backend(ApiShape::Gemini, endpoint, "models/gemini-2.5-flash");
    let (request, body) = made(&asked, true);
    assert_eq!(
        request.url.path(),
        "/v1beta/models/gemini-2.5-flash:generateContent"
    );
    assert_eq!(header(&request, "x-goog-api-key"), Some("hunter22"));
    let wanted = json!({
        "contents": [{ "role": "user", "parts": [
            { "inlineData": { "mimeType": "image/png", "data": "aGk=" } },
            { "text": "what?" },
        ]}],
        "generationConfig": { "temperature": 0.1 },
    });
    assert_eq!(body, wanted);
}

#[test]
fn addresses_keep_what_they_have() {
    for (api, endpoint, wanted) in [
        (
            ApiShape::OpenaiChat,
            "http://127.0.0.1:1",
            "http://127.0.0.1:1/v1/chat/completions",
        ),
        (
            ApiShape::OpenaiChat,
            "http://h/x/chat/completions",
            "http://h/x/chat/completions",
        ),
        (
            ApiShape::OpenaiChat,
            "https://r.openai.azure.com/openai/v1?api-version=1",
            "https://r.openai.azure.com/openai/v1/chat/completions?api-version=1",
        ),
        (
            ApiShape::Anthropic,
            "http://h/v1/messages",
            "http://h/v1/messages",
        ),
        (
            ApiShape::Gemini,
            "http://h",
            "http://h/v1beta/models/m:generateContent",
        ),
    ] {
        let (request, _) = made(&backend(api, endpoint, "m"), true);
        assert_eq!(request.url.as_str(), wanted);
    }
    let azure = backend(
        ApiShape::OpenaiChat,
        "https://r.openai.azure.com/openai/v1",
        "m",
    );
    let (request, _) = made(&azure, true);
    assert_eq!(header(&request, "api-key"), Some("hunter22"));
    assert_eq!(header(&request, "authorization"), None);
}

#[test]
fn models_that_take_no_temperature_get_none() {
    for (model, takes) in [
        ("o3", false),
        ("openai/gpt-5-mini", false),
        ("gpt-4o", true),
    ] {
        let (_, body) = made(&backend(ApiShape::OpenaiChat, "http://h", model), true);
        assert_eq!(body.get("temperature").is_some(), takes, "{model}");
    }
}

#[test]
fn a_hostile_name_of_a_model_stays_inside_the_path() {
    let (request, _) = made(&backend(ApiShape::Gemini, "http://h", "../x?k=#y"), true);
    assert_eq!(request.url.host_str(), Some("h"));
    assert_eq!(request.url.query(), None);
}
