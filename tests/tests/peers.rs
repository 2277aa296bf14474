//! Real MCP servers behind the real service: the pinned npm servers over stdio and a server made
//! with fastmcp over Streamable HTTP.

#[path = "peers/formats.rs"]
mod formats;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::programs;
use talaria_testkit::service::Service;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The script of an npm server; a missing one fails the test.
fn npm(server: &str) -> String {
    let path = root().join(format!(
        ".peers/node/node_modules/@modelcontextprotocol/{server}/dist/index.js"
    ));
    assert!(path.exists(), "{server} is not installed: run .ci/peers");
    path.to_str().unwrap().to_owned()
}

fn asset(name: &str) -> Vec<u8> {
    std::fs::read(root().join("crates/talaria/assets/demo").join(name)).unwrap()
}

async fn with_npm(name: &str, server: &str, arguments: &[&str]) -> Service {
    let mut args = vec![npm(server)];
    args.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    Service::builder(programs!())
        .unwrap()
        .server(name, json!({"command": "node", "args": args}))
        .start()
        .await
        .unwrap()
}

async fn call(service: &Service, server: &str, tool: &str, arguments: Value) -> Value {
    let delivery = service
        .call(server, tool, arguments)
        .await
        .unwrap()
        .ok()
        .unwrap();
    for artifact in delivery["artifacts"].as_array().unwrap() {
        let path = Path::new(artifact["path"].as_str().unwrap());
        assert!(path.is_absolute(), "{artifact}");
        let bytes = std::fs::read(path).unwrap();
        assert!(!bytes.is_empty());
        assert_eq!(json!(bytes.len()), artifact["bytes"], "{artifact}");
    }
    delivery
}

fn text(delivery: &Value) -> &str {
    delivery["text"].as_str().unwrap()
}

fn saved(delivery: &Value, index: usize) -> (Vec<u8>, String) {
    let artifact = &delivery["artifacts"][index];
    let path = artifact["path"]
        .as_str()
        .unwrap_or_else(|| panic!("no artifact {index}: {delivery}"));
    (std::fs::read(path).unwrap(), path.to_owned())
}

#[tokio::test]
async fn everything_answers_with_every_kind_it_has() {
    let service = with_npm("everything", "server-everything", &["stdio"]).await;

    let image = call(&service, "everything", "get-tiny-image", json!({})).await;
    let (bytes, path) = saved(&image, 0);
    assert!(bytes.starts_with(b"\x89PNG"));
    assert!(
        text(&image)
            .lines()
            .any(|line| line == format!("MEDIA:{path}")),
        "{image}"
    );

    let annotated = call(
        &service,
        "everything",
        "get-annotated-message",
        json!({"messageType": "error", "includeImage": true}),
    )
    .await;
    assert!(text(&annotated).contains("Error"), "{annotated}");
    assert_eq!(annotated["artifacts"].as_array().unwrap().len(), 1);

    let links = call(
        &service,
        "everything",
        "get-resource-links",
        json!({"count": 3}),
    )
    .await;
    assert_eq!(links["links"].as_array().unwrap().len(), 3, "{links}");
    for link in links["links"].as_array().unwrap() {
        assert_eq!(link["reader_tool"], "mcp__everything__read_resource");
        assert!(text(&links).contains(link["uri"].as_str().unwrap()));
        let answer = service
            .post(
                "/v1/tools/call",
                &json!({"tool": link["reader_tool"], "arguments": {"uri": link["uri"]}}),
            )
            .await
            .unwrap()
            .ok()
            .unwrap();
        assert!(!text(&answer).trim().is_empty(), "{answer}");
        assert_eq!(answer["is_error"], false);
    }

    let reference = call(
        &service,
        "everything",
        "get-resource-reference",
        json!({"resourceType": "Text", "resourceId": 1}),
    )
    .await;
    assert!(text(&reference).contains("Resource 1"), "{reference}");
    let blob = call(
        &service,
        "everything",
        "get-resource-reference",
        json!({"resourceType": "Blob", "resourceId": 2}),
    )
    .await;
    assert_eq!(blob["artifacts"].as_array().unwrap().len(), 1, "{blob}");

    let structured = call(
        &service,
        "everything",
        "get-structured-content",
        json!({"location": "Chicago"}),
    )
    .await;
    assert!(text(&structured).contains("temperature"), "{structured}");
    assert_eq!(
        text(&structured).matches("temperature").count(),
        1,
        "told once: {structured}"
    );

    let gzip = call(
        &service,
        "everything",
        "gzip-file-as-resource",
        json!({"name": "notes.gz", "data": "data:text/plain;base64,aGVsbG8gd29ybGQ=", "outputType": "resource"}),
    )
    .await;
    let (bytes, _) = saved(&gzip, 0);
    assert!(bytes.starts_with(&[0x1f, 0x8b]), "{gzip}");
    assert_eq!(gzip["artifacts"][0]["media_type"], "application/gzip");

    let failed = call(&service, "everything", "no-such-tool", json!({}));
    assert!(
        tokio::time::timeout(Duration::from_secs(20), async {
            service
                .call("everything", "no-such-tool", json!({}))
                .await
                .unwrap()
                .code()
                .unwrap()
        })
        .await
        .unwrap()
        .starts_with("unknown_tool")
    );
    drop(failed);

    let progress = call(
        &service,
        "everything",
        "trigger-long-running-operation",
        json!({"duration": 1, "steps": 2}),
    )
    .await;
    assert!(text(&progress).contains("completed"), "{progress}");
}

#[tokio::test]
async fn filesystem_hands_over_media_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for (name, source) in [
        ("shot.png", "screenshot.png"),
        ("tone.wav", "chime.wav"),
        ("report.pdf", "quarterly-report.pdf"),
    ] {
        std::fs::write(folder.join(name), asset(source)).unwrap();
    }
    let service = with_npm("files", "server-filesystem", &[folder.to_str().unwrap()]).await;

    for (name, kind, source) in [
        ("shot.png", "image", "screenshot.png"),
        ("tone.wav", "audio", "chime.wav"),
        ("report.pdf", "document", "quarterly-report.pdf"),
    ] {
        let path = folder.join(name);
        let delivery = call(&service, "files", "read_media_file", json!({"path": path})).await;
        assert_eq!(
            delivery["artifacts"].as_array().unwrap().len(),
            1,
            "{name}: {delivery}"
        );
        assert_eq!(delivery["artifacts"][0]["kind"], kind);
        let (bytes, saved_at) = saved(&delivery, 0);
        assert_eq!(bytes, asset(source), "{name}");
        assert!(text(&delivery).contains(&saved_at));
        // The server repeats the whole payload in its structured content.
        let body = delivery.to_string();
        assert!(
            body.len() < 8_000,
            "{name}: {} bytes of delivery",
            body.len()
        );
    }
}

#[tokio::test]
async fn memory_keeps_text_and_structure() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::builder(programs!())
        .unwrap()
        .server(
            "memory",
            json!({
                "command": "node",
                "args": [npm("server-memory")],
                "env": {"MEMORY_FILE_PATH": folder.path().join("memory.jsonl")},
            }),
        )
        .start()
        .await
        .unwrap();
    let entity = json!({"name": "Talaria", "entityType": "service", "observations": ["delivers"]});
    let created = call(
        &service,
        "memory",
        "create_entities",
        json!({"entities": [entity]}),
    )
    .await;
    assert!(text(&created).contains("Talaria"), "{created}");
    let graph = call(&service, "memory", "read_graph", json!({})).await;
    assert!(text(&graph).contains("delivers"), "{graph}");
    assert_eq!(graph["is_error"], false);
}

/// The fastmcp server, killed when dropped.
struct FastMcp {
    _child: tokio::process::Child,
    url: String,
}

impl FastMcp {
    async fn start(folder: &Path) -> Self {
        let python = root().join(".peers/python/bin/python");
        assert!(python.exists(), "fastmcp is not installed: run .ci/peers");
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = tokio::process::Command::new(python)
            .arg(root().join("tests/peers/fastmcp_server.py"))
            .arg(port.to_string())
            .arg(folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        talaria_testkit::wait::wait_for("fastmcp to listen", Duration::from_secs(60), || async {
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .map_err(|error| error.to_string())
        })
        .await
        .unwrap();
        Self {
            _child: child,
            url: format!("http://127.0.0.1:{port}/mcp"),
        }
    }
}

#[tokio::test]
async fn fastmcp_over_http_answers_with_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in [
        ("shot.png", "screenshot.png"),
        ("tone.wav", "chime.wav"),
        ("report.pdf", "quarterly-report.pdf"),
    ] {
        std::fs::write(folder.path().join(name), asset(source)).unwrap();
    }
    let peer = FastMcp::start(folder.path()).await;
    let service = Service::builder(programs!())
        .unwrap()
        .server("fast", json!({"url": peer.url}))
        .start()
        .await
        .unwrap();

    for (tool, kind, source) in [
        ("picture", "image", "screenshot.png"),
        ("sound", "audio", "chime.wav"),
        ("document", "document", "quarterly-report.pdf"),
    ] {
        let delivery = call(&service, "fast", tool, json!({})).await;
        assert_eq!(
            delivery["artifacts"].as_array().unwrap().len(),
            1,
            "{tool}: {delivery}"
        );
        assert_eq!(delivery["artifacts"][0]["kind"], kind, "{tool}");
        let (bytes, path) = saved(&delivery, 0);
        assert_eq!(bytes, asset(source), "{tool}");
        assert!(text(&delivery).contains(&path));
    }

    let mixed = call(&service, "fast", "mixed", json!({})).await;
    assert!(
        text(&mixed).contains("one of each") && text(&mixed).contains("inline words"),
        "{mixed}"
    );
    assert_eq!(mixed["structured"], json!({"count": 3, "ok": true}));
    assert_eq!(mixed["links"][0]["reader_tool"], "mcp__fast__read_resource");
    assert_eq!(mixed["links"][0]["size"], 11);
    let read = service
        .post(
            "/v1/tools/call",
            &json!({"tool": "mcp__fast__read_resource", "arguments": {"uri": "note://first"}}),
        )
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert!(text(&read).contains("a real note"), "{read}");
    let prompt = service
        .post("/v1/tools/call", &json!({"tool": "mcp__fast__get_prompt", "arguments": {"name": "greet", "arguments": {"name": "Ada"}}}))
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert!(text(&prompt).contains("Say hello to Ada."), "{prompt}");

    let sum = call(&service, "fast", "add", json!({"a": 2, "b": 40})).await;
    assert!(text(&sum).contains("42"), "{sum}");

    let size = 3_000_000;
    let large = call(&service, "fast", "large", json!({"size": size})).await;
    let (bytes, _) = saved(&large, 0);
    assert!(
        bytes
            .iter()
            .enumerate()
            .all(|(index, byte)| usize::from(*byte) == index % 251)
    );
    assert_eq!(bytes.len(), size);

    let failed = call(&service, "fast", "fails", json!({})).await;
    assert_eq!(failed["is_error"], true);
    assert!(text(&failed).contains("the well is dry"), "{failed}");

    let slow = call(&service, "fast", "slow", json!({"steps": 5})).await;
    assert!(text(&slow).contains("slow is done"), "{slow}");
}
