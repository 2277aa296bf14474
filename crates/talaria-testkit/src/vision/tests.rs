//! The endpoint does what its script says, seen by a client that is not the service's.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_types::runtime::now;

use super::*;
use crate::pictures;
use crate::samples;
use crate::service::http_client;
use crate::wait_for;

const SOON: Duration = Duration::from_millis(300);

async fn ask(endpoint: &VisionEndpoint, path: &str) -> reqwest::Result<(u16, Vec<u8>)> {
    let client = http_client().unwrap();
    let answer = client.post(endpoint.url(path)).body("{}").send().await?;
    let status = answer.status().as_u16();
    Ok((status, answer.bytes().await?.to_vec()))
}

/// How long the client is left waiting, and that it is.
async fn is_left_waiting(endpoint: &VisionEndpoint) -> bool {
    tokio::time::timeout(SOON, ask(endpoint, "/"))
        .await
        .is_err()
}

#[tokio::test]
async fn replies_come_in_order_and_the_last_repeats() {
    let endpoint = VisionEndpoint::start([Reply::raw(503, ""), Reply::chat("words")]).unwrap();
    endpoint.answer_at("/own", [Reply::raw(418, "tea")]);
    assert_eq!(ask(&endpoint, "/").await.unwrap().0, 503);
    assert_eq!(
        ask(&endpoint, "/own?q=1").await.unwrap(),
        (418, b"tea".to_vec())
    );
    for _ in 0..2 {
        let (status, body) = ask(&endpoint, "/").await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, 200);
        assert_eq!(body["choices"][0]["message"]["content"], "words");
    }
    assert_eq!(endpoint.count(), 4);
    assert_eq!(endpoint.asked()[1].target, "/own?q=1");
}

#[tokio::test]
async fn a_request_is_remembered_with_its_picture_and_words() {
    let endpoint = VisionEndpoint::start([Reply::chat("seen")]).unwrap();
    let bytes = pictures::plain_png(40, 30, [1, 2, 3]).unwrap();
    let url = format!("data:image/png;base64,{}", samples::base64(&bytes));
    let content = json!([{"type": "text", "text": "What is it?"},
                         {"type": "image_url", "image_url": {"url": url}}]);
    let client = http_client().unwrap();
    let request = client.post(endpoint.url("/v1/chat/completions"));
    let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
    request.bearer_auth("key").json(&body).send().await.unwrap();
    let asked = endpoint.asked();
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(asked.header("authorization"), "Bearer key");
    let seen = asked.picture().unwrap();
    assert_eq!((seen.width, seen.height), (40, 30));
    assert!(asked.words().contains("What is it?"), "{}", asked.words());
    assert!(!asked.words().contains("base64"), "{}", asked.words());
}

#[tokio::test]
async fn stalls_anywhere_and_sees_the_client_leave() {
    for (left, place) in [Place::Start, Place::Head, Place::Body(3)]
        .into_iter()
        .enumerate()
    {
        let endpoint =
            VisionEndpoint::start([Reply::raw(200, "a body").stalled_at(place)]).unwrap();
        assert!(is_left_waiting(&endpoint).await, "{left} {place:?}");
        wait_for("the departure", Duration::from_secs(5), || async {
            let seen = (endpoint.departures(), endpoint.requests().now);
            if seen == (1, 0) { Ok(()) } else { Err(seen) }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn a_broken_reply_fails_at_the_client() {
    let whole = || Reply::raw(200, "a body");
    for broken in [
        whole().reset_at(Place::Start),
        whole().reset_at(Place::Body(2)),
        whole().half_closed_at(Place::Head),
        whole().half_closed_at(Place::Body(2)),
        whole().closed_at(Place::Body(2)),
        whole().telling_length(900).closed_at(Place::Body(6)),
        whole().chunked().closed_at(Place::Body(6)),
        whole().with_broken_chunks(),
    ] {
        let endpoint = VisionEndpoint::start([broken.clone()]).unwrap();
        let asked = tokio::time::timeout(Duration::from_secs(5), ask(&endpoint, "/")).await;
        assert!(asked.unwrap().is_err(), "{broken:?}");
    }
}

#[tokio::test]
async fn a_length_that_is_too_short_cuts_the_body() {
    let endpoint = VisionEndpoint::start([Reply::raw(200, "a body").telling_length(2)]).unwrap();
    assert_eq!(ask(&endpoint, "/").await.unwrap(), (200, b"a ".to_vec()));
}

#[tokio::test]
async fn bodies_without_a_length_are_whole() {
    for reply in [
        Reply::repeated(200, "abc", 100_000).chunked(),
        Reply::repeated(200, "abc", 100_000).until_closed(),
        Reply::repeated(200, "abc", 100_000),
    ] {
        let endpoint = VisionEndpoint::start([reply]).unwrap();
        let (_, body) = ask(&endpoint, "/").await.unwrap();
        assert_eq!(body, "abc".repeat(100_000).into_bytes());
    }
}

#[tokio::test]
async fn a_drip_takes_its_time() {
    let reply = Reply::raw(200, "x").dripped(Duration::from_millis(5));
    let endpoint = VisionEndpoint::start([reply]).unwrap();
    let started = now();
    assert_eq!(ask(&endpoint, "/").await.unwrap(), (200, b"x".to_vec()));
    assert!(
        started.elapsed() > Duration::from_millis(150),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_gate_holds_requests_until_it_is_opened() {
    let gate = Gate::closed();
    let endpoint = VisionEndpoint::start([Reply::raw(200, "x").held_by(&gate)]).unwrap();
    let asking = futures_of_two(&endpoint);
    tokio::pin!(asking);
    assert!(tokio::time::timeout(SOON, &mut asking).await.is_err());
    assert_eq!(
        (endpoint.requests().now, endpoint.connections().peak),
        (2, 2)
    );
    gate.open();
    let (first, second) = asking.await;
    assert_eq!((first.unwrap().0, second.unwrap().0), (200, 200));
    assert_eq!((endpoint.requests().peak, endpoint.departures()), (2, 0));
}

type Asking = reqwest::Result<(u16, Vec<u8>)>;

async fn futures_of_two(endpoint: &VisionEndpoint) -> (Asking, Asking) {
    tokio::join!(ask(endpoint, "/a"), ask(endpoint, "/b"))
}

#[tokio::test]
async fn a_refusing_port_refuses() {
    let port = RefusingPort::take().unwrap();
    let sent = http_client().unwrap().get(port.base()).send().await;
    assert!(sent.unwrap_err().is_connect());
}
