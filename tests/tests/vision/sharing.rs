//! Questions that were asked before, or are being asked.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use talaria_testkit::service::http_client;
use talaria_testkit::{Gate, Reply, Service, VisionEndpoint, wait_for};
use tokio::sync::Notify;

use crate::scene::{
    ANALYZE, analyze, backend, builder, chained, coalesced, deliver, described, endpoint, picture,
    question, result, settles, text,
};

async fn service(first: &VisionEndpoint, cache_ttl: Option<&str>) -> Service {
    let mut builder = builder();
    if let Some(ttl) = cache_ttl {
        builder = builder.set(&["talaria", "vision", "cache_ttl"], ttl);
    }
    chained(
        builder,
        Some(backend(&first.base(), "first")),
        Vec::new(),
        Vec::new(),
    )
    .start()
    .await
    .unwrap()
}

#[tokio::test]
async fn identical_questions_in_flight_are_asked_once() {
    let gate = Gate::closed();
    let first = endpoint(Reply::chat("seen").held_by(&gate));
    let service = &service(&first, Some("0s")).await;
    let same =
        join_all((0..20).map(|_| async move { analyze(service, &picture(1)).await.ok().unwrap() }));
    let other = async {
        let mut body = question(&picture(1));
        body["prompt"] = json!("Another question?");
        service.post(ANALYZE, &body).await.unwrap().ok().unwrap()
    };
    let release = async {
        settles("two questions to be open", &2, || first.requests().now).await;
        // The others wait for one of these.
        coalesced(service, 19).await;
        assert_eq!(first.count(), 2);
        gate.open();
    };
    let (same, other, ()) = tokio::join!(same, other, release);
    assert_eq!(first.count(), 2);
    assert_eq!(other["coalesced"], false, "{other}");
    let joined = same.iter().filter(|one| one["coalesced"] == true).count();
    assert_eq!(joined, 19);
    for one in &same {
        assert_eq!(one["analysis"], "seen");
        assert!(one["via"].as_str().unwrap().ends_with("/first"), "{one}");
    }
}

#[tokio::test]
async fn one_of_them_leaving_does_not_cost_the_others() {
    let gate = Gate::closed();
    let first = endpoint(Reply::chat("seen").held_by(&gate));
    let service = &service(&first, Some("0s")).await;
    let leave = Notify::new();
    // The one who asked first goes away once another waits for the same.
    let leaving = async {
        let client = http_client().unwrap();
        let request = client
            .post(service.url(ANALYZE))
            .json(&question(&picture(1)));
        tokio::select! {
            sent = request.send() => panic!("answered before the gate opened: {sent:?}"),
            () = leave.notified() => {}
        }
    };
    let staying = async {
        settles("the question to be open", &1, || first.requests().now).await;
        described(service, &picture(1)).await
    };
    let release = async {
        coalesced(service, 1).await;
        leave.notify_one();
        // Until the connection that was given up is noticed, and then some.
        for _ in 0..50 {
            assert_eq!(service.get("/healthz").await.unwrap().status, 200);
        }
        assert_eq!((first.requests().now, first.departures()), (1, 0));
        gate.open();
    };
    let ((), stayed, ()) = tokio::join!(leaving, staying, release);
    assert_eq!(stayed["analysis"], "seen");
    assert_eq!(first.count(), 1);
}

#[tokio::test]
async fn an_answer_is_remembered_for_a_while() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first, Some("4s")).await;
    let fresh = described(&service, &picture(1)).await;
    assert_eq!(fresh["cached"], false);
    let again = described(&service, &picture(1)).await;
    assert_eq!(
        (&again["cached"], &again["analysis"]),
        (&json!(true), &fresh["analysis"])
    );
    assert_eq!(again["via"], fresh["via"]);
    assert_eq!(first.count(), 1);
    let mut other = question(&picture(1));
    other["prompt"] = json!("Another question?");
    let other: Value = service.post(ANALYZE, &other).await.unwrap().ok().unwrap();
    assert_eq!(other["cached"], false);
    let mut part = question(&picture(1));
    part["region"] = json!([0, 0, 32, 32]);
    let part: Value = service.post(ANALYZE, &part).await.unwrap().ok().unwrap();
    assert_eq!(part["cached"], false, "another region is another picture");
    assert_eq!(first.count(), 3);
    wait_for(
        "the answer to be forgotten",
        Duration::from_secs(20),
        || async {
            let late = described(&service, &picture(1)).await;
            if late["cached"] == false {
                Ok(())
            } else {
                Err(late)
            }
        },
    )
    .await
    .unwrap();
    assert_eq!(first.count(), 4);
}

#[tokio::test]
async fn no_failure_is_remembered() {
    let first = VisionEndpoint::start([
        Reply::error(400, "invalid_request_error", "not now"),
        Reply::chat("seen"),
    ])
    .unwrap();
    let service = service(&first, None).await;
    assert_eq!(analyze(&service, &picture(1)).await.status, 502);
    assert_eq!(described(&service, &picture(1)).await["analysis"], "seen");
}

#[tokio::test]
async fn the_cache_can_be_off() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first, Some("0s")).await;
    for _ in 0..2 {
        assert_eq!(described(&service, &picture(1)).await["cached"], false);
    }
    assert_eq!(first.count(), 2);
}

#[tokio::test]
async fn a_picture_twice_in_a_result_is_described_once() {
    let first = endpoint(Reply::chat("a lake"));
    let service = service(&first, None).await;
    let delivery = deliver(&service, result(&[picture(1), picture(1), picture(2)])).await;
    assert!(text(&delivery).contains("a lake"), "{delivery}");
    assert_eq!(first.count(), 2);
}
