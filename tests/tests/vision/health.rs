//! What the service remembers of a backend: breakers, quarantine and their scope.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::{Reply, Service, VisionEndpoint, wait_for};
use talaria_types::runtime::now;

use crate::scene::{backend, builder, chained, described, endpoint, outcomes, picture, refusing};

async fn service(links: Vec<Value>) -> Service {
    let mut links = links.into_iter();
    chained(builder(), links.next(), links.collect(), Vec::new())
        .start()
        .await
        .unwrap()
}

/// Asks until the first link of the chain is left alone, and answers how often it was asked.
async fn until_open(service: &Service, first: &VisionEndpoint) -> usize {
    for number in 0..30 {
        let before = first.count();
        described(service, &picture(number)).await;
        if first.count() == before {
            return before;
        }
    }
    panic!("asked {} times and still asked", first.count());
}

#[tokio::test]
async fn a_backend_that_keeps_failing_is_not_contacted_any_more() {
    let first = endpoint(Reply::raw(500, ""));
    let second = endpoint(Reply::chat("seen"));
    let service = service(vec![
        backend(&first.base(), "first"),
        backend(&second.base(), "second"),
    ])
    .await;
    let asked = until_open(&service, &first).await;
    assert!(asked <= 12, "{asked} requests before the breaker opened");
    let connections = first.connections().total;
    for number in 100..110 {
        let answer = described(&service, &picture(number)).await;
        assert_eq!(answer["analysis"], "seen");
        // The skipped link is told, too.
        assert_eq!(answer["attempts"][0]["code"], "circuit_open", "{answer}");
    }
    assert_eq!(first.count(), asked);
    assert_eq!(
        first.connections().total,
        connections,
        "not even a connection"
    );
}

#[tokio::test]
async fn a_breaker_closes_again_after_one_good_probe() {
    // A backend that says when to come back is left alone for just that long.
    let busy =
        Reply::error(429, "rate_limit_exceeded", "slow down").with_header("Retry-After", "6");
    let first = endpoint(busy);
    let second = endpoint(Reply::chat("by the second"));
    let service = service(vec![
        backend(&first.base(), "first"),
        backend(&second.base(), "second"),
    ])
    .await;
    let started = now();
    let answer = described(&service, &picture(1)).await;
    assert_eq!(
        answer["analysis"], "by the second",
        "six seconds are too long to wait"
    );
    first.answer([Reply::chat("by the first")]);
    let answer = described(&service, &picture(2)).await;
    assert_eq!(answer["analysis"], "by the second", "{answer}");
    assert_eq!(first.count(), 1);
    let mut number = 1_000;
    wait_for(
        "the first link to be asked again",
        Duration::from_secs(20),
        || {
            number += 1;
            let picture = picture(number);
            let service = &service;
            async move {
                let answer = described(service, &picture).await;
                if answer["analysis"] == "by the first" {
                    Ok(())
                } else {
                    Err(answer)
                }
            }
        },
    )
    .await
    .unwrap();
    assert!(
        started.elapsed() > Duration::from_millis(5_800),
        "{:?}",
        started.elapsed()
    );
    let answer = described(&service, &picture(5_000)).await;
    assert_eq!(outcomes(&answer), ["answered"], "{answer}");
    assert_eq!(first.count(), 3, "one probe, and one question after it");
}

#[tokio::test]
async fn a_bad_model_does_not_ban_its_key() {
    let endpoint = endpoint(Reply::error(404, "model_not_found", "no such model"));
    let mut good = backend(&endpoint.base(), "good");
    good["api_key"] = json!("one-key");
    let mut bad = backend(&endpoint.base(), "bad");
    bad["api_key"] = json!("one-key");
    let service = service(vec![bad, good]).await;
    for number in 0..4 {
        endpoint.answer([
            Reply::error(404, "model_not_found", "no such model"),
            Reply::chat("seen"),
        ]);
        if number > 0 {
            // The bad model is known by now; only the good one is asked.
            endpoint.answer([Reply::chat("seen")]);
        }
        let answer = described(&service, &picture(number)).await;
        assert!(
            answer["via"].as_str().unwrap().ends_with("/good"),
            "{answer}"
        );
    }
    let models: Vec<Value> = endpoint
        .asked()
        .iter()
        .map(|asked| asked.json()["model"].clone())
        .collect();
    assert_eq!(
        models.iter().filter(|model| **model == "bad").count(),
        1,
        "{models:?}"
    );
    assert_eq!(
        models.iter().filter(|model| **model == "good").count(),
        4,
        "{models:?}"
    );
}

#[tokio::test]
async fn a_bad_key_does_not_ban_the_model() {
    let endpoint = endpoint(Reply::error(401, "invalid_api_key", "bad key"));
    let mut first = backend(&endpoint.base(), "eyes");
    first["api_key"] = json!("stale");
    let mut second = backend(&endpoint.base(), "eyes");
    second["api_key"] = json!("fresh");
    let service = service(vec![first, second]).await;
    endpoint.answer([
        Reply::error(401, "invalid_api_key", "bad key"),
        Reply::chat("seen"),
    ]);
    for number in 0..3 {
        let answer = described(&service, &picture(number)).await;
        assert_eq!(answer["analysis"], "seen", "{answer}");
    }
    let keys: Vec<String> = endpoint
        .asked()
        .iter()
        .map(|asked| asked.header("authorization").to_owned())
        .collect();
    assert_eq!(
        keys,
        [
            "Bearer stale",
            "Bearer fresh",
            "Bearer fresh",
            "Bearer fresh"
        ]
    );
}

#[tokio::test]
async fn a_bad_key_bans_the_other_models_of_that_key() {
    let endpoint = endpoint(Reply::error(401, "invalid_api_key", "bad key"));
    let spare = crate::scene::endpoint(Reply::chat("seen"));
    let mut links: Vec<Value> = ["one", "two"]
        .iter()
        .map(|model| {
            let mut link = backend(&endpoint.base(), model);
            link["api_key"] = json!("stale");
            link
        })
        .collect();
    links.push(backend(&spare.base(), "spare"));
    let service = service(links).await;
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "seen");
    assert_eq!(endpoint.count(), 1, "the same key is not offered twice");
}

#[tokio::test]
async fn a_refused_connection_costs_no_time() {
    let port = refusing();
    let second = endpoint(Reply::chat("seen"));
    let service = service(vec![
        backend(&port.base(), "first"),
        backend(&second.base(), "second"),
    ])
    .await;
    let started = now();
    let answer = described(&service, &picture(1)).await;
    assert_eq!(answer["analysis"], "seen");
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}
