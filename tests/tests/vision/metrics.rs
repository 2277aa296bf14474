//! What is measured of descriptions.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use talaria_testkit::exposition::Exposition;
use talaria_testkit::{Gate, Reply, Service, VisionEndpoint};

use crate::scene::{
    VIA_TOOL, analyze, backend, builder, chained, coalesced, described, endpoint, picture, settles,
    with_tool,
};

async fn service(links: &[(&VisionEndpoint, &str)], settings: &[(&str, &str)]) -> Service {
    let mut builder = builder();
    for (key, value) in settings {
        builder = builder.set(&["talaria", "vision", key], *value);
    }
    let mut links = links.iter().map(|(one, name)| backend(&one.base(), name));
    chained(builder, links.next(), links.collect(), Vec::new())
        .start()
        .await
        .unwrap()
}

fn attempts(metrics: &Exposition, labels: &[(&str, &str)]) -> f64 {
    metrics.sum("talaria_vision_attempt_duration_seconds_count", labels)
}

#[tokio::test]
async fn attempts_hops_and_breakers_are_counted() {
    let first = endpoint(Reply::raw(503, ""));
    let service = with_tool(&first.base()).await;
    for number in 0..4 {
        described(&service, &picture(number)).await;
    }
    let metrics = service.metrics().await.unwrap();
    let asked = attempts(
        &metrics,
        &[("stage", "primary"), ("outcome", "server_error")],
    );
    assert_eq!(asked, f64::from(u32::try_from(first.count()).unwrap()));
    assert_eq!(
        attempts(
            &metrics,
            &[
                ("stage", "mcp"),
                ("outcome", "answered"),
                ("backend", VIA_TOOL)
            ]
        ),
        4.0
    );
    let hops = metrics.named("talaria_vision_fallbacks_total");
    let total: f64 = hops.iter().map(|sample| sample.value).sum();
    assert_eq!(total, 4.0, "{hops:?}");
    let server_errors = metrics.sum(
        "talaria_vision_fallbacks_total",
        &[("to", VIA_TOOL), ("reason", "server_error")],
    );
    assert!(server_errors >= 1.0, "{hops:?}");
    let open = metrics.sum("talaria_vision_breaker_state", &[("state", "open")]);
    assert_eq!(open, 1.0);
    let closed = metrics.sum(
        "talaria_vision_breaker_state",
        &[("state", "closed"), ("backend", VIA_TOOL)],
    );
    assert_eq!(closed, 1.0);
    let done = metrics.sum(
        "talaria_vision_analysis_duration_seconds_count",
        &[("outcome", "answered")],
    );
    assert_eq!(done, 4.0);
    assert_eq!(
        metrics.sum("talaria_vision_budget_left_seconds_count", &[]),
        4.0
    );
    assert!(metrics.sum("talaria_vision_budget_left_seconds_sum", &[]) > 4.0 * 100.0);
}

#[tokio::test]
async fn shared_answers_and_running_analyses_are_counted() {
    let gate = Gate::closed();
    let first = endpoint(Reply::chat("seen").held_by(&gate));
    let service = &service(&[(&first, "first")], &[]).await;
    let asked = join_all((0..5).map(|_| async move { described(service, &picture(1)).await }));
    let release = async {
        settles("the question to be open", &1, || first.requests().now).await;
        talaria_testkit::wait_for("one running analysis", Duration::from_secs(5), || async {
            let metrics = service.metrics().await.unwrap();
            let running = metrics.sum("talaria_vision_analyses", &[]);
            if running >= 1.0 { Ok(()) } else { Err(running) }
        })
        .await
        .unwrap();
        coalesced(service, 4).await;
        gate.open();
    };
    let (answers, ()) = tokio::join!(asked, release);
    let joined = answers
        .iter()
        .filter(|one| one["coalesced"] == true)
        .count();
    described(service, &picture(1)).await;
    let metrics = service.metrics().await.unwrap();
    let shared = |source| metrics.sum("talaria_vision_shared_answers_total", &[("source", source)]);
    assert_eq!(
        (joined, shared("coalesced"), shared("cached")),
        (4, 4.0, 1.0)
    );
    assert_eq!(metrics.sum("talaria_vision_analyses", &[]), 0.0);
    assert_eq!(first.count(), 1);
}

#[tokio::test]
async fn hedges_are_counted_as_won_or_wasted() {
    let first = endpoint(Reply::chat("slow").after(Duration::from_secs(4)));
    let second = endpoint(Reply::chat("fast"));
    let service = service(
        &[(&first, "first"), (&second, "second")],
        &[("hedge_after", "300ms")],
    )
    .await;
    assert_eq!(described(&service, &picture(1)).await["analysis"], "fast");
    first.answer([Reply::chat("just in time").after(Duration::from_millis(800))]);
    second.answer([Reply::chat("too late").after(Duration::from_secs(4))]);
    assert_eq!(
        described(&service, &picture(2)).await["analysis"],
        "just in time"
    );
    let metrics = service.metrics().await.unwrap();
    let hedges = |outcome| metrics.sum("talaria_vision_hedges_total", &[("outcome", outcome)]);
    assert_eq!((hedges("won"), hedges("wasted")), (1.0, 1.0));
    let hopped = metrics.sum("talaria_vision_fallbacks_total", &[("reason", "hedge")]);
    assert_eq!(hopped, 2.0);
}

#[tokio::test]
async fn no_label_is_taken_from_what_others_say() {
    let first = endpoint(Reply::error(
        418,
        "a-code-nobody-knows",
        "words nobody knows",
    ));
    let second = endpoint(Reply::json(
        200,
        &json!({"error": {"code": "another-odd-code"}}),
    ));
    let service = service(&[(&first, "first"), (&second, "second")], &[]).await;
    assert_eq!(analyze(&service, &picture(1)).await.status, 502);
    let metrics = service.get("/metrics").await.unwrap().text().unwrap();
    for word in [
        "nobody knows",
        "a-code-nobody-knows",
        "another-odd-code",
        "127.0.0.1",
    ] {
        assert!(!metrics.contains(word), "{word}");
    }
    let parsed = service.metrics().await.unwrap();
    for sample in parsed.named("talaria_vision_attempt_duration_seconds_count") {
        let backend = &sample.labels["backend"];
        assert!(
            ["custom/first", "custom/second"].contains(&backend.as_str()),
            "{backend}"
        );
    }
}
