//! Calls that reach an MCP server and come back, or are given up.

use std::time::Duration;

use serde_json::json;
use talaria_config::{Scope, Trust};
use talaria_testkit::script::Action;
use talaria_testkit::{HttpServer as ScriptedServer, Script, wait_for};

use super::client::Connection;
use super::*;
use crate::fixtures::token;

const CALL: &str = "/v1/tools/call";
const SOON: Duration = Duration::from_secs(5);

/// A server that answers `echo` and never answers `hang`.
fn scripted() -> ScriptedServer {
    let script = Script::new("scripted")
        .text_tool("echo", "hello")
        .on_call("hang", [Action::AwaitCancel]);
    ScriptedServer::start(script).unwrap()
}

fn named(name: &str, server: &ScriptedServer) -> ServerConfig {
    ServerConfig::http(name, server.url())
}

/// Waits until a server has received so many messages with a method.
async fn received(server: &ScriptedServer, method: &str, count: usize) {
    wait_for(method, SOON, || {
        let seen = server.records().count_of(method);
        std::future::ready(if seen == count { Ok(()) } else { Err(seen) })
    })
    .await
    .unwrap();
}

#[actix_web::test]
async fn calls_a_tool_by_either_name() {
    let scripted = scripted();
    let service = with_servers(Vec::new(), vec![named("files", &scripted)]);
    for body in [
        json!({ "tool": "mcp__files__echo", "arguments": { "a": 1 } }),
        json!({ "server": "files", "name": "echo", "arguments": { "a": 1 } }),
    ] {
        let reply = service.post(CALL, &body).await;
        let delivery = reply.json();
        assert_eq!(reply.status, 200, "{delivery}");
        assert_eq!(delivery["text"], "hello");
        assert_eq!(
            (&delivery["server"], &delivery["tool"]),
            (&json!("files"), &json!("echo"))
        );
    }
    let calls: Vec<_> = scripted
        .records()
        .all()
        .into_iter()
        .filter(|record| record.calls("echo"))
        .map(|record| record.message["params"]["arguments"].clone())
        .collect();
    assert_eq!(calls, [json!({ "a": 1 }), json!({ "a": 1 })]);
}

#[actix_web::test]
async fn a_writing_tool_of_an_untrusted_server_needs_an_approval() {
    let scripted = scripted();
    let untrusted = ServerConfig {
        trust: Trust::Untrusted,
        ..named("files", &scripted)
    };
    let service = with_servers(Vec::new(), vec![untrusted]);
    let mut body = json!({ "tool": "mcp__files__echo" });
    for refused in [Value::Null, json!(false)] {
        body["approve"] = refused;
        service.post(CALL, &body).await.refused(403, "forbidden");
    }
    assert_eq!(scripted.records().calls_of("echo"), 0);
    body["approve"] = json!(true);
    assert_eq!(service.post(CALL, &body).await.status, 200);
    assert_eq!(scripted.records().calls_of("echo"), 1);
}

#[actix_web::test]
async fn a_caller_that_goes_away_cancels_the_call_at_the_server() {
    let scripted = scripted();
    let service = with_servers(Vec::new(), vec![named("files", &scripted)]);
    let json = ["Content-Type: application/json"];
    let echo = json!({ "tool": "mcp__files__echo" }).to_string();
    let hang = json!({ "tool": "mcp__files__hang" }).to_string();
    for round in 1..=2 {
        let mut connection = Connection::open(service.address()).await;
        // A kept-alive connection with a call behind it, as agents have it.
        let reply = connection.ask("POST", CALL, &json, echo.as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.json());
        connection.send("POST", CALL, &json, hang.as_bytes()).await;
        wait_for("the call", SOON, || {
            let seen = scripted.records().calls_of("hang");
            std::future::ready(if seen == round { Ok(()) } else { Err(seen) })
        })
        .await
        .unwrap();
        assert_eq!(
            scripted.records().count_of("notifications/cancelled"),
            round - 1
        );
        drop(connection);
        received(&scripted, "notifications/cancelled", round).await;
    }
    let metrics = String::from_utf8(service.get("/metrics").await.body).unwrap();
    let counted = "http_route=\"/v1/tools/call\",http_response_status_code=\"499\",\
                   error_type=\"cancelled\"";
    assert!(metrics.contains(counted), "{metrics}");
}

#[actix_web::test]
async fn a_call_that_takes_too_long_times_out_and_may_have_run() {
    let scripted = scripted();
    let service = with_servers(Vec::new(), vec![named("files", &scripted)]);
    let body = json!({ "tool": "mcp__files__hang", "timeout_ms": 300 });
    let reply = service.post(CALL, &body).await;
    let problem = reply.problem();
    assert_eq!(
        (reply.status, &problem["code"]),
        (504, &json!("timeout")),
        "{problem}"
    );
    assert_eq!(problem["outcome_uncertain"], true);
    assert_eq!(problem["retryable"], false);
    assert_eq!(problem["server"], "files");
    received(&scripted, "notifications/cancelled", 1).await;
}

#[actix_web::test]
async fn a_token_sees_and_calls_its_own_servers_only() {
    let scripted = scripted();
    let servers = ["slack", "github"]
        .map(|name| named(name, &scripted))
        .to_vec();
    let tokens = vec![
        token("agent", &[Scope::Call], &["slack"]),
        token("operator", &[Scope::Call, Scope::Admin], &["*"]),
    ];
    let service = with_servers(tokens, servers);
    let agent = "Authorization: Bearer agent-secret";
    let operator = "Authorization: Bearer operator-secret";
    for server in ["slack", "github"] {
        let call = json!({ "server": server, "name": "echo" });
        assert_eq!(service.post_as(CALL, &call, &[operator]).await.status, 200);
    }
    let names = |reply: &Reply, list: &str, key: &str| -> Vec<String> {
        let listed = reply.json()[list].as_array().unwrap().clone();
        listed
            .iter()
            .map(|entry| entry[key].as_str().unwrap().to_owned())
            .collect()
    };
    let tools = service.send("GET", "/v1/tools", &[agent], b"").await;
    assert_eq!(
        names(&tools, "tools", "name"),
        ["mcp__slack__echo", "mcp__slack__hang", "vision_analyze"]
    );
    let tools = service
        .send("GET", "/v1/tools?server=github", &[operator], b"")
        .await;
    assert_eq!(
        names(&tools, "tools", "name"),
        ["mcp__github__echo", "mcp__github__hang"]
    );
    let servers = service.send("GET", "/v1/servers", &[agent], b"").await;
    assert_eq!(names(&servers, "servers", "name"), ["slack"]);

    let own = json!({ "tool": "mcp__slack__echo" });
    assert_eq!(service.post_as(CALL, &own, &[agent]).await.status, 200);
    let refusal = |call: Value| {
        let service = &service;
        async move {
            let reply = service.post_as(CALL, &call, &[agent]).await;
            let mut problem = reply.problem();
            problem["request_id"] = Value::Null;
            problem
        }
    };
    let foreign = refusal(json!({ "tool": "mcp__github__echo" })).await;
    assert_eq!(foreign["code"], "unknown_tool");
    assert_eq!(
        foreign,
        refusal(json!({ "tool": "mcp__nowhere__echo" })).await
    );
    let foreign = refusal(json!({ "server": "github", "name": "echo" })).await;
    assert_eq!(foreign["code"], "forbidden");
    assert_eq!(scripted.records().calls_of("echo"), 3);
}

#[actix_web::test]
async fn operates_a_server() {
    let scripted = scripted();
    let service = with_servers(Vec::new(), vec![named("files", &scripted)]);
    let tested = service
        .send("POST", "/v1/servers/files/test", &[], b"")
        .await
        .json();
    assert_eq!(tested["ok"], true, "{tested}");
    assert_eq!(
        tested["tools"],
        json!(["mcp__files__echo", "mcp__files__hang"])
    );
    assert_eq!(tested["server"]["state"], "ready");

    let disabled = service
        .send("POST", "/v1/servers/files/disable", &[], b"")
        .await
        .json();
    assert_eq!(disabled["state"], "disabled", "{disabled}");
    let call = json!({ "tool": "mcp__files__echo" });
    service
        .post(CALL, &call)
        .await
        .refused(409, "server_disabled");

    let enabled = service
        .send("POST", "/v1/servers/files/enable", &[], b"")
        .await;
    assert_eq!(enabled.status, 200, "{}", enabled.json());
    assert_eq!(service.post(CALL, &call).await.status, 200);

    let initialised = scripted.records().count_of("initialize");
    let again = service
        .send("POST", "/v1/servers/files/reconnect", &[], b"")
        .await
        .json();
    assert_eq!(again["state"], "ready", "{again}");
    assert_eq!(scripted.records().count_of("initialize"), initialised + 1);
    assert_eq!(
        service.get("/v1/servers/files").await.json()["state"],
        "ready"
    );
}
