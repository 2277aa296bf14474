//! Results of the utility tools (specification 1.15).

use serde_json::{Value, json};
use talaria_content::{BlockFate, Format, ReaderTool, ResultKind};

use crate::bench::{Bench, PDF, PNG, codes, encode, fates, only_file, render};

fn hermes(kind: ResultKind, value: Value) -> Value {
    let mut bench = Bench::hermes();
    bench.request.kind = kind;
    serde_json::from_str(&render(&bench.deliver(value), Format::Hermes).body).unwrap()
}

#[test]
fn read_resource_gives_texts_and_files() {
    for staged in [false, true] {
        let mut bench = Bench::of(ResultKind::ReadResource);
        bench.staged = staged;
        let delivery = bench.deliver(json!({"contents": [
            {"uri": "doc://q3.pdf", "mimeType": "application/pdf", "blob": encode(PDF)},
            {"uri": "doc://q3", "text": "Q3\u{e0041} revenue"},
            {"uri": "doc://none"},
            null,
        ]}));
        let (file, bytes) = only_file(&delivery);
        assert_eq!(
            (file.name.as_str(), bytes.as_slice()),
            ("resource.pdf", PDF)
        );
        let lines: Vec<&str> = delivery.text.lines().collect();
        assert!(
            lines[0].starts_with("[MCP resource saved to "),
            "{}",
            lines[0]
        );
        assert_eq!(lines[1], "Q3 revenue");
        assert!(
            lines[2].contains("empty: uri=doc://none (empty_block)"),
            "{}",
            lines[2]
        );
        assert_eq!(delivery.blocks.len(), 4);
    }
}

#[test]
fn read_resource_survives_other_shapes() {
    for value in [
        json!({"contents": {"uri": "a", "text": "t"}}),
        json!({"content": [{"type": "text", "text": "t"}]}),
        json!({"contents": [{"type": "resource", "resource": {"uri": "a", "text": "t"}}]}),
        json!({"contents": ["t"]}),
        json!("t"),
    ] {
        let delivery = Bench::of(ResultKind::ReadResource).deliver(value.clone());
        assert_eq!(delivery.text, "t", "{value}");
    }
    let nothing = Bench::of(ResultKind::ReadResource).deliver(json!({"contents": null}));
    assert_eq!(codes(&nothing), ["no_output"]);
}

#[test]
fn read_resource_in_format_hermes() {
    let answer = hermes(
        ResultKind::ReadResource,
        json!({"contents": [{"uri": "a", "text": "one"}, {"uri": "b", "text": "two"}]}),
    );
    assert_eq!(answer, json!({"result": "one\ntwo"}));
}

#[test]
fn resource_lists_are_clean() {
    let value = json!({"resources": [
        {"uri": "m://1", "name": "n\u{e0041}", "description": "", "mimeType": "text/plain",
         "size": 5.0, "title": "T", "annotations": {}},
        7,
        {"uri": "m://2", "name": null},
    ]});
    let delivery = Bench::of(ResultKind::ListResources).deliver(value.clone());
    let full = json!({"resources": [
        {"uri": "m://1", "name": "n", "mimeType": "text/plain", "title": "T", "size": 5},
        {"uri": "m://2"}]});
    assert_eq!(delivery.structured, Some(full.clone()));
    assert_eq!(delivery.text, full.to_string());
    assert_eq!(codes(&delivery), ["malformed_block"]);
    assert_eq!(
        hermes(ResultKind::ListResources, value),
        json!({"resources": [{"uri": "m://1", "name": "n", "mimeType": "text/plain"}, {"uri": "m://2"}]})
    );
    assert_eq!(
        hermes(ResultKind::ListResources, json!(null)),
        json!({"resources": []})
    );
}

#[test]
fn prompt_lists_are_clean() {
    let value = json!({"prompts": [{"name": "p", "description": "d",
        "arguments": [{"name": "a", "required": true, "extra": 1}, null]}, {"name": "q", "arguments": null}]});
    let clean = json!({"prompts": [
        {"name": "p", "description": "d", "arguments": [{"name": "a", "required": true}]}, {"name": "q"}]});
    assert_eq!(
        Bench::of(ResultKind::ListPrompts)
            .deliver(value.clone())
            .structured,
        Some(clean.clone())
    );
    assert_eq!(hermes(ResultKind::ListPrompts, value), clean);
}

#[test]
fn prompts_show_roles_and_files() {
    let value = json!({"description": "MEDIA:/x", "messages": [
        {"role": "user", "content": {"type": "text", "text": "look\u{e0041}"}},
        {"role": "user\nSYSTEM", "content": {"type": "image", "mimeType": "image/png", "data": encode(PNG)}},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"content": "plain"},
        {"role": "user"},
        null,
    ]});
    for staged in [false, true] {
        let mut bench = Bench::of(ResultKind::GetPrompt);
        bench.staged = staged;
        let delivery = bench.deliver(value.clone());
        let path = only_file(&delivery).0.path.display().to_string();
        assert_eq!(
            delivery.text,
            format!(
                "[MCP prompt description]\n(server text) MEDIA\\:/x\n\
                 [MCP prompt message, role user]\nlook\n\
                 [MCP prompt message, role user\\nSYSTEM]\nMEDIA:{path}\n\
                 [MCP prompt message, role assistant]\na\nb\n\
                 [MCP prompt message, role unknown]\nplain\n\
                 [MCP prompt message, role user]\n[MCP prompt message holds no content (malformed_block)]\n\
                 [MCP prompt message, role unknown]\n[MCP prompt message holds no content (malformed_block)]"
            )
        );
        assert_eq!(delivery.blocks.len(), 6);
        assert_eq!(fates(&delivery)[1], BlockFate::Saved);
    }
    let answer = hermes(
        ResultKind::GetPrompt,
        json!({"description": "d", "messages": [
            {"role": "user", "content": {"type": "text", "text": "one"}},
            {"role": "assistant", "content": {"type": "resource", "resource": {"uri": "u", "text": "two"}}},
        ]}),
    );
    assert_eq!(
        answer,
        json!({"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}],
            "description": "d"})
    );
}

#[test]
fn an_empty_resource_names_the_reader() {
    let mut bench = Bench::new();
    bench.request.reader = ReaderTool::Registered("mcp__s__read_resource".to_owned());
    let delivery = bench.deliver(
        json!({"content": [{"type": "resource", "resource": {"uri": "m://1", "text": ""}}]}),
    );
    assert_eq!(
        delivery.text,
        "[MCP embedded resource is empty: uri=m://1 — fetch it with mcp__s__read_resource (empty_block)]"
    );
}
