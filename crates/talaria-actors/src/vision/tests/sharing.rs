//! One description for many requests.

use super::*;

#[test]
fn the_same_question_is_asked_once_and_answered_to_everybody() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Take(seconds(3), "a cat"));
        let first = stage.start(Some("What?"), seconds(60));
        stage.until("asked", || stage.open() == 1).await;
        let others: Vec<_> = (0..9)
            .map(|_| stage.start(Some(" What?\n"), seconds(60)))
            .collect();
        let other_question = stage.start(Some("Where?"), seconds(60));
        let first = stage.all(vec![first]).await.remove(0).unwrap();
        assert!(!first.coalesced && text(&first) == "a cat");
        for other in stage.all(others).await {
            let other = other.unwrap();
            assert!(other.coalesced && !other.cached && text(&other) == "a cat");
        }
        assert!(
            !stage
                .all(vec![other_question])
                .await
                .remove(0)
                .unwrap()
                .coalesced
        );
        assert_eq!(stage.seen("a").len(), 2);
    });
}

#[test]
fn whoever_leaves_leaves_the_others_waiting_and_the_last_one_ends_it() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Take(seconds(30), "a cat"));
        let first = stage.start(None, seconds(60));
        stage.until("asked", || stage.open() == 1).await;
        let second = stage.start(None, seconds(60));
        stage.pass(seconds(1)).await;
        first.abort();
        stage.pass(seconds(1)).await;
        assert_eq!(stage.open(), 1);
        second.abort();
        stage
            .until("given up", || stage.open() == 0 && stage.running() == 0)
            .await;
        assert_eq!(stage.seen("a").len(), 1);
    });
}

#[test]
fn somebody_with_much_less_time_is_not_made_to_wait_for_a_long_first_link() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a", "b"]).await;
        stage.script("a", Does::Stall);
        stage.script("b", Does::Say("a cat"));
        let patient = stage.start(None, seconds(180));
        stage.until("asked", || stage.open() == 1).await;
        let (hasty, took) = stage.timed(stage.ask_within(None, seconds(15))).await;
        assert_eq!(text(&hasty.unwrap()), "a cat");
        assert!(took < seconds(7), "{took:?}");
        patient.abort();
        stage.until("given up", || stage.open() == 0).await;
    });
}

#[test]
fn somebody_with_much_more_time_gets_a_description_of_its_own_which_the_next_ones_share() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a", "b"]).await;
        stage.script("a", Does::Stall);
        stage.script("b", Does::Take(seconds(12), "a cat"));
        let hasty = stage.start(None, seconds(20));
        stage.until("asked", || stage.open() == 1).await;
        let patient = stage.start(None, seconds(150));
        stage.until("both asked", || stage.open() == 2).await;
        let alike = stage.start(None, seconds(160));
        let hasty = stage.all(vec![hasty]).await.remove(0).unwrap();
        assert_eq!(outcomes(&hasty), ["timeout", "timeout"]);
        let theirs = stage.all(vec![patient, alike]).await;
        let shared = theirs.into_iter().map(|one| {
            let one = one.unwrap();
            assert_eq!(text(&one), "a cat");
            one.coalesced
        });
        assert_eq!(shared.collect::<Vec<_>>(), [false, true]);
    });
}

/// A chain that asks one at a time, and is busy with something else.
async fn occupied() -> Stage {
    let mut vision = Stage::backends(&["a"]);
    vision["max_concurrency"] = serde_json::json!(1);
    let stage = Stage::with(&serde_json::json!({ "auxiliary": { "vision": vision } })).await;
    stage.script("a", Does::Take(seconds(15), "a cat"));
    let other = stage.start(Some("Something else?"), seconds(60));
    stage.until("asked", || stage.open() == 1).await;
    drop(other);
    stage
}

#[test]
fn nobody_loses_time_to_somebody_who_waits_for_a_turn_with_less() {
    on_moved_clock(async {
        let stage = occupied().await;
        let hasty = stage.start(None, seconds(2));
        stage.until("both wait", || stage.running() == 2).await;
        let patient = stage.start(None, seconds(180));
        let mut both = stage.all(vec![hasty, patient]).await;
        assert_eq!(text(&both.remove(1).unwrap()), "a cat");
        let late = both.remove(0).unwrap_err();
        assert_eq!(late.failure.code(), ErrorCode::Timeout);
    });
}

#[test]
fn whoever_leaves_before_anybody_was_asked_is_told_that_time_was_over() {
    on_moved_clock(async {
        let stage = occupied().await;
        let first = stage.start(None, seconds(10));
        stage.until("both wait", || stage.running() == 2).await;
        let second = stage.start(None, Duration::from_millis(9_300));
        for late in stage.all(vec![first, second]).await {
            let late = late.unwrap_err();
            assert_eq!(late.failure.code(), ErrorCode::Timeout);
            assert_eq!(late.notice, NoticeCode::ImageLate);
        }
        assert_eq!(stage.seen("a").len(), 1);
    });
}

#[test]
fn more_than_256_do_not_join_one_description() {
    on_moved_clock(async {
        let stage = Stage::chain(&["a"]).await;
        stage.script("a", Does::Take(seconds(3), "a cat"));
        let mut waiting = vec![stage.start(None, seconds(60))];
        stage.until("asked", || stage.open() == 1).await;
        // Not all at once: those whom the description took in count, too.
        for _ in 0..4 {
            waiting.extend((0..64).map(|_| stage.start(None, seconds(60))));
            stage.pass(Duration::from_millis(50)).await;
        }
        let refused = stage.ask_within(None, seconds(60)).await.unwrap_err();
        assert_eq!(refused.failure.code(), ErrorCode::Busy);
        assert!(refused.failure.retry_hint().is_some());
        for one in stage.all(waiting).await {
            assert_eq!(text(&one.unwrap()), "a cat");
        }
        assert_eq!(stage.seen("a").len(), 1);
    });
}

#[test]
fn an_answer_is_remembered_for_its_time_and_a_failure_is_not() {
    on_moved_clock(async {
        let mut config = serde_json::json!({ "talaria": { "vision": { "cache_ttl": "60s" } } });
        config["auxiliary"] = serde_json::json!({ "vision": Stage::backends(&["a"]) });
        let stage = Stage::with(&config).await;
        stage.script("a", Does::Fail(FaultKind::BadRequest));
        assert!(stage.ask(None).await.unwrap().answer.is_none());
        stage.script("a", Does::Say("a cat"));
        let first = stage.ask(None).await.unwrap();
        assert!(!first.cached);
        let second = stage.ask(None).await.unwrap();
        assert!(second.cached && second.answer == first.answer);
        stage.pass(seconds(60)).await;
        assert!(!stage.ask(None).await.unwrap().cached);
        assert_eq!(stage.seen("a").len(), 3);
    });
}
