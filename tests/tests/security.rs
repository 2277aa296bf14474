//! Who may ask, from where, and for how much.

use std::process::Stdio;
use std::time::Duration;

use reqwest::header::{HOST, ORIGIN};
use serde_json::{Value, json};
use talaria_testkit::samples::{PDF, base64};
use talaria_testkit::{Answer, Script, Service, ServiceBuilder, programs};

const ADMIN: &str = "admin-secret-8f3a";
const CALLER: &str = "caller-secret-77c1";
const OTHER: &str = "other-secret-e019";
const SCRAPER: &str = "scraper-secret-b2d4";

fn builder() -> ServiceBuilder {
    Service::builder(programs!()).unwrap()
}

fn tokens() -> Value {
    json!([
        {"name": "admin", "token": ADMIN, "scopes": ["call", "artifacts", "metrics", "admin"], "servers": ["*"]},
        {"name": "caller", "token": CALLER, "scopes": ["call"], "servers": ["open"]},
        {"name": "other", "token": OTHER, "scopes": ["call"], "servers": ["*"]},
        {"name": "scraper", "token": SCRAPER, "scopes": ["metrics"], "servers": []},
    ])
}

/// A service with tokens and two servers, on an address that is not loopback.
async fn guarded() -> Service {
    builder()
        .stdio("open", Script::new("open").text_tool("t", "from open"))
        .unwrap()
        .stdio(
            "closed",
            Script::new("closed").text_tool("t", "from closed"),
        )
        .unwrap()
        .set(&["talaria", "auth"], json!({ "tokens": tokens() }))
        .token(ADMIN)
        .start()
        .await
        .unwrap()
}

async fn with_token(service: &Service, request: reqwest::RequestBuilder, token: &str) -> Answer {
    let request = service
        .client()
        .execute(request.bearer_auth(token).build().unwrap());
    Answer::read(request.await.unwrap()).await.unwrap()
}

async fn get(service: &Service, path: &str, token: &str) -> Answer {
    with_token(service, service.client().get(service.url(path)), token).await
}

async fn post(service: &Service, path: &str, body: &Value, token: &str) -> Answer {
    with_token(
        service,
        service.client().post(service.url(path)).json(body),
        token,
    )
    .await
}

#[tokio::test]
async fn a_page_of_another_site_is_refused() {
    let service = builder().start().await.unwrap();
    let own = service.url("");
    for (host, origin, status) in [
        (None, None, 200),
        (Some("localhost:1"), None, 200),
        (Some("evil.example"), None, 403),
        (Some("evil.example:80"), None, 403),
        (Some("127.0.0.1.evil.example"), None, 403),
        (None, Some("http://evil.example"), 403),
        (None, Some("null"), 403),
        (None, Some("http://127.0.0.1:1"), 403),
        (None, Some(own.as_str()), 200),
    ] {
        for path in ["/healthz", "/metrics", "/v1/servers"] {
            let mut request = service.client().get(service.url(path));
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            if let Some(origin) = origin {
                request = request.header(ORIGIN, origin);
            }
            let answer = service.send(request).await.unwrap();
            assert_eq!(
                answer.status, status,
                "{path} host {host:?} origin {origin:?}"
            );
            if status == 403 {
                assert_eq!(answer.code().unwrap(), "origin_refused");
            }
        }
    }
}

#[tokio::test]
async fn a_configured_host_is_answered() {
    let service = builder()
        .set(&["talaria", "allowed_hosts"], json!(["tools.example"]))
        .start()
        .await
        .unwrap();
    for (host, status) in [("tools.example", 200), ("evil.example", 403)] {
        let request = service
            .client()
            .get(service.url("/healthz"))
            .header(HOST, host);
        assert_eq!(
            service.send(request).await.unwrap().status,
            status,
            "{host}"
        );
    }
}

#[tokio::test]
async fn without_a_token_nothing_is_done() {
    let service = guarded().await;
    let call = json!({"tool": "mcp__open__t"});
    for token in [None, Some("wrong"), Some(""), Some("admin")] {
        let request = service
            .client()
            .post(service.url("/v1/tools/call"))
            .json(&call);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let sent = service
            .client()
            .execute(request.build().unwrap())
            .await
            .unwrap();
        let answer = Answer::read(sent).await.unwrap();
        assert_eq!(answer.status, 401, "{token:?}");
        assert_eq!(answer.code().unwrap(), "unauthorized");
        assert!(
            answer.header("www-authenticate").starts_with("Bearer"),
            "{:?}",
            answer.headers
        );
    }
    assert!(
        !service
            .records("open")
            .unwrap()
            .iter()
            .any(|record| record.calls("t"))
    );
}

#[tokio::test]
async fn a_token_does_what_its_scopes_say() {
    let service = guarded().await;
    let nothing = json!({});
    assert_eq!(
        post(
            &service,
            "/v1/tools/call",
            &json!({"tool": "mcp__open__t"}),
            CALLER
        )
        .await
        .status,
        200
    );
    for (answer, what) in [
        (
            post(&service, "/v1/servers/open/reconnect", &nothing, CALLER).await,
            "operate",
        ),
        (
            post(
                &service,
                "/v1/tools/call",
                &json!({"tool": "mcp__open__t"}),
                SCRAPER,
            )
            .await,
            "call",
        ),
        (
            post(
                &service,
                "/v1/results/deliver",
                &json!({"result": {"content": []}}),
                SCRAPER,
            )
            .await,
            "deliver",
        ),
    ] {
        assert_eq!(
            (answer.status, answer.code().unwrap().as_str()),
            (403, "forbidden"),
            "{what}"
        );
    }
    assert_eq!(get(&service, "/metrics", SCRAPER).await.status, 200);
    assert_eq!(
        post(&service, "/v1/servers/open/reconnect", &nothing, ADMIN)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_token_uses_its_servers_only() {
    let service = guarded().await;
    for call in [
        json!({"tool": "mcp__closed__t"}),
        json!({"server": "closed", "name": "t"}),
    ] {
        let answer = post(&service, "/v1/tools/call", &call, CALLER).await;
        assert!([403, 404].contains(&answer.status), "{answer:?}");
    }
    let listed = get(&service, "/v1/tools", CALLER).await.ok().unwrap();
    assert!(!listed.to_string().contains("mcp__closed__t"), "{listed}");
    let servers = get(&service, "/v1/servers", CALLER).await.ok().unwrap();
    assert!(
        !servers.to_string().contains("\"name\":\"closed\""),
        "{servers}"
    );
    assert!(
        !service
            .records("closed")
            .unwrap()
            .iter()
            .any(|record| record.calls("t"))
    );
}

#[tokio::test]
async fn an_artifact_is_read_by_its_owner_and_by_scope() {
    let service = guarded().await;
    let result = json!({"content": [{"type": "resource", "resource": {
        "uri": "x://h/a.pdf", "mimeType": "application/pdf", "blob": base64(PDF),
    }}]});
    let delivery = post(
        &service,
        "/v1/results/deliver",
        &json!({"result": result}),
        CALLER,
    )
    .await;
    let delivery = delivery.ok().unwrap();
    let path = format!(
        "/v1/artifacts/{}",
        delivery["artifacts"][0]["id"].as_str().unwrap()
    );
    assert_eq!(get(&service, &path, CALLER).await.body, PDF);
    assert_eq!(get(&service, &path, ADMIN).await.body, PDF);
    for stranger in [OTHER, SCRAPER] {
        let answer = get(&service, &path, stranger).await;
        assert!([403, 404].contains(&answer.status), "{answer:?}");
        let request = service.client().delete(service.url(&path));
        let answer = with_token(&service, request, stranger).await;
        assert!([403, 404].contains(&answer.status), "{answer:?}");
    }
    assert_eq!(
        get(&service, &path, CALLER).await.status,
        200,
        "nobody deleted it"
    );
}

#[tokio::test]
async fn secrets_are_nowhere_in_the_log() {
    let service = guarded().await;
    assert_eq!(
        get(&service, "/v1/servers", "wrong-secret-c0de")
            .await
            .status,
        401
    );
    assert_eq!(get(&service, "/v1/servers", ADMIN).await.status, 200);
    service.terminate().unwrap();
    service.wait_exit(Duration::from_secs(10)).await.unwrap();
    let log = service.log().unwrap();
    for secret in [ADMIN, CALLER, OTHER, SCRAPER, "wrong-secret-c0de"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn an_open_address_without_tokens_refuses_to_start() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let builder = builder().set(&["talaria", "listen"], address);
        let mut command = builder.command().unwrap();
        let output = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output();
        let output = tokio::time::timeout(Duration::from_secs(20), output)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("talaria.auth.tokens"), "{said}");
    }
}

#[tokio::test]
async fn an_open_address_with_tokens_starts() {
    let service = builder()
        .set(&["talaria", "listen"], "0.0.0.0:0")
        .set(&["talaria", "auth"], json!({ "tokens": tokens() }))
        .token(ADMIN)
        .start()
        .await
        .unwrap();
    assert_eq!(get(&service, "/v1/servers", ADMIN).await.status, 200);
    let open = service
        .client()
        .get(service.url("/metrics"))
        .send()
        .await
        .unwrap();
    assert_eq!(open.status(), 401, "metrics need their scope off loopback");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let service = builder()
        .set(&["talaria", "limits", "body_bytes"], "1MiB")
        .start()
        .await
        .unwrap();
    let text = "x".repeat(1_100_000);
    let body = json!({"result": {"content": [{"type": "text", "text": text}]}});
    let answer = service.post("/v1/results/deliver", &body).await.unwrap();
    assert_eq!(
        (answer.status, answer.code().unwrap().as_str()),
        (413, "body_too_large")
    );

    // Without a length, the limit has to be found while reading.
    let chunks = std::iter::repeat_n(vec![b'x'; 64 * 1024], 64).map(Ok::<_, std::io::Error>);
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let request = service.client().post(service.url("/v1/tools/call"));
    let request = request
        .header("content-type", "application/json")
        .body(stream);
    match service.send(request).await {
        Ok(answer) => assert_eq!(answer.status, 413, "{answer:?}"),
        // The connection may be closed while the client is still sending.
        Err(error) => assert!(
            error
                .downcast_ref::<reqwest::Error>()
                .is_some_and(|error| !error.is_timeout()),
            "{error}"
        ),
    }
    assert_eq!(service.get("/healthz").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_body_nested_without_end_breaks_nothing() {
    let service = builder().start().await.unwrap();
    for unit in ["[", "{\"a\":"] {
        let body = format!("{{\"tool\":\"t\",\"arguments\":{}", unit.repeat(200_000));
        for path in ["/v1/tools/call", "/v1/results/deliver"] {
            let request = service.client().post(service.url(path));
            let request = request
                .header("content-type", "application/json")
                .body(body.clone());
            assert_eq!(service.send(request).await.unwrap().status, 400, "{path}");
        }
    }
    assert_eq!(service.get("/healthz").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_problem_tells_nothing_of_the_inside() {
    let service = guarded().await;
    let answer = post(
        &service,
        "/v1/tools/call",
        &json!({"tool": "mcp__open__none"}),
        ADMIN,
    )
    .await;
    let problem = answer.problem().unwrap();
    let home = service.home().display().to_string();
    assert!(!problem.to_string().contains(&home), "{problem}");
    assert_eq!(problem["title"].as_str().unwrap(), "Unknown tool");
    assert!(
        problem["request_id"].as_str().unwrap().starts_with("req_"),
        "{problem}"
    );
}

#[tokio::test]
async fn calls_of_one_token_are_bounded() {
    let service = builder()
        .stdio(
            "open",
            Script::new("open").on_call("t", [talaria_testkit::Action::Hang]),
        )
        .unwrap()
        .set(&["talaria", "auth"], json!({ "tokens": tokens() }))
        .set(&["talaria", "limits", "pending_per_token"], 1)
        .token(ADMIN)
        .start()
        .await
        .unwrap();
    let call = json!({"tool": "mcp__open__t"});
    let refused = async {
        service
            .wait_record("open", "the call", Duration::from_secs(5), |record| {
                record.calls("t")
            })
            .await
            .unwrap();
        post(&service, "/v1/tools/call", &call, CALLER).await
    };
    tokio::select! {
        answer = post(&service, "/v1/tools/call", &call, CALLER) => panic!("{answer:?}"),
        answer = refused => {
            assert_eq!((answer.status, answer.code().unwrap().as_str()), (429, "busy"));
        }
    }
}
