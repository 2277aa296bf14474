//! What callers see: routes, deliveries, formats, the tool.

use serde_json::{Value, json};
use talaria_testkit::{Reply, samples};

use crate::scene::{
    ANALYZE, analyze, blind, builder, deliver, endpoint, picture, question, result, seeing,
    service, text,
};

#[tokio::test]
async fn an_answer_has_every_member() {
    let first = endpoint(Reply::chat("a lake"));
    let service = service(&first).await;
    let answer = analyze(&service, &picture(1)).await.ok().unwrap();
    for member in [
        "success",
        "analysis",
        "left_out",
        "via",
        "scale_note",
        "is_reasoning",
        "attempts",
        "cached",
        "coalesced",
        "elapsed_ms",
        "artifact",
    ] {
        assert!(answer.get(member).is_some(), "{member}: {answer}");
    }
    assert_eq!(answer["is_reasoning"], false);
    let attempt = &answer["attempts"][0];
    for member in ["via", "outcome", "ms", "code", "status", "detail"] {
        assert!(attempt.get(member).is_some(), "{member}: {attempt}");
    }
    assert!(!answer.to_string().contains(&samples::base64(&picture(1))));
}

#[tokio::test]
async fn without_a_chain_it_says_what_to_configure() {
    let service = builder().start().await.unwrap();
    let answer = analyze(&service, &picture(1)).await;
    let problem = answer.problem().unwrap();
    assert_eq!(problem["code"], "vision_not_configured");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("auxiliary.vision"),
        "{problem}"
    );
    // A delivery only lacks the description, unless one was demanded.
    let delivery = deliver(&service, result(&[picture(1)])).await;
    assert!(delivery["vision"].is_null(), "{delivery}");
    let body = json!({"result": result(&[picture(1)]), "route": blind(), "describe_images": true});
    let answer = service.post("/v1/results/deliver", &body).await.unwrap();
    assert_eq!(answer.code().unwrap(), "vision_not_configured");
}

#[tokio::test]
async fn four_of_nine_pictures_are_described_and_it_is_said() {
    let first = endpoint(Reply::chat("one of many"));
    let service = service(&first).await;
    let images: Vec<Vec<u8>> = (0..9).map(picture).collect();
    let delivery = deliver(&service, result(&images)).await;
    assert_eq!(first.count(), 4);
    assert!(first.requests().peak <= 4);
    let words = text(&delivery);
    assert!(words.contains("4 of 9"), "{words}");
    assert_eq!(words.matches("one of many").count(), 4, "{words}");
    assert_eq!(
        delivery["vision"]["descriptions"].as_array().unwrap().len(),
        4
    );
    for one in delivery["vision"]["descriptions"].as_array().unwrap() {
        assert!(one["via"].as_str().unwrap().ends_with("/first"), "{one}");
        assert!(
            one["artifact"].is_string() && one["attempts"].is_array(),
            "{one}"
        );
    }
    let media = words.lines().filter(|line| line.starts_with("MEDIA:"));
    assert_eq!(media.count(), 9, "every file has its line");
    assert!(delivery["attachments"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn pictures_are_described_only_where_no_pixels_leave_and_it_is_wanted() {
    let first = endpoint(Reply::chat("a lake"));
    let service = service(&first).await;
    let ask = |number: u32, route: Value, wish: Value, format: &'static str| {
        let mut body = json!({"result": result(&[picture(number)]), "route": route,
                              "format": format, "call_id": "call_1", "tool": "shot"});
        if !wish.is_null() {
            body["describe_images"] = wish;
        }
        let service = &service;
        async move {
            let answer = service.post("/v1/results/deliver", &body).await.unwrap();
            assert_eq!(answer.status, 200, "{}", answer.excerpt());
            answer.text().unwrap()
        }
    };
    let auto = json!("auto");
    for (number, route, wish, format, told) in [
        (1, blind(), Value::Null, "talaria", true),
        (2, blind(), auto.clone(), "talaria", true),
        (3, blind(), json!(true), "talaria", true),
        (4, blind(), json!(false), "talaria", false),
        (6, blind(), Value::Null, "hermes", false),
        (7, blind(), auto.clone(), "hermes", false),
        (8, blind(), json!(true), "hermes", true),
        (9, blind(), Value::Null, "anthropic", true),
        (10, blind(), Value::Null, "gemini", true),
        (11, blind(), Value::Null, "mcp", true),
    ] {
        let before = first.count();
        let answer = ask(number, route, wish, format).await;
        assert_eq!(
            answer.contains("a lake"),
            told,
            "{number} {format}: {answer}"
        );
        assert_eq!(first.count() > before, told, "{number} {format}");
    }
    // An open gate hands over the pixels instead; a backend that is named closes it in mode auto.
    let body =
        json!({"result": result(&[picture(20)]), "route": seeing(), "image_input_mode": "native"});
    let before = first.count();
    let open: Value = service
        .post("/v1/results/deliver", &body)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(open["attachments"].as_array().unwrap().len(), 1, "{open}");
    assert_eq!(first.count(), before);
}

#[tokio::test]
async fn one_picture_is_described_by_its_question() {
    let first = endpoint(Reply::chat("it is green"));
    let service = service(&first).await;
    let body = json!({
        "source": "computer_use", "image": {"data": samples::base64(&picture(1))},
        "route": blind(), "question": "Which colour has the button?",
    });
    let answer = service.post("/v1/images/deliver", &body).await.unwrap();
    let delivery: Value = answer.ok().unwrap();
    assert!(text(&delivery).contains("it is green"), "{delivery}");
    let words = first.asked()[0].words();
    assert!(words.contains("Which colour has the button?"), "{words}");
    assert!(delivery["vision"]["descriptions"][0]["via"].is_string());
}

#[tokio::test]
async fn vision_analyze_is_a_tool_among_the_others() {
    let first = endpoint(Reply::chat("a lake"));
    let service = service(&first).await;
    let arguments =
        json!({"image": {"data": samples::base64(&picture(1))}, "prompt": "What is it?"});
    let tool = service
        .get("/v1/tools?format=mcp")
        .await
        .unwrap()
        .ok()
        .unwrap();
    let properties = find(&tool, "vision_analyze")["inputSchema"]["properties"].clone();
    assert!(properties.is_object(), "{tool}");
    let arguments = if properties.get("image_url").is_some() {
        let url = format!("data:image/png;base64,{}", samples::base64(&picture(1)));
        json!({"image_url": url, "question": "What is it?"})
    } else {
        arguments
    };
    let body = json!({"tool": "vision_analyze", "arguments": arguments});
    let answer = service.post("/v1/tools/call", &body).await.unwrap();
    let delivery: Value = answer.ok().unwrap();
    assert!(text(&delivery).contains("a lake"), "{delivery}");
    assert_eq!(first.count(), 1);
}

/// The definition of this name, wherever it stands.
fn find<'a>(value: &'a Value, name: &str) -> &'a Value {
    fn search<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
        if value["name"] == name {
            return Some(value);
        }
        match value {
            Value::Array(items) => items.iter().find_map(|item| search(item, name)),
            Value::Object(members) => members.values().find_map(|member| search(member, name)),
            _ => None,
        }
    }
    search(value, name).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn reasoning_is_used_only_when_there_is_nothing_else_and_said_so() {
    let message =
        json!({"role": "assistant", "content": "", "reasoning_content": "It must be a lake."});
    let reply = Reply::json(
        200,
        &json!({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}),
    );
    let first = endpoint(reply);
    let service = service(&first).await;
    let answer = analyze(&service, &picture(1)).await.ok().unwrap();
    assert_eq!(answer["is_reasoning"], true, "{answer}");
    assert!(
        answer["analysis"]
            .as_str()
            .unwrap()
            .contains("must be a lake")
    );
    let delivery = deliver(&service, result(&[picture(2)])).await;
    let codes: Vec<&Value> = delivery["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|notice| &notice["code"])
        .collect();
    assert!(
        codes.contains(&&json!("description_is_reasoning")),
        "{codes:?}"
    );
}

#[tokio::test]
async fn a_long_description_is_bounded() {
    let first = endpoint(Reply::chat(&"a very long tale ".repeat(5_000)));
    let service = service(&first).await;
    let delivery = deliver(&service, result(&[picture(1)])).await;
    let count = text(&delivery).chars().count();
    assert!(count < 12_000, "{count} characters");
    let codes = delivery["notices"].to_string();
    assert!(codes.contains("description_cut"), "{codes}");
    let answer = analyze(&service, &picture(1)).await.ok().unwrap();
    let analysis = answer["analysis"].as_str().unwrap();
    assert!(analysis.chars().count() <= 64_000);
    assert!(answer["left_out"].as_u64().unwrap() > 20_000, "{answer}");
}

/// Many thoughts between marks once took a minute to take out, and everybody waited.
#[tokio::test]
async fn an_answer_of_many_thoughts_holds_nobody_up() {
    let thoughts = "<think>a</think>".repeat(50_000);
    let first = endpoint(Reply::chat(&format!("A cat. {thoughts}")));
    let service = service(&first).await;
    let answer = analyze(&service, &picture(1)).await.ok().unwrap();
    assert_eq!(answer["analysis"], "A cat.");
}

#[tokio::test]
async fn a_failed_result_is_described_like_any_other() {
    let first = endpoint(Reply::chat("an error dialog"));
    let service = service(&first).await;
    let mut failed = result(&[picture(1)]);
    failed["isError"] = json!(true);
    let delivery = deliver(&service, failed).await;
    assert_eq!(delivery["is_error"], true);
    assert!(text(&delivery).contains("an error dialog"), "{delivery}");
}

#[tokio::test]
async fn malformed_questions_are_refused_before_anything_else() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    for (member, value) in [
        ("prompt", json!(7)),
        ("region", json!("all")),
        ("timeout_ms", json!(-1)),
        ("imagee", json!({})),
    ] {
        let mut body = question(&picture(1));
        body[member] = value;
        let answer = service.post(ANALYZE, &body).await.unwrap();
        assert!(
            [400, 422].contains(&answer.status),
            "{member}: {}",
            answer.excerpt()
        );
    }
    assert_eq!(first.count(), 0);
}
