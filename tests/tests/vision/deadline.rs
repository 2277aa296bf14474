//! One deadline for the whole chain, whatever its links do.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use talaria_testkit::script::understand_image;
use talaria_testkit::service::http_client;
use talaria_testkit::{
    Action, Answer, Place, Reply, Script, Service, Slack, VisionEndpoint, wait_for,
};
use talaria_types::runtime::now;

use crate::scene::{
    ANALYZE, SERVER, analyze, backend, builder, chained, described, endpoint, picture, question,
    settles, tool_link,
};

/// Analyses at the same time.
const CALLERS: u32 = 200;
/// What the analyses of the test are given.
const BUDGET: Duration = Duration::from_secs(5);
/// How much later the last answer may be there.
const SLACK: Duration = Duration::from_millis(500);

/// What may stay: a request that is just ending, connections and threads of bounded pools.
const KEPT: Slack = Slack {
    tasks: 1,
    descriptors: 8,
    threads: 2,
};

/// A chain of which every link stalls, and a total of five seconds.
async fn stalling(first: &VisionEndpoint, second: &VisionEndpoint) -> Service {
    let script = Script::new("eyes")
        .on_call("understand_image", [Action::AwaitCancel])
        .with_tools(vec![understand_image()]);
    let builder = builder()
        .stdio(SERVER, script)
        .unwrap()
        .set(&["talaria", "limits", "pending_per_server"], 512);
    chained(
        builder,
        Some(backend(&first.base(), "first")),
        vec![backend(&second.base(), "second")],
        vec![tool_link(SERVER)],
    )
    .set(&["talaria", "vision", "total_timeout"], "5s")
    .start()
    .await
    .unwrap()
}

#[tokio::test]
async fn a_chain_that_stalls_ends_at_its_deadline_for_two_hundred_at_once() {
    let first = endpoint(Reply::stalled());
    let second = endpoint(Reply::chat("x").stalled_at(Place::Body(20)));
    let service = stalling(&first, &second).await;
    let before = service.holdings().await.unwrap();
    let pictures: Vec<Value> = (0..CALLERS)
        .map(|number| question(&picture(number)))
        .collect();
    let client = http_client().unwrap();
    let ask = |body: Value| {
        let request = client.post(service.url(ANALYZE)).json(&body);
        async move {
            let started = now();
            let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
            (answer, started.elapsed())
        }
    };
    let answers = join_all(pictures.into_iter().map(ask)).await;
    // Its connections go with it.
    drop(client);
    let mut slowest = Duration::ZERO;
    for (answer, took) in &answers {
        assert_eq!(answer.status, 504, "{}", answer.excerpt());
        let problem = answer.problem().unwrap();
        assert_eq!(problem["code"], "vision_timeout");
        assert!(
            problem["attempts"].as_array().unwrap().len() >= 2,
            "{problem}"
        );
        assert!(*took >= BUDGET, "after {took:?}: {problem}");
        slowest = slowest.max(*took);
    }
    assert!(
        slowest <= BUDGET + SLACK,
        "the slowest came after {slowest:?}"
    );
    // Nothing is left of it.
    settles("no request to be open", &(0, 0), || {
        (first.requests().now, second.requests().now)
    })
    .await;
    service.wait_given_back(before, KEPT).await.unwrap();
    let metrics = service.metrics().await.unwrap();
    assert_eq!(metrics.sum("talaria_vision_analyses", &[]), 0.0);
    // And the chain still works.
    first.answer([Reply::chat("awake")]);
    let answer = wait_for(
        "the chain to answer again",
        Duration::from_secs(60),
        || async {
            let answer = analyze(&service, &picture(1_000)).await;
            if answer.status == 200 {
                Ok(())
            } else {
                Err(answer.excerpt())
            }
        },
    );
    second.answer([Reply::chat("awake, too")]);
    answer.await.unwrap();
}

#[tokio::test]
async fn the_last_link_still_has_time_when_the_others_stall() {
    let first = endpoint(Reply::stalled());
    let second = endpoint(Reply::stalled());
    let third = endpoint(Reply::chat("in time").after(Duration::from_millis(300)));
    let service = chained(
        builder(),
        Some(backend(&first.base(), "first")),
        vec![
            backend(&second.base(), "second"),
            backend(&third.base(), "third"),
        ],
        Vec::new(),
    )
    .set(&["talaria", "vision", "total_timeout"], "24s")
    .start()
    .await
    .unwrap();
    let started = now();
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "in time", "{answer}");
    // 24 s less 10 s for each later link, and so on.
    assert!(
        started.elapsed() < Duration::from_secs(24),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_callers_limit_binds_the_chain() {
    let first = endpoint(Reply::stalled());
    let second = endpoint(Reply::stalled());
    let service = stalling(&first, &second).await;
    let mut body = question(&picture(1));
    body["timeout_ms"] = json!(1_000);
    let started = now();
    let answer = service.post(ANALYZE, &body).await.unwrap();
    let took = started.elapsed();
    assert_eq!(answer.status, 504, "{}", answer.excerpt());
    let fits = Duration::from_millis(950)..Duration::from_millis(1_500);
    assert!(fits.contains(&took), "after {took:?}");
}

#[tokio::test]
async fn a_caller_who_leaves_takes_the_attempts_along() {
    let first = endpoint(Reply::stalled());
    let service = chained(
        builder(),
        Some(backend(&first.base(), "first")),
        Vec::new(),
        Vec::new(),
    )
    .start()
    .await
    .unwrap();
    let client = http_client().unwrap();
    let sent = client
        .post(service.url(ANALYZE))
        .json(&question(&picture(1)))
        .send();
    assert!(
        tokio::time::timeout(Duration::from_secs(1), sent)
            .await
            .is_err()
    );
    assert_eq!(first.count(), 1);
    drop(client);
    settles("the attempt to end", &(0, 1), || {
        (first.requests().now, first.departures())
    })
    .await;
}
