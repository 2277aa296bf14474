//! What happens to a server over HTTP while nothing is asked of it.

use std::time::Duration;

use talaria_testkit::script::HttpScript;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{RecordKind, wait_for};

use crate::outcome::LONG;
use crate::stage::{Stage, Transport, timed};

/// Rounds after which a leak would show.
const ROUNDS: usize = 4;

#[tokio::test]
async fn sessions_that_are_forgotten_are_renewed_with_the_next_call() {
    let stage = Stage::of(Transport::HttpJson, &[]).await;
    let server = stage.http.as_ref().unwrap();
    let mut before = None;
    for round in 1..=ROUNDS {
        let life = stage.life().await;
        server.forget_sessions();
        let (echoed, took) = timed(stage.call("echo", LONG)).await;
        assert_eq!(echoed.ok().unwrap()["text"], "echoed");
        assert!(took < Duration::from_secs(3), "{took:?}");
        assert_eq!(stage.life().await, life + 1, "one new session each");
        assert_eq!(stage.received("echo"), 2 * round, "one replay each");
        if before.is_none() {
            before = Some(stage.at_rest().await);
        }
    }
    let kept = stage
        .service
        .wait_given_back(before.unwrap(), talaria_testkit::Slack::QUIET);
    kept.await.unwrap();
    stage.stop().await;
}

#[tokio::test]
async fn an_event_stream_that_breaks_costs_no_call() {
    let http = HttpScript {
        get: None,
        ..HttpScript::default()
    };
    let stage = Stage::over_http(&[], http).await;
    let server = stage.http.as_ref().unwrap();
    let opened = |times: usize| async move {
        wait_for("the event stream", PATIENCE, || async {
            let records = server.records().all();
            let gets = records
                .iter()
                .filter(|record| record.kind == RecordKind::Get);
            let now = gets.count();
            if now >= times { Ok(()) } else { Err(now) }
        })
        .await
        .unwrap();
    };
    opened(1).await;
    let life = stage.life().await;
    server.cut_streams();
    stage.assert_recovered(life, false).await;
    // What is told on the next one is heard.
    opened(2).await;
    let lists = server.records().count_of("tools/list");
    server.announce("notifications/tools/list_changed");
    wait_for("the new list", PATIENCE, || async {
        let now = server.records().count_of("tools/list");
        if now > lists { Ok(()) } else { Err(now) }
    })
    .await
    .unwrap();
    let echoed = stage.call("echo", LONG).await;
    assert_eq!(echoed.ok().unwrap()["text"], "echoed");
    stage.stop().await;
}

#[tokio::test]
async fn a_server_that_refuses_everything_fails_its_calls_soon_and_is_back_when_it_relents() {
    for status in [404, 500, 503] {
        let stage = Stage::of(Transport::HttpJson, &[]).await;
        let server = stage.http.as_ref().unwrap();
        let mut before = None;
        for _ in 0..ROUNDS {
            server.refuse(status, "out of order");
            let seen = stage.received("echo");
            let (refused, took) = timed(stage.call("echo", LONG)).await;
            let problem = refused.problem().unwrap();
            assert_eq!(problem["server"], "s", "{status}: {problem}");
            assert!(took < Duration::from_secs(10), "{status}: {took:?}");
            let attempts = stage.received("echo") - seen;
            assert!(attempts <= 2, "{status}: {attempts} attempts");
            server.relent();
            wait_for("the server to serve again", PATIENCE, || async {
                let answer = stage.call("echo", LONG).await;
                if answer.status == 200 {
                    Ok(())
                } else {
                    Err(answer.excerpt())
                }
            })
            .await
            .unwrap();
            if before.is_none() {
                before = Some(stage.at_rest().await);
            }
        }
        let kept = stage
            .service
            .wait_given_back(before.unwrap(), talaria_testkit::Slack::QUIET);
        kept.await.unwrap();
        stage.stop().await;
    }
}
