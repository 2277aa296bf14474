//! Messages that are too large, not JSON, cut, noisy or odd (design decisions 2, 25 and 26).

use serde_json::json;
use talaria_testkit::script::{
    Pace, ProcessAction, document_answer, document_answer_id_last, parts, raw, text_result,
};
use talaria_testkit::{Action, Part, PayloadSpec, Script};

use crate::stage::{
    AT_ONCE, assert_alive, assert_fails_alone, call, pid, start, text_of_call, timed, with,
};

/// Four MiB where one is allowed.
const OVERSIZE: usize = 4 * 1024 * 1024;

/// An answer with a text, spelled by hand around it.
fn around(before: &str, after: &str) -> Action {
    raw(&format!(
        "{before}{{\"content\":[{{\"type\":\"text\",\"text\":\"ok\"}}]}}{after}"
    ))
}

#[tokio::test]
async fn an_oversize_message_fails_its_call_wherever_its_id_stands() {
    let payload = PayloadSpec::of(OVERSIZE);
    for answer in [
        document_answer("x://h/big", payload.clone()),
        document_answer_id_last("x://h/big", payload.clone()),
    ] {
        let service = with(Script::new("s").on_call("t", [answer]))
            .set(&["talaria", "limits", "message_bytes"], "1MiB")
            .start()
            .await
            .unwrap();
        let problem = assert_fails_alone(&service, "message_too_large").await;
        assert_eq!(problem["outcome_uncertain"], true, "the tool has run");
        let faults = service.metrics().await.unwrap();
        let labels = [("server", "s"), ("code", "message_too_large")];
        assert_eq!(
            faults.value("talaria_wire_faults_total", &labels).unwrap(),
            1.0
        );
    }
}

#[tokio::test]
async fn an_oversize_message_leaves_the_other_call_of_its_server_alone() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let waits = [
        Action::AwaitFile { path: gate.clone() },
        Action::Answer {
            result: text_result("patient"),
        },
    ];
    let script = Script::new("s")
        .on_call(
            "t",
            [document_answer("x://h/big", PayloadSpec::of(OVERSIZE))],
        )
        .on_call("slow", waits);
    let service = with(script)
        .set(&["talaria", "limits", "message_bytes"], "1MiB")
        .set(&["mcp_servers", "s", "rpc_concurrency"], 2)
        .start()
        .await
        .unwrap();
    let slow = service.call("s", "slow", json!({}));
    let meanwhile = async {
        service
            .wait_record("s", "the slow call", AT_ONCE, |record| record.calls("slow"))
            .await
            .unwrap();
        assert_eq!(call(&service).await.code().unwrap(), "message_too_large");
        std::fs::write(&gate, "").unwrap();
    };
    let (slow, ()) = tokio::join!(slow, meanwhile);
    assert_eq!(slow.unwrap().ok().unwrap()["text"], "patient");
}

#[tokio::test]
async fn an_oversize_line_that_is_no_answer_costs_that_line() {
    let noise = Action::Send {
        parts: vec![Part::Repeat {
            unit: "noise ".to_owned(),
            count: OVERSIZE / 6,
        }],
        pace: Pace::Fast,
    };
    let script = Script::new("s").on_call(
        "t",
        [
            noise,
            Action::Answer {
                result: text_result("ok"),
            },
        ],
    );
    let service = with(script)
        .set(&["talaria", "limits", "message_bytes"], "1MiB")
        .start()
        .await
        .unwrap();
    assert_eq!(text_of_call(&service).await, "ok");
}

#[tokio::test]
async fn an_answer_that_is_not_json_fails_its_call_at_once() {
    for broken in [
        "{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{]}",
        "{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"cut",
        "{\"result\":{\"content\":[}],\"jsonrpc\":\"2.0\",\"id\":{id}}",
    ] {
        let service = start(Script::new("s").on_call("t", [raw(broken)])).await;
        let problem = assert_fails_alone(&service, "malformed_message").await;
        assert_eq!(problem["outcome_uncertain"], true, "the tool has run");
    }
}

#[tokio::test]
async fn noise_on_stdout_costs_its_lines_and_nothing_else() {
    let script = Script::new("s")
        .at_start([
            raw("Starting the server..."),
            raw(""),
            raw("{\"level\":\"info\"}"),
            raw("[1,2]"),
        ])
        .on_call(
            "t",
            [
                raw("debug: called"),
                raw("\u{1b}[32mgreen\u{1b}[0m"),
                Action::Answer {
                    result: text_result("ok"),
                },
            ],
        );
    let service = start(script).await;
    assert_eq!(text_of_call(&service).await, "ok");
}

#[tokio::test]
async fn oddly_spelled_answers_are_understood() {
    for (before, after) in [
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":", "}"),
        ("  {\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":", "}\r"),
        ("{\"id\":{id},\"result\":", "}"),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":null,\"result\":",
            "}",
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":", "}"),
        ("{\"jsonrpc\":\"2.0\",\"id\":{id}.0,\"result\":", "}"),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{id},\"extra\":{\"a\":[1]},\"result\":",
            "}",
        ),
    ] {
        let service = start(Script::new("s").on_call("t", [around(before, after)])).await;
        let answer = call(&service).await;
        assert_eq!(
            answer.ok().unwrap()["text"],
            "ok",
            "spelled {before}…{after}"
        );
    }
}

#[tokio::test]
async fn a_lone_surrogate_becomes_a_replacement_character() {
    let answer = raw(
        "{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[{\"type\":\"text\",\
         \"text\":\"a\\ud83d b\\udc00 \\ud83c\\udf88\"}]}}",
    );
    let service = start(Script::new("s").on_call("t", [answer])).await;
    let delivery = call(&service).await.ok().unwrap();
    assert_eq!(delivery["text"], "a\u{fffd} b\u{fffd} \u{1f388}");
    assert_eq!(
        delivery["notices"][0]["code"], "message_mended",
        "{delivery}"
    );
}

#[tokio::test]
async fn bytes_that_are_not_utf8_become_replacement_characters() {
    let mut pieces = parts(
        "{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a",
    );
    // The byte FF stands in no UTF-8 text.
    pieces.push(Part::Bytes("/w==".to_owned()));
    pieces.push(Part::Text("b\"}]}}".to_owned()));
    let answer = Action::Send {
        parts: pieces,
        pace: Pace::Fast,
    };
    let service = start(Script::new("s").on_call("t", [answer])).await;
    let delivery = call(&service).await.ok().unwrap();
    assert_eq!(delivery["text"], "a\u{fffd}b");
    assert_eq!(
        delivery["notices"][0]["code"], "message_mended",
        "{delivery}"
    );
}

#[tokio::test]
async fn a_value_nested_too_deep_costs_that_value() {
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let answer = raw(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{{\"content\":[{{\"type\":\"text\",\
         \"text\":\"ok\"}}],\"structuredContent\":{{\"deep\":{deep}}}}}}}"
    ));
    let service = start(Script::new("s").on_call("t", [answer])).await;
    let delivery = call(&service).await.ok().unwrap();
    assert!(
        delivery["text"].as_str().unwrap().starts_with("ok"),
        "{}",
        delivery["text"]
    );
}

#[tokio::test]
async fn odd_blocks_and_fields_cost_themselves() {
    let result = json!({
        "content": [
            null, 7, "loose", {}, {"type": null}, {"type": "text"}, {"type": "text", "text": null},
            {"type": "image", "data": null, "mimeType": null}, {"type": "hologram", "x": [1]},
            {"type": "text", "text": "ok", "annotations": null, "_meta": 5},
        ],
        "isError": null, "structuredContent": null, "_meta": [],
    });
    let service = start(Script::new("s").tool("t", result)).await;
    let delivery = call(&service).await.ok().unwrap();
    assert!(
        delivery["text"]
            .as_str()
            .unwrap()
            .lines()
            .any(|line| line == "ok"),
        "{delivery}"
    );
    assert_eq!(delivery["is_error"], false);
    let metrics = service.metrics().await.unwrap();
    assert_eq!(metrics.sum("talaria_blocks_received_total", &[]), 10.0);
    assert_eq!(metrics.sum("talaria_blocks_settled_total", &[]), 10.0);
}

#[tokio::test]
async fn an_answer_to_nothing_is_ignored() {
    let script = Script::new("s").on_call(
        "t",
        [
            raw("{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{\"content\":[]}}"),
            Action::Answer {
                result: text_result("right"),
            },
        ],
    );
    assert_eq!(text_of_call(&start(script).await).await, "right");
}

#[tokio::test]
async fn the_first_of_two_answers_counts() {
    let script = Script::new("s").on_call(
        "t",
        [
            Action::Answer {
                result: text_result("first"),
            },
            Action::Answer {
                result: text_result("second"),
            },
        ],
    );
    let service = start(script).await;
    let pid = pid(&service).await;
    for _ in 0..3 {
        assert_eq!(text_of_call(&service).await, "first");
    }
    assert_alive(&service, &pid).await;
}

#[tokio::test]
async fn fr_132_a_text_written_byte_by_byte_arrives_intact() {
    let said = "Preis \u{2014} \u{5b8c}\u{6210} \u{1f388} ok";
    let line = json!({"content": [{"type": "text", "text": said}]});
    let answer = Action::Send {
        parts: parts(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{line}}}"
        )),
        pace: Pace::Drip,
    };
    assert_eq!(
        text_of_call(&start(Script::new("s").on_call("t", [answer])).await).await,
        said
    );
}

#[tokio::test]
async fn fr_133_a_large_line_ended_by_crlf_is_read_whole() {
    let payload = PayloadSpec::of(8 * 1024 * 1024);
    let answer = Action::Send {
        parts: vec![
            Part::Text("{\"jsonrpc\":\"2.0\",\"id\":".to_owned()),
            Part::Id,
            Part::Text(
                ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"},{\"type\":\
                 \"resource\",\"resource\":{\"uri\":\"x://h/big\",\"mimeType\":\
                 \"application/octet-stream\",\"blob\":\""
                    .to_owned(),
            ),
            Part::Payload(payload.clone()),
            Part::Text("\"}}]}}\r".to_owned()),
        ],
        pace: Pace::Fast,
    };
    let service = start(Script::new("s").on_call("t", [answer])).await;
    for _ in 0..2 {
        let delivery = call(&service).await.ok().unwrap();
        assert!(delivery["text"].as_str().unwrap().starts_with("ok"));
        let path = delivery["artifacts"][0]["path"].as_str().unwrap();
        payload.compare_file(path.as_ref()).unwrap();
    }
}

#[tokio::test]
async fn a_flood_on_stderr_delays_nothing_and_its_log_is_bounded() {
    let script = Script::new("s").on_call(
        "t",
        [
            ProcessAction::Stderr { bytes: 30_000_000 }.into(),
            Action::Answer {
                result: text_result("ok"),
            },
        ],
    );
    let service = with(script)
        .set(&["talaria", "limits", "stderr_log_bytes"], "1MiB")
        .start()
        .await
        .unwrap();
    let (said, took) = timed(text_of_call(&service)).await;
    assert_eq!(said, "ok");
    assert!(took < AT_ONCE * 4, "it took {took:?}");
    let logs = service.home().join("talaria/logs");
    let logged: u64 = std::fs::read_dir(&logs)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(logged > 0, "nothing was logged to {}", logs.display());
    assert!(logged <= 3 * 1024 * 1024, "{logged} bytes of log");
}

#[tokio::test]
async fn an_error_of_the_server_is_told_redacted() {
    let words = "no such thing; token ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let fail = Action::Fail {
        code: -32050,
        message: words.to_owned(),
    };
    let service = start(Script::new("s").on_call("t", [fail])).await;
    let problem = assert_fails_alone(&service, "server_error").await;
    let said = problem.to_string();
    assert!(said.contains("no such thing"), "{said}");
    assert!(!said.contains("ghp_"), "{said}");
    assert_eq!(problem["outcome_uncertain"], false, "the server answered");
}

#[tokio::test]
async fn an_error_with_an_unlikely_code_is_still_an_error() {
    for code in ["1e30", "-32000.5", "\"E42\"", "null"] {
        let answer = raw(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"error\":{{\"code\":{code},\"message\":\"odd\"}}}}"
        ));
        let service = start(Script::new("s").on_call("t", [answer])).await;
        let problem = assert_fails_alone(&service, "server_error").await;
        assert!(
            problem["detail"].as_str().unwrap().contains("odd"),
            "{problem}"
        );
    }
}
