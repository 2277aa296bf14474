//! The client against a loopback endpoint that misbehaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use talaria_config::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::*;
use crate::describe::request::Encoded;
use crate::{ApiShape, ProviderLimits};

/// What the endpoint does with a connection once it has read a request.
#[derive(Clone)]
enum Act {
    /// Answers and closes.
    Say(String),
    /// Answers, and sends no more and no end.
    Stall(String),
    /// Closes at once.
    Hang,
}

struct Endpoint {
    url: String,
    seen: Arc<Mutex<Vec<Value>>>,
    open: Arc<AtomicUsize>,
}

/// Serves connection after connection, each with its act.
async fn endpoint(acts: Vec<Act>) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (seen, open) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(AtomicUsize::new(0)),
    );
    let (seen_too, open_too) = (Arc::clone(&seen), Arc::clone(&open));
    drop(runtime::spawn("endpoint", async move {
        for act in acts {
            let (stream, _) = listener.accept().await.unwrap();
            open_too.fetch_add(1, Ordering::SeqCst);
            serve(stream, act, &seen_too).await;
            open_too.fetch_sub(1, Ordering::SeqCst);
        }
    }));
    Endpoint { url, seen, open }
}

async fn serve(mut stream: TcpStream, act: Act, seen: &Mutex<Vec<Value>>) {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).await.unwrap_or(0);
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            seen.lock().push(body);
            break;
        }
        if read == 0 {
            return;
        }
    }
    match act {
        Act::Say(text) => drop(stream.write_all(text.as_bytes()).await),
        Act::Stall(text) => {
            drop(stream.write_all(text.as_bytes()).await);
            // Ends when the client goes away.
            while stream.read(&mut chunk).await.is_ok_and(|read| read > 0) {}
        }
        Act::Hang => {}
    }
}

fn reply(status: &str, body: &str) -> Act {
    Act::Say(format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn backend(url: &str) -> Backend {
    Backend {
        path: "p".to_owned(),
        provider: "lab".to_owned(),
        model: "m".to_owned(),
        endpoint: Url::parse(url).unwrap(),
        key: Some(Secret::from("hunter22".to_owned())),
        twins: 0,
        api: ApiShape::OpenaiChat,
        timeout: Duration::from_secs(5),
        limits: ProviderLimits::default(),
    }
}

async fn ask_with(client: &BackendClient, url: &str, budget: Duration) -> Verdict {
    let picture = Encoded {
        media_type: "image/png".to_owned(),
        base64: "aGk=".into(),
    };
    let ask = Ask {
        prompt: "what?",
        picture: &picture,
        temperature: 0.1,
    };
    client
        .ask(&backend(url), &ask, Deadline::after(budget))
        .await
}

async fn ask(url: &str) -> Verdict {
    ask_with(&BackendClient::new(), url, Duration::from_secs(10)).await
}

#[track_caller]
fn fault(verdict: Verdict) -> Fault {
    match verdict {
        Verdict::Failed(fault) => fault,
        Verdict::Answer(_) | Verdict::Reasoned(_) => panic!("{verdict:?}"),
    }
}

const GOOD: &str = r#"{"choices":[{"message":{"content":"a cat"},"finish_reason":"stop"}]}"#;

#[tokio::test]
async fn an_answer_comes_back() {
    let endpoint = endpoint(vec![reply("200 OK", GOOD)]).await;
    assert_eq!(
        ask(&endpoint.url).await,
        Verdict::Answer("a cat".to_owned())
    );
    assert_eq!(endpoint.seen.lock()[0]["model"], "m");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let fault = fault(ask(&url).await);
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.words.contains("refused"), "{}", fault.words);
}

#[tokio::test]
async fn a_connection_that_ends_early_is_unreachable() {
    let long = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\"".to_owned();
    for act in [
        Act::Hang,
        Act::Say(long),
        Act::Say("HTTP/1.1 200 OK\r\nx".to_owned()),
    ] {
        let endpoint = endpoint(vec![act]).await;
        assert_eq!(fault(ask(&endpoint.url).await).kind, FaultKind::Unreachable);
    }
}

#[tokio::test]
async fn garbage_is_unreachable_and_no_panic() {
    for text in [
        "\u{0}\u{1}\u{2}",
        "HTTP/1.1 999999 X\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nboo",
        "SSH-2.0-OpenSSH\r\n",
    ] {
        let endpoint = endpoint(vec![Act::Say(text.to_owned())]).await;
        assert_eq!(
            fault(ask(&endpoint.url).await).kind,
            FaultKind::Unreachable,
            "{text:?}"
        );
    }
}

#[tokio::test]
async fn stalls_end_at_the_deadline_and_the_connection_with_them() {
    for text in [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\"",
    ] {
        let endpoint = endpoint(vec![Act::Stall(text.to_owned())]).await;
        let client = BackendClient::new();
        let budget = Duration::from_millis(300);
        let begun = runtime::now();
        let verdict = ask_with(&client, &endpoint.url, budget).await;
        assert_eq!(fault(verdict).kind, FaultKind::Timeout);
        assert!(begun.elapsed() < Duration::from_secs(3));
        let gone = async {
            while endpoint.open.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), gone)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn floods_are_bounded() {
    let flood = "x".repeat(MAX_ANSWER_BYTES + 1);
    let endpoint_too_long = endpoint(vec![reply("200 OK", &flood)]).await;
    let too_long = fault(ask(&endpoint_too_long.url).await);
    assert_eq!(too_long.kind, FaultKind::Oversize);
    let page = format!(
        "<html><title>Bad gateway</title>{}",
        "<p>bad gateway</p>".repeat(300_000)
    );
    let endpoint = endpoint(vec![reply("502 Bad Gateway", &page)]).await;
    let fault = fault(ask(&endpoint.url).await);
    assert_eq!(
        (fault.kind, fault.status),
        (FaultKind::ServerError, Some(502))
    );
    assert_eq!(fault.words, "it is an HTML page: Bad gateway");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = endpoint(vec![reply("200 OK", GOOD)]).await;
    let moved = format!("302 Found\r\nlocation: {}", other.url);
    let endpoint = endpoint(vec![reply(&moved, "")]).await;
    assert_eq!(
        fault(ask(&endpoint.url).await).kind,
        FaultKind::Misconfigured
    );
    assert_eq!(other.seen.lock().len(), 0);
}

#[tokio::test]
async fn the_key_is_not_in_what_a_provider_says() {
    let body =
        r#"{"error":{"message":"Incorrect API key provided: hunter22.","code":"invalid_api_key"}}"#;
    let endpoint = endpoint(vec![reply("401 Unauthorized", body)]).await;
    let fault = fault(ask(&endpoint.url).await);
    assert_eq!(fault.kind, FaultKind::Auth);
    assert_eq!(fault.words, "Incorrect API key provided: ***.");
}

#[tokio::test]
async fn the_key_is_not_in_a_description() {
    let body = r#"{"choices":[{"message":{"content":"A note that says hunter22."}}]}"#;
    let endpoint = endpoint(vec![reply("200 OK", body)]).await;
    let verdict = ask(&endpoint.url).await;
    assert_eq!(verdict, Verdict::Answer("A note that says ***.".to_owned()));
}

#[tokio::test]
async fn a_key_that_is_cut_off_is_not_told_in_part() {
    let words = format!("{} hunter22", "x".repeat(994));
    let body = serde_json::json!({ "error": { "message": words } }).to_string();
    let endpoint = endpoint(vec![reply("401 Unauthorized", &body)]).await;
    let fault = fault(ask(&endpoint.url).await);
    assert!(!fault.words.contains("hunt"), "{}", fault.words);
    assert!(fault.words.ends_with("x ***"), "{}", fault.words);
}

#[tokio::test]
async fn what_is_secret_in_an_address_is_not_told() {
    let body = r#"{"error":{"message":"no route for /v1?token=sesame99 of swordfish"}}"#;
    let endpoint = endpoint(vec![reply("404 Not Found", body)]).await;
    let host = endpoint.url.strip_prefix("http://").unwrap();
    let url = format!("http://me:swordfish@{host}?token=sesame99");
    let fault = fault(ask(&url).await);
    assert_eq!(fault.words, "no route for /v1?token=*** of ***");
}

#[tokio::test]
async fn fr_190_the_wait_of_a_header_is_told() {
    let body = "429 Too Many Requests\r\nretry-after: 2";
    let endpoint = endpoint(vec![
        reply(body, "{}"),
        reply("429 X\r\nretry-after: -5", ""),
    ])
    .await;
    let first = fault(ask(&endpoint.url).await);
    assert_eq!(first.kind, FaultKind::RateLimited);
    assert_eq!(first.retry_after, Some(Duration::from_secs(2)));
    let second = fault(ask(&endpoint.url).await);
    assert_eq!(second.retry_after, Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn a_model_that_takes_no_temperature_is_asked_without() {
    let refusal = r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.1 with this model.","param":"temperature","code":"unsupported_value"}}"#;
    let acts = vec![
        reply("400 Bad Request", refusal),
        reply("200 OK", GOOD),
        reply("200 OK", GOOD),
    ];
    let endpoint = endpoint(acts).await;
    let client = BackendClient::new();
    for _ in 0..2 {
        let verdict = ask_with(&client, &endpoint.url, Duration::from_secs(10)).await;
        assert_eq!(verdict, Verdict::Answer("a cat".to_owned()));
    }
    let with = endpoint
        .seen
        .lock()
        .iter()
        .map(|body| body.get("temperature").is_some())
        .collect::<Vec<_>>();
    assert_eq!(with, [true, false, false]);
}
