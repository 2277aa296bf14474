//! Deadlines, places, and nothing left behind.

use std::collections::BTreeSet;

use super::*;

#[test]
fn two_hundred_stalled_descriptions_end_on_time_and_leave_nothing() {
    on_moved_clock(async {
        let stage = Stage::with(&serde_json::json!({
            "auxiliary": { "vision": Stage::backends(&["a", "b", "c"]) },
            "talaria": { "vision": { "total_timeout": "5s" } },
        }))
        .await;
        for link in ["a", "b", "c"] {
            stage.script(link, Does::Stall);
        }
        let waiting: Vec<_> = (0..200)
            .map(|number| stage.start(Some(&format!("What is {number}?")), seconds(600)))
            .collect();
        for one in stage.all(waiting).await {
            let analysis = one.unwrap();
            assert!(
                (5_000..5_500).contains(&analysis.elapsed_ms),
                "{}",
                analysis.elapsed_ms
            );
            assert_eq!(outcomes(&analysis), ["timeout"; 3]);
            assert!(analysis.ran_out_of_time());
        }
        assert_eq!((stage.open(), stage.most_open()), (0, 200));
        stage.until("nothing runs", || stage.running() == 0).await;
    });
}

#[test]
fn a_small_queue_for_pictures_is_shared_and_one_picture_prepared_once() {
    on_moved_clock(async {
        let mut config = serde_json::json!({ "auxiliary": { "vision": Stage::backends(&["a"]) } });
        config["talaria"] = serde_json::json!({ "images": { "queue": 2 } });
        let stage = Stage::with(&config).await;
        stage.script("a", Does::Take(seconds(1), "a cat"));
        let same: Vec<_> = (0..40)
            .map(|number| stage.start(Some(&number.to_string()), seconds(60)))
            .collect();
        let mut waiting = same;
        for side in 40..60 {
            stage.picture(side, true);
            waiting.push(stage.start(None, seconds(60)));
        }
        for one in stage.all(waiting).await {
            assert_eq!(text(&one.unwrap()), "a cat");
        }
    });
}

#[test]
fn a_caller_with_less_time_gets_what_there_is_and_the_chain_keeps_its_turns() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a", "b"]).await;
        stage.script("a", Does::Stall);
        stage.script("b", Does::Say("a cat"));
        let (analysis, took) = stage.timed(stage.ask_within(None, seconds(20))).await;
        assert_eq!(outcomes(&analysis.unwrap()), ["timeout", "answered"]);
        assert!(took >= seconds(10) && took < seconds(11), "{took:?}");
    });
}

#[test]
fn more_than_256_are_refused_at_once() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Stall);
        let waiting: Vec<_> = (0..256)
            .map(|number| stage.start(Some(&number.to_string()), seconds(30)))
            .collect();
        stage.until("256 run", || stage.running() == 256).await;
        let refused = stage.ask(Some("one more")).await.unwrap_err();
        assert_eq!(refused.failure.code(), ErrorCode::Busy);
        assert_eq!(refused.notice, NoticeCode::ImageBusy);
        assert!(refused.failure.retry_hint().is_some());
        let codes: BTreeSet<_> = stage
            .all(waiting)
            .await
            .into_iter()
            .map(|one| outcomes(&one.unwrap()))
            .collect();
        assert_eq!(codes, BTreeSet::from([vec!["timeout"]]));
        // A backend that silent is left alone for a while.
        stage.pass(seconds(31)).await;
        stage.script("a", Does::Say("a cat"));
        assert!(stage.ask(Some("one more")).await.unwrap().answer.is_some());
    });
}

#[test]
fn the_configured_number_is_asked_at_a_time_and_the_others_wait() {
    on_moved_clock(async {
        let mut vision = Stage::backends(&["a"]);
        vision["max_concurrency"] = serde_json::json!(2);
        let stage = Stage::with(&serde_json::json!({ "auxiliary": { "vision": vision } })).await;
        stage.script("a", Does::Take(seconds(2), "a cat"));
        let waiting: Vec<_> = (0..5)
            .map(|number| stage.start(Some(&number.to_string()), seconds(60)))
            .collect();
        for one in stage.all(waiting).await {
            assert_eq!(text(&one.unwrap()), "a cat");
        }
        assert_eq!(stage.most_open(), 2);
    });
}

#[test]
fn a_frozen_loop_costs_its_callers_no_more_than_their_time() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Say("a cat"));
        stage.freeze().await;
        let (refused, took) = stage.timed(stage.ask_within(None, seconds(5))).await;
        assert_eq!(refused.unwrap_err().failure.code(), ErrorCode::Timeout);
        assert!(took >= seconds(5) && took < seconds(6), "{took:?}");
    });
}

#[test]
fn an_analysis_that_nobody_began_in_time_ends_as_one_that_took_too_long() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Say("a cat"));
        stage.freeze().await;
        let (vision, question) = (stage.vision.clone(), stage.question(None));
        let ctx = talaria_types::CallContext::new(Deadline::after(seconds(5)));
        let analysing = talaria_types::runtime::spawn_local("test question", async move {
            vision.analyze(&ctx, question).await
        });
        stage.until("answered", || analysing.is_finished()).await;
        let refused = analysing.await.unwrap().unwrap_err();
        assert_eq!(refused.code(), ErrorCode::VisionTimeout);
    });
}
