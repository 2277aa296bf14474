//! `talaria models` from outside.

#![expect(clippy::unwrap_used, reason = "functions that only support tests")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

fn models(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_talaria"))
        .arg("models")
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn account(home: &Path, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&text(&models(home, &arguments))).unwrap()
}

#[test]
fn without_a_route_every_model_is_listed_with_its_answer() {
    let home = TempDir::new().unwrap();
    let listed = text(&models(home.path(), &[]));
    assert!(listed.lines().count() > 1_000);
    let line = listed
        .lines()
        .find(|line| line.starts_with("anthropic ") && line.contains(" claude-sonnet-4-5 "))
        .unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(
        words[..5],
        ["anthropic", "claude-sonnet-4-5", "yes", "accepts", "open"]
    );

    let xiaomi = account(home.path(), &["--provider", "mimo"]);
    let models = xiaomi["models"].as_array().unwrap();
    assert!(!models.is_empty());
    assert!(
        models
            .iter()
            .all(|it| it["class"] == "veto" && it["open"] == false)
    );
    assert!(xiaomi["catalogue"]["date"].is_string());
}

#[test]
fn with_a_route_the_answer_is_explained() {
    let home = TempDir::new().unwrap();
    let open = account(home.path(), &["--route", "anthropic/claude-sonnet-4-5"]);
    assert_eq!(
        (&open["open"], &open["cause"]),
        (&json!(true), &json!("model_sees"))
    );
    let answers: Vec<_> = open["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            (
                step["source"].as_str().unwrap(),
                step["answer"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        answers,
        [
            ("model.supports_vision", "unknown"),
            ("providers", "unknown"),
            ("custom_providers", "unknown"),
            ("catalogue", "yes"),
            ("ollama", "not_asked"),
            ("llama.cpp", "not_asked"),
        ]
    );

    let people = text(&models(
        home.path(),
        &["--route", "openai/gpt-4o", "--api", "openai-chat"],
    ));
    assert!(people.contains("closed (api_refuses)"), "{people}");
    assert!(people.contains("tool messages of OpenAI's Chat Completions carry text only"));
}

#[test]
fn the_configuration_has_its_say() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("config.yaml");
    let config = json!({
        "agent": { "image_input_mode": "native" },
        "providers": { "lab": { "tool_result_images": true } },
    });
    std::fs::write(&path, config.to_string()).unwrap();
    let path = path.to_str().unwrap();
    let lab = account(home.path(), &["--route", "lab/m", "--config", path]);
    assert_eq!(
        (&lab["open"], &lab["class"]),
        (&json!(true), &json!("accepts"))
    );
    assert_eq!(lab["cause"], "operator_ordered");
    assert_eq!(lab["mode"], "native");
}

#[test]
fn who_describes_pictures_is_told_in_order() {
    let home = TempDir::new().unwrap();
    let nobody = account(home.path(), &["--provider", "mimo"]);
    assert_eq!(nobody["describers"]["links"], json!([]));
    let path = home.path().join("config.yaml");
    let config = json!({
        "mcp_servers": { "eyes": { "command": "eyes" } },
        "auxiliary": { "vision": {
            "base_url": "http://me:hunter22@vision.example/v1",
            "model": "look-1",
            "timeout": 9,
            "fallback_chain": [{ "provider": "nobody-knows" }],
            "mcp_fallback": [{ "server": "eyes", "tool": "look" }],
        } },
    });
    std::fs::write(&path, config.to_string()).unwrap();
    let path = path.to_str().unwrap();
    let told = account(home.path(), &["--provider", "mimo", "--config", path]);
    let links = told["describers"]["links"].as_array().unwrap();
    let kinds: Vec<_> = links.iter().map(|link| &link["kind"]).collect();
    assert_eq!(kinds, ["http", "broken", "mcp"], "{links:?}");
    assert_eq!(links[0]["timeout_ms"], 9_000);
    assert!(
        links[1]["problem"]
            .as_str()
            .unwrap()
            .contains("nobody-knows")
    );
    assert_eq!(links[2]["via"], "mcp:eyes/look");
    let people = text(&models(
        home.path(),
        &["--route", "deepseek/deepseek-chat", "--config", path],
    ));
    let at = |words: &str| {
        people
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {people}"))
    };
    assert!(at("WHO DESCRIBES") < at("look-1") && at("look-1") < at("mcp:eyes/look"));
    assert!(!people.contains("hunter22"), "{people}");
}

#[test]
fn what_is_no_route_and_no_provider_is_usage() {
    let home = TempDir::new().unwrap();
    for arguments in [
        &["--route", "gpt-4o"][..],
        &["--provider", "nobody"],
        &["--api", "anthropic"],
    ] {
        let output = models(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
}
