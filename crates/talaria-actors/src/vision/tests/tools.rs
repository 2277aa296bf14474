//! Links that are tools of MCP servers.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::fake::{Behaviour, Connect, Fleet};

/// One backend `a`, then the tool `look` of the server `eyes`.
fn config(tool: &Value) -> Value {
    let mut vision = Stage::backends(&["a"]);
    vision["mcp_fallback"] = json!([tool]);
    json!({
        "auxiliary": { "vision": vision },
        "mcp_servers": { "eyes": { "command": "fake" } },
    })
}

fn look() -> Value {
    json!({ "server": "eyes", "tool": "look", "timeout": 60 })
}

fn said(text: &str) -> Behaviour {
    Behaviour::Say(json!({ "content": [{ "type": "text", "text": text }] }))
}

/// A stage whose backend fails and whose tool takes a path.
fn stage() -> Stage {
    stage_of(&config(&look()), &schema())
}

fn schema() -> Value {
    json!({
        "name": "look", "description": "Only jpeg, png, webp. image_source: URL or local file path.",
        "inputSchema": { "type": "object", "properties": {
            "prompt": { "type": "string" }, "image_source": { "type": "string" },
        }, "required": ["prompt", "image_source"] },
    })
}

fn stage_of(config: &Value, definition: &Value) -> Stage {
    let fleet = Fleet::default();
    fleet.server("eyes").offer_pages(vec![json!([definition])]);
    let stage = Stage::start_over(config, &fleet);
    stage.script("a", Does::Fail(FaultKind::Timeout));
    stage
}

#[test]
fn v11_the_tool_is_called_with_question_and_path_and_named() {
    on_moved_clock(async {
        let stage = stage();
        stage.server("eyes").behave("look", said("a cat"));
        let analysis = stage.ask(Some("What?")).await.unwrap();
        let answer = analysis.answer.as_ref().unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.via.as_str()),
            ("a cat", "mcp:eyes/look")
        );
        assert_eq!(outcomes(&analysis), ["timeout", "answered"]);
        let sent = stage.server("eyes").arguments();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0]["prompt"], "What?");
        let path = sent[0]["image_source"].as_str().unwrap();
        assert!(
            Path::new(path).is_absolute() && path.ends_with(".png"),
            "{path}"
        );
        // The copy goes away with the call.
        assert!(!Path::new(path).exists());
    });
}

#[test]
fn fr_007_a_stored_picture_is_lent_under_its_own_name() {
    on_moved_clock(async {
        let stage = stage();
        stage.server("eyes").behave("look", said("a cat"));
        stage.store_picture("shot.png");
        stage.ask(None).await.unwrap();
        let sent = stage.server("eyes").arguments();
        let own = stage.question(None).picture.path;
        assert_eq!(sent[0]["image_source"], own.to_str().unwrap());
        assert!(own.exists());
    });
}

#[test]
fn fr_205_what_the_tool_does_not_take_becomes_a_still_of_its_own_name() {
    on_moved_clock(async {
        let stage = stage();
        stage.server("eyes").behave("look", said("a cat"));
        // A GIF of one pixel.
        let gif =
            b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
        stage.write(gif);
        stage.store_picture("moving.gif");
        let release = stage.server("eyes").hold("look");
        let asking = stage.start(None, seconds(60));
        stage
            .until("called", || !stage.server("eyes").arguments().is_empty())
            .await;
        let sent = stage.server("eyes").arguments().remove(0);
        let path = sent["image_source"].as_str().unwrap();
        assert!(path.ends_with(".png") && path.starts_with('/'), "{path}");
        assert!(std::fs::read(path).unwrap().starts_with(b"\x89PNG"));
        release.notify_one();
        stage.all(vec![asking]).await.remove(0).unwrap();
        assert!(!Path::new(path).exists());
    });
}

#[test]
fn a_call_that_is_given_up_is_cancelled_and_leaves_no_file() {
    on_moved_clock(async {
        let stage = stage();
        let _never = stage.server("eyes").hold("look");
        let asking = stage.start(None, seconds(60));
        stage
            .until("called", || stage.server("eyes").calls("look") == 1)
            .await;
        let sent = stage.server("eyes").arguments().remove(0);
        let path = sent["image_source"].as_str().unwrap().to_owned();
        assert!(Path::new(&path).exists());
        asking.abort();
        let cancelled = crate::fake::Seen::Cancelled("look".to_owned());
        stage
            .until("cancelled", || stage.server("eyes").count(&cancelled) == 1)
            .await;
        assert!(!Path::new(&path).exists());
    });
}

#[test]
fn v12_a_server_that_does_not_connect_is_waited_for_five_seconds() {
    on_moved_clock(async {
        let fleet = Fleet::default();
        fleet.server("eyes").next_connects([Connect::Hang]);
        let stage = Stage::start_over(&config(&look()), &fleet);
        stage.script("a", Does::Fail(FaultKind::BadRequest));
        let (analysis, took) = stage.timed(stage.ask(None)).await;
        let analysis = analysis.unwrap();
        assert_eq!(outcomes(&analysis), ["bad_request", "not_connected"]);
        assert!(took >= seconds(5) && took < seconds(6), "{took:?}");
        let line = analysis.failure_line();
        assert!(
            line.contains("not connected") && line.contains("127.0.0.1:9/a"),
            "{line}"
        );
    });
}

#[test]
fn fr_207_a_server_that_becomes_ready_meanwhile_is_asked() {
    on_moved_clock(async {
        let fleet = Fleet::default();
        fleet
            .server("eyes")
            .next_connects([Connect::Fail(ErrorCode::ConnectFailed)]);
        fleet.server("eyes").offer_pages(vec![json!([schema()])]);
        fleet.server("eyes").behave("look", said("a cat"));
        let stage = Stage::start_over(&config(&look()), &fleet);
        stage.script("a", Does::Fail(FaultKind::BadRequest));
        let (analysis, took) = stage.timed(stage.ask(None)).await;
        assert_eq!(text(&analysis.unwrap()), "a cat");
        assert!(took < seconds(5), "{took:?}");
    });
}

#[test]
fn v13_a_tool_that_says_it_failed_is_reported_beside_the_first_failure() {
    on_moved_clock(async {
        let stage = stage();
        let failed = json!({ "isError": true, "content": [{ "type": "text", "text": "no eyes" }] });
        stage.server("eyes").behave("look", Behaviour::Say(failed));
        let analysis = stage.ask(None).await.unwrap();
        assert_eq!(outcomes(&analysis), ["timeout", "tool_error"]);
        let last = analysis.last_error().unwrap();
        assert!(
            last.detail.as_ref().unwrap().contains("no eyes"),
            "{last:?}"
        );
    });
}

#[test]
fn what_a_tool_says_is_judged_like_the_words_of_a_model() {
    for (words, outcome) in [
        ("\u{200b}\u{feff}", "empty"),
        ("I'm sorry, I can't see images.", "cannot_see"),
        ("I can't assist with that.", "refusal_only"),
        ("<think>what is it", "reasoning_only"),
    ] {
        on_moved_clock(async {
            let stage = stage();
            stage.server("eyes").behave("look", said(words));
            let analysis = stage.ask(None).await.unwrap();
            assert_eq!(outcomes(&analysis), ["timeout", outcome], "{words:?}");
        });
    }
}

#[test]
fn a_failure_told_as_text_is_no_description() {
    on_moved_clock(async {
        let stage = stage();
        let server = stage.server("eyes");
        server.behave("look", said("Failed to perform VLM analysis: login fail"));
        assert_eq!(
            outcomes(&stage.ask(None).await.unwrap()),
            ["timeout", "pattern_matched"]
        );
        server.behave("look", said("  "));
        assert_eq!(
            outcomes(&stage.ask(None).await.unwrap()),
            ["timeout", "empty"]
        );
        server.behave("look", said(&"x".repeat(1_100_000)));
        assert_eq!(
            outcomes(&stage.ask(None).await.unwrap()),
            ["timeout", "oversize"]
        );
    });
}

#[test]
fn an_error_is_no_description_however_it_is_told() {
    for (answer, outcome) in [
        (said("Error: API key invalid"), "pattern_matched"),
        (
            said("Traceback (most recent call last):\n"),
            "pattern_matched",
        ),
        (said(r#"{"error":"quota exceeded"}"#), "error_inside"),
        (
            said(r#"{"success": false, "message":"nope"}"#),
            "error_inside",
        ),
        (
            Behaviour::Say(json!({ "content": [], "structuredContent": { "error": "quota" } })),
            "error_inside",
        ),
    ] {
        on_moved_clock(async {
            let stage = stage();
            stage.server("eyes").behave("look", answer);
            assert_eq!(
                outcomes(&stage.ask(None).await.unwrap()),
                ["timeout", outcome]
            );
        });
    }
}

#[test]
fn a_description_of_an_error_is_one() {
    on_moved_clock(async {
        let stage = stage();
        let words = r#"A dialog: "Error: disk full", and below {"error":"quota"}."#;
        stage.server("eyes").behave("look", said(words));
        assert_eq!(text(&stage.ask(None).await.unwrap()), words);
    });
}

#[test]
fn calls_that_wait_in_our_own_queue_close_no_link() {
    on_moved_clock(async {
        let mut config = config(&look());
        config["talaria"] = json!({ "limits": { "pending_per_server": 4 } });
        let stage = stage_of(&config, &schema());
        let server = stage.server("eyes");
        let release = server.hold("look");
        let first = stage.start(Some("first"), seconds(120));
        stage
            .until("one holds the lock", || server.calls("look") == 1)
            .await;
        // An open breaker would answer for the server the second time.
        for _ in 0..2 {
            let waiting: Vec<_> = (0..12)
                .map(|number| stage.start(Some(&number.to_string()), seconds(20)))
                .collect();
            for one in stage.all(waiting).await {
                let analysis = one.unwrap();
                let last = analysis.last_error().unwrap();
                let words = last.detail.as_deref().unwrap_or_default();
                assert!(
                    words.contains("was not sent") || words.contains("too many calls"),
                    "{words}"
                );
            }
        }
        assert_eq!(server.calls("look"), 1);
        server.behave("look", said("a cat"));
        release.notify_one();
        stage.all(vec![first]).await.remove(0).unwrap();
        assert_eq!(text(&stage.ask(Some("Again?")).await.unwrap()), "a cat");
    });
}

#[test]
fn v14_a_picture_in_the_answer_is_nobodys_business() {
    on_moved_clock(async {
        let stage = stage();
        let answer = json!({ "content": [
            { "type": "text", "text": "a cat" },
            { "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" },
        ] });
        stage.server("eyes").behave("look", Behaviour::Say(answer));
        assert_eq!(text(&stage.ask(None).await.unwrap()), "a cat");
        assert_eq!(stage.server("eyes").calls("look"), 1);
    });
}

#[test]
fn fr_204_a_tool_that_takes_no_path_gets_the_picture_itself() {
    on_moved_clock(async {
        let described = |words: &str| json!({ "type": "string", "description": words });
        for (words, begins) in [
            (
                "HTTP/HTTPS URL or data: URL. Local paths are not supported.",
                "data:image/png;base64,iVBORw0KGgo",
            ),
            ("base64-encoded bytes", "iVBORw0KGgo"),
        ] {
            let definition = json!({ "name": "look", "inputSchema": {
                "properties": { "image": described(words) }, "required": ["image"],
            } });
            let stage = stage_of(&config(&look()), &definition);
            stage.server("eyes").behave("look", said("a cat"));
            stage.ask(None).await.unwrap();
            let sent = stage.server("eyes").arguments().remove(0);
            assert!(
                sent["image"].as_str().unwrap().starts_with(begins),
                "{sent}"
            );
            assert_eq!(sent.as_object().unwrap().len(), 1);
        }
    });
}

#[test]
fn the_address_of_our_store_is_sent_only_where_the_operator_says_so() {
    on_moved_clock(async {
        let mut tool = look();
        tool["image_form"] = json!("url");
        let stage = stage_of(&config(&tool), &schema());
        stage.server("eyes").behave("look", said("a cat"));
        stage.ask(None).await.unwrap();
        let sent = stage.server("eyes").arguments().remove(0);
        let url = sent["image_source"].as_str().unwrap();
        assert!(
            url.starts_with("http://127.0.0.1:8700/v1/artifacts/art_"),
            "{url}"
        );
    });
}

#[test]
fn a_tool_that_is_not_there_or_takes_no_picture_is_told_so() {
    on_moved_clock(async {
        let mut tool = look();
        tool["tool"] = json!("other");
        let stage = stage_of(&config(&tool), &schema());
        assert_eq!(
            outcomes(&stage.ask(None).await.unwrap()),
            ["timeout", "unknown_tool"]
        );
        let blind = json!({ "name": "look", "inputSchema": {
            "properties": { "city": { "type": "integer" } },
        } });
        let stage = stage_of(&config(&look()), &blind);
        assert_eq!(
            outcomes(&stage.ask(None).await.unwrap()),
            ["timeout", "misconfigured"]
        );
        assert_eq!(stage.server("eyes").calls("look"), 0);
    });
}

#[test]
fn a_hundred_descriptions_do_not_lock_up_behind_a_server_that_is_held() {
    on_moved_clock(async {
        let mut held = config(&look());
        held["talaria"] = json!({ "vision": { "total_timeout": "20s" } });
        let stage = stage_of(&held, &schema());
        let server = stage.server("eyes");
        let release = server.hold("look");
        let waiting: Vec<_> = (0..100)
            .map(|number| stage.start(Some(&number.to_string()), seconds(60)))
            .collect();
        stage
            .until("one holds the lock", || server.calls("look") == 1)
            .await;
        for one in stage.all(waiting).await {
            let analysis = one.unwrap();
            assert!(analysis.answer.is_none());
            assert!(analysis.elapsed_ms < 20_500, "{}", analysis.elapsed_ms);
        }
        stage.until("nothing runs", || stage.running() == 0).await;
        release.notify_one();
        server.behave("look", said("a cat"));
        // The breaker of the server was opened meanwhile, or not: either way it comes back.
        stage.pass(seconds(60)).await;
        assert_eq!(text(&stage.ask(Some("Again?")).await.unwrap()), "a cat");
    });
}
