//! Which link answers, what makes the next one try, and what is told when none does.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::{Place, Reply, VisionEndpoint};

use crate::scene::{
    VIA_TOOL, analyze, attempts, backend, builder, chained, deliver, described, endpoint, outcomes,
    picture, question, refusing, result, text, tool_calls, with_tool, with_tool_builder,
};

/// A chain of two backends.
async fn with_two(first: &VisionEndpoint, second: &VisionEndpoint) -> talaria_testkit::Service {
    let second = backend(&second.base(), "second");
    chained(
        builder(),
        Some(backend(&first.base(), "first")),
        vec![second],
        Vec::new(),
    )
    .start()
    .await
    .unwrap()
}

#[tokio::test]
async fn the_first_link_answers_when_it_can() {
    let first = endpoint(Reply::chat("a red square"));
    let second = endpoint(Reply::chat("never asked"));
    let service = with_two(&first, &second).await;
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "a red square");
    assert_eq!(outcomes(&answer), ["answered"]);
    assert_eq!(answer["via"], attempts(&answer)[0].0);
    assert!(
        answer["via"].as_str().unwrap().ends_with("/first"),
        "{answer}"
    );
    assert_eq!((first.count(), second.count()), (1, 0));
    let asked = &first.asked()[0];
    assert_eq!(asked.target, "/v1/chat/completions");
    assert_eq!(asked.header("authorization"), "Bearer the-key-of-first");
    let body = asked.json();
    assert_eq!(body["model"], "first");
    assert_eq!(body["temperature"], 0.1);
    assert_eq!(body.get("max_tokens"), None, "{body}");
    assert!(
        asked.words().contains("What is on it?"),
        "{}",
        asked.words()
    );
    let seen = asked.picture().unwrap();
    assert_eq!((seen.width, seen.height), (64, 48));
}

#[tokio::test]
async fn the_links_are_asked_in_the_order_of_the_configuration() {
    let failing: Vec<VisionEndpoint> = (0..3).map(|_| endpoint(Reply::raw(500, ""))).collect();
    let service = {
        let builder = with_tool_builder(&failing[0].base());
        let links = json!([
            backend(&failing[1].base(), "second"),
            backend(&failing[2].base(), "third"),
        ]);
        let builder = builder.set(&["auxiliary", "vision", "fallback_chain"], links);
        builder.start().await.unwrap()
    };
    let answer = described(&service, &picture(1)).await;
    let mut order: Vec<String> = attempts(&answer).into_iter().map(|(via, _)| via).collect();
    order.dedup();
    let names: Vec<&str> = order
        .iter()
        .map(|via| via.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(names, ["first", "second", "third", "understand_image"]);
    assert_eq!(answer["via"], VIA_TOOL);
}

/// Every way a backend can fail, with the code that the attempt carries.
fn failures() -> Vec<(&'static str, Reply)> {
    let chat = |content: Value| {
        let message = json!({"role": "assistant", "content": content});
        Reply::json(200, &json!({"choices": [{"index": 0, "message": message}]}))
    };
    vec![
        ("503", Reply::raw(503, "")),
        ("500", Reply::error(500, "server_error", "internal")),
        (
            "429",
            Reply::error(429, "rate_limit_exceeded", "slow down")
                .with_header("Retry-After", "3600"),
        ),
        ("402", Reply::error(402, "insufficient_quota", "no credits")),
        ("401", Reply::error(401, "invalid_api_key", "bad key")),
        ("403", Reply::error(403, "forbidden", "not allowed")),
        ("404", Reply::error(404, "model_not_found", "no such model")),
        (
            "blind",
            Reply::error(
                400,
                "invalid_request_error",
                "this model does not support image input",
            ),
        ),
        ("400", Reply::error(400, "invalid_request_error", "bad")),
        ("empty", chat(json!(""))),
        ("blank", chat(json!(" \n\t "))),
        ("null", chat(Value::Null)),
        (
            "blind in words",
            chat(json!(
                "It seems no image was attached. Please upload the image."
            )),
        ),
        (
            "a failure told as an answer",
            chat(json!("Failed to perform VLM analysis: API Error: 1033")),
        ),
        (
            "error inside",
            Reply::json(200, &json!({"error": {"message": "overloaded"}})),
        ),
        (
            "HTML",
            Reply::raw(200, "<!DOCTYPE html><html><body>502</body></html>")
                .with_header("Content-Type", "text/html"),
        ),
        (
            "cut JSON",
            Reply::raw(200, "{\"choices\":[{\"index\":0,\"mess"),
        ),
        ("no choices", Reply::json(200, &json!({"choices": []}))),
        ("reset", Reply::raw(200, "").reset_at(Place::Start)),
        (
            "reset in the body",
            Reply::chat("half of an answer").reset_at(Place::Body(60)),
        ),
        (
            "half close",
            Reply::chat("half of an answer").half_closed_at(Place::Body(60)),
        ),
        (
            "a length too long",
            Reply::chat("x")
                .telling_length(90_000)
                .closed_at(Place::Body(9_000)),
        ),
        (
            "a length too short",
            Reply::chat("a long answer").telling_length(40),
        ),
        ("broken chunks", Reply::chat("x").with_broken_chunks()),
        ("redirect", Reply::redirect(302, "http://127.0.0.1:1/")),
        (
            "refusal",
            Reply::json(
                200,
                &json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": null, "refusal": "I can't help with that."}}]}),
            ),
        ),
        ("flood", Reply::repeated(200, " ", 3 * 1024 * 1024)),
    ]
}

#[tokio::test]
async fn no_failure_of_the_first_link_is_taken_for_a_description() {
    for (name, reply) in failures() {
        let first = endpoint(reply);
        let second = endpoint(Reply::chat("seen by the second"));
        let service = with_two(&first, &second).await;
        let answer = analyze(&service, &picture(1)).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.excerpt());
        let answer = answer.json().unwrap();
        assert_eq!(answer["analysis"], "seen by the second", "{name}: {answer}");
        assert!(
            answer["via"].as_str().unwrap().ends_with("/second"),
            "{name}: {answer}"
        );
        let outcomes = outcomes(&answer);
        assert_eq!(outcomes.last().unwrap(), "answered", "{name}: {answer}");
        for failed in &answer["attempts"].as_array().unwrap()[..outcomes.len() - 1] {
            assert_ne!(failed["outcome"], "answered", "{name}: {failed}");
            assert!(failed["code"].is_string(), "{name}: {failed}");
            let detail = failed["detail"].as_str().unwrap();
            assert!(
                !detail.is_empty() && detail.len() <= 1_000,
                "{name}: {failed}"
            );
        }
        assert!(first.count() <= 2, "{name}: asked {} times", first.count());
    }
}

#[tokio::test]
async fn a_backend_that_drips_or_stalls_costs_its_own_timeout_and_no_more() {
    for reply in [
        Reply::stalled(),
        Reply::chat("x").stalled_at(Place::Head),
        Reply::chat("x").stalled_at(Place::Body(9)),
        Reply::chat("x").dripped(Duration::from_millis(120)),
    ] {
        let first = endpoint(reply.clone());
        let service = with_tool_builder(&first.base())
            .set(&["auxiliary", "vision", "timeout"], 1)
            .start()
            .await
            .unwrap();
        let started = talaria_types::runtime::now();
        let answer = described(&service, &picture(1)).await;
        let took = started.elapsed();
        assert_eq!(answer["via"], VIA_TOOL, "{reply:?}: {answer}");
        assert!(
            took >= Duration::from_millis(950),
            "{reply:?}: after {took:?}"
        );
        assert!(took < Duration::from_secs(4), "{reply:?}: after {took:?}");
        crate::scene::settles("the connection to be given up", &0, || first.requests().now).await;
    }
}

#[tokio::test]
async fn v06_a_bad_key_hops_and_is_not_tried_again() {
    let first = endpoint(Reply::error(401, "invalid_api_key", "bad key"));
    let second = endpoint(Reply::chat("seen"));
    let service = with_two(&first, &second).await;
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "seen");
    assert_eq!(answer["attempts"][0]["status"], 401, "{answer}");
    assert_eq!(first.count(), 1, "a bad key does not get better");
    let answer = described(&service, &picture(2)).await;
    assert_eq!(answer["analysis"], "seen");
    assert_eq!(first.count(), 1, "the key is in quarantine");
    assert_eq!(second.count(), 2);
}

#[tokio::test]
async fn v08_when_everything_fails_the_first_error_and_the_last_are_told() {
    let first = endpoint(Reply::error(
        402,
        "insufficient_quota",
        "first is out of money",
    ));
    let second = endpoint(Reply::error(
        404,
        "model_not_found",
        "second has no such model",
    ));
    let service = with_two(&first, &second).await;
    let answer = analyze(&service, &picture(1)).await;
    assert_eq!(answer.status, 502, "{}", answer.excerpt());
    let problem = answer.problem().unwrap();
    assert_eq!(problem["code"], "vision_failed");
    assert_eq!(problem["success"], false);
    let words = problem.to_string();
    for said in ["first is out of money", "second has no such model"] {
        assert!(words.contains(said), "{said}: {problem}");
    }
    let first_error = problem["first_error"].to_string();
    let last_error = problem["last_error"].to_string();
    assert!(first_error.contains("out of money"), "{first_error}");
    assert!(last_error.contains("no such model"), "{last_error}");
    let told = problem["model_text"].as_str().unwrap();
    assert!(
        told.contains("out of money") && told.contains("no such model"),
        "{told}"
    );
    assert_eq!(
        problem["attempts"].as_array().unwrap().len(),
        2,
        "{problem}"
    );
    // The same of a delivery.
    let delivery = deliver(&service, result(&[picture(2)])).await;
    assert_eq!(delivery["is_error"], false);
    assert!(
        text(&delivery).contains("could not be described"),
        "{delivery}"
    );
    let one = &delivery["vision"]["descriptions"][0];
    assert!(one["text"].is_null() && !one["error"].is_null(), "{one}");
    assert!(text(&delivery).contains("MEDIA:"), "{delivery}");
}

#[tokio::test]
async fn v09_a_main_model_that_cannot_see_is_never_asked() {
    let main = endpoint(Reply::chat("the main model guesses"));
    let first = endpoint(Reply::raw(500, ""));
    let service = chained(
        builder(),
        Some(backend(&first.base(), "first")),
        Vec::new(),
        Vec::new(),
    )
    .set(
        &["model"],
        json!({"provider": "custom", "default": "words-only", "base_url": main.base(),
               "api_key": "main", "supports_vision": false}),
    )
    .start()
    .await
    .unwrap();
    let answer = analyze(&service, &picture(1)).await;
    assert_eq!(answer.status, 502, "{}", answer.excerpt());
    assert_eq!(main.count(), 0);
    // Nor where it is all there is: `auto` with a main model that is known to be blind.
    let service = builder()
        .set(
            &["model"],
            json!({"provider": "custom", "default": "words-only", "base_url": main.base(),
                   "api_key": "main", "supports_vision": false}),
        )
        .start()
        .await
        .unwrap();
    let answer = analyze(&service, &picture(1)).await;
    assert_eq!(answer.code().unwrap(), "vision_not_configured");
    assert_eq!(main.count(), 0);
}

#[tokio::test]
async fn v10_a_server_error_falls_through() {
    let first = endpoint(Reply::raw(503, ""));
    let service = with_tool(&first.base()).await;
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["via"], VIA_TOOL);
    assert_eq!(answer["attempts"][0]["status"], 503, "{answer}");
    assert!(first.count() <= 2, "{} requests", first.count());
    assert_eq!(tool_calls(&service).len(), 1);
}

#[tokio::test]
async fn v11_after_a_timeout_the_tool_is_called_with_prompt_and_path() {
    let first = endpoint(Reply::stalled());
    let service = with_tool_builder(&first.base())
        .set(&["auxiliary", "vision", "timeout"], 1)
        .start()
        .await
        .unwrap();
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["via"], VIA_TOOL);
    assert!(
        answer["analysis"]
            .as_str()
            .unwrap()
            .contains("the tool saw"),
        "{answer}"
    );
    let calls = tool_calls(&service);
    let [arguments] = calls.as_slice() else {
        panic!("{calls:?}");
    };
    let mut names: Vec<&String> = arguments.as_object().unwrap().keys().collect();
    names.sort_unstable();
    assert_eq!(names, ["image_source", "prompt"]);
    let prompt = arguments["prompt"].as_str().unwrap();
    assert!(prompt.contains("What is on it?"), "{prompt}");
    let path = std::path::Path::new(arguments["image_source"].as_str().unwrap());
    let cache = service.cache().canonicalize().unwrap();
    assert!(
        path.canonicalize().unwrap().starts_with(cache),
        "{}",
        path.display()
    );
}

#[tokio::test]
async fn an_unset_variable_in_a_key_costs_only_its_link() {
    let second = endpoint(Reply::chat("seen"));
    let mut first = backend(&second.base(), "first");
    first["api_key"] = json!("${TALARIA_TEST_NO_SUCH_VARIABLE}");
    let service = chained(
        builder(),
        Some(first),
        vec![backend(&second.base(), "second")],
        Vec::new(),
    )
    .start()
    .await
    .unwrap();
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "seen");
    let told = answer["attempts"][0].to_string();
    for word in ["TALARIA_TEST_NO_SUCH_VARIABLE", "auxiliary.vision"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert_eq!(second.count(), 1);
}

#[tokio::test]
async fn the_prompt_is_the_callers_or_one_that_asks_for_everything() {
    let first = endpoint(Reply::chat("seen"));
    let port = refusing();
    let service = chained(
        builder(),
        Some(backend(&port.base(), "nobody")),
        vec![backend(&first.base(), "first")],
        Vec::new(),
    )
    .start()
    .await
    .unwrap();
    let mut body = question(&picture(1));
    body.as_object_mut().unwrap().remove("prompt");
    let answer = service.post(crate::scene::ANALYZE, &body).await.unwrap();
    assert_eq!(answer.ok().unwrap()["analysis"], "seen");
    let words = first.asked()[0].words().to_lowercase();
    assert!(words.contains("describe"), "{words}");
}
