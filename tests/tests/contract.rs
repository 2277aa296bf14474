//! Golden bodies: what agents parse must not change by accident. `UPDATE_GOLDEN=1` rewrites them
//! after a change that was meant.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use talaria_testkit::samples::{PDF, PNG_1X1, base64, tags, wav};
use talaria_testkit::{Script, Service, programs};

/// A result with every kind of block and what goes with it.
fn rich() -> Value {
    json!({
        "content": [
            {"type": "text", "text": format!("Report{}", tags("hidden"))},
            {"type": "image", "mimeType": "image/png", "data": PNG_1X1},
            {"type": "audio", "mimeType": "audio/wav", "data": base64(&wav())},
            {"type": "resource", "resource": {
                "uri": "x://h/quarter.pdf", "mimeType": "application/pdf", "blob": base64(PDF),
            }},
            {"type": "resource", "resource": {"uri": "x://h/note", "text": "a note"}},
            {"type": "resource_link", "uri": "x://h/more", "name": "more", "size": 12,
             "mimeType": "text/plain", "description": "the rest"},
            {"type": "hologram", "name": "h"},
            {"type": "image", "mimeType": "image/png", "data": "%%%"},
        ],
        "structuredContent": {"total": 3},
        "_meta": {"com.example/trace": "t-1", "progressToken": 7},
    })
}

async fn service() -> Service {
    let script = Script::new("reports")
        .with_capabilities(json!({"tools": {}, "resources": {}}))
        .tool("t", rich());
    Service::builder(programs!())
        .unwrap()
        .stdio("reports", script)
        .unwrap()
        .start()
        .await
        .unwrap()
}

async fn call(service: &Service, format: &str) -> String {
    let body = json!({"server": "reports", "name": "t", "format": format});
    let answer = service.post("/v1/tools/call", &body).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.excerpt());
    answer.text().unwrap()
}

#[tokio::test]
async fn the_full_format_is_what_it_was() {
    let service = service().await;
    let mut delivery: Value = serde_json::from_str(&call(&service, "talaria").await).unwrap();
    steady(&mut delivery, &service);
    assert_golden("talaria.json", &pretty(&delivery));
}

#[tokio::test]
async fn the_format_of_hermes_is_what_it_was() {
    let service = service().await;
    let mut body: Value = serde_json::from_str(&call(&service, "hermes").await).unwrap();
    steady(&mut body, &service);
    assert_golden("hermes.json", &pretty(&body));
}

#[tokio::test]
async fn the_plain_text_is_what_it_was() {
    let service = service().await;
    let mut text = Value::String(call(&service, "text").await);
    steady(&mut text, &service);
    assert_golden("text.txt", &format!("{}\n", text.as_str().unwrap()));
}

#[tokio::test]
async fn a_problem_is_what_it_was() {
    let service = service().await;
    let answer = service.call("reports", "nothing", json!({})).await.unwrap();
    let mut problem = answer.problem().unwrap();
    problem["request_id"] = json!("req_…");
    assert_golden("problem.json", &pretty(&problem));
}

#[tokio::test]
async fn the_routes_and_their_statuses_are_what_they_were() {
    let service = service().await;
    let contract = service.get("/openapi.json").await.unwrap().ok().unwrap();
    let mut lines = Vec::new();
    for (path, methods) in contract["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(responses) = operation["responses"].as_object() else {
                continue;
            };
            let statuses: Vec<&str> = responses.keys().map(String::as_str).collect();
            lines.push(format!("{method} {path}: {}\n", statuses.join(" ")));
        }
    }
    lines.sort();
    assert_golden("routes.txt", &lines.concat());
}

/// Puts fixed words where a value differs from run to run.
fn steady(value: &mut Value, service: &Service) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                match key.as_str() {
                    "id" => *member = json!("…"),
                    "elapsed_ms" => *member = json!(0),
                    _ => steady(member, service),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| steady(item, service)),
        Value::String(text) => {
            let home = service.home().display().to_string();
            *text = text.replace(&home, "HOME").replace(&service.url(""), "URL");
            *text = without_random(text);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces the random part of file names and artifact ids.
fn without_random(text: &str) -> String {
    let mut text = text.to_owned();
    for (prefix, length) in [("doc_", 12), ("img_", 12), ("audio_", 12), ("art_", 26)] {
        let mut from = 0;
        while let Some(at) = text[from..].find(prefix) {
            let start = from + at + prefix.len();
            let random = text.get(start..start + length);
            if random.is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
                text.replace_range(start..start + length, "…");
            }
            from = start;
        }
    }
    text
}

fn pretty(value: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap())
}

fn assert_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data/contract")
        .join(name);
    if talaria_types::runtime::environment().contains_key("UPDATE_GOLDEN") {
        std::fs::write(&path, found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == golden,
        "{} differs:\n{}",
        shown(&path),
        difference(&golden, found)
    );
}

fn shown(path: &Path) -> String {
    path.file_name()
        .map(PathBuf::from)
        .unwrap_or_default()
        .display()
        .to_string()
}

/// The first lines that differ.
fn difference(golden: &str, found: &str) -> String {
    let pairs = golden.lines().zip(found.lines());
    let differing: Vec<String> = pairs
        .enumerate()
        .filter(|(_, (golden, found))| golden != found)
        .take(5)
        .map(|(line, (golden, found))| format!("{}:\n  - {golden}\n  + {found}", line + 1))
        .collect();
    let lines = (golden.lines().count(), found.lines().count());
    format!(
        "{}\n{} lines were expected, {} found",
        differing.join("\n"),
        lines.0,
        lines.1
    )
}
