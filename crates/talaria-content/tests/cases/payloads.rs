//! The B cases on whole results, repeats, and payloads in odd places.

use serde_json::{Value, json};
use talaria_content::{ArtifactKind, BlockFate, Delivery, FileBody, FileRequest, Format, plan};
use talaria_types::{NoticeCode, Payload, PayloadRefusal, RawResult};

use crate::bench::{Bench, PDF, PNG, codes, encode, fates, only_file, render};

fn deliver(staged: bool, value: Value) -> Delivery {
    let mut bench = Bench::new();
    bench.staged = staged;
    // The folder has to outlive the delivery's paths.
    let bench = Box::leak(Box::new(bench));
    bench.deliver(value)
}

fn blob(text: &str) -> Value {
    json!({"content": [{"type": "resource", "resource": {
        "uri": "x://h/a.bin", "mimeType": "application/octet-stream", "blob": text}}]})
}

fn wanted(value: Value) -> Vec<FileRequest> {
    plan(RawResult::from_json(value), Bench::new().request).take_files()
}

fn length(file: &FileRequest) -> usize {
    match &file.body {
        FileBody::Bytes(bytes) => bytes.len(),
        FileBody::Staged(_) => panic!("staged"),
    }
}

#[test]
fn b02_blanks_are_no_data() {
    for text in ["aGVsbG8=\n", "aG VsbG\r\n8\t=", "aGVsbG8"] {
        assert_eq!(only_file(&deliver(false, blob(text))).1, b"hello");
    }
}

#[test]
fn b04_nonsense_is_no_empty_file() {
    let value = json!({"content": [{"type": "audio", "mimeType": "audio/wav", "data": "%%%%"}]});
    for staged in [false, true] {
        let delivery = deliver(staged, value.clone());
        assert!(delivery.artifacts.is_empty());
        assert!(
            delivery.text.contains("audio block could not be decoded"),
            "{}",
            delivery.text
        );
        assert_eq!(codes(&delivery), ["not_base64"]);
    }
}

#[test]
fn b05_an_empty_blob_is_said_to_be_empty() {
    for staged in [false, true] {
        let delivery = deliver(staged, blob(""));
        assert!(delivery.artifacts.is_empty());
        assert!(delivery.text.contains("empty"), "{}", delivery.text);
        assert_eq!(codes(&delivery), ["empty_block"]);
    }
}

#[test]
fn b07_b08_strict_but_not_narrow() {
    assert_eq!(codes(&deliver(false, blob("aGU=aGU="))), ["not_base64"]);
    assert_eq!(
        only_file(&deliver(false, blob("-_-_"))).1,
        [0xfb, 0xff, 0xbf]
    );
}

#[test]
fn b09_a_data_url_is_taken_apart() {
    let data = format!("data:image/gif;base64,{}", encode(PNG));
    let value = json!({"content": [{"type": "image", "data": data}]});
    let delivery = deliver(false, value);
    let (file, bytes) = only_file(&delivery);
    assert_eq!(
        (file.media_type.as_str(), bytes.as_slice()),
        ("image/png", PNG)
    );
    assert_eq!(file.declared_type.as_deref(), Some("image/gif"));
    assert_eq!(codes(&delivery), ["type_mismatch"]);
}

#[test]
fn b11_b12_c16_the_limit_is_exact() {
    let encoded = |bytes: usize| {
        let mut text = "A".repeat(bytes.div_ceil(3) * 4);
        let padding = (3 - bytes % 3) % 3;
        text.truncate(text.len() - padding);
        text.push_str(&"=".repeat(padding));
        text
    };
    let files = wanted(blob(&encoded(52_428_800)));
    assert_eq!(files.iter().map(length).collect::<Vec<_>>(), [52_428_800]);

    let one_more = encoded(52_428_801);
    assert_eq!(one_more.len(), 69_905_068);
    let delivery = deliver(false, blob(&one_more));
    assert!(delivery.artifacts.is_empty());
    assert!(
        delivery.text.starts_with(
            "[MCP embedded resource too large to cache: 52428801 bytes, uri=x://h/a.bin"
        ),
        "{}",
        delivery.text
    );
    assert_eq!(codes(&delivery), ["payload_too_large"]);

    let two_more = encoded(52_428_802);
    for kind in ["audio", "image"] {
        let value =
            json!({"content": [{"type": kind, "mimeType": format!("{kind}/x"), "data": two_more}]});
        let delivery = deliver(false, value);
        assert!(
            delivery.text.starts_with(&format!(
                "[MCP {kind} block too large to cache: ~52428804 bytes"
            )),
            "{}",
            delivery.text
        );
    }
}

#[test]
fn b15_pictures_have_the_same_limit() {
    let mut bytes = PNG.to_vec();
    bytes.resize(60_000_000, 0);
    let value =
        json!({"content": [{"type": "image", "mimeType": "image/png", "data": encode(&bytes)}]});
    let delivery = deliver(false, value);
    assert!(delivery.artifacts.is_empty());
    assert_eq!(
        fates(&delivery),
        [BlockFate::Refused(NoticeCode::PayloadTooLarge)]
    );
}

#[test]
fn a_refused_payload_says_why() {
    let value =
        json!({"content": [{"type": "resource", "resource": {"uri": "x://h/a", "blob": ""}}]});
    for (refusal, code, words) in [
        (
            PayloadRefusal::TooLarge {
                bytes: 60_000_000,
                exact: false,
            },
            "payload_too_large",
            "too large to cache: ~60000000 bytes, uri=x://h/a",
        ),
        (
            PayloadRefusal::Address {
                url: "https://h/]\n".to_owned(),
            },
            "address_instead_of_data",
            "https://h/%5D",
        ),
        (
            PayloadRefusal::NotStored {
                code: talaria_types::ErrorCode::MediaUnavailable,
                detail: "the disk is full".to_owned(),
            },
            "not_stored",
            "could not be cached: x://h/a — the disk is full",
        ),
    ] {
        let mut raw = RawResult::from_json(value.clone());
        raw.payloads.insert(
            "/content/0/resource/blob".to_owned(),
            Payload::Refused(refusal),
        );
        let delivery = Bench::new().deliver_raw(raw);
        assert!(delivery.text.contains(words), "{}", delivery.text);
        assert_eq!(codes(&delivery), [code]);
    }
}

#[test]
fn a_full_disk_costs_the_block_and_nothing_else() {
    let mut bench = Bench::new();
    bench.full = true;
    let delivery = bench.deliver(json!({"content": [
        {"type": "text", "text": "a"},
        {"type": "image", "mimeType": "image/png", "data": encode(PNG)},
        {"type": "resource", "resource": {"uri": "x://h/a.pdf", "blob": encode(PDF)}},
        {"type": "text", "text": "b"},
    ]}));
    let lines: Vec<&str> = delivery.text.lines().collect();
    assert_eq!((lines[0], lines[3]), ("a", "b"));
    assert!(
        lines[1].starts_with("[MCP image block could not be cached: image/png"),
        "{}",
        lines[1]
    );
    assert!(lines[2].starts_with("[MCP embedded resource could not be cached: x://h/a.pdf"));
    assert_eq!(codes(&delivery), ["not_stored", "not_stored"]);
    assert_eq!(
        fates(&delivery)[1],
        BlockFate::Refused(NoticeCode::NotStored)
    );
}

/// Long enough to be recognised.
fn sound() -> Vec<u8> {
    [
        b"RIFF\0\0\0\0WAVEfmt ".as_slice(),
        &(0..=255).collect::<Vec<u8>>(),
    ]
    .concat()
}

#[test]
fn a_payload_in_structured_content_becomes_a_reference() {
    for staged in [false, true] {
        for spelling in [
            encode(&sound()),
            format!("data:audio/wav;base64,{}", encode(&sound())),
        ] {
            // The wire layer decodes what it stages, prefix and all.
            let block = json!({"type": "audio", "data": spelling, "mimeType": "audio/wav"});
            let delivery = deliver(
                staged,
                json!({"content": [block], "structuredContent": {"content": [block], "n~/": 1}}),
            );
            let (file, _) = only_file(&delivery);
            let path = file.path.display();
            assert_eq!(
                delivery.structured.as_ref().unwrap()["content"][0]["data"],
                format!("(base64 left out: the same bytes as {path})")
            );
            assert!(
                delivery
                    .text
                    .starts_with(&format!("MEDIA:{path}\nstructuredContent: "))
            );
            assert!(!delivery.text.contains(&encode(&sound())));
            assert_eq!(codes(&delivery), ["repeat_replaced"]);
        }
    }
}

#[test]
fn a_payload_in_a_text_becomes_a_reference() {
    for staged in [false, true] {
        let words = format!("here: {} and\n{}", encode(&sound()), encode(&sound()));
        let delivery = deliver(
            staged,
            json!({"content": [
                {"type": "text", "text": words},
                {"type": "audio", "data": encode(&sound()), "mimeType": "audio/wav"},
                {"type": "text", "text": json!({"blob": encode(&sound())}).to_string()},
            ], "_meta": {"com.e/copy": encode(&sound())}}),
        );
        let body = render(&delivery, Format::Talaria).body;
        assert!(!body.contains(&encode(&sound()[..48])), "{body}");
        assert_eq!(delivery.artifacts.len(), 1);
        let reference = format!(
            "(base64 left out: the same bytes as {})",
            delivery.artifacts[0].path.display()
        );
        assert_eq!(
            delivery.text.matches(&reference).count(),
            4,
            "{}",
            delivery.text
        );
    }
}

#[test]
fn a_staged_payload_where_the_protocol_has_none_is_saved() {
    let value = json!({"content": [{"type": "text", "text": "t"}],
        "structuredContent": {"files": [{"blob": encode(PDF)}, {"blob": "%%"}]}});
    let delivery = deliver(true, value);
    let (file, bytes) = only_file(&delivery);
    assert_eq!((file.kind, bytes.as_slice()), (ArtifactKind::Document, PDF));
    let structured = delivery.structured.as_ref().unwrap();
    assert_eq!(
        structured["files"][0]["blob"],
        format!("(base64 left out: saved to {})", file.path.display())
    );
    assert!(
        structured["files"][1]["blob"]
            .as_str()
            .unwrap()
            .contains("not base64")
    );
    assert_eq!(codes(&delivery), ["repeat_replaced", "not_base64"]);
    assert!(
        delivery
            .text
            .contains(&format!("[MCP payload saved to {}", file.path.display()))
    );
}

#[test]
fn payloads_in_the_wrong_field_of_a_block_are_found() {
    let png = encode(PNG);
    for block in [
        json!({"type": "image", "mimeType": "image/png", "blob": png}),
        json!({"type": "image", "text": png}),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}),
        json!({"type": "image", "url": format!("data:image/png;base64,{png}")}),
        json!({"type": "image", "image_url": {"url": format!("data:image/png;base64,{png}")}}),
        json!({"type": "image", "data": PNG}),
        json!({"type": "image", "data": {"type": "Buffer", "data": PNG}}),
        json!({"type": "picture", "mimeType": "image/png", "data": png}),
        json!({"type": "hologram", "data": png}),
    ] {
        let delivery = deliver(false, json!({"content": [block]}));
        assert_eq!(only_file(&delivery).1, PNG, "{block}");
        assert!(delivery.text.contains("MEDIA:"), "{}", delivery.text);
        assert!(!delivery.text.contains(&png));
        assert_eq!(fates(&delivery), [BlockFate::Saved]);
    }
}

#[test]
fn a_sentence_in_the_place_of_data_is_shown() {
    let value = json!({"content": [{"type": "image", "data": "/tmp/shots/a.png"}]});
    let delivery = deliver(false, value);
    assert!(
        delivery.text.contains("it reads: /tmp/shots/a.png"),
        "{}",
        delivery.text
    );
    let value = json!({"content": [{"type": "image", "mimeType": "image/png",
        "data": "Screenshot saved. Share it with /send shot.png"}]});
    let delivery = deliver(false, value);
    assert!(delivery.text.contains("unusable data"), "{}", delivery.text);
    assert!(
        delivery
            .text
            .contains("it reads: Screenshot saved. Share it"),
        "{}",
        delivery.text
    );
}

#[test]
fn broken_data_is_not_shown() {
    let broken = format!("{}!", encode(&sound()));
    for block in [
        json!({"type": "image", "mimeType": "image/png", "data": broken}),
        json!({"type": "image", "text": encode(&sound()).trim_end_matches('=').replacen('U', "", 1)}),
        json!({"type": "image", "mimeType": "image/png", "data": "\u{fffd}PNG\r\n\u{1a}\n\0\0\0\rIHDR"}),
    ] {
        let delivery = deliver(false, json!({"content": [block]}));
        assert!(
            delivery.artifacts.is_empty() || delivery.text.contains("not an image"),
            "{}",
            delivery.text
        );
        let run = delivery
            .text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .map(str::len)
            .max();
        assert!(run < Some(60), "{}", delivery.text);
    }
}

#[test]
fn text_and_blob_are_given_once_where_they_are_the_same() {
    for staged in [false, true] {
        let block = |blob: &[u8]| {
            json!({"content": [{"type": "resource", "resource": {
            "uri": "file:///a.txt", "mimeType": "text/plain", "text": "good day", "blob": encode(blob)}}]})
        };
        let same = deliver(staged, block(b"good day"));
        assert_eq!((same.text.as_str(), same.artifacts.len()), ("good day", 0));
        assert_eq!(fates(&same), [BlockFate::Delivered]);
        let other = deliver(staged, block(b"bad day"));
        assert_eq!(other.artifacts.len(), 1);
        assert!(
            other
                .text
                .starts_with("good day\nbad day\n[MCP resource saved to "),
            "{}",
            other.text
        );
        assert_eq!(fates(&other), [BlockFate::Saved]);
    }
}

#[test]
fn long_texts_in_files_are_read_or_begun() {
    let long = "all work and no play\n".repeat(1_000);
    let block = json!({"content": [{"type": "resource", "resource": {
        "uri": "file:///a.md", "mimeType": "text/markdown", "blob": encode(long.as_bytes())}}]});
    let read = deliver(true, block.clone());
    assert!(read.text.starts_with(&long), "the staged file is read");
    assert!(!read.text.contains("only its beginning"));

    let mut bench = Bench::new();
    bench.request.result_size_chars = 3_000;
    let begun = bench.deliver(block);
    assert!(begun.text.starts_with("all work and no play\nall"));
    assert!(
        begun.text.contains("only its beginning is shown here"),
        "{}",
        begun.text
    );
    assert!(begun.text.chars().count() < 2_000);
    assert_eq!(only_file(&begun).1, long.as_bytes());
}
