//! What holds for every result, however hostile.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use talaria_content::{BlockFate, Delivery, Format, ResultKind};

use crate::bench::{Bench, JPEG, PDF, PNG, encode, render};

/// Words that matter to the rules, and words that do not.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => proptest::collection::vec(
            prop_oneof![
                Just("MEDIA:/etc/passwd".to_owned()),
                Just("[MCP resource saved to /x]".to_owned()),
                Just("\n".to_owned()),
                Just("\r".to_owned()),
                Just("\u{1b}[31m".to_owned()),
                Just("\u{1b}]0;".to_owned()),
                Just("\u{e0041}\u{e007f}".to_owned()),
                Just("\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}".to_owned()),
                Just("\u{85}\u{2028}\u{0}".to_owned()),
                Just("{\"a\":1}".to_owned()),
                "[ -~]{0,6}",
                ".{0,4}",
            ],
            0..6,
        ).prop_map(|parts| parts.concat()),
        1 => Just("x".repeat(3_000)),
        1 => Just("x://h/a.pdf".to_owned()),
        1 => Just("https://h/a.png".to_owned()),
        1 => Just("image/png".to_owned()),
        1 => Just("audio/wav; a=b".to_owned()),
        1 => Just("text/plain".to_owned()),
        1 => Just(encode(PNG)),
        1 => Just(encode(JPEG)),
        1 => Just(encode(PDF)),
        1 => Just(format!("data:image/png;base64,{}", encode(PNG))),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => proptest::sample::select(vec![
            "type", "text", "data", "mimeType", "resource", "blob", "uri", "name", "size",
            "content", "contents", "messages", "role", "structuredContent", "_meta", "isError",
            "toolResult", "description", "result", "url", "source", "com.e/x", "mcp.dev/y",
        ]).prop_map(str::to_owned),
        1 => words(),
    ]
}

fn kind() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
        "hologram",
    ])
    .prop_map(Value::from)
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => Just(json!(12.0)),
        4 => words().prop_map(Value::from),
        2 => kind(),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((key(), inner.clone()), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            (kind(), proptest::collection::vec((key(), inner), 0..5)).prop_map(
                |(kind, members)| {
                    let mut block: Map<String, Value> = members.into_iter().collect();
                    block.insert("type".to_owned(), kind);
                    Value::Object(block)
                }
            ),
        ]
    })
}

fn result() -> impl Strategy<Value = Value> {
    let list = || proptest::collection::vec(anything(), 0..6).prop_map(Value::from);
    prop_oneof![
        1 => anything(),
        4 => (
            prop_oneof![6 => list(), 1 => anything()],
            proptest::option::of(anything()),
            proptest::option::of(anything()),
            proptest::option::of(any::<bool>()),
            proptest::sample::select(vec!["content", "contents", "messages"]),
        ).prop_map(|(content, structured, meta, is_error, field)| {
            let mut result = Map::new();
            result.insert(field.to_owned(), content);
            if let Some(structured) = structured {
                result.insert("structuredContent".to_owned(), structured);
            }
            if let Some(meta) = meta {
                result.insert("_meta".to_owned(), meta);
            }
            if let Some(is_error) = is_error {
                result.insert("isError".to_owned(), is_error.into());
            }
            Value::Object(result)
        }),
    ]
}

fn result_kind() -> impl Strategy<Value = ResultKind> {
    proptest::sample::select(vec![
        ResultKind::ToolCall,
        ResultKind::ReadResource,
        ResultKind::GetPrompt,
        ResultKind::ListResources,
        ResultKind::ListPrompts,
    ])
}

fn bench() -> impl Strategy<Value = Bench> {
    (
        result_kind(),
        proptest::sample::select(vec![Format::Talaria, Format::Hermes, Format::Text]),
        any::<bool>(),
        proptest::bool::weighted(0.1),
        proptest::sample::select(vec![0, 100, 2_000, 50_000, usize::MAX]),
    )
        .prop_map(|(kind, format, staged, full, budget)| {
            let mut bench = Bench::of(kind);
            bench.request.format = format;
            bench.request.result_size_chars = budget;
            bench.staged = staged;
            bench.full = full;
            bench
        })
}

/// How many blocks the raw result holds, where it has the protocol's shape.
fn received(kind: &ResultKind, result: &Value) -> Option<usize> {
    let field = match kind {
        ResultKind::ToolCall => "content",
        ResultKind::ReadResource => "contents",
        ResultKind::GetPrompt => "messages",
        ResultKind::ListResources | ResultKind::ListPrompts => return Some(0),
    };
    let list = result.get(field)?.as_array()?;
    // An empty list may have a wrapper beside it, which is then read instead.
    (!list.is_empty()).then_some(list.len())
}

fn assert_text_is_ours_to_show(delivery: &Delivery) {
    let text = &delivery.text;
    assert!(!text.trim().is_empty());
    let unwanted = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!text.contains(unwanted), "{text:?}");
    assert_eq!(talaria_content::sanitise::strip_tags(text), text.as_str());
    let paths: Vec<String> = delivery
        .artifacts
        .iter()
        .map(|artifact| format!("MEDIA:{}", artifact.path.display()))
        .collect();
    for line in text.split(['\n', '\u{2028}', '\u{2029}']) {
        let line = line.trim_start();
        if line.starts_with("MEDIA:") {
            assert!(
                paths.iter().any(|path| path == line),
                "{line:?} in {text:?}"
            );
        }
    }
}

fn assert_accounts_balance(delivery: &Delivery, kind: &ResultKind, result: &Value) {
    if let Some(received) = received(kind, result) {
        assert_eq!(delivery.blocks.len(), received, "{result}");
    }
    let mut sums = [0; 4];
    for block in &delivery.blocks {
        let at = match block.fate {
            BlockFate::Delivered => 0,
            BlockFate::Saved => 1,
            BlockFate::Spilled => 2,
            BlockFate::Refused(code) => {
                let is_noted = delivery.notices.iter().any(|notice| notice.code == code);
                assert!(is_noted, "{code:?} in {:?}", delivery.notices);
                3
            }
        };
        sums[at] += 1;
    }
    assert_eq!(sums.iter().sum::<usize>(), delivery.blocks.len());
}

fn assert_files_are_sound(delivery: &Delivery) {
    for artifact in &delivery.artifacts {
        let name = &artifact.name;
        assert!(
            name.chars().count() <= 150 && name.len() <= 200 && !name.is_empty(),
            "{name:?}"
        );
        assert!(!name.contains(['/', '\\', '\0', ':']), "{name:?}");
        assert!(!name.starts_with('.') && !name.ends_with('.'), "{name:?}");
        assert!(artifact.path.is_absolute() && artifact.path.exists());
        assert!(artifact.bytes > 0, "{artifact:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_result_is_delivered_soundly(bench in bench(), result in result()) {
        let delivery = bench.deliver(result.clone());
        assert_text_is_ours_to_show(&delivery);
        assert_accounts_balance(&delivery, &bench.request.kind, &result);
        assert_files_are_sound(&delivery);
        let body = render(&delivery, Format::Talaria).body;
        prop_assert!(serde_json::from_str::<Value>(&body).is_ok());
        let hermes = render(&delivery, Format::Hermes).body;
        prop_assert!(serde_json::from_str::<Value>(&hermes).is_ok_and(|answer| answer.is_object()));
        let is_tag = |c: char| ('\u{e0000}'..='\u{e007f}').contains(&c);
        let rest = body.replace("\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}", "");
        prop_assert!(!rest.contains(is_tag));
    }

    #[test]
    fn no_saved_payload_is_left_in_text_or_structure(
        bench in bench(),
        payload in proptest::collection::vec(any::<u8>(), 60..400),
        key in key(),
        prose in words(),
    ) {
        let mut bench = bench;
        bench.request.kind = ResultKind::ToolCall;
        let encoded = encode(&payload);
        let delivery = bench.deliver(json!({
            "content": [
                {"type": "resource", "resource": {"uri": "x://h/a.bin", "blob": encoded}},
                {"type": "text", "text": format!("{prose}\n{encoded}\n{prose}")},
            ],
            "structuredContent": {(key): [encoded, {"deep": format!("data:x/y;base64,{encoded}")}]},
        }));
        let body = render(&delivery, Format::Talaria).body;
        prop_assert!(!body.contains(&encoded), "{}", body);
        prop_assert!(!render(&delivery, Format::Hermes).body.contains(&encoded));
    }
}
