//! A provider that refuses pictures: deliveries become text, and the session's route is
//! remembered where that is asked for.

use serde_json::{Value, json};
use talaria_testkit::Service;

use crate::scene::{
    assert_no_pixels, attached, bars, blind, codes, deliver, media_lines, post, result, seeing,
    service, text,
};

const DOWNGRADE: &str = "/v1/results/downgrade";

/// The gate of another delivery of a session.
async fn gate(service: &Service, session: Option<&str>, route: Value) -> Value {
    let mut body = json!({"result": result(&[bars(1)]), "route": route});
    if let Some(session) = session {
        body["session"] = json!(session);
    }
    post(service, "/v1/results/deliver", &body).await["gate"].clone()
}

#[tokio::test]
async fn g67_a_switch_to_a_blind_model_closes_the_gate_and_the_past_becomes_text() {
    let service = service().await;
    let first = deliver(&service, result(&[bars(2)]), seeing()).await;
    assert_eq!(attached(&first).len(), 1);
    let second = deliver(&service, result(&[bars(2)]), blind()).await;
    assert_eq!(second["gate"]["open"], false);
    assert_no_pixels(&second.to_string());
    let turned = post(&service, DOWNGRADE, &json!({"delivery": first})).await;
    assert!(attached(&turned).is_empty());
    assert_no_pixels(&turned.to_string());
    assert_eq!(media_lines(text(&turned)), 1, "{}", text(&turned));
    assert!(codes(&turned).contains(&"image_text_only"), "{turned}");
    assert_eq!(turned["artifacts"], first["artifacts"]);
    assert_eq!(turned["id"], first["id"]);
}

#[tokio::test]
async fn g68_a_refusal_is_remembered_for_its_session_and_route_alone() {
    let service = service().await;
    let delivery = deliver(&service, result(&[bars(2)]), seeing()).await;
    let refused = json!({
        "delivery": delivery, "route": seeing(), "session": "s1", "status": 400, "remember": true,
    });
    assert_no_pixels(&post(&service, DOWNGRADE, &refused).await.to_string());
    let closed = gate(&service, Some("s1"), seeing()).await;
    assert_eq!(closed["open"], false, "{closed}");
    assert!(
        closed["reason"].as_str().unwrap().contains("refused"),
        "{closed}"
    );
    for (session, route) in [
        (Some("s2"), seeing()),
        (None, seeing()),
        (
            Some("s1"),
            json!({"provider": "openrouter", "model": "sees"}),
        ),
    ] {
        let open = gate(&service, session, route).await;
        assert_eq!(open["open"], true, "{session:?}: {open}");
    }
}

#[tokio::test]
async fn g68_a_request_that_was_too_large_is_not_remembered() {
    let service = service().await;
    let delivery = deliver(&service, result(&[bars(2)]), seeing()).await;
    for body in [
        json!({"delivery": delivery, "route": seeing(), "session": "s", "status": 413, "remember": true}),
        json!({"delivery": delivery, "route": seeing(), "session": "s", "status": 400}),
        json!({"delivery": delivery, "route": seeing(), "session": "s", "remember": false}),
    ] {
        assert_no_pixels(&post(&service, DOWNGRADE, &body).await.to_string());
        assert_eq!(
            gate(&service, Some("s"), seeing()).await["open"],
            true,
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_body_of_every_format_loses_its_pictures_and_nothing_else() {
    let service = service().await;
    for format in [
        "talaria",
        "hermes",
        "anthropic",
        "openai-responses",
        "openai-chat",
        "gemini",
        "mcp",
    ] {
        let route = json!({"provider": "openrouter", "model": "sees"});
        let body = json!({
            "result": {"content": [{"type": "text", "text": "before"}, crate::scene::image_block(&bars(2))]},
            "tool": "shot", "route": route, "format": format, "call_id": "call_1",
        });
        let rendered = post(&service, "/v1/results/deliver", &body).await;
        assert!(
            rendered.to_string().len() > 500,
            "{format} has no pixels: {rendered}"
        );
        let turned = post(
            &service,
            DOWNGRADE,
            &json!({"body": rendered, "format": format}),
        )
        .await;
        assert_no_pixels(&turned.to_string());
        let words = turned.to_string();
        assert!(
            words.contains("before") && words.contains("MEDIA:"),
            "{format}: {words}"
        );
        if ["anthropic", "openai-responses", "openai-chat"].contains(&format) {
            assert!(words.contains("call_1"), "{format}: {words}");
        }
    }
}

#[tokio::test]
async fn a_delivery_is_rendered_anew_in_the_format_asked_for() {
    let service = service().await;
    let delivery = deliver(&service, result(&[bars(2)]), seeing()).await;
    let body = json!({"delivery": delivery, "format": "anthropic", "call_id": "toolu_1"});
    let block = post(&service, DOWNGRADE, &body).await;
    assert_eq!(
        (&block["type"], &block["tool_use_id"]),
        (&json!("tool_result"), &json!("toolu_1"))
    );
    assert_no_pixels(&block.to_string());
}

#[tokio::test]
async fn what_cannot_be_turned_is_refused_with_the_reason() {
    let service = service().await;
    let delivery = deliver(&service, result(&[bars(1)]), seeing()).await;
    for (body, words) in [
        (json!({}), "`delivery`"),
        (json!({"delivery": delivery, "body": {}}), "either"),
        (
            json!({"body": {"role": "tool"}, "format": "anthropic"}),
            "anthropic",
        ),
        (json!({"body": 7, "format": "gemini"}), "gemini"),
        (
            json!({"delivery": delivery, "format": "anthropic"}),
            "call_id",
        ),
        (json!({"delivery": delivery, "remember": true}), "session"),
        (
            json!({"delivery": delivery, "remember": true, "session": "s", "route": seeing(), "status": 500}),
            "`status`",
        ),
        (
            json!({"delivery": delivery, "remember": true, "session": "s", "route": seeing(), "status": 200}),
            "`status`",
        ),
        (json!({"delivery": delivery, "format": "jpeg"}), "format"),
        (json!({"delivery": delivery, "sesion": "s"}), "session"),
    ] {
        let answer = service.post(DOWNGRADE, &body).await.unwrap();
        assert_eq!(answer.status, 400, "{}", answer.excerpt());
        let problem = answer.problem().unwrap();
        assert!(
            problem["detail"].as_str().unwrap().contains(words),
            "{problem}"
        );
    }
}
