//! A service with routes that see, that do not and of which nothing is known.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use talaria_testkit::{SeenPicture, Service, ServiceBuilder, pictures, programs};

/// A route whose model sees and whose provider takes pictures in tool results.
pub(crate) fn seeing() -> Value {
    json!({"provider": "anthropic", "model": "sees"})
}

/// The same provider with a model that does not see.
pub(crate) fn blind() -> Value {
    json!({"provider": "anthropic", "model": "blind"})
}

/// A service that knows those routes.
pub(crate) fn builder() -> ServiceBuilder {
    with_models(Service::builder(programs!()).unwrap())
}

/// Says of two models of every class of provider whether they see.
pub(crate) fn with_models(mut builder: ServiceBuilder) -> ServiceBuilder {
    for provider in ["anthropic", "openrouter", "mystery", "xiaomi", "openai"] {
        let models = json!({
            "sees": {"supports_vision": true},
            "blind": {"supports_vision": false},
        });
        builder = builder.set(&["providers", provider, "models"], models);
    }
    builder
}

pub(crate) async fn service() -> Service {
    builder().start().await.unwrap()
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn image_block(bytes: &[u8]) -> Value {
    json!({"type": "image", "mimeType": "image/png", "data": base64(bytes)})
}

/// A result of pictures.
pub(crate) fn result(images: &[Vec<u8>]) -> Value {
    let blocks: Vec<Value> = images.iter().map(|image| image_block(image)).collect();
    json!({ "content": blocks })
}

/// A picture of 64×64 with so many white bars; every number is another picture.
pub(crate) fn bars(count: u32) -> Vec<u8> {
    pictures::drawn_png(64, 64, |x, _| {
        if x % 10 < 5 && x / 10 < count {
            [255; 3]
        } else {
            [20, 60, 20]
        }
    })
    .unwrap()
}

/// Delivers a result to a route and answers the delivery.
pub(crate) async fn deliver(service: &Service, result: Value, route: Value) -> Value {
    let body = json!({"result": result, "route": route});
    post(service, "/v1/results/deliver", &body).await
}

/// Posts a body that is answered with success.
pub(crate) async fn post(service: &Service, path: &str, body: &Value) -> Value {
    service.post(path, body).await.unwrap().ok().unwrap()
}

/// The attached pictures of a delivery, decoded by others than the service.
pub(crate) fn attached(delivery: &Value) -> Vec<SeenPicture> {
    let attachments = delivery["attachments"].as_array().unwrap();
    attachments
        .iter()
        .map(|attachment| {
            let seen = seen(attachment["data"].as_str().unwrap());
            assert_eq!(attachment["media_type"], seen.media_type);
            assert_eq!(attachment["width"], seen.width);
            assert_eq!(attachment["height"], seen.height);
            seen
        })
        .collect()
}

/// A picture from its base64.
pub(crate) fn seen(data: &str) -> SeenPicture {
    SeenPicture::decode(&STANDARD.decode(data).unwrap()).unwrap()
}

pub(crate) fn text(delivery: &Value) -> &str {
    delivery["text"].as_str().unwrap()
}

/// The codes of a delivery's notices.
pub(crate) fn codes(delivery: &Value) -> Vec<&str> {
    let notices = delivery["notices"].as_array().unwrap();
    notices
        .iter()
        .map(|notice| notice["code"].as_str().unwrap())
        .collect()
}

/// How many lines name a file of the store that exists.
pub(crate) fn media_lines(text: &str) -> usize {
    text.lines()
        .filter_map(|line| line.strip_prefix("MEDIA:"))
        .filter(|path| std::path::Path::new(path).is_file())
        .count()
}

/// Nothing of the service's answer is a picture.
pub(crate) fn assert_no_pixels(answer: &str) {
    for mark in [
        "_multimodal",
        "data:image/",
        "\"data\":\"",
        "image_url",
        "input_image",
    ] {
        assert!(!answer.contains(mark), "{mark} in {answer}");
    }
}
