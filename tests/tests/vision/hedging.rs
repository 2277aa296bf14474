//! Asking the next link early, where the operator wants it.

use std::time::Duration;

use talaria_testkit::{Reply, Service, VisionEndpoint};
use talaria_types::runtime::now;

use crate::scene::{backend, builder, chained, described, endpoint, picture, settles};

const SLOW: Duration = Duration::from_secs(6);

async fn service(first: &VisionEndpoint, second: &VisionEndpoint, hedge: Option<&str>) -> Service {
    let mut builder = builder();
    if let Some(after) = hedge {
        builder = builder.set(&["talaria", "vision", "hedge_after"], after);
    }
    chained(
        builder,
        Some(backend(&first.base(), "first")),
        vec![backend(&second.base(), "second")],
        Vec::new(),
    )
    .start()
    .await
    .unwrap()
}

#[tokio::test]
async fn the_next_link_starts_early_and_the_slow_one_is_given_up() {
    let first = endpoint(Reply::chat("too late").after(SLOW));
    let second = endpoint(Reply::chat("at once"));
    let service = service(&first, &second, Some("300ms")).await;
    let started = now();
    let answer = described(&service, &picture(1)).await;
    let took = started.elapsed();
    assert_eq!(answer["analysis"], "at once", "{answer}");
    assert!(took >= Duration::from_millis(300), "after {took:?}");
    assert!(took < Duration::from_secs(3), "after {took:?}");
    settles("the slow attempt to be given up", &(0, 1), || {
        (first.requests().now, first.departures())
    })
    .await;
}

#[tokio::test]
async fn a_first_link_in_time_leaves_the_next_alone() {
    let first = endpoint(Reply::chat("in time"));
    let second = endpoint(Reply::chat("never asked"));
    let service = service(&first, &second, Some("5s")).await;
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "in time");
    assert_eq!(second.count(), 0);
}

#[tokio::test]
async fn the_first_good_answer_wins_even_when_it_is_the_slow_ones() {
    let first = endpoint(Reply::chat("slow but sound").after(Duration::from_secs(1)));
    let second = endpoint(Reply::raw(500, ""));
    let service = service(&first, &second, Some("200ms")).await;
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "slow but sound", "{answer}");
    assert!(second.count() >= 1);
}

#[tokio::test]
async fn nothing_starts_early_unless_configured() {
    let first = endpoint(Reply::chat("slow").after(Duration::from_secs(2)));
    let second = endpoint(Reply::chat("never asked"));
    let service = service(&first, &second, None).await;
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "slow");
    assert_eq!(second.count(), 0);
}
