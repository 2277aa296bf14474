//! The largest documents: byte for byte through every transport, refused above the limit, with
//! bounded memory.

use std::path::Path;

use serde_json::{Value, json};
use talaria_testkit::payload::Spelling;
use talaria_testkit::script::{
    HttpScript, Pace, document_answer, document_answer_id_last, parts, payload_answer,
};
use talaria_testkit::{Action, HttpServer, Part, PayloadSpec, Script, Service, process, programs};

/// The limit of every binary.
const LIMIT: usize = 52_428_800;
const MIB: u64 = 1024 * 1024;

/// What the three ways a document arrives in may cost above idle, in MiB.
#[derive(Clone, Copy, Debug)]
enum Way {
    Stdio,
    HttpJson,
    HttpEvents,
}

impl Way {
    const ALL: [Self; 3] = [Self::Stdio, Self::HttpJson, Self::HttpEvents];

    const fn allowance(self) -> u64 {
        match self {
            Self::Stdio | Self::HttpJson => 200 * MIB,
            Self::HttpEvents => 280 * MIB,
        }
    }
}

/// A service whose server `s` answers through one of the ways.
struct Stage {
    service: Service,
    _server: Option<HttpServer>,
}

async fn stage(way: Way, script: Script) -> Stage {
    let script = script.text_tool("echo", "echoed");
    let builder = Service::builder(programs!()).unwrap();
    let sse = match way {
        Way::Stdio => {
            let service = builder.stdio("s", script).unwrap().start().await.unwrap();
            return Stage {
                service,
                _server: None,
            };
        }
        Way::HttpJson => false,
        Way::HttpEvents => true,
    };
    let http = HttpScript {
        sse,
        ..HttpScript::default()
    };
    let server = HttpServer::start(script.with_http(http)).unwrap();
    let service = builder.http("s", &server).start().await.unwrap();
    Stage {
        service,
        _server: Some(server),
    }
}

impl Stage {
    async fn call(&self, tool: &str) -> Value {
        self.service
            .call("s", tool, json!({}))
            .await
            .unwrap()
            .ok()
            .unwrap()
    }
}

fn document(bytes: usize) -> Script {
    Script::new("s").on_call(
        "t",
        [document_answer("x://h/big.bin", PayloadSpec::of(bytes))],
    )
}

fn assert_saved(delivery: &Value, payload: &PayloadSpec) {
    let artifact = &delivery["artifacts"][0];
    assert_eq!(artifact["bytes"], payload.bytes, "{delivery}");
    payload
        .compare_file(Path::new(artifact["path"].as_str().unwrap()))
        .unwrap();
    let text = delivery["text"].as_str().unwrap();
    assert!(text.len() < 2_000, "the text holds {} bytes", text.len());
}

#[tokio::test]
async fn b11_the_largest_document_arrives_byte_for_byte_within_its_memory() {
    for way in Way::ALL {
        let stage = stage(way, document(LIMIT)).await;
        // Warm: the first call of a process also pays for what it keeps.
        assert_eq!(stage.call("echo").await["text"], "echoed");
        process::reset_peak(stage.service.pid()).unwrap();
        let idle = stage.service.memory().unwrap().resident;
        let delivery = stage.call("t").await;
        let peak = stage.service.memory().unwrap().peak;
        assert_saved(&delivery, &PayloadSpec::of(LIMIT));
        let above = peak.saturating_sub(idle);
        assert!(
            above < way.allowance(),
            "{way:?}: {} MiB above idle",
            above / MIB
        );
    }
}

#[tokio::test]
async fn b12_one_byte_more_is_refused_after_decoding_and_two_before() {
    for way in Way::ALL {
        for (bytes, exact) in [(LIMIT + 1, true), (LIMIT + 2, false)] {
            let stage = stage(way, document(bytes)).await;
            let delivery = stage.call("t").await;
            assert_eq!(delivery["artifacts"], json!([]), "{way:?} {bytes}");
            let notice = &delivery["notices"][0];
            assert_eq!(notice["code"], "payload_too_large", "{delivery}");
            let message = notice["message"].as_str().unwrap();
            let digits: String = message.chars().filter(char::is_ascii_digit).collect();
            // Only after decoding is the size exact; before it, the length of the text tells it.
            assert_eq!(
                digits.contains(&bytes.to_string()),
                exact,
                "{way:?} {bytes}: {message}"
            );
            assert_eq!(stage.call("echo").await["text"], "echoed");
            let left = std::fs::read_dir(stage.service.cache().join("documents"));
            assert_eq!(left.map_or(0, Iterator::count), 0, "a file remains");
        }
    }
}

#[tokio::test]
async fn b14_spellings_of_the_largest_document_arrive_byte_for_byte() {
    for spelling in [Spelling::Wrapped, Spelling::EscapedSlash] {
        let payload = PayloadSpec::of(LIMIT).spelled(spelling);
        let script =
            Script::new("s").on_call("t", [document_answer("x://h/big.bin", payload.clone())]);
        let stage = stage(Way::Stdio, script).await;
        assert_saved(&stage.call("t").await, &payload);
    }
}

#[tokio::test]
async fn a_document_before_every_other_field_arrives_byte_for_byte() {
    let payload = PayloadSpec::of(9_000_001);
    for way in Way::ALL {
        let answer = document_answer_id_last("x://h/big.bin", payload.clone());
        let stage = stage(way, Script::new("s").on_call("t", [answer])).await;
        assert_saved(&stage.call("t").await, &payload);
    }
}

#[tokio::test]
async fn the_largest_image_and_audio_arrive_byte_for_byte() {
    // Noise, so that nothing is recognised and the declared type stands.
    let payload = PayloadSpec::of(LIMIT);
    let audio = payload_answer(
        "{\"content\":[{\"type\":\"audio\",\"mimeType\":\"audio/unknown-x\",\"data\":\"",
        payload.clone(),
        "\"}]}",
    );
    let gif = payload.clone().with_head("GIF89a");
    let image = payload_answer(
        "{\"content\":[{\"type\":\"image\",\"mimeType\":\"image/gif\",\"data\":\"",
        gif.clone(),
        "\"}]}",
    );
    let script = Script::new("s").on_call("t", [audio]).on_call("u", [image]);
    let stage = stage(Way::Stdio, script).await;
    assert_saved(&stage.call("t").await, &payload);
    assert_saved(&stage.call("u").await, &gif);
}

#[tokio::test]
async fn a_payload_repeated_in_structured_content_is_told_once() {
    let payload = PayloadSpec::of(300_000);
    let encoded: Vec<u8> = payload.encoded().flatten().collect();
    let data = String::from_utf8(encoded).unwrap();
    let result = json!({
        "content": [{"type": "resource", "resource": {
            "uri": "x://h/big.bin", "mimeType": "application/octet-stream", "blob": data,
        }}],
        "structuredContent": {"content": [{"blob": data}]},
    });
    let stage = stage(Way::Stdio, Script::new("s").tool("t", result)).await;
    let delivery = stage.call("t").await;
    assert_saved(&delivery, &payload);
    let told = delivery.to_string();
    assert!(told.len() < 5_000, "{} bytes", told.len());
    let codes: Vec<&Value> = delivery["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|notice| &notice["code"])
        .collect();
    assert!(codes.contains(&&json!("repeat_replaced")), "{codes:?}");
}

#[tokio::test]
async fn an_over_limit_document_grows_the_service_little() {
    let stage = stage(Way::Stdio, document(80_000_000)).await;
    assert_eq!(stage.call("echo").await["text"], "echoed");
    process::reset_peak(stage.service.pid()).unwrap();
    let idle = stage.service.memory().unwrap().resident;
    assert_eq!(
        stage.call("t").await["notices"][0]["code"],
        "payload_too_large"
    );
    let above = stage.service.memory().unwrap().peak.saturating_sub(idle);
    assert!(above < 200 * MIB, "{} MiB above idle", above / MIB);
}

#[tokio::test]
async fn a_long_text_is_spilled_whole_and_previewed() {
    let text: String = (0..60_000_u32)
        .map(|at| char::from(b'a' + (at % 26) as u8))
        .collect();
    let script = Script::new("s").on_call(
        "t",
        [Action::Answer {
            result: talaria_testkit::script::text_result(&text),
        }],
    );
    let stage = stage(Way::Stdio, script).await;
    let delivery = stage.call("t").await;
    let shown = delivery["text"].as_str().unwrap();
    assert!(shown.len() < 5_000, "{} characters are shown", shown.len());
    assert!(
        shown.starts_with(&text[..500]),
        "it begins as the text does"
    );
    let artifact = &delivery["artifacts"][0];
    assert_eq!(artifact["kind"], "text", "{artifact}");
    let path = artifact["path"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    assert!(shown.contains(path), "{shown}");
    assert_eq!(delivery["notices"][0]["code"], "text_spilled");
}

/// An answer whose structured content is a text many times over between two others.
fn repeated(before: &str, unit: &str, count: usize, after: &str) -> Action {
    let head = "{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":";
    let mut pieces = parts(head);
    pieces.push(Part::Text(before.to_owned()));
    pieces.push(Part::Repeat {
        unit: unit.to_owned(),
        count,
    });
    pieces.push(Part::Text(format!("{after}}}")));
    Action::Send {
        parts: pieces,
        pace: Pace::Fast,
    }
}

#[tokio::test]
async fn a_small_message_does_not_become_gigabytes() {
    let masses = [
        ("{\"structuredContent\":{\"a\":[", "{\"\":{}},", "0]}}"),
        ("{\"content\":[", "{},", "0]}"),
        ("{\"content\":[],\"_meta\":[", "0,", "0]}"),
    ];
    for (before, unit, after) in masses {
        let answer = repeated(before, unit, 3_000_000, after);
        let stage = stage(Way::Stdio, Script::new("s").on_call("t", [answer])).await;
        assert_eq!(stage.call("echo").await["text"], "echoed");
        process::reset_peak(stage.service.pid()).unwrap();
        let idle = stage.service.memory().unwrap().resident;
        let answer = stage.service.call("s", "t", json!({})).await.unwrap();
        let problem = answer.problem().unwrap();
        assert_eq!(problem["code"], "message_too_large", "{problem}");
        assert_eq!(problem["outcome_uncertain"], true, "the tool has run");
        let above = stage.service.memory().unwrap().peak.saturating_sub(idle);
        assert!(above < 500 * MIB, "{unit}: {} MiB above idle", above / MIB);
        assert_eq!(stage.call("echo").await["text"], "echoed");
    }
}

/// Every payload that is staged keeps its place, so the place must not be long.
#[tokio::test]
async fn a_long_key_around_many_payloads_grows_the_service_little() {
    let key = "k".repeat(1 << 20);
    let before = format!("{{\"content\":[],\"structuredContent\":{{\"{key}\":[");
    let unit = format!("{{\"data\":\"{}\"}},", "A".repeat(16 * 1024));
    let answer = repeated(&before, &unit, 500, "0]}}");
    let stage = stage(Way::Stdio, Script::new("s").on_call("t", [answer])).await;
    assert_eq!(stage.call("echo").await["text"], "echoed");
    process::reset_peak(stage.service.pid()).unwrap();
    let idle = stage.service.memory().unwrap().resident;
    stage.call("t").await;
    let above = stage.service.memory().unwrap().peak.saturating_sub(idle);
    assert!(above < 200 * MIB, "{} MiB above idle", above / MIB);
}
