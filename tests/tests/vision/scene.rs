//! A service whose main model does not see, and the chain of helpers that describe pictures.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::understand_image;
use talaria_testkit::{
    Answer, PictureForm, RefusingPort, Reply, Script, Service, ServiceBuilder, VisionEndpoint,
    pictures, programs, samples,
};

/// Where a picture is always described.
pub(crate) const ANALYZE: &str = "/v1/vision/analyze";
/// The server of the last link, as in the field.
pub(crate) const SERVER: &str = "MiniMax";
/// The `via` of the last link.
pub(crate) const VIA_TOOL: &str = "mcp:MiniMax/understand_image";

/// A route whose model does not see.
pub(crate) fn blind() -> Value {
    json!({"provider": "anthropic", "model": "blind"})
}

/// A route whose model sees.
pub(crate) fn seeing() -> Value {
    json!({"provider": "anthropic", "model": "sees"})
}

/// A service that knows those routes and nothing that describes.
pub(crate) fn builder() -> ServiceBuilder {
    let models = json!({
        "sees": {"supports_vision": true},
        "blind": {"supports_vision": false},
    });
    Service::builder(programs!())
        .unwrap()
        .set(&["providers", "anthropic", "models"], models.clone())
        .set(&["providers", "openai", "models"], models)
}

/// A backend of an OpenAI-shaped API whose model has this name.
pub(crate) fn backend(base: &str, model: &str) -> Value {
    json!({
        "provider": "custom", "base_url": base, "model": model,
        "api_key": format!("the-key-of-{model}"),
    })
}

/// The last link: a tool of an MCP server.
pub(crate) fn tool_link(server: &str) -> Value {
    json!({"server": server, "tool": "understand_image"})
}

/// Sets the chain: the primary backend, the backends after it, the tools after those.
pub(crate) fn chained(
    mut builder: ServiceBuilder,
    primary: Option<Value>,
    fallbacks: Vec<Value>,
    tools: Vec<Value>,
) -> ServiceBuilder {
    let mut vision = primary.unwrap_or_else(|| json!({}));
    if !fallbacks.is_empty() {
        vision["fallback_chain"] = fallbacks.into();
    }
    if !tools.is_empty() {
        vision["mcp_fallback"] = tools.into();
    }
    builder = builder.set(&["auxiliary", "vision"], vision);
    builder
}

/// A service whose chain is this one backend.
pub(crate) async fn service(first: &VisionEndpoint) -> Service {
    chained(
        builder(),
        Some(backend(&first.base(), "first")),
        Vec::new(),
        Vec::new(),
    )
    .start()
    .await
    .unwrap()
}

/// A scripted server with `understand_image`, which answers what it sees.
pub(crate) fn eyes() -> Script {
    Script::new("eyes")
        .vision_tool(
            "understand_image",
            "image_source",
            PictureForm::File,
            "the tool saw {seen}",
        )
        .with_tools(vec![understand_image()])
}

/// A service of one primary backend and the scripted tool after it.
pub(crate) async fn with_tool(primary: &str) -> Service {
    with_tool_builder(primary).start().await.unwrap()
}

/// The same, to be changed.
pub(crate) fn with_tool_builder(primary: &str) -> ServiceBuilder {
    let builder = builder().stdio(SERVER, eyes()).unwrap();
    chained(
        builder,
        Some(backend(primary, "first")),
        Vec::new(),
        vec![tool_link(SERVER)],
    )
}

/// A primary that refuses every connection.
pub(crate) fn refusing() -> RefusingPort {
    RefusingPort::take().unwrap()
}

/// An endpoint that always gives this reply.
pub(crate) fn endpoint(reply: Reply) -> VisionEndpoint {
    VisionEndpoint::start([reply]).unwrap()
}

/// A picture of 64×48 of one colour; every number is another picture.
pub(crate) fn picture(number: u32) -> Vec<u8> {
    let [_, red, green, blue] = (0x0010_2030 + number * 7).to_be_bytes();
    pictures::plain_png(64, 48, [red, green, blue]).unwrap()
}

/// A request that asks for a description of a picture.
pub(crate) fn question(bytes: &[u8]) -> Value {
    json!({"image": {"data": samples::base64(bytes)}, "prompt": "What is on it?"})
}

/// Asks for a description of a picture.
pub(crate) async fn analyze(service: &Service, bytes: &[u8]) -> Answer {
    service.post(ANALYZE, &question(bytes)).await.unwrap()
}

/// Asks for a description that is given.
pub(crate) async fn described(service: &Service, bytes: &[u8]) -> Value {
    let answer = analyze(service, bytes).await.ok().unwrap();
    assert_eq!(answer["success"], true, "{answer}");
    answer
}

/// A result of pictures.
pub(crate) fn result(images: &[Vec<u8>]) -> Value {
    let blocks: Vec<Value> = images
        .iter()
        .map(|bytes| {
            json!({"type": "image", "mimeType": "image/png", "data": samples::base64(bytes)})
        })
        .collect();
    json!({ "content": blocks })
}

/// Delivers a result to the model that does not see.
pub(crate) async fn deliver(service: &Service, result: Value) -> Value {
    let body = json!({"result": result, "route": blind()});
    let answer = service.post("/v1/results/deliver", &body).await.unwrap();
    answer.ok().unwrap()
}

/// `via` and `outcome` of every attempt.
pub(crate) fn attempts(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attempts = answer["attempts"].as_array();
    let attempts = attempts.unwrap_or_else(|| panic!("no attempts: {answer}"));
    attempts
        .iter()
        .map(|attempt| {
            assert!(attempt["ms"].is_u64(), "{attempt}");
            (text(&attempt["via"]), text(&attempt["outcome"]))
        })
        .collect()
}

/// Only the outcomes.
pub(crate) fn outcomes(answer: &Value) -> Vec<String> {
    attempts(answer)
        .into_iter()
        .map(|(_, outcome)| outcome)
        .collect()
}

pub(crate) fn text(delivery: &Value) -> &str {
    delivery["text"].as_str().unwrap()
}

/// The calls of the scripted tool.
pub(crate) fn tool_calls(service: &Service) -> Vec<Value> {
    let records = service.records(SERVER).unwrap();
    records
        .iter()
        .filter(|record| record.calls("understand_image"))
        .map(|record| record.message["params"]["arguments"].clone())
        .collect()
}

/// Waits until a number is what it should be.
pub(crate) async fn settles<T: PartialEq + std::fmt::Debug>(
    what: &str,
    wanted: &T,
    mut look: impl FnMut() -> T,
) {
    talaria_testkit::wait_for(what, Duration::from_secs(10), || {
        let seen = look();
        std::future::ready(if seen == *wanted { Ok(()) } else { Err(seen) })
    })
    .await
    .unwrap();
}

/// Waits until so many questions wait for one that was asked before.
pub(crate) async fn coalesced(service: &Service, wanted: u32) {
    talaria_testkit::wait_for(
        "questions to be joined",
        Duration::from_secs(10),
        || async {
            let metrics = service.metrics().await.unwrap();
            let joined = metrics.sum(
                "talaria_vision_shared_answers_total",
                &[("source", "coalesced")],
            );
            if joined >= f64::from(wanted) {
                Ok(())
            } else {
                Err(joined)
            }
        },
    )
    .await
    .unwrap();
}
