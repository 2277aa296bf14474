//! Who may do what, over the wire.

use serde_json::json;
use talaria_config::Scope;

use super::*;
use crate::fixtures::token;

const AGENT: &str = "Authorization: Bearer agent-secret";
const OTHER: &str = "Authorization: Bearer other-secret";
const ARCHIVE: &str = "Authorization: Bearer archive-secret";
const OPERATOR: &str = "Authorization: Bearer operator-secret";

fn guarded() -> Fixture {
    with_tokens(vec![
        token("agent", &[Scope::Call], &["slack-*"]),
        token("other", &[Scope::Call], &["*"]),
        token("archive", &[Scope::Artifacts], &[]),
        token("operator", &[Scope::Admin], &["*"]),
    ])
}

#[actix_web::test]
async fn asks_for_a_token_and_says_which_kind() {
    let service = guarded();
    let nobody = service.get("/v1/tools").await;
    assert_eq!(
        nobody.header("www-authenticate"),
        Some("Bearer realm=\"talaria\"")
    );
    nobody.refused(401, "unauthorized");
    let wrong = service
        .send("GET", "/v1/tools", &["Authorization: Bearer nope"], b"")
        .await;
    let challenge = wrong.header("www-authenticate").unwrap();
    assert!(challenge.contains("invalid_token"), "{challenge}");
    wrong.refused(401, "unauthorized");
    let weak = service
        .send("POST", "/v1/servers/s/test", &[AGENT], b"")
        .await;
    let challenge = weak.header("www-authenticate").unwrap();
    assert!(challenge.contains("scope=\"admin\""), "{challenge}");
    weak.refused(403, "forbidden");
    assert_eq!(
        service.send("GET", "/v1/tools", &[AGENT], b"").await.status,
        200
    );
}

#[actix_web::test]
async fn leaves_probes_metrics_and_contract_open_on_loopback() {
    let service = guarded();
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(service.get(path).await.status, 200, "{path}");
    }
}

#[actix_web::test]
async fn a_foreign_server_is_forbidden_whether_it_exists_or_not() {
    let service = guarded();
    let call = json!({ "server": "github", "name": "x" });
    service
        .post_as("/v1/tools/call", &call, &[AGENT])
        .await
        .refused(403, "forbidden");
    service
        .post_as("/v1/tools/call", &call, &[OTHER])
        .await
        .refused(404, "unknown_server");
    let own = json!({ "server": "slack-eu", "name": "x" });
    service
        .post_as("/v1/tools/call", &own, &[AGENT])
        .await
        .refused(404, "unknown_server");
    for path in ["/v1/servers/github", "/v1/tools?server=github"] {
        service
            .send("GET", path, &[AGENT], b"")
            .await
            .refused(403, "forbidden");
        service
            .send("GET", path, &[OTHER], b"")
            .await
            .refused(404, "unknown_server");
    }
    let deliver = json!({ "server": "github", "result": { "content": [] } });
    service
        .post_as("/v1/results/deliver", &deliver, &[AGENT])
        .await
        .refused(403, "forbidden");
}

#[actix_web::test]
async fn a_limited_token_learns_nothing_of_unknown_tools() {
    let service = guarded();
    let call = json!({ "tool": "mcp__github__x" });
    let reply = service.post_as("/v1/tools/call", &call, &[AGENT]).await;
    let detail = reply.refused(404, "unknown_tool");
    assert!(!detail.contains("github"), "{detail}");
}

#[actix_web::test]
async fn approving_needs_its_scope() {
    let service = guarded();
    let body = json!({ "result": { "content": [] }, "approve": true });
    let reply = service
        .post_as("/v1/results/deliver", &body, &[AGENT])
        .await;
    let detail = reply.refused(403, "forbidden");
    assert!(detail.contains("`approve`"), "{detail}");
}

#[actix_web::test]
async fn a_file_belongs_to_the_token_whose_call_made_it() {
    let service = guarded();
    let result = json!({ "content": [{ "type": "resource", "resource": {
        "uri": "test://a.bin", "mimeType": "application/octet-stream", "blob": "AAECAwQ=",
    }}]});
    let body = json!({ "result": result });
    let reply = service
        .post_as("/v1/results/deliver", &body, &[AGENT])
        .await;
    assert_eq!(reply.status, 200, "{}", reply.json());
    let id = reply.json()["artifacts"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/artifacts/{id}");
    let meta = format!("{path}/meta");
    for (header, status) in [(AGENT, 200), (ARCHIVE, 200), (OTHER, 403), (OPERATOR, 403)] {
        assert_eq!(
            service.send("GET", &path, &[header], b"").await.status,
            status,
            "{header}"
        );
        assert_eq!(
            service.send("GET", &meta, &[header], b"").await.status,
            status,
            "{header}"
        );
    }
    let owner = service.send("GET", &meta, &[ARCHIVE], b"").await.json()["owner"].clone();
    assert_eq!(owner, "agent");
    service.get(&path).await.refused(401, "unauthorized");
    service
        .send("DELETE", &path, &[OTHER], b"")
        .await
        .refused(403, "forbidden");
    assert_eq!(
        service.send("DELETE", &path, &[OPERATOR], b"").await.status,
        204
    );
}
