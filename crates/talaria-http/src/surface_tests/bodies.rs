//! Requests that are not what a route takes, and the delivery of those that are.

use serde_json::json;

use super::*;

const CALL: &str = "/v1/tools/call";
const DELIVER: &str = "/v1/results/deliver";

#[actix_web::test]
async fn takes_nothing_but_json() {
    let service = fixture();
    for kind in [
        "Content-Type: text/plain",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Type: application/jsonp",
        "X-No-Content-Type: at all",
    ] {
        for path in [CALL, DELIVER] {
            let reply = service.send("POST", path, &[kind], b"{}").await;
            let detail = reply.refused(415, "invalid_request");
            assert!(detail.contains("application/json"), "{detail}");
        }
    }
    let coded = ["Content-Type: application/json", "Content-Encoding: gzip"];
    service
        .send("POST", CALL, &coded, b"{}")
        .await
        .refused(415, "invalid_request");
    let charset = ["Content-Type: Application/JSON; charset=utf-8"];
    service
        .send("POST", CALL, &charset, b"{}")
        .await
        .refused(400, "invalid_request");
}

#[actix_web::test]
async fn says_where_a_body_is_not_json() {
    let service = fixture();
    let json = ["Content-Type: application/json"];
    for (body, expected) in [
        (&b"{\"tool\": \"x\",\n  oops}"[..], "line 2 column 3"),
        (b"{\"tool\": \"x\"", "ends too early"),
        (b"", "ends too early"),
        (b"[1]", "does not fit this route"),
        (b"{\"tool\": 7}", "expected a string"),
        (b"{\"tool\": \"x\", \"timeout_ms\": 0}", "nonzero"),
        (b"{\"tool\": \"x\", \"arguments\": [1]}", "expected a map"),
        (b"{\"tool\": \"\xff\"}", "is not valid JSON"),
    ] {
        let reply = service.send("POST", CALL, &json, body).await;
        let detail = reply.refused(400, "invalid_request");
        assert!(detail.contains(expected), "{detail}");
    }
    let reply = service
        .send("POST", DELIVER, &json, b"{\"result\": {},\n  oops}")
        .await;
    let detail = reply.refused(400, "invalid_request");
    assert!(detail.contains("at byte 17"), "{detail}");
}

#[actix_web::test]
async fn names_the_key_that_was_probably_meant() {
    let service = fixture();
    for (path, body, expected) in [
        (
            CALL,
            json!({ "tool": "x", "argumets": {} }),
            "did you mean `arguments`?",
        ),
        (
            CALL,
            json!({ "tool": "x", "timeout": 1 }),
            "did you mean `timeout_ms`?",
        ),
        (
            CALL,
            json!({ "tool": "x", "zzz": 1 }),
            "unknown key `zzz`; known are tool, server",
        ),
        (
            DELIVER,
            json!({ "result": {}, "fromat": "text" }),
            "did you mean `format`?",
        ),
    ] {
        let detail = service
            .post(path, &body)
            .await
            .refused(400, "invalid_request");
        assert!(detail.contains(expected), "{detail}");
    }
    let reply = service.get("/v1/tools?fromat=mcp").await;
    let detail = reply.refused(400, "invalid_request");
    assert!(detail.contains("did you mean `format`?"), "{detail}");
}

#[actix_web::test]
async fn says_what_is_wrong_with_a_wish() {
    let service = fixture();
    for (key, value, expected) in [
        ("format", json!("anthropic"), "needs `call_id`"),
        ("format", json!("openai-chat"), "needs `call_id`"),
        ("format", json!("hermse"), "did you mean `hermes`?"),
        ("tiles", json!("sometimes"), "did not match any variant"),
        ("session", json!(""), "1 to 256 bytes"),
        ("call_id", json!("x".repeat(257)), "1 to 256 bytes"),
        (
            "image_input_mode",
            json!("sometimes"),
            "unknown variant `sometimes`",
        ),
        ("route", json!({ "provider": "a" }), "missing field `model`"),
        (
            "route",
            json!({ "provider": "x".repeat(257), "model": "m" }),
            "`route.provider` must have at most 256 bytes",
        ),
        (
            "route",
            json!({ "provider": "a", "model": "x".repeat(257) }),
            "`route.model` must have at most 256 bytes",
        ),
        (
            "route",
            json!({ "provider": "a", "model": "m", "api": "x".repeat(257) }),
            "`route.api` must have at most 256 bytes",
        ),
    ] {
        for (path, mut body) in [
            (CALL, json!({ "tool": "x" })),
            (DELIVER, json!({ "result": { "content": [] } })),
        ] {
            body[key] = value.clone();
            let detail = service
                .post(path, &body)
                .await
                .refused(400, "invalid_request");
            assert!(detail.contains(expected), "{key} on {path}: {detail}");
        }
    }
    let reply = service.get("/v1/tools?format=openia").await;
    let detail = reply.refused(400, "invalid_request");
    assert!(detail.contains("did you mean `openai`?"), "{detail}");
    for (format, name) in [
        ("openai", "/tools/0/function/name"),
        ("openai-responses", "/tools/0/name"),
        ("anthropic", "/tools/0/name"),
        ("gemini", "/tools/0/functionDeclarations/0/name"),
    ] {
        let list = service.get(&format!("/v1/tools?format={format}")).await;
        let own = list.json().pointer(name).cloned();
        assert_eq!(own, Some(json!("vision_analyze")), "{format}");
    }
}

#[actix_web::test]
async fn names_of_a_downgrade_are_bounded_too() {
    let service = fixture();
    let long = "x".repeat(257);
    for (key, value, expected) in [
        ("call_id", json!(long), "1 to 256 bytes"),
        ("tool", json!(long), "`tool` must have at most 256 bytes"),
        (
            "route",
            json!({ "provider": "a", "model": long }),
            "`route.model` must have at most 256 bytes",
        ),
    ] {
        let mut body = json!({ "body": "text", "format": "text" });
        body[key] = value;
        let reply = service.post("/v1/results/downgrade", &body).await;
        let detail = reply.refused(400, "invalid_request");
        assert!(detail.contains(expected), "{key}: {detail}");
    }
}

#[actix_web::test]
async fn accepts_the_keys_of_later_versions() {
    let service = fixture();
    let body = json!({
        "result": { "content": [{ "type": "text", "text": "hello" }] },
        "route": { "provider": "anthropic", "model": "m", "api": "messages" },
        "call_id": "toolu_1",
        "session": "s",
        "timeout_ms": 5000,
        "describe_images": "auto",
        "image_input_mode": "native",
        "tiles": "off",
        "approve": true,
    });
    let reply = service.post(DELIVER, &body).await;
    assert_eq!(
        (reply.status, reply.json()["text"].as_str()),
        (200, Some("hello"))
    );
}

#[actix_web::test]
async fn refuses_a_body_over_the_limit_before_and_while_reading_it() {
    let service = fixture();
    let limit = 1 << 20;
    let announced = ["Content-Type: application/json", "Content-Length: 1048577"];
    let reply = service.send("POST", CALL, &announced, b"{").await;
    let detail = reply.refused(413, "body_too_large");
    assert!(detail.contains("1048576 bytes"), "{detail}");

    let mut chunked = format!("{:x}\r\n", limit + 1).into_bytes();
    chunked.resize(chunked.len() + limit + 1, b' ');
    let headers = [
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
    ];
    let reply = service.send("POST", CALL, &headers, &chunked).await;
    reply.refused(413, "body_too_large");

    let mut padded = br#"{"tool":"x"}"#.to_vec();
    padded.resize(limit, b' ');
    let reply = service.send("POST", CALL, &headers[..1], &padded).await;
    reply.refused(404, "unknown_tool");
}

/// A number must reach the server as it was written, or not at all.
#[actix_web::test]
async fn refuses_integers_it_would_change_with_their_place() {
    let service = fixture();
    let json = ["Content-Type: application/json"];
    for digits in [
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
    ] {
        for (path, body) in [
            (CALL, r#"{"tool":"x","arguments":{"id":N}}"#),
            (
                "/v1/vision/analyze",
                r#"{"url":"x","timeout_ms":[{"a":N}]}"#,
            ),
            (
                "/v1/results/downgrade",
                r#"{"format":"text","body":{"a":N}}"#,
            ),
            ("/v1/images/deliver", r#"{"path":"/x","z":N}"#),
        ] {
            let column = body.find('N').unwrap() + 1;
            let body = body.replace('N', digits);
            let reply = service.send("POST", path, &json, body.as_bytes()).await;
            let detail = reply.refused(400, "invalid_request");
            let place = format!("the integer {digits} at line 1 column {column},");
            assert!(detail.contains(&place), "{path}: {detail}");
        }
    }
    // A result is not sent on: its digits stay, as a string.
    let result = r#"{"result":{"content":[],"structuredContent":{"n":18446744073709551616}}}"#;
    let reply = service
        .send("POST", DELIVER, &json, result.as_bytes())
        .await;
    let text = reply.json()["text"].as_str().unwrap().to_owned();
    assert!(text.contains("\"18446744073709551616\""), "{text}");
}

#[actix_web::test]
async fn refuses_a_body_of_more_values_than_fit_into_memory() {
    let service = with_body_bytes(8 << 20);
    let json = ["Content-Type: application/json"];
    for (path, around) in [
        (CALL, r#"{"tool":"x","arguments":{"a":[LIST]}}"#),
        (DELIVER, r#"{"result":{"content":[LIST]}}"#),
        (DELIVER, r#"{"result":{"content":[]},"tool":[LIST]}"#),
    ] {
        let body = around.replace("LIST", &vec!["{}"; 1_000_001].join(","));
        let reply = service.send("POST", path, &json, body.as_bytes()).await;
        let detail = reply.refused(413, "body_too_large");
        assert!(detail.contains("more than 1000000 JSON values"), "{detail}");
    }
}

#[actix_web::test]
async fn closes_the_connection_of_a_body_it_does_not_read_to_the_end() {
    let service = fixture();
    let refused = |length: &'static str| {
        let address = service.address();
        async move {
            let request =
                format!("POST /nowhere HTTP/1.1\r\nHost: {address}\r\n{length}\r\n\r\n1\r\nx\r\n");
            let reply = client::send(address, request.as_bytes()).await;
            assert_eq!(reply.header("connection"), Some("close"), "{length}");
            reply.refused(404, "not_found");
        }
    };
    tokio::join!(
        refused("Content-Length: 100"),
        refused("Transfer-Encoding: chunked")
    );
}

#[actix_web::test]
async fn wants_a_tool_named_in_one_way() {
    let service = fixture();
    for body in [
        json!({}),
        json!({ "tool": "x", "server": "s" }),
        json!({ "tool": "x", "server": "s", "name": "n" }),
        json!({ "server": "s" }),
        json!({ "name": "n" }),
    ] {
        let detail = service
            .post(CALL, &body)
            .await
            .refused(400, "invalid_request");
        assert!(detail.contains("either by `tool`"), "{body}: {detail}");
    }
    let public = service.post(CALL, &json!({ "tool": "mcp__s__n" })).await;
    public.refused(404, "unknown_tool");
    let named = service
        .post(CALL, &json!({ "server": "s", "name": "n" }))
        .await;
    named.refused(404, "unknown_server");
}

#[actix_web::test]
async fn delivers_a_result_in_the_format_asked_for() {
    let service = fixture();
    let result = json!({
        "content": [{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }],
        "isError": false,
    });
    let talaria = service
        .post(DELIVER, &json!({ "result": result, "tool": "t" }))
        .await;
    assert_eq!(talaria.header("content-type"), Some("application/json"));
    let delivery = talaria.json();
    assert_eq!(delivery["text"], "one\ntwo");
    assert_eq!(delivery["tool"], "t");
    assert_eq!(delivery["is_error"], false);
    assert_eq!(delivery["attachments"], json!([]));
    assert!(delivery["elapsed_ms"].is_u64());
    assert!(!delivery["gate"]["reason"].as_str().unwrap().is_empty());

    let text = service
        .post(DELIVER, &json!({ "result": result, "format": "text" }))
        .await;
    assert_eq!(
        text.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(text.body, b"one\ntwo");

    let hermes = service
        .post(DELIVER, &json!({ "result": result, "format": "hermes" }))
        .await;
    assert_eq!(hermes.json(), json!({ "result": "one\ntwo" }));
}

#[actix_web::test]
async fn wants_a_result_to_deliver() {
    let service = fixture();
    let detail = service
        .post(DELIVER, &json!({}))
        .await
        .refused(400, "invalid_request");
    assert!(detail.contains("`result`"), "{detail}");
}

#[actix_web::test]
async fn lists_no_tools_of_servers_and_no_servers_where_there_are_none() {
    let service = fixture();
    for path in ["/v1/tools", "/v1/tools?format=mcp"] {
        let listed = service.get(path).await.json();
        let [own] = listed["tools"].as_array().unwrap().as_slice() else {
            panic!("{listed}");
        };
        assert_eq!(own["name"], "vision_analyze");
    }
    service
        .get("/v1/tools?server=s")
        .await
        .refused(404, "unknown_server");
    let none = service.get("/v1/servers").await.json();
    assert_eq!(none["servers"], json!([]));
    service
        .get("/v1/servers/a%20b")
        .await
        .refused(404, "unknown_server");
    for command in ["test", "reconnect", "enable", "disable"] {
        let path = format!("/v1/servers/s/{command}");
        service
            .send("POST", &path, &[], b"")
            .await
            .refused(404, "unknown_server");
        service
            .send("POST", &path, &[], b"{}")
            .await
            .refused(404, "unknown_server");
        service
            .send("POST", &path, &[], b"{\"a\":1}")
            .await
            .refused(400, "invalid_request");
    }
}
