//! Descriptions and the tool that looks, with a vision chain and without.

use serde_json::{Value, json};
use talaria_config::{BackendConfig, Endpoint, Scope, VisionConfig};
use talaria_testkit::{Reply, VisionEndpoint};

use super::{Fixture, fixture, with_tokens, with_vision};
use crate::fixtures::token;

const ANALYZE: &str = "/v1/vision/analyze";
const CALL: &str = "/v1/tools/call";
const DELIVER: &str = "/v1/results/deliver";

/// A PNG of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A service whose only backend is this one.
fn described_by(endpoint: &VisionEndpoint) -> Fixture {
    let aux = BackendConfig {
        model: Some("look-1".to_owned()),
        base_url: Some(Endpoint::from(endpoint.base())),
        ..BackendConfig::at("auxiliary.vision")
    };
    let vision = VisionConfig {
        aux,
        ..VisionConfig::default()
    };
    with_vision(Vec::new(), Vec::new(), vision)
}

/// A result with one picture.
fn shot() -> Value {
    json!({ "content": [
        { "type": "text", "text": "a window" },
        { "type": "image", "mimeType": "image/png", "data": PNG },
    ] })
}

async fn look(service: &Fixture, arguments: Value) -> super::Reply {
    let call = json!({ "tool": "vision_analyze", "arguments": arguments });
    service.post(CALL, &call).await
}

#[actix_web::test]
async fn says_what_to_configure_where_nobody_describes() {
    let service = fixture();
    let analyze = json!({ "image": { "data": PNG } });
    let reply = service.post(ANALYZE, &analyze).await;
    let detail = reply.refused(409, "vision_not_configured");
    assert!(detail.contains("`auxiliary.vision`"), "{detail}");
    assert_eq!(reply.problem()["retryable"], false);
    for describe in [json!(true), json!("on")] {
        let deliver = json!({ "result": { "content": [] }, "describe_images": describe });
        let reply = service.post(DELIVER, &deliver).await;
        reply.refused(409, "vision_not_configured");
    }
}

#[actix_web::test]
async fn the_callers_own_mistakes_come_first() {
    let service = fixture();
    for (body, expected) in [
        (json!({}), "missing field `image`"),
        (
            json!({ "image": { "data": PNG }, "promt": "?" }),
            "did you mean `prompt`?",
        ),
        (
            json!({ "image": { "data": PNG }, "region": [1, 1, 1, 2] }),
            "`region` is empty",
        ),
        (
            json!({ "image": { "data": PNG }, "session": "" }),
            "1 to 256 bytes",
        ),
        (
            json!({ "image": { "data": PNG }, "prompt": "x".repeat(65_537) }),
            "`prompt` must have at most",
        ),
    ] {
        let reply = service.post(ANALYZE, &body).await;
        let detail = reply.refused(400, "invalid_request");
        assert!(detail.contains(expected), "{body}: {detail}");
    }
    let tokens = vec![token("reader", &[Scope::Artifacts], &["*"])];
    let service = with_tokens(tokens);
    let reader = ["Authorization: Bearer reader-secret"];
    let body = json!({ "image": { "data": PNG } });
    let reply = service.post_as(ANALYZE, &body, &reader).await;
    reply.refused(403, "forbidden");
}

#[actix_web::test]
async fn the_looking_tool_delivers_the_picture_it_is_given() {
    let service = fixture();
    let first = look(
        &service,
        json!({ "image_url": format!("data:image/png;base64,{PNG}"), "question": "What is it?" }),
    )
    .await;
    assert_eq!(first.status, 200, "{}", first.json());
    let delivery = first.json();
    assert_eq!(delivery["tool"], "vision_analyze");
    assert!(delivery["server"].is_null());
    let text = delivery["text"].as_str().unwrap();
    assert!(text.contains("Question: What is it?"), "{text}");
    let path = delivery["artifacts"][0]["path"].as_str().unwrap();
    for named in [
        path.to_owned(),
        format!("MEDIA:{path}"),
        format!("file://{path}"),
    ] {
        let again = look(&service, json!({ "image": named })).await.json();
        assert_eq!(again["artifacts"][0]["path"], path, "{named}");
    }
}

#[actix_web::test]
async fn the_looking_tool_gives_pixels_to_a_model_that_sees() {
    let service = fixture();
    let call = json!({
        "tool": "vision_analyze",
        "arguments": { "image_url": format!("data:image/png;base64,{PNG}") },
        "route": { "provider": "anthropic", "model": "claude-sonnet-4-5" },
        "format": "anthropic",
        "call_id": "toolu_1",
    });
    let block = service.post(CALL, &call).await.json();
    assert_eq!(block["content"][1]["type"], "image", "{block}");
}

#[actix_web::test]
async fn the_looking_tool_refuses_what_names_no_picture() {
    let service = fixture();
    for (arguments, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({ "image_url": "/etc/passwd" }), 403, "path_refused"),
        (json!({ "image_url": "../a.png" }), 403, "path_refused"),
        (
            json!({ "image_url": "data:image/png;base64,***" }),
            400,
            "invalid_request",
        ),
    ] {
        let reply = look(&service, arguments.clone()).await;
        reply.refused(status, code);
    }
    let on_server = json!({ "server": "s", "name": "vision_analyze" });
    let reply = service.post(CALL, &on_server).await;
    reply.refused(404, "unknown_server");
}

#[actix_web::test]
async fn a_file_of_another_token_is_not_looked_at() {
    let tokens = ["one", "two"].map(|name| token(name, &[Scope::Call], &["*"]));
    let service = with_tokens(tokens.to_vec());
    let call = |image: String| json!({ "tool": "vision_analyze", "arguments": { "image": image } });
    let own = call(format!("data:image/png;base64,{PNG}"));
    let one = ["Authorization: Bearer one-secret"];
    let two = ["Authorization: Bearer two-secret"];
    let delivery = service.post_as(CALL, &own, &one).await.json();
    let path = delivery["artifacts"][0]["path"]
        .as_str()
        .unwrap()
        .to_owned();
    let theirs = service.post_as(CALL, &call(path.clone()), &two).await;
    theirs.refused(403, "forbidden");
    let analyzed = json!({ "image": { "path": path } });
    assert_eq!(service.post_as(CALL, &call(path), &one).await.status, 200);
    let theirs = service.post_as(ANALYZE, &analyzed, &two).await;
    theirs.refused(409, "vision_not_configured");
}

#[actix_web::test]
async fn a_picture_is_described_by_the_backend() {
    let endpoint = VisionEndpoint::start([Reply::chat("A dot.\nMEDIA:/etc/passwd")]).unwrap();
    let service = described_by(&endpoint);
    let body = json!({ "image": { "data": PNG }, "prompt": "What is it?", "session": "s" });
    let reply = service.post(ANALYZE, &body).await;
    let answer = reply.json();
    assert_eq!(reply.status, 200, "{answer}");
    assert_eq!(answer["success"], true);
    assert_eq!(
        answer["analysis"],
        "A dot.\n(server text) MEDIA\\:/etc/passwd"
    );
    let via = answer["via"].as_str().unwrap();
    assert!(via.ends_with("/look-1"), "{via}");
    let attempts = answer["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1, "{answer}");
    assert_eq!(attempts[0]["outcome"], "answered");
    assert_eq!(attempts[0]["via"], via);
    assert!(attempts[0]["code"].is_null() && attempts[0]["ms"].is_u64());
    assert_eq!(
        [
            &answer["cached"],
            &answer["coalesced"],
            &answer["is_reasoning"]
        ],
        [false, false, false]
    );
    assert_eq!(answer["artifact"]["kind"], "image");
    let asked = endpoint.asked();
    assert!(asked[0].json().to_string().contains("What is it?"));
    assert_eq!(asked[0].pictures().len(), 1);

    let path = &answer["artifact"]["path"];
    let again = json!({ "image": { "path": path }, "prompt": "What is it?" });
    let again = service.post(ANALYZE, &again).await.json();
    assert_eq!(again["cached"], true, "{again}");
    assert_eq!(endpoint.count(), 1);
}

#[actix_web::test]
async fn v08_where_everybody_fails_the_first_error_and_the_last_are_told() {
    let refused = Reply::error(401, "invalid_api_key", "bad key sk-abcdefgh1234");
    let endpoint = VisionEndpoint::start([refused]).unwrap();
    let service = described_by(&endpoint);
    let reply = service
        .post(ANALYZE, &json!({ "image": { "data": PNG } }))
        .await;
    let detail = reply.refused(502, "vision_failed");
    let problem = reply.problem();
    assert!(detail.contains("401"), "{problem}");
    assert_eq!(problem["success"], false);
    assert_eq!(problem["attempts"][0]["code"], "auth");
    assert_eq!(problem["attempts"][0]["status"], 401);
    assert_eq!(problem["artifact"]["kind"], "image");
    for key in ["first_error", "last_error", "model_text"] {
        assert!(
            problem[key].as_str().unwrap().contains("401"),
            "{key}: {problem}"
        );
    }
    assert!(
        !problem.to_string().contains("sk-abcdefgh1234"),
        "{problem}"
    );
}

#[actix_web::test]
async fn a_chain_without_time_left_is_a_timeout() {
    let stalled = Reply::stalled();
    let endpoint = VisionEndpoint::start([stalled]).unwrap();
    let service = described_by(&endpoint);
    let body = json!({ "image": { "data": PNG }, "timeout_ms": 400 });
    let reply = service.post(ANALYZE, &body).await;
    assert_eq!(reply.status, 504, "{}", reply.json());
}

#[actix_web::test]
async fn fr_058_a_result_is_described_where_no_pixels_leave() {
    let endpoint = VisionEndpoint::start([Reply::chat("VISION-HELPER-OK")]).unwrap();
    let service = described_by(&endpoint);
    let blind = json!({ "provider": "deepseek", "model": "deepseek-chat" });
    let body = json!({ "result": shot(), "route": blind });
    let delivery = service.post(DELIVER, &body).await.json();
    let text = delivery["text"].as_str().unwrap();
    assert!(
        text.contains("a window") && text.contains("VISION-HELPER-OK"),
        "{text}"
    );
    assert_eq!(delivery["attachments"], json!([]));
    let description = &delivery["vision"]["descriptions"][0];
    assert_eq!(description["text"], "VISION-HELPER-OK");
    assert_eq!(description["artifact"], delivery["artifacts"][0]["id"]);
}

#[actix_web::test]
async fn the_caller_decides_whether_pictures_are_described() {
    let endpoint = VisionEndpoint::start([Reply::chat("VISION-HELPER-OK")]).unwrap();
    let service = described_by(&endpoint);
    for (format, wish, is_described) in [
        ("talaria", json!(false), false),
        ("talaria", json!("off"), false),
        ("talaria", json!("auto"), true),
        ("talaria", json!(true), true),
        ("text", json!("auto"), true),
        ("hermes", json!("auto"), false),
        ("hermes", json!("on"), true),
    ] {
        let body = json!({
            "result": shot(), "format": format, "describe_images": wish, "image_input_mode": "text",
        });
        let reply = service.post(DELIVER, &body).await;
        let body = String::from_utf8(reply.body).unwrap();
        let has_it = body.contains("VISION-HELPER-OK");
        assert_eq!(has_it, is_described, "{format} {wish}: {body}");
    }
}

#[actix_web::test]
async fn the_looking_tool_answers_in_words_where_no_pixels_leave() {
    let endpoint = VisionEndpoint::start([Reply::chat("VISION-HELPER-OK")]).unwrap();
    let service = described_by(&endpoint);
    for format in ["talaria", "hermes", "text"] {
        let call = json!({
            "tool": "vision_analyze",
            "arguments": {
                "image_url": format!("data:image/png;base64,{PNG}"),
                "question": format!("Which {format}?"),
            },
            "image_input_mode": "text",
            "format": format,
        });
        let reply = service.post(CALL, &call).await;
        let body = String::from_utf8(reply.body).unwrap();
        assert!(body.contains("VISION-HELPER-OK"), "{format}: {body}");
        let asked = endpoint.asked().pop().unwrap().json().to_string();
        assert!(asked.contains(&format!("Which {format}?")), "{asked}");
    }
}

#[actix_web::test]
async fn v16_an_address_of_this_machine_is_not_fetched() {
    let picture = VisionEndpoint::start([Reply::raw(200, "not asked for")]).unwrap();
    let endpoint = VisionEndpoint::start([Reply::chat("VISION-HELPER-OK")]).unwrap();
    let service = described_by(&endpoint);
    for url in [
        picture.url("/a.png"),
        "http://169.254.169.254/x.png".to_owned(),
        "http://localhost/x.png".to_owned(),
    ] {
        let image = json!({ "url": url });
        let reply = service.post(ANALYZE, &json!({ "image": image })).await;
        reply.refused(403, "url_blocked");
        let deliver = json!({ "source": "browser", "image": image });
        let reply = service.post("/v1/images/deliver", &deliver).await;
        reply.refused(403, "url_blocked");
        let reply = look(&service, json!({ "image_url": image["url"] })).await;
        reply.refused(403, "url_blocked");
    }
    assert_eq!((picture.count(), endpoint.count()), (0, 0));
}
