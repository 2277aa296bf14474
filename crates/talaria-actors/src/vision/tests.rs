//! The vision actor over scripted backends and servers, on one clock that the tests move.

mod limits;
mod sharing;
pub(crate) mod stage;
mod tools;

use std::time::Duration;

use talaria_types::{Deadline, ErrorCode, NoticeCode};
use talaria_vision::describe::FaultKind;

use super::*;
use stage::{Does, Stage, on_moved_clock};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The codes of the attempts in their order.
fn outcomes(analysis: &Analysis) -> Vec<&'static str> {
    analysis.attempts.iter().map(|it| it.outcome).collect()
}

fn text(analysis: &Analysis) -> &str {
    analysis.answer.as_ref().map_or("", |it| it.text.as_str())
}

#[test]
fn the_first_link_that_answers_is_named() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a", "b"]).await;
        stage.script("a", Does::Fail(FaultKind::Auth));
        stage.script("b", Does::Say("a cat"));
        let analysis = stage.ask(Some("What?")).await.unwrap();
        let answer = analysis.answer.as_ref().unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.via.as_str()),
            ("a cat", "127.0.0.1:9/b")
        );
        assert!(!answer.is_reasoning && answer.scale_note.is_none());
        assert_eq!(outcomes(&analysis), ["auth", "answered"]);
        assert!(stage.seen("a")[0].prompt.ends_with("\nWhat?"));
        assert!(!analysis.cached && !analysis.coalesced);
    });
}

#[test]
fn v08_everybody_who_failed_is_reported() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a", "b"]).await;
        stage.script("a", Does::Fail(FaultKind::BadRequest));
        stage.script("b", Does::Fail(FaultKind::Quota));
        let analysis = stage.ask(None).await.unwrap();
        assert!(analysis.answer.is_none());
        assert_eq!(outcomes(&analysis), ["bad_request", "quota"]);
        assert_eq!(analysis.first_error().unwrap().via, "127.0.0.1:9/a");
        assert_eq!(analysis.last_error().unwrap().via, "127.0.0.1:9/b");
    });
}

#[test]
fn fr_185_reasoning_is_said_to_be_reasoning() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Reason("It may be a cat"));
        let answer = stage.ask(None).await.unwrap().answer.unwrap();
        assert!(answer.is_reasoning && answer.text == "It may be a cat");
    });
}

#[test]
fn fr_192_the_second_picture_has_fewer_bytes() {
    on_moved_clock(async {
        for (side, noise) in [
            (64, false),
            (64, true),
            (32, false),
            (900, true),
            (3_000, false),
        ] {
            let stage = Stage::chain(&["a"]).await;
            stage.picture(side, noise);
            stage.script("a", Does::Fail(FaultKind::TooLarge));
            let analysis = stage.ask(None).await.unwrap();
            let sent = stage.seen("a");
            let lengths: Vec<usize> = sent.iter().map(|it| it.picture.base64.len()).collect();
            match lengths.as_slice() {
                [first, second] => assert!(second < first, "{side}: {lengths:?}"),
                [_] => assert_eq!(outcomes(&analysis), ["too_large", "unsendable"], "{side}"),
                _ => panic!("{side}: {lengths:?}"),
            }
            if side != 32 {
                assert_eq!(lengths.len(), 2, "{side}");
            }
        }
    });
}

#[test]
fn fr_038_no_side_that_is_sent_is_under_28_pixels() {
    on_moved_clock(async {
        for side in [1, 2, 27] {
            let stage = Stage::chain(&["a"]).await;
            stage.picture(side, false);
            stage.script("a", Does::Say("a dot"));
            assert_eq!(text(&stage.ask(None).await.unwrap()), "a dot");
            let (width, height) = stage.seen("a")[0].size();
            assert!(width >= 28 && height >= 28, "{width}×{height}");
        }
    });
}

#[test]
fn a_region_is_cut_out_before_anything_is_scaled() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.picture(4_000, false);
        stage.script("a", Does::Say("a corner"));
        let mut question = stage.question(None);
        question.region = Some(Region {
            x1: 100,
            y1: 100,
            x2: 500,
            y2: 300,
        });
        let analysis = stage.ask_this(question).await.unwrap();
        assert_eq!(stage.seen("a")[0].size(), (400, 200));
        assert!(analysis.answer.unwrap().scale_note.is_some());
        let whole = stage.ask(None).await.unwrap().answer.unwrap();
        assert_eq!(stage.seen("a")[1].size(), (1_568, 1_568));
        assert!(whole.scale_note.unwrap().contains("4000"));
    });
}

#[test]
fn a_callers_own_mistake_reaches_nobody() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Say("never"));
        let mut outside = stage.question(None);
        outside.region = Some(Region {
            x1: 900,
            y1: 900,
            x2: 999,
            y2: 999,
        });
        let refused = stage.ask_this(outside).await.unwrap_err();
        assert_eq!(refused.failure.code(), ErrorCode::InvalidRequest);
        stage.write(b"<!doctype html><p>gone");
        let refused = stage.ask(None).await.unwrap_err();
        assert_eq!(refused.failure.code(), ErrorCode::NotAnImage);
        assert_eq!(refused.notice, NoticeCode::NotAnImage);
        std::fs::remove_file(&stage.question(None).picture.path).unwrap();
        let refused = stage.ask(None).await.unwrap_err();
        assert_eq!(refused.failure.code(), ErrorCode::MediaUnavailable);
        assert!(stage.seen("a").is_empty());
    });
}

#[test]
fn without_a_chain_it_says_what_to_configure() {
    on_moved_clock(async {
        let stage = Stage::chain(&[]).await;
        let refused = stage.ask(None).await.unwrap_err();
        assert_eq!(refused.failure.code(), ErrorCode::VisionNotConfigured);
        assert!(refused.failure.detail().contains("auxiliary.vision"));
    });
}

#[test]
fn a_hedge_answers_for_a_slow_link_which_is_given_up() {
    on_moved_clock(async {
        let stage = Stage::with(&serde_json::json!({
            "auxiliary": { "vision": Stage::backends(&["a", "b"]) },
            "talaria": { "vision": { "hedge_after": "3s" } },
        }))
        .await;
        stage.script("a", Does::Stall);
        stage.script("b", Does::Say("a cat"));
        let (analysis, took) = stage.timed(stage.ask(None)).await;
        let analysis = analysis.unwrap();
        assert_eq!(text(&analysis), "a cat");
        assert!(
            took >= seconds(3) && took < Duration::from_millis(3_500),
            "{took:?}"
        );
        assert_eq!(outcomes(&analysis), ["answered", "cancelled"]);
        assert_eq!(stage.open(), 0);
    });
}

#[test]
fn a_link_that_breaks_us_costs_itself_and_an_actor_that_dies_is_followed_by_another() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a", "b"]).await;
        stage.script("a", Does::Panic);
        stage.script("b", Does::Say("a cat"));
        assert_eq!(
            outcomes(&stage.ask(None).await.unwrap()),
            ["unsendable", "answered"]
        );
        stage.end_actor().await;
        assert_eq!(text(&stage.ask(Some("Again?")).await.unwrap()), "a cat");
    });
}

#[test]
fn what_is_under_way_is_given_up_at_the_end() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Stall);
        let waiting = stage.start(None, seconds(60));
        stage.until("asked", || stage.open() == 1).await;
        let (vision, soon) = (stage.vision.clone(), Deadline::after(seconds(2)));
        let idle = talaria_types::runtime::spawn_local("test wait", async move {
            vision.idle(soon).await;
        });
        stage.until("waited", || idle.is_finished()).await;
        assert!(soon.expired() && stage.running() == 1);
        stage.vision.close(Deadline::after(seconds(5))).await;
        let refused = waiting.await.unwrap().unwrap_err();
        assert_eq!(refused.failure.code(), ErrorCode::ShuttingDown);
        assert_eq!(stage.open(), 0);
        let refused = stage.ask(None).await.unwrap_err();
        assert_eq!(refused.failure.code(), ErrorCode::ShuttingDown);
        stage.vision.close(Deadline::after(seconds(5))).await;
    });
}
