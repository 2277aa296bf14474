//! What the tolerant reader keeps, mends and refuses.

use proptest::prelude::*;
use serde_json::{Value, json};
use talaria_types::{ErrorCode, Payload, PayloadRefusal, WireNote};

use super::reader::MAX_POINTER_BYTES;
use super::*;
use crate::testing::FolderSink;

fn read(text: &[u8], result_at: &str) -> Result<Scrubbed, Failure> {
    scrub(text, result_at, FolderSink::new().as_ref())
}

fn result(text: &[u8]) -> RawResult {
    read(text, "").unwrap().result.unwrap()
}

/// Canonical base64 of `bytes` zero bytes; `bytes` is a multiple of three.
fn zeros(bytes: usize) -> String {
    "A".repeat(bytes / 3 * 4)
}

#[test]
fn splits_a_response() {
    let text = br#" {"jsonrpc":"2.0","result":{"content":[]},"id":7}  "#;
    let scrubbed = read(text, "/result").unwrap();
    assert_eq!(
        scrubbed.rest,
        json!({ "jsonrpc": "2.0", "result": null, "id": 7 })
    );
    let result = scrubbed.result.unwrap();
    assert_eq!(result.json, json!({ "content": [] }));
    assert_eq!(result.notes, []);
    assert_eq!(result.wire_bytes, 48);
    assert!(read(br#"{"id":7}"#, "/result").unwrap().result.is_none());
}

#[test]
fn big_payloads_leave_the_json_at_every_block_position() {
    let sink = FolderSink::new();
    let data = zeros(30_000);
    let block = json!({ "type": "image", "data": data });
    let resource = json!({ "type": "resource", "resource": { "uri": "x:y", "blob": data } });
    let text = json!({
        "content": [block, resource],
        "contents": [{ "blob": data }],
        "messages": [{ "content": block }, { "content": [resource] }],
    });
    for wrapper in ["", "toolResult"] {
        let text = if wrapper.is_empty() {
            text.clone()
        } else {
            json!({ wrapper: text })
        };
        let scrubbed = scrub(text.to_string().as_bytes(), "", sink.as_ref()).unwrap();
        let result = scrubbed.result.unwrap();
        let prefix = if wrapper.is_empty() {
            String::new()
        } else {
            format!("/{wrapper}")
        };
        let pointers: Vec<String> = [
            "/content/0/data",
            "/content/1/resource/blob",
            "/contents/0/blob",
            "/messages/0/content/data",
            "/messages/1/content/0/resource/blob",
        ]
        .map(|pointer| format!("{prefix}{pointer}"))
        .to_vec();
        assert_eq!(
            result.payloads.keys().cloned().collect::<Vec<_>>(),
            pointers
        );
        for pointer in &pointers {
            assert_eq!(result.json.pointer(pointer), Some(&json!("")));
            let Payload::Staged(staged) = &result.payloads[pointer] else {
                panic!("{pointer} was refused");
            };
            assert_eq!(staged.bytes, 30_000);
        }
        assert_eq!(sink.files(), 5);
        drop(result);
        assert_eq!(sink.files(), 0);
    }
}

#[test]
fn escapes_inside_a_payload_are_undone_on_the_way() {
    let bytes: Vec<u8> = (0..60_000_u32)
        .map(|number| number.to_le_bytes()[1])
        .collect();
    let data = base64(&bytes);
    let wrapped: String = data
        .as_bytes()
        .chunks(76)
        .map(|line| format!("{}\\r\\n", std::str::from_utf8(line).unwrap()))
        .collect();
    let spelled: String = data.bytes().map(|byte| format!("\\u{byte:04X}")).collect();
    for data in [data.replace('/', "\\/"), wrapped, spelled, data] {
        let text = format!(r#"{{"content":[{{"type":"image","data":"{data}"}}]}}"#);
        let result = result(text.as_bytes());
        let Some(Payload::Staged(staged)) = result.payloads.get("/content/0/data") else {
            panic!("{:?}", result.payloads);
        };
        assert_eq!(
            std::fs::read(staged.path().unwrap()).ok(),
            None,
            "the sink is gone"
        );
        assert_eq!(
            (staged.bytes, &staged.head),
            (60_000, &bytes[..4096].to_vec())
        );
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert_eq!(bytes.len() % 3, 0);
    bytes
        .chunks(3)
        .flat_map(|three| {
            let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
            [18, 12, 6, 0]
                .map(|shift| char::from(ALPHABET[usize::try_from(bits >> shift & 63).unwrap()]))
        })
        .collect()
}

#[test]
fn what_is_refused_at_a_block_position_is_told_and_gone() {
    let text = format!(r#"{{"content":[{{"data":"{}!"}}]}}"#, zeros(30_000));
    let result = result(text.as_bytes());
    assert_eq!(result.json.pointer("/content/0/data"), Some(&json!("")));
    let refused = &result.payloads["/content/0/data"];
    assert!(
        matches!(refused, Payload::Refused(PayloadRefusal::NotBase64 { .. })),
        "{refused:?}"
    );
}

#[test]
fn elsewhere_only_canonical_base64_leaves_the_json() {
    let canonical = zeros(30_000);
    let wrapped = format!("{canonical}\n");
    let text = "long text, not base64 ".repeat(1_000);
    let whole = json!({
        "structuredContent": { "blob": canonical, "data": wrapped },
        "_meta": { "data": text },
        "other": canonical,
    });
    let result = result(whole.to_string().as_bytes());
    assert_eq!(
        result.payloads.keys().collect::<Vec<_>>(),
        ["/structuredContent/blob"]
    );
    assert_eq!(
        result.json["structuredContent"],
        json!({ "blob": "", "data": wrapped })
    );
    assert_eq!(result.json["_meta"]["data"], json!(text));
    assert_eq!(result.json["other"], json!(canonical));
}

#[test]
fn small_payloads_stay_inline() {
    let text = br#"{"content":[{"data":"aGk="},{"data":"https://example.com/x.png"},{"data":""}]}"#;
    let result = result(text);
    assert!(result.payloads.is_empty());
    assert_eq!(result.json, serde_json::from_slice::<Value>(text).unwrap());
}

/// Each handle keeps its pointer, so a long one must not be kept many times.
#[test]
fn below_a_long_key_payloads_stay_inline() {
    let data = zeros(30_000);
    let long = "k".repeat(MAX_POINTER_BYTES);
    let whole = json!({
        "content": [{ "data": data }],
        "a": { "data": data },
        long.as_str(): [{ "data": data }, { "data": data, "blob": data }],
    });
    let result = result(whole.to_string().as_bytes());
    assert_eq!(
        result.payloads.keys().collect::<Vec<_>>(),
        ["/a/data", "/content/0/data"]
    );
    assert_eq!(result.json[&long], whole[&long]);
}

#[test]
fn more_values_than_are_read_are_refused_whole() {
    let list = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
    let at_limit = list(MAX_JSON_VALUES);
    let scrubbed = read(at_limit.as_bytes(), "").unwrap();
    let items = scrubbed.result.unwrap().json.as_array().map(Vec::len);
    assert_eq!(items, Some(MAX_JSON_VALUES - 1));
    let failure = read(list(MAX_JSON_VALUES + 1).as_bytes(), "").unwrap_err();
    assert_eq!(failure.code(), ErrorCode::MessageTooLarge);

    let sink = FolderSink::new();
    let batch = list(MAX_JSON_VALUES + 2);
    let mut batch = Messages::new(batch.as_bytes(), "", sink.as_ref());
    assert!(batch.enter_batch());
    let elements = std::iter::from_fn(|| batch.next_of_batch());
    let failed = elements.enumerate().find(|(_, read)| read.is_err());
    assert_eq!(
        failed.map(|(index, _)| index),
        Some(MAX_JSON_VALUES),
        "the elements of a batch count together"
    );
}

#[test]
fn nothing_outside_the_result_is_a_payload() {
    let text = json!({ "params": { "data": zeros(30_000) }, "result": {} }).to_string();
    let scrubbed = read(text.as_bytes(), "/result").unwrap();
    assert!(scrubbed.result.unwrap().payloads.is_empty());
    assert_eq!(
        scrubbed.rest["params"]["data"].as_str().unwrap().len(),
        40_000
    );
}

#[test]
fn keys_that_need_escaping_are_escaped_in_pointers() {
    let text = json!({ "a/b": { "~": { "blob": zeros(30_000) } } }).to_string();
    let result = result(text.as_bytes());
    assert_eq!(
        result.payloads.keys().collect::<Vec<_>>(),
        ["/a~1b/~0/blob"]
    );
    assert_eq!(result.json.pointer("/a~1b/~0/blob"), Some(&json!("")));
}

#[test]
fn of_a_key_that_stands_twice_the_last_counts() {
    let data = zeros(30_000);
    let text = format!(
        r#"{{"result":{{"content":[{{"data":"{data}"}}]}},"a":1,"a":2,
            "result":{{"content":[{{"data":"{data}"}}],"content":[]}}}}"#
    );
    let scrubbed = read(text.as_bytes(), "/result").unwrap();
    assert_eq!(scrubbed.rest, json!({ "result": null, "a": 2 }));
    let result = scrubbed.result.unwrap();
    assert_eq!(result.json, json!({ "content": [] }));
    assert!(result.payloads.is_empty());
}

#[test]
fn a_key_that_stands_twice_loses_its_own_payloads_and_no_others() {
    let data = zeros(30_000);
    let text = format!(
        r#"{{"a":{{"data":"{data}","deep":[{{"data":"{data}"}}]}},"a!":{{"data":"{data}"}},
            "a0":{{"data":"{data}"}},"data":"{data}","a":1,"data":2}}"#
    );
    let result = result(text.as_bytes());
    assert_eq!(
        result.payloads.keys().collect::<Vec<_>>(),
        ["/a!/data", "/a0/data"]
    );
}

#[test]
fn lone_surrogates_become_the_replacement_character() {
    let result = result(br#"["a\ud800b","\udc00","\ud83d\ude00","\ud800\ud83d\ude00"]"#);
    assert_eq!(
        result.json,
        json!(["a\u{fffd}b", "\u{fffd}", "\u{1f600}", "\u{fffd}\u{1f600}"])
    );
    assert_eq!(result.notes, [WireNote::LoneSurrogate]);
}

#[test]
fn bytes_that_are_not_utf_8_become_the_replacement_character() {
    let result = result(b"[\"a\xffb\"]");
    assert_eq!(result.json, json!(["a\u{fffd}b"]));
    assert_eq!(result.notes, [WireNote::InvalidUtf8]);
}

#[test]
fn raw_control_characters_and_a_bom_are_read() {
    let result = result(b"\xEF\xBB\xBF[\"a\tb\nc\x00\"]");
    assert_eq!(result.json, json!(["a\tb\nc\u{0}"]));
    assert_eq!(result.notes, [WireNote::RawControl]);
}

#[test]
fn what_is_nested_too_deep_becomes_null() {
    let text = format!(
        "{{\"a\":{}\"]\"{},\"b\":1}}",
        "[".repeat(200),
        "]".repeat(200)
    );
    let result = result(text.as_bytes());
    assert_eq!(result.json["b"], 1);
    assert_eq!(result.notes, [WireNote::TooDeep]);
    let mut inner = &result.json["a"];
    let mut depth = 1;
    while let Some(deeper) = inner.get(0) {
        inner = deeper;
        depth += 1;
    }
    assert_eq!((depth, inner), (128, &Value::Null));
    let endless = "[".repeat(3_000_000);
    assert!(read(endless.as_bytes(), "").is_err());
}

#[test]
fn numbers_that_no_64_bit_type_holds_are_kept_as_text() {
    let result = result(
        b"[18446744073709551615,18446744073709551616,-9223372036854775809,1e400,NaN,-Infinity,0.1,1E3,-0.0]",
    );
    assert_eq!(
        result.json,
        json!([
            18_446_744_073_709_551_615_u64,
            "18446744073709551616",
            "-9223372036854775809",
            "1e400",
            "NaN",
            "-Infinity",
            0.1,
            1E3,
            -0.0
        ])
    );
    assert_eq!(result.notes, [WireNote::HugeNumber]);
}

#[test]
fn what_is_no_json_is_refused_with_the_place() {
    for (text, place) in [
        ("", "byte 0"),
        ("  ", "byte 0"),
        ("{\"a\":1", "byte 6"),
        ("{\"a\" 1}", "byte 5"),
        ("{a:1}", "byte 1"),
        ("[1,]", "byte 3"),
        ("[1 2]", "byte 3"),
        ("\"abc", "byte 0"),
        ("\"\\x\"", "byte 4"),
        ("tru", "byte 0"),
        ("01", "byte 0"),
        ("1.", "byte 0"),
        ("-", "byte 0"),
        ("{} {}", "byte 5"),
        ("Starting server", "byte 0"),
    ] {
        let failure = read(text.as_bytes(), "").unwrap_err();
        assert_eq!(failure.code(), ErrorCode::MalformedMessage, "{text:?}");
        assert!(
            failure.detail().ends_with(place),
            "{text:?}: {}",
            failure.detail()
        );
    }
}

#[test]
fn batches_and_messages_on_one_line_are_taken_apart() {
    let sink = FolderSink::new();
    let mut batch = Messages::new(b" [ {\"id\":1} , {\"id\":2}]", "/result", sink.as_ref());
    assert!(batch.enter_batch());
    let ids: Vec<Value> = std::iter::from_fn(|| batch.next_of_batch())
        .map(|next| next.unwrap().rest["id"].clone())
        .collect();
    assert_eq!(ids, [1, 2]);
    let mut line = Messages::new(b"{\"id\":1}{\"id\":2} ", "/result", sink.as_ref());
    assert!(!line.enter_batch());
    assert_eq!(
        line.by_ref()
            .map(|next| next.unwrap().rest["id"].clone())
            .collect::<Vec<_>>(),
        [1, 2]
    );
    let mut cut = Messages::new(b"[{\"id\":1},", "/result", sink.as_ref());
    assert!(cut.enter_batch());
    assert!(cut.next_of_batch().unwrap().is_ok());
    assert!(cut.next_of_batch().unwrap().is_err());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..8)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn valid_json_is_read_as_serde_json_reads_it(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let scrubbed = read(text.as_bytes(), "").unwrap();
        let result = scrubbed.result.unwrap();
        prop_assert_eq!(result.json.to_string(), expected.to_string());
        prop_assert!(result.notes.is_empty());
    }

    #[test]
    fn whatever_serde_json_reads_is_read_alike(
        text in "[\\[\\]{},:\"\\\\0-9eE.+\\- truefalsn]{0,24}"
    ) {
        if let Ok(expected) = serde_json::from_str::<Value>(&text) {
            let result = read(text.as_bytes(), "").unwrap().result.unwrap();
            if result.notes.is_empty() {
                prop_assert_eq!(result.json.to_string(), expected.to_string());
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        for result_at in ["", "/result"] {
            drop(read(&text, result_at));
        }
        let tail = text.get(text.len() / 2..);
        anchor(&text, tail);
    }

    #[test]
    fn no_cut_message_makes_it_panic(value in any_json(), cut in 0_usize..400) {
        let text = json!({ "jsonrpc": "2.0", "id": 1, "result": value }).to_string();
        let cut = &text.as_bytes()[..cut.min(text.len())];
        if cut.len() < text.len() {
            prop_assert!(read(cut, "/result").is_err());
            if cut.len() > 26 {
                prop_assert_eq!(anchor(cut, None), Anchor::Answer(1));
            }
        }
    }
}
