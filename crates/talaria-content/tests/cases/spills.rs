//! Long texts: the whole in a file, the beginning and every line of ours in the text.

use serde_json::{Value, json};
use talaria_content::{ArtifactKind, BlockFate, Format};

use crate::bench::{Bench, PNG, codes, encode, fates, render};

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

#[test]
fn the_budget_is_exact() {
    let at_limit = Bench::new().deliver(json!({"content": [text(&"é".repeat(50_000))]}));
    assert!(at_limit.artifacts.is_empty());
    assert_eq!(at_limit.text.chars().count(), 50_000);
    let over = Bench::new().deliver(json!({"content": [text(&"é".repeat(50_001))]}));
    assert_eq!(over.artifacts.len(), 1);
    assert_eq!(fates(&over), [BlockFate::Spilled]);
    assert_eq!(codes(&over), ["text_spilled"]);
    let file = &over.artifacts[0];
    assert_eq!(
        (file.kind, file.bytes, file.media_type.as_str()),
        (ArtifactKind::Text, 100_002, "text/plain")
    );
    let (preview, marker) = over
        .text
        .split_once("\n[MCP result text truncated")
        .unwrap();
    assert_eq!(preview, "é".repeat(1_500));
    assert!(marker.contains("50,001 characters"), "{marker}");
    assert!(marker.contains(file.path.to_str().unwrap()) && marker.contains("(100002 bytes)"));
}

#[test]
fn lines_of_ours_survive() {
    let bench = Bench::new();
    let delivery = bench.deliver(json!({"content": [
        text("short"),
        text(&"x".repeat(60_000)),
        {"type": "image", "mimeType": "image/png", "data": encode(PNG)},
        text("hidden"),
        {"type": "resource_link", "uri": "m://1", "name": "n"},
        {"type": "image", "mimeType": "image/png", "data": "%"},
    ]}));
    let image = delivery.artifacts[0].path.display().to_string();
    let spill = &delivery.artifacts[1];
    let lines: Vec<&str> = delivery.text.lines().collect();
    assert_eq!(lines[0], "short");
    assert_eq!(lines[1].len(), 1_495);
    assert!(lines[2].starts_with("[MCP result text truncated"));
    assert_eq!(lines[3], format!("MEDIA:{image}"));
    assert!(lines[4].starts_with("[MCP resource link: uri=m://1"));
    assert!(lines[5].starts_with("[MCP image block could not be decoded"));
    assert_eq!(lines.len(), 6);
    let whole = std::fs::read_to_string(&spill.path).unwrap();
    assert!(
        whole.starts_with("short\nxx") && whole.contains(&format!("\nMEDIA:{image}\nhidden\n"))
    );
    assert_eq!(fates(&delivery)[0], BlockFate::Delivered);
    assert_eq!(
        [fates(&delivery)[1], fates(&delivery)[3]],
        [BlockFate::Spilled; 2]
    );
}

#[test]
fn many_lines_of_ours_are_bounded_too() {
    let link = json!({"type": "resource_link", "uri": "m://1", "name": "n"});
    let delivery = Bench::new().deliver(json!({"content": vec![link; 5_000]}));
    assert!(delivery.text.chars().count() < 25_000);
    assert!(
        delivery.text.contains("[MCP result lines left out here: "),
        "{}",
        delivery.text
    );
    assert_eq!(delivery.links.len(), 5_000);
}

#[test]
fn structured_content_of_millions_is_only_in_the_file() {
    let large = json!({"k": "x".repeat(2_500_000)});
    let delivery =
        Bench::new().deliver(json!({"content": [text("ok")], "structuredContent": large}));
    assert_eq!(delivery.structured, None);
    assert_eq!(codes(&delivery), ["text_spilled", "structured_too_large"]);
    assert!(
        delivery
            .text
            .starts_with("ok\nstructuredContent: {\"k\":\"xx")
    );
    let bench = Bench::new();
    let alone = bench.deliver(json!({"structuredContent": large}));
    assert_eq!(alone.artifacts[0].name, "result.json");
    let whole: Value =
        serde_json::from_slice(&std::fs::read(&alone.artifacts[0].path).unwrap()).unwrap();
    assert_eq!(whole, large);
}

#[test]
fn structured_content_over_the_budget_stays_a_field() {
    let value = json!({"k": "x".repeat(60_000)});
    let delivery = Bench::new().deliver(json!({"content": [], "structuredContent": value}));
    assert_eq!(delivery.structured, Some(value));
    assert!(delivery.text.chars().count() < 2_000);
}

#[test]
fn a_text_that_cannot_be_stored_is_cut() {
    let mut bench = Bench::new();
    bench.full = true;
    let delivery =
        bench.deliver(json!({"content": [text(&format!("begin{}end", "x".repeat(60_000)))]}));
    assert!(
        delivery.text.starts_with("begin")
            && delivery.text.contains("xend\n[MCP result text truncated")
    );
    assert!(delivery.text.contains("the disk is full"));
    assert!(delivery.text.chars().count() < 50_500);
    assert_eq!(codes(&delivery), ["text_truncated"]);
    assert_eq!(fates(&delivery), [BlockFate::Delivered]);
}

#[test]
fn format_hermes_spills_after_its_own_rule() {
    let value = json!({"content": [text(&"x".repeat(60_000))], "structuredContent": {"a": 1}});
    let bench = Bench::format(Format::Hermes);
    let delivery = bench.deliver(value);
    let answer: Value = serde_json::from_str(&render(&delivery, Format::Hermes).body).unwrap();
    assert_eq!(
        answer.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["result"]
    );
    assert_eq!(answer["result"], delivery.text);
    let whole = std::fs::read_to_string(&delivery.artifacts[0].path).unwrap();
    assert!(whole.ends_with("\nstructuredContent: {\"a\":1}"));
}
