//! The HTTP surface: every route, its shape, its errors.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::text_result;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Script, Service, programs};

async fn service() -> Service {
    let script = Script::new("s").text_tool("echo", "echoed").tool(
        "fail",
        json!({"isError": true, "content": [{"type": "text", "text": "no luck"}]}),
    );
    Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_tool_is_called_by_its_public_name_or_by_server_and_name() {
    let service = service().await;
    for call in [
        json!({"tool": "mcp__s__echo", "arguments": {"x": 1}}),
        json!({"server": "s", "name": "echo", "arguments": {"x": 1}}),
    ] {
        let delivery = service
            .post("/v1/tools/call", &call)
            .await
            .unwrap()
            .ok()
            .unwrap();
        assert_eq!(delivery["text"], "echoed");
        assert_eq!(
            (&delivery["server"], &delivery["tool"]),
            (&json!("s"), &json!("echo"))
        );
        assert!(delivery["id"].as_str().unwrap().starts_with("dlv_"));
        assert!(delivery["elapsed_ms"].is_u64());
    }
    let calls = service.records("s").unwrap();
    for call in calls.iter().filter(|record| record.calls("echo")) {
        assert_eq!(call.message["params"]["arguments"], json!({"x": 1}));
    }
}

#[tokio::test]
async fn a_tools_own_error_is_a_delivery() {
    let service = service().await;
    let delivery = service
        .call("s", "fail", json!({}))
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(delivery["is_error"], true);
    assert_eq!(delivery["text"], "no luck");
}

#[tokio::test]
async fn formats_have_their_bodies() {
    let service = service().await;
    let mut call = json!({"tool": "mcp__s__echo", "format": "hermes"});
    let hermes = service.post("/v1/tools/call", &call).await.unwrap();
    assert!(
        hermes
            .header("content-type")
            .starts_with("application/json"),
        "{hermes:?}"
    );
    assert_eq!(hermes.ok().unwrap(), json!({"result": "echoed"}));
    call["format"] = json!("text");
    let text = service.post("/v1/tools/call", &call).await.unwrap();
    assert!(
        text.header("content-type").starts_with("text/plain"),
        "{text:?}"
    );
    assert_eq!(
        (text.status, text.text().unwrap().as_str()),
        (200, "echoed")
    );
}

#[tokio::test]
async fn what_is_not_there_is_told_with_its_code() {
    let service = service().await;
    for (call, code, status) in [
        (json!({"tool": "mcp__s__nothing"}), "unknown_tool", 404),
        (
            json!({"server": "s", "name": "nothing"}),
            "unknown_tool",
            404,
        ),
        (
            json!({"server": "nobody", "name": "echo"}),
            "unknown_server",
            404,
        ),
    ] {
        let answer = service.post("/v1/tools/call", &call).await.unwrap();
        let problem = answer.problem().unwrap();
        assert_eq!(
            (&problem["code"], answer.status),
            (&json!(code), status),
            "{problem}"
        );
        assert_eq!(problem["retryable"], false);
        assert_eq!(problem["outcome_uncertain"], false);
        assert!(!problem["model_text"].as_str().unwrap().is_empty());
    }
    for (path, code) in [
        ("/v1/servers/nobody", "unknown_server"),
        (
            "/v1/artifacts/art_01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "unknown_artifact",
        ),
        ("/v1/artifacts/..%2f..%2fetc%2fpasswd", "unknown_artifact"),
        ("/v1/nothing", "not_found"),
    ] {
        let answer = service.get(path).await.unwrap();
        assert_eq!(answer.code().unwrap(), code, "{path}");
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn requests_that_are_wrong_are_refused_with_what_is_wrong() {
    let service = service().await;
    for (path, body, word) in [
        ("/v1/tools/call", json!({}), "tool"),
        ("/v1/tools/call", json!([]), ""),
        (
            "/v1/tools/call",
            json!({"tool": "mcp__s__echo", "server": "s"}),
            "tool",
        ),
        (
            "/v1/tools/call",
            json!({"tool": "mcp__s__echo", "arguments": [1]}),
            "",
        ),
        (
            "/v1/tools/call",
            json!({"tool": "mcp__s__echo", "timeout_ms": 0}),
            "",
        ),
        (
            "/v1/tools/call",
            json!({"tool": "mcp__s__echo", "timeout_ms": "1s"}),
            "",
        ),
        (
            "/v1/tools/call",
            json!({"tool": "mcp__s__echo", "format": "xml"}),
            "format",
        ),
        (
            "/v1/tools/call",
            json!({"tool": "mcp__s__echo", "argumnets": {}}),
            "argumnets",
        ),
        (
            "/v1/results/deliver",
            json!({"format": "talaria"}),
            "result",
        ),
        (
            "/v1/results/deliver",
            json!({"result": {"content": []}, "format": "xml"}),
            "format",
        ),
    ] {
        let answer = service.post(path, &body).await.unwrap();
        assert_eq!(answer.status, 400, "{path} {body}: {answer:?}");
        let problem = answer.problem().unwrap();
        assert_eq!(problem["code"], "invalid_request");
        assert!(
            problem["detail"].as_str().unwrap().contains(word),
            "{problem} for {body}"
        );
    }
    let broken = service.client().post(service.url("/v1/tools/call"));
    let broken = broken
        .header("content-type", "application/json")
        .body("{\"tool\":");
    assert_eq!(
        service.send(broken).await.unwrap().code().unwrap(),
        "invalid_request"
    );
    let calls = service.records("s").unwrap();
    assert!(
        !calls
            .iter()
            .any(|record| record.method() == Some("tools/call"))
    );
}

#[tokio::test]
async fn another_method_is_refused_and_the_right_one_named() {
    let service = service().await;
    let answer = service.get("/v1/tools/call").await.unwrap();
    assert_eq!(answer.status, 405);
    assert_eq!(answer.code().unwrap(), "method_not_allowed");
    assert!(answer.header("allow").contains("POST"), "{answer:?}");
}

#[tokio::test]
async fn tools_are_listed_in_the_protocols_shape() {
    let service = service().await;
    let listed = service.get("/v1/tools").await.unwrap().ok().unwrap();
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["mcp__s__echo", "mcp__s__fail", "vision_analyze"]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].is_string(), "{tool}");
    }
    assert_eq!(
        service
            .get("/v1/tools?server=nobody")
            .await
            .unwrap()
            .code()
            .unwrap(),
        "unknown_server"
    );
    assert_eq!(
        service.get("/v1/tools?format=xml").await.unwrap().status,
        400
    );
}

#[tokio::test]
async fn servers_are_shown_and_operated() {
    let service = service().await;
    let listed = service.get("/v1/servers").await.unwrap().ok().unwrap();
    let [server] = listed["servers"].as_array().unwrap().as_slice() else {
        panic!("{listed}")
    };
    assert_eq!(server["name"], "s");
    assert_eq!(server["state"], "ready");
    assert_eq!(server["transport"], "stdio");
    assert_eq!(server["tools"], 2);
    assert!(server["protocol_version"].is_string(), "{server}");
    assert!(
        server["server_info"].as_str().unwrap().contains("1.0.0"),
        "{server}"
    );

    let nothing = json!({});
    let test = service
        .post("/v1/servers/s/test", &nothing)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(test["ok"], true, "{test}");

    let again = service
        .post("/v1/servers/s/reconnect", &nothing)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(again["state"], "ready");
    assert_ne!(again["pid"], server["pid"], "a new process");

    let off = service
        .post("/v1/servers/s/disable", &nothing)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(off["state"], "disabled");
    let refused = service.call("s", "echo", json!({})).await.unwrap();
    assert_eq!(refused.code().unwrap(), "server_disabled");
    assert_eq!(refused.status, 409);

    let on = service
        .post("/v1/servers/s/enable", &nothing)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(on["name"], "s");
    service.wait_state("s", "ready", PATIENCE).await.unwrap();
    assert_eq!(
        service.call("s", "echo", json!({})).await.unwrap().status,
        200
    );
}

#[tokio::test]
async fn a_server_disabled_in_the_configuration_is_not_started() {
    let service = Service::builder(programs!())
        .unwrap()
        .stdio("s", Script::new("s").text_tool("echo", "echoed"))
        .unwrap()
        .set(&["mcp_servers", "s", "enabled"], false)
        .start()
        .await
        .unwrap();
    assert_eq!(service.server("s").await.unwrap()["state"], "disabled");
    let refused = service.call("s", "echo", json!({})).await.unwrap();
    assert_eq!(refused.code().unwrap(), "server_disabled");
    assert_eq!(service.records("s").unwrap().len(), 0, "it was started");
}

#[tokio::test]
async fn probes_and_metrics_answer() {
    let service = service().await;
    assert_eq!(service.get("/healthz").await.unwrap().status, 200);
    assert_eq!(service.get("/readyz").await.unwrap().status, 200);
    let metrics = service.get("/metrics").await.unwrap();
    assert!(
        metrics
            .header("content-type")
            .starts_with("text/plain; version=0.0.4"),
        "{metrics:?}"
    );
}

#[tokio::test]
async fn the_contract_names_every_route() {
    let service = service().await;
    let contract = service.get("/openapi.json").await.unwrap().ok().unwrap();
    assert!(
        contract["openapi"].as_str().unwrap().starts_with("3.1"),
        "{}",
        contract["openapi"]
    );
    for (path, method) in [
        ("/v1/tools/call", "post"),
        ("/v1/tools", "get"),
        ("/v1/results/deliver", "post"),
        ("/v1/servers", "get"),
        ("/v1/servers/{name}", "get"),
        ("/v1/servers/{name}/test", "post"),
        ("/v1/servers/{name}/reconnect", "post"),
        ("/v1/servers/{name}/enable", "post"),
        ("/v1/servers/{name}/disable", "post"),
        ("/v1/artifacts/{id}", "get"),
        ("/v1/artifacts/{id}", "delete"),
        ("/v1/artifacts/{id}/meta", "get"),
        ("/healthz", "get"),
        ("/readyz", "get"),
        ("/metrics", "get"),
    ] {
        assert!(
            contract["paths"][path][method].is_object(),
            "{method} {path}"
        );
    }
    let references = collect_references(&contract);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect(&reference);
        assert!(
            contract.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
}

#[tokio::test]
async fn a_request_keeps_the_id_its_caller_gave() {
    let service = service().await;
    let request = service
        .client()
        .get(service.url("/healthz"))
        .header("x-request-id", "mine-42");
    assert_eq!(
        service.send(request).await.unwrap().header("x-request-id"),
        "mine-42"
    );
    let made = service.get("/healthz").await.unwrap();
    assert!(made.header("x-request-id").starts_with("req_"), "{made:?}");
}

#[tokio::test]
async fn a_delivery_without_a_call_names_its_server() {
    let service = service().await;
    let body = json!({"server": "s", "tool": "echo", "result": text_result("hi")});
    let delivery = service
        .post("/v1/results/deliver", &body)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(delivery["text"], "hi");
    assert_eq!(
        (&delivery["server"], &delivery["tool"]),
        (&json!("s"), &json!("echo"))
    );
}

#[tokio::test]
async fn the_service_listens_before_its_servers_are_there() {
    let hang = Script::new("slow").on_method("initialize", [talaria_testkit::Action::Hang]);
    let builder = Service::builder(programs!())
        .unwrap()
        .stdio("slow", hang)
        .unwrap();
    let started = talaria_types::runtime::now();
    let service = builder.start_unsettled().await.unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(service.get("/healthz").await.unwrap().status, 200);
    assert_eq!(service.server("slow").await.unwrap()["state"], "connecting");
}

/// Every `$ref` of a document.
fn collect_references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| match value {
                Value::String(target) if key == "$ref" => vec![target.clone()],
                other => collect_references(other),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(collect_references).collect(),
        _ => Vec::new(),
    }
}
