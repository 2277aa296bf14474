//! MiniMax's own MCP server as the last link: it runs as a stdio server whose API host is a
//! loopback endpoint, and describes the picture when the primary cannot.

use std::path::Path;

use serde_json::{Value, json};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{RefusingPort, Reply, Service, VisionEndpoint, pictures, programs, samples};

/// What its model sees.
const SEEN: &str = "A dark green square without any writing.";
/// The path of its API.
const VLM: &str = "/v1/coding_plan/vlm";
const KEY: &str = "the-key-of-minimax";
const VIA: &str = "mcp:MiniMax/understand_image";

/// A complete answer of its API.
fn seen() -> Reply {
    Reply::json(
        200,
        &json!({"content": SEEN, "base_resp": {"status_code": 0, "status_msg": "success"}}),
    )
}

/// The API host with this answer.
fn host(reply: Reply) -> VisionEndpoint {
    let host = VisionEndpoint::start([Reply::raw(404, "")]).unwrap();
    host.answer_at(VLM, [reply]);
    host
}

/// A service whose primary has this base URL and whose last link is the real server.
async fn service(primary: &str, host: &VisionEndpoint) -> Service {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = root.join(".peers/python/bin/minimax-coding-plan-mcp");
    assert!(
        program.exists(),
        "minimax-coding-plan-mcp is not installed: run .ci/peers"
    );
    let server = json!({
        "command": program,
        "env": {"MINIMAX_API_KEY": KEY, "MINIMAX_API_HOST": host.url(""),
                "PYTHONDONTWRITEBYTECODE": "1"},
    });
    let vision = json!({
        "provider": "custom", "base_url": primary, "model": "first", "api_key": "first",
        "timeout": 2,
        "mcp_fallback": [{"server": "MiniMax", "tool": "understand_image"}],
    });
    let service = Service::builder(programs!())
        .unwrap()
        .server("MiniMax", server)
        .set(&["auxiliary", "vision"], vision)
        .set(
            &["providers", "anthropic", "models", "blind"],
            json!({"supports_vision": false}),
        )
        .start_unsettled()
        .await
        .unwrap();
    // Python takes its time on a busy machine.
    service
        .wait_state("MiniMax", "ready", PATIENCE * 2)
        .await
        .unwrap();
    service
}

fn picture() -> Vec<u8> {
    pictures::plain_png(320, 200, [20, 60, 20]).unwrap()
}

async fn deliver(service: &Service) -> Value {
    let image =
        json!({"type": "image", "mimeType": "image/png", "data": samples::base64(&picture())});
    let body = json!({
        "result": {"content": [{"type": "text", "text": "a screenshot"}, image]},
        "route": {"provider": "anthropic", "model": "blind"},
    });
    let answer = service.post("/v1/results/deliver", &body).await.unwrap();
    answer.ok().unwrap()
}

/// The delivery carries what the real server said, and nothing else passes for a description.
async fn assert_described(primary: &str, host: &VisionEndpoint, failed_with: &str) {
    let service = service(primary, host).await;
    let delivery = deliver(&service).await;
    let text = delivery["text"].as_str().unwrap();
    assert!(
        text.contains("a screenshot") && text.contains(SEEN),
        "{failed_with}: {text}"
    );
    assert!(text.contains("MEDIA:"), "{failed_with}: {text}");
    assert_eq!(delivery["is_error"], false);
    let one = &delivery["vision"]["descriptions"][0];
    assert_eq!(one["via"], VIA, "{failed_with}: {one}");
    assert_eq!(one["text"], SEEN);
    let attempts = one["attempts"].as_array().unwrap();
    assert_eq!(attempts[0]["code"], failed_with, "{one}");
    assert_eq!(attempts.last().unwrap()["outcome"], "answered", "{one}");
    let asked = host.asked();
    let [asked] = asked.as_slice() else {
        panic!("{} requests", asked.len());
    };
    assert_eq!(
        (asked.method.as_str(), asked.target.as_str()),
        ("POST", VLM)
    );
    assert_eq!(asked.header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(asked.header("mm-api-source"), "Minimax-MCP");
    let body = asked.json();
    assert!(!body["prompt"].as_str().unwrap().trim().is_empty());
    let url = body["image_url"].as_str().unwrap();
    assert!(
        url.starts_with("data:image/png;base64,") || url.starts_with("data:image/jpeg;base64,")
    );
    let seen = asked.picture().unwrap();
    assert_eq!((seen.width, seen.height), (320, 200));
}

#[tokio::test]
async fn it_answers_when_the_primary_refuses_the_connection() {
    let port = RefusingPort::take().unwrap();
    assert_described(&port.base(), &host(seen()), "unreachable").await;
}

#[tokio::test]
async fn it_answers_when_the_primary_fails() {
    let primary = VisionEndpoint::start([Reply::error(500, "server_error", "internal")]).unwrap();
    assert_described(&primary.base(), &host(seen()), "server_error").await;
}

#[tokio::test]
async fn it_answers_when_the_primary_is_overloaded() {
    let reply = Reply::error(429, "rate_limit_exceeded", "slow down");
    let primary = VisionEndpoint::start([reply]).unwrap();
    assert_described(&primary.base(), &host(seen()), "rate_limited").await;
}

#[tokio::test]
async fn it_answers_when_the_primary_never_does() {
    let primary = VisionEndpoint::start([Reply::stalled()]).unwrap();
    assert_described(&primary.base(), &host(seen()), "timeout").await;
}

#[tokio::test]
async fn it_answers_when_the_primary_succeeds_with_an_error_inside() {
    let body = json!({"error": {"message": "the upstream is overloaded"}});
    let primary = VisionEndpoint::start([Reply::json(200, &body)]).unwrap();
    assert_described(&primary.base(), &host(seen()), "error_inside").await;
}

#[tokio::test]
async fn it_answers_when_the_primary_cannot_see() {
    let words = "This model does not support image input.";
    let primary =
        VisionEndpoint::start([Reply::error(400, "invalid_request_error", words)]).unwrap();
    assert_described(&primary.base(), &host(seen()), "cannot_see").await;
}

#[tokio::test]
async fn its_own_failures_are_no_descriptions() {
    let refused = |code: u32, words: &str| {
        let base = json!({"status_code": code, "status_msg": words});
        Reply::json(200, &json!({"content": "", "base_resp": base}))
    };
    let primary = RefusingPort::take().unwrap();
    let host = host(refused(1033, "internal trouble"));
    let service = service(&primary.base(), &host).await;
    for (reply, word) in [
        (refused(1033, "internal trouble"), "internal trouble"),
        (refused(1004, "login fail"), ""),
        (refused(2038, "real-name verification"), ""),
        (Reply::raw(500, "down"), ""),
        (
            Reply::json(200, &json!({"content": "words without base_resp"})),
            "",
        ),
        (
            Reply::json(
                200,
                &json!({"content": "", "base_resp": {"status_code": 0}}),
            ),
            "No content",
        ),
    ] {
        host.answer_at(VLM, [reply.clone()]);
        let before = host.count();
        let image = json!({"data": samples::base64(&picture())});
        let body = json!({"image": image, "prompt": "What is it?"});
        let answer = service.post("/v1/vision/analyze", &body).await.unwrap();
        assert_eq!(answer.status, 502, "{reply:?}: {}", answer.excerpt());
        let problem = answer.problem().unwrap();
        if host.count() > before {
            assert!(
                problem["last_error"].to_string().contains(word),
                "{reply:?}: {problem}"
            );
        }
        assert!(
            problem["first_error"]
                .to_string()
                .contains("cannot be reached"),
            "{problem}"
        );
        assert!(
            problem.get("analysis").is_none_or(Value::is_null),
            "{problem}"
        );
        let delivery = deliver(&service).await;
        let one = &delivery["vision"]["descriptions"][0];
        assert!(
            one["text"].is_null() && !one["error"].is_null(),
            "{reply:?}: {one}"
        );
        assert!(
            delivery["text"]
                .as_str()
                .unwrap()
                .contains("could not be described")
        );
    }
    assert!(host.count() >= 3, "{} requests", host.count());
}
