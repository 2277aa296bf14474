//! Answers of all APIs, and what passes for one.

use serde_json::json;

use super::*;

mod properties;

fn verdict(status: u16, body: &[u8]) -> Verdict {
    read_reply(&HttpReply {
        status,
        retry_after: None,
        retry_after_ms: None,
        body,
        now: SystemTime::UNIX_EPOCH,
    })
}

fn of(status: u16, body: &Value) -> Verdict {
    verdict(status, body.to_string().as_bytes())
}

#[track_caller]
fn fault(verdict: Verdict) -> Fault {
    match verdict {
        Verdict::Failed(fault) => fault,
        Verdict::Answer(_) | Verdict::Reasoned(_) => panic!("{verdict:?}"),
    }
}

#[track_caller]
fn kind(status: u16, body: &Value) -> FaultKind {
    fault(of(status, body)).kind
}

fn chat(content: &Value, finish: &str) -> Value {
    json!({ "choices": [{ "index": 0, "finish_reason": finish,
        "message": { "role": "assistant", "content": content } }] })
}

#[test]
fn answers_of_every_api_are_read() {
    for body in [
        chat(&json!("a cat"), "stop"),
        chat(
            &json!([{ "type": "text", "text": "a " }, { "type": "text", "text": "cat" }]),
            "stop",
        ),
        chat(&json!(["a ", "cat"]), ""),
        chat(&json!({ "type": "text", "text": "a cat" }), "stop"),
        json!({ "error": { "message": "", "code": null }, "choices": [{ "message": { "content": "a cat" } }] }),
        json!({ "choices": [{ "text": "a cat" }] }),
        json!({ "choices": [{ "message": { "content": "" } }, { "message": { "content": "a cat" } }] }),
        json!({ "error": null, "choices": [{ "message": { "content": "a cat", "refusal": null } }] }),
        json!({ "status": "completed", "error": null, "output": [
            { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }] },
            { "type": "message", "content": [{ "type": "output_text", "text": "a cat" }] } ] }),
        json!({ "type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [
            { "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "a cat" }] }),
        json!({ "candidates": [{ "finishReason": "STOP", "content": { "role": "model", "parts": [
            { "text": "hm", "thought": true }, { "text": "a " }, { "text": "cat" }] } }] }),
        json!({ "model": "llava", "message": { "role": "assistant", "content": "a cat" }, "done": true, "done_reason": "stop" }),
        json!({ "response": "a cat", "done": true }),
        json!({ "code": 0, "success": true, "content": "a cat" }),
        json!({ "code": 200, "data": { "content": "a cat" } }),
        json!({ "content": "a cat", "base_resp": { "status_code": 0, "status_msg": "success" } }),
        json!([{ "choices": [{ "message": { "content": "a cat" } }] }]),
        chat(&json!("<think>hm</think>\n\na cat\n"), "stop"),
        chat(&json!("a cat"), "length"),
    ] {
        assert_eq!(
            of(200, &body),
            Verdict::Answer("a cat".to_owned()),
            "{body}"
        );
    }
}

#[test]
fn fr_181_an_error_inside_a_success_is_none() {
    let body = json!({ "error": { "message": "picture support is not loaded on this model" } });
    let told = fault(of(200, &body));
    assert_eq!(told.kind, FaultKind::CannotSee);
    assert_eq!(told.status, Some(200));
    assert_eq!(told.words, "picture support is not loaded on this model");
    for (body, wanted) in [
        (json!({ "error": "upstream gone" }), FaultKind::ErrorInside),
        (
            json!({ "error": true, "message": "x" }),
            FaultKind::ErrorInside,
        ),
        (
            json!({ "error": { "code": 401, "message": "no" }, "choices": [] }),
            FaultKind::Auth,
        ),
        (
            json!({ "error": { "type": "overloaded_error" }, "type": "error" }),
            FaultKind::ServerError,
        ),
        (
            json!({ "error": { "message": "x" }, "choices": [{ "message": { "content": "a cat" } }] }),
            FaultKind::ErrorInside,
        ),
        (
            json!({ "choices": [{ "error": { "code": 502, "message": "x" }, "message": { "content": "half" } }] }),
            FaultKind::ServerError,
        ),
        (
            json!({ "choices": [{ "finish_reason": "error", "message": { "content": "half" } }] }),
            FaultKind::ErrorInside,
        ),
        (
            json!({ "status": "failed", "error": { "code": "server_error" }, "output": [] }),
            FaultKind::ServerError,
        ),
        (
            json!({ "errors": [{ "message": "x" }] }),
            FaultKind::ErrorInside,
        ),
        (
            json!([{ "error": { "code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
            "details": [{ "reason": "API_KEY_INVALID" }] } }]),
            FaultKind::Auth,
        ),
    ] {
        assert_eq!(kind(200, &body), wanted, "{body}");
    }
}

#[test]
fn fr_182_what_has_no_answer_in_it_is_a_failure() {
    for (body, wanted) in [
        (r#"{"choices":[]}"#, FaultKind::Malformed),
        (r#"{"choices":null}"#, FaultKind::Malformed),
        (r#"{"choices":"x"}"#, FaultKind::Malformed),
        (r#"{"choices":[null]}"#, FaultKind::Malformed),
        (r#"{"choices":[{"message":null}]}"#, FaultKind::Malformed),
        (
            r#"{"choices":[{"message":{"content":7}}]}"#,
            FaultKind::Malformed,
        ),
        ("{}", FaultKind::Malformed),
        ("[]", FaultKind::Malformed),
        ("null", FaultKind::Malformed),
        ("7", FaultKind::Malformed),
        ("\"a cat\"", FaultKind::Malformed),
        ("", FaultKind::Empty),
        (" \r\n\u{feff}", FaultKind::NotJson),
        ("<html>gateway</html>", FaultKind::NotJson),
        ("  <!DOCTYPE html><title>x</title>", FaultKind::NotJson),
        (
            r#"{"choices":[{"message":{"content":"a c"#,
            FaultKind::NotJson,
        ),
        ("OK", FaultKind::NotJson),
        ("data: {\"choices\":[]}", FaultKind::NotJson),
    ] {
        assert_eq!(fault(verdict(200, body.as_bytes())).kind, wanted, "{body}");
    }
    let cut = fault(verdict(200, br#"{"choices":[{"mess"#));
    assert_eq!(cut.words, "it is cut off");
    let deep = "[".repeat(100_000);
    assert_eq!(
        fault(verdict(200, deep.as_bytes())).kind,
        FaultKind::NotJson
    );
}

#[test]
fn answers_that_nobody_can_see_are_empty() {
    for content in [
        "",
        "  \n",
        "\u{200b}\u{feff}\u{2060}",
        "\u{e0041}\u{e0042}",
        "\u{3164}",
        "<think></think>",
    ] {
        assert_eq!(
            kind(200, &chat(&json!(content), "stop")),
            FaultKind::Empty,
            "{content:?}"
        );
    }
    assert_eq!(
        kind(200, &chat(&Value::Null, "tool_calls")),
        FaultKind::Empty
    );
    assert_eq!(
        kind(
            200,
            &json!({ "content": [], "stop_reason": "end_turn", "text": "" })
        ),
        FaultKind::Empty
    );
}

#[test]
fn fr_184_cut_off_reasoning_is_no_answer() {
    let thinking = |finish: &str| {
        json!({ "choices": [{ "finish_reason": finish, "message": {
            "content": "", "reasoning_content": "First I look" } }] })
    };
    for finish in ["length", "", "tool_calls"] {
        let told = fault(of(200, &thinking(finish)));
        assert_eq!(told.kind, FaultKind::ReasoningOnly);
        assert!(!told.to_string().contains("First I look"));
    }
    let open = chat(&json!("<think>First I look at the"), "length");
    assert_eq!(kind(200, &open), FaultKind::ReasoningOnly);
    let anthropic = json!({ "stop_reason": "max_tokens", "content": [{ "type": "thinking", "thinking": "First I" }] });
    assert_eq!(kind(200, &anthropic), FaultKind::ReasoningOnly);
}

#[test]
fn fr_185_reasoning_that_came_to_its_end_may_stand_in() {
    for message in [
        json!({ "content": "", "reasoning_content": "A red square." }),
        json!({ "content": null, "reasoning": "A red square." }),
        json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "A red square." }] }),
        json!({ "content": "<think>A red square.</think>" }),
    ] {
        let body = json!({ "choices": [{ "finish_reason": "stop", "message": message }] });
        assert_eq!(
            of(200, &body),
            Verdict::Reasoned("A red square.".to_owned()),
            "{body}"
        );
    }
}

#[test]
fn refusals_are_no_descriptions() {
    for body in [
        json!({ "choices": [{ "message": { "content": null, "refusal": "I can't." } }] }),
        json!({ "choices": [{ "finish_reason": "content_filter", "message": { "content": "A" } }] }),
        json!({ "stop_reason": "refusal", "content": [{ "type": "text", "text": "A" }] }),
        json!({ "status": "completed", "output": [{ "type": "message", "content": [{ "type": "refusal", "refusal": "No." }] }] }),
        json!({ "status": "incomplete", "incomplete_details": { "reason": "content_filter" }, "output": [] }),
        json!({ "promptFeedback": { "blockReason": "SAFETY" } }),
        json!({ "candidates": [{ "finishReason": "PROHIBITED_CONTENT" }] }),
        chat(&json!("I'm sorry, but I can't assist with that."), "stop"),
    ] {
        assert_eq!(kind(200, &body), FaultKind::RefusalOnly, "{body}");
    }
    let blind = fault(of(
        200,
        &chat(&json!("I'm sorry, but I can't view images."), "stop"),
    ));
    assert_eq!(
        (blind.kind, blind.origin),
        (FaultKind::CannotSee, Origin::Words)
    );
    let told = fault(of(
        400,
        &json!({ "error": { "message": "this model does not support images" } }),
    ));
    assert_eq!(
        (told.kind, told.origin),
        (FaultKind::CannotSee, Origin::Told)
    );
}

#[test]
fn escape_sequences_are_nothing_to_see() {
    for text in [
        "\u{1b}[31m\u{1b}[0m",
        "\u{9b}1m",
        "\u{1b}]0;a title\u{7}",
        "\u{1b}(B\u{200b}",
    ] {
        assert_eq!(
            kind(200, &chat(&json!(text), "stop")),
            FaultKind::Empty,
            "{text:?}"
        );
    }
    let coloured = chat(&json!("\u{1b}[31mA red square.\u{1b}[0m"), "stop");
    assert_eq!(
        of(200, &coloured),
        Verdict::Answer("A red square.".to_owned())
    );
    let blind = chat(&json!("\u{1b}[1mI can't see images.\u{1b}[0m"), "stop");
    assert_eq!(kind(200, &blind), FaultKind::CannotSee);
}

#[test]
fn texts_of_tools_are_judged_like_those_of_models() {
    for (text, kind) in [
        ("", FaultKind::Empty),
        ("\u{200b}\u{feff} \n", FaultKind::Empty),
        ("\u{1b}[2J", FaultKind::Empty),
        ("I'm sorry, I can't see images.", FaultKind::CannotSee),
        ("I can't assist with that.", FaultKind::RefusalOnly),
        ("<think>what is it", FaultKind::ReasoningOnly),
        ("<think>what is it</think>", FaultKind::ReasoningOnly),
        (
            "Failed to perform VLM analysis: 1033",
            FaultKind::ErrorInside,
        ),
    ] {
        assert_eq!(fault(read_text(text)).kind, kind, "{text:?}");
    }
    let text = "<think>hm</think> A red square.\n";
    assert_eq!(read_text(text), Verdict::Answer("A red square.".to_owned()));
}

#[test]
fn a_text_that_is_nothing_but_an_error_is_no_description() {
    for text in [
        r#"{"error":"quota exceeded"}"#,
        r#" {"error":{"message":"quota exceeded"},"text":""} "#,
        r#"{"success": false, "message":"quota exceeded"}"#,
        r#"{"ok": false, "detail":"quota exceeded"}"#,
        r#"{"base_resp":{"status_code":1008,"status_msg":"quota exceeded"}}"#,
    ] {
        let fault = fault(read_text(text));
        assert_eq!(fault.kind, FaultKind::ErrorInside, "{text}");
        assert_eq!(fault.words, "quota exceeded", "{text}");
    }
    for text in [
        r#"A terminal that shows {"error":"quota exceeded"}"#,
        r#"{"error":null,"success":true,"description":"a cat"}"#,
        r#"{"base_resp":{"status_code":0},"content":"a cat"}"#,
        r#"{"code": 500, "status": "failed", "caption": "what the screen shows"}"#,
        "{\"error\": cut",
    ] {
        assert_eq!(read_text(text), Verdict::Answer(text.to_owned()));
    }
}

#[test]
fn numbers_of_one_vendor_mean_nothing_of_another() {
    let with = |status, number: i64, numbers| {
        let body = json!({ "error": { "code": number, "message": "no" } }).to_string();
        let reply = HttpReply {
            status,
            retry_after: None,
            retry_after_ms: None,
            body: body.as_bytes(),
            now: SystemTime::UNIX_EPOCH,
        };
        fault(read(&reply, numbers).verdict).kind
    };
    assert_eq!(with(503, 1001, Numbers::Any), FaultKind::ServerError);
    assert_eq!(with(200, 1001, Numbers::Any), FaultKind::ErrorInside);
    assert_eq!(with(200, 1001, Numbers::Zai), FaultKind::Auth);
    assert_eq!(with(200, 1210, Numbers::Zai), FaultKind::BadRequest);
    assert_eq!(with(400, 1211, Numbers::Zai), FaultKind::UnknownModel);
    // A status that tells of a failure or a limit is believed.
    assert_eq!(with(503, 1001, Numbers::Zai), FaultKind::ServerError);
    assert_eq!(with(429, 1001, Numbers::Zai), FaultKind::RateLimited);
    assert_eq!(with(429, 1302, Numbers::Zai), FaultKind::RateLimited);
    assert_eq!(with(429, 1308, Numbers::Zai), FaultKind::Quota);
}

#[test]
fn fr_194_vendors_that_always_say_200_are_read_closely() {
    let internal =
        json!({ "content": "", "base_resp": { "status_code": 1033, "status_msg": "internal" } });
    let told = fault(of(200, &internal));
    assert_eq!(
        (told.kind, told.words.as_str()),
        (FaultKind::ServerError, "internal")
    );
    assert_eq!(told.provider_code.as_deref(), Some("1033"));
    let stale = json!({ "code": 401, "msg": "credential no longer valid", "success": false });
    let told = fault(of(200, &stale));
    assert_eq!((told.kind, told.status), (FaultKind::Auth, Some(200)));
    assert_eq!(told.words, "credential no longer valid");
    for (body, wanted) in [
        (
            json!({ "content": "a cat", "base_resp": { "status_code": 1004, "status_msg": "login" } }),
            FaultKind::Auth,
        ),
        (
            json!({ "content": "a cat", "base_resp": { "status_code": "1008" } }),
            FaultKind::Quota,
        ),
        (
            json!({ "content": "a cat", "base_resp": { "status_code": null } }),
            FaultKind::ErrorInside,
        ),
        (
            json!({ "content": "a cat", "success": false }),
            FaultKind::ErrorInside,
        ),
        (
            json!({ "content": "a cat", "success": "false", "code": "500" }),
            FaultKind::ServerError,
        ),
        (
            json!({ "code": 500, "msg": "404 NOT_FOUND", "success": false }),
            FaultKind::ServerError,
        ),
        (
            json!({ "code": 1210, "message": "x" }),
            FaultKind::ErrorInside,
        ),
        (
            json!({ "code": 402, "choices": [{ "message": { "content": "a cat" } }] }),
            FaultKind::Quota,
        ),
    ] {
        assert_eq!(kind(200, &body), wanted, "{body}");
    }
}

#[test]
fn floods_of_base64_are_no_description() {
    let flood = "iVBORw0KGgoAAAANSUhEUgAA".repeat(2_000);
    assert_eq!(
        kind(200, &chat(&json!(flood), "stop")),
        FaultKind::Malformed
    );
    let mixed = of(200, &chat(&json!(format!("a cat {flood}")), "stop"));
    assert_eq!(
        mixed,
        Verdict::Answer("a cat [encoded data left out]".to_owned())
    );
    let told = fault(of(
        400,
        &json!({ "error": { "message": format!("bad image: {flood}") } }),
    ));
    assert_eq!(told.words, "bad image: [encoded data left out]");
}

#[test]
fn statuses_and_codes_decide_before_words() {
    for (status, body, wanted) in [
        (
            400,
            json!({ "error": { "code": "1210", "message": "picture unreadable" } }),
            FaultKind::BadRequest,
        ),
        (
            400,
            json!({ "error": { "message": "model `x` does not support image input" } }),
            FaultKind::CannotSee,
        ),
        (
            404,
            json!({ "error": { "message": "No endpoints found that support image input", "code": 404 } }),
            FaultKind::CannotSee,
        ),
        (
            500,
            json!({ "error": { "message": "image input is not supported - hint: you may need to provide the mmproj" } }),
            FaultKind::CannotSee,
        ),
        (
            400,
            json!({ "error": { "type": "invalid_request_error", "message": "Your credit balance is too low" } }),
            FaultKind::Quota,
        ),
        (
            400,
            json!({ "error": { "type": "invalid_request_error", "message": "image exceeds 5 MB maximum: 6 > 5" } }),
            FaultKind::TooLarge,
        ),
        (
            400,
            json!({ "error": { "code": "context_length_exceeded", "message": "x" } }),
            FaultKind::TooLarge,
        ),
        (
            400,
            json!({ "error": { "code": "invalid_api_key" } }),
            FaultKind::Auth,
        ),
        (
            401,
            json!({ "error": { "type": "invalid_request_error", "message": "model not found" } }),
            FaultKind::Auth,
        ),
        (
            403,
            json!({ "error": { "message": "insufficient balance" } }),
            FaultKind::Quota,
        ),
        (
            404,
            json!({ "error": { "message": "model 'llava' not found" } }),
            FaultKind::UnknownModel,
        ),
        (
            404,
            json!({ "error": { "code": "DeploymentNotFound" } }),
            FaultKind::UnknownModel,
        ),
        (402, json!({}), FaultKind::Quota),
        (413, json!("Request Entity Too Large"), FaultKind::TooLarge),
        (
            429,
            json!({ "error": { "code": "insufficient_quota", "type": "insufficient_quota" } }),
            FaultKind::Quota,
        ),
        (
            429,
            json!({ "error": { "code": "1113", "message": "Insufficient balance" } }),
            FaultKind::Quota,
        ),
        (
            429,
            json!({ "error": { "message": "slow down" } }),
            FaultKind::RateLimited,
        ),
        (
            500,
            json!({ "error": { "message": "your credits are fine, image too large? no" } }),
            FaultKind::ServerError,
        ),
        (503, json!({}), FaultKind::ServerError),
        (
            529,
            json!({ "type": "error", "error": { "type": "overloaded_error" } }),
            FaultKind::ServerError,
        ),
        (408, json!({}), FaultKind::Timeout),
        (302, json!({}), FaultKind::Misconfigured),
        (418, json!({}), FaultKind::BadRequest),
        // A number in an id is no bill.
        (
            400,
            json!({ "error": { "message": "request req_402_insufficient1 is odd" } }),
            FaultKind::BadRequest,
        ),
        (
            500,
            json!({ "error": { "message": "trace 402 413 429" } }),
            FaultKind::ServerError,
        ),
    ] {
        assert_eq!(kind(status, &body), wanted, "{status} {body}");
    }
}

#[test]
fn errors_without_json_are_told_by_their_status() {
    for (status, body, wanted) in [
        (
            502,
            "<html><title>502 Bad Gateway</title></html>",
            FaultKind::ServerError,
        ),
        (404, "<html>not found</html>", FaultKind::Misconfigured),
        (404, "", FaultKind::UnknownModel),
        (413, "Request Entity Too Large", FaultKind::TooLarge),
        (403, "<html>Just a moment...</html>", FaultKind::Auth),
        (429, "", FaultKind::RateLimited),
        (500, "upstream connect error", FaultKind::ServerError),
    ] {
        assert_eq!(
            fault(verdict(status, body.as_bytes())).kind,
            wanted,
            "{status} {body}"
        );
    }
}

#[test]
fn waits_of_google_are_told() {
    let body = json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x",
        "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s" }] } });
    let told = fault(of(429, &body));
    assert_eq!(told.kind, FaultKind::RateLimited);
    assert_eq!(told.retry_after, Some(std::time::Duration::from_secs(7)));
    assert_eq!(told.provider_code.as_deref(), Some("RESOURCE_EXHAUSTED"));
}

#[test]
fn codes_that_are_no_codes_are_not_shown() {
    for code in ["a b", "<b>", &"x".repeat(200), "a\nb"] {
        let body = json!({ "error": { "code": code, "message": "m" } });
        assert_eq!(fault(of(400, &body)).provider_code, None, "{code}");
    }
}
