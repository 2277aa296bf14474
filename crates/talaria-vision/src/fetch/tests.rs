//! Fetching from loopback endpoints: 127.0.0.2 counts as public, everything else as what it is.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use talaria_types::{PayloadError, PayloadWriter, runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

mod refused;

/// Stands for a public address.
const PUBLIC: &str = "127.0.0.2";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest of a picture";

/// A store that counts.
#[derive(Debug, Default)]
struct Store {
    begun: AtomicUsize,
    ended: Arc<AtomicUsize>,
}

struct Writer {
    bytes: u64,
    ended: Arc<AtomicUsize>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl PayloadSink for Store {
    fn begin(&self) -> Result<Box<dyn PayloadWriter>, PayloadError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let ended = Arc::clone(&self.ended);
        Ok(Box::new(Writer { bytes: 0, ended }))
    }
}

impl PayloadWriter for Writer {
    fn write(&mut self, decoded: &[u8]) -> Result<(), PayloadError> {
        self.bytes += decoded.len() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<StagedPayload, PayloadError> {
        Ok(StagedPayload::new(
            PathBuf::new(),
            self.bytes,
            [0; 32],
            Vec::new(),
        ))
    }
}

/// Answers of a name, one after the other; the last one stays.
#[derive(Debug, Default)]
struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Names {
    fn with(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        let answers = names.iter().map(|(name, answers)| {
            let answers: Vec<Vec<IpAddr>> = answers.iter().map(parse).collect();
            ((*name).to_owned(), answers)
        });
        Arc::new(Self {
            answers: Mutex::new(answers.collect()),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Resolver for Names {
    fn resolve(&self, host: &str) -> Lookup {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock();
        let found = match answers.get_mut(host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers.first().cloned().unwrap_or_default()),
            None => Err(io::Error::other("no such name")),
        };
        Box::pin(async move { found })
    }
}

/// An endpoint on the public address that gives its answers one after the other.
struct Endpoint {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

async fn endpoint(answers: Vec<Vec<u8>>) -> Endpoint {
    endpoint_at(PUBLIC, answers).await
}

async fn endpoint_at(address: &str, answers: Vec<Vec<u8>>) -> Endpoint {
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    drop(runtime::spawn("endpoint", async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            while !request.ends_with(b"\r\n\r\n") {
                match stream.read(&mut chunk).await {
                    Ok(read) if read > 0 => request.extend_from_slice(&chunk[..read]),
                    Ok(_) | Err(_) => break,
                }
            }
            seen.lock()
                .push(String::from_utf8_lossy(&request).into_owned());
            drop(stream.write_all(&answer).await);
        }
        // Stays open, so that one request too many waits instead of being refused.
        let _kept = listener;
        std::future::pending::<()>().await;
    }));
    Endpoint { port, requests }
}

impl Endpoint {
    fn url(&self, path: &str) -> String {
        format!("http://{PUBLIC}:{}{path}", self.port)
    }
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n");
    let length = format!("content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), length.as_bytes(), body].concat()
}

fn redirect(to: &str) -> Vec<u8> {
    answer(&format!("302 Found\r\nlocation: {to}"), b"")
}

fn is_png(head: &[u8]) -> bool {
    head.starts_with(b"\x89PNG\r\n\x1a\n")
}

fn options(names: Arc<Names>) -> FetchOptions {
    FetchOptions {
        allow_private: false,
        allow_fake_ip: false,
        timeout: Duration::from_secs(20),
        max_bytes: 1024 * 1024,
        resolver: names,
        looks_like_image: is_png,
    }
}

fn fetcher(options: FetchOptions) -> Fetcher {
    let rules = Rules {
        allow_private: options.allow_private,
        allow_fake_ip: options.allow_fake_ip,
        exempt: vec![PUBLIC.parse().unwrap()],
    };
    Fetcher::with_rules(options, rules, [Duration::from_millis(20); 2])
}

async fn fetch_into(
    fetcher: &Fetcher,
    url: &str,
    store: &Arc<Store>,
) -> Result<Fetched, FetchError> {
    let sink = Arc::clone(store) as Arc<dyn PayloadSink>;
    let deadline = Deadline::after(Duration::from_secs(30));
    fetcher
        .fetch(url, deadline, &sink, &BlockingPool::new(4))
        .await
}

async fn fetch(fetcher: &Fetcher, url: &str) -> Result<Fetched, FetchError> {
    fetch_into(fetcher, url, &Arc::default()).await
}

async fn plain(url: &str) -> Result<Fetched, FetchError> {
    fetch(&fetcher(options(Names::with(&[]))), url).await
}

#[tokio::test]
async fn a_picture_is_fetched_and_staged() {
    let png = answer("200 OK\r\ncontent-type: image/png", PNG);
    let endpoint = endpoint(vec![redirect("/moved.png?x=1#y"), png]).await;
    let names = Names::with(&[("pictures.example", &[&[PUBLIC]])]);
    let url = format!("http://pictures.example:{}/a.png", endpoint.port);
    let fetched = fetch(&fetcher(options(names)), &url).await.unwrap();
    assert_eq!(fetched.payload.bytes, PNG.len() as u64);
    assert_eq!(fetched.declared.as_deref(), Some("image/png"));
    let wanted = format!("http://pictures.example:{}/moved.png?x=1", endpoint.port);
    assert_eq!(fetched.url, wanted);
    let requests = endpoint.requests.lock().clone();
    assert!(
        requests[1].starts_with("GET /moved.png?x=1 HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(
        !requests[1].to_lowercase().contains("referer"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn v20_a_body_without_length_is_stopped_at_the_limit_and_leaves_no_file() {
    let mut body = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
    body.extend_from_slice(PNG);
    body.resize(body.len() + 3 * 1024 * 1024, 7);
    let endpoint = endpoint(vec![body]).await;
    let store: Arc<Store> = Arc::default();
    let fetcher = fetcher(options(Names::with(&[])));
    let error = fetch_into(&fetcher, &endpoint.url("/"), &store)
        .await
        .unwrap_err();
    assert_eq!(error.code, FetchCode::TooLarge);
    assert_eq!(store.begun.load(Ordering::SeqCst), 1);
    assert_eq!(store.ended.load(Ordering::SeqCst), 1);
    assert_eq!(endpoint.requests.lock().len(), 1);
}

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_not_read() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    let endpoint = endpoint(vec![head.as_bytes().to_vec()]).await;
    let store: Arc<Store> = Arc::default();
    let fetcher = fetcher(options(Names::with(&[])));
    let error = fetch_into(&fetcher, &endpoint.url("/"), &store)
        .await
        .unwrap_err();
    assert_eq!(error.code, FetchCode::TooLarge);
    assert_eq!(store.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn pages_and_nothing_at_all_are_no_pictures() {
    for body in [&b"<html>404</html>"[..], b"", &b"<html>".repeat(100_000)] {
        let typed = "200 OK\r\ncontent-type: image/png";
        let endpoint = endpoint(vec![answer(typed, body)]).await;
        let store: Arc<Store> = Arc::default();
        let fetcher = fetcher(options(Names::with(&[])));
        let error = fetch_into(&fetcher, &endpoint.url("/"), &store)
            .await
            .unwrap_err();
        assert_eq!(error.code, FetchCode::NotAnImage);
        assert_eq!(error.code.error_code().class().status(), 400);
        assert_eq!(store.begun.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn an_overloaded_sender_is_asked_three_times_and_no_more() {
    let busy = || answer("503 Service Unavailable", b"");
    let endpoint_that_recovers = endpoint(vec![
        busy(),
        answer("429 Too Many Requests", b""),
        answer("200 OK", PNG),
    ])
    .await;
    assert!(plain(&endpoint_that_recovers.url("/")).await.is_ok());
    let endpoint = endpoint(vec![busy(), busy(), busy(), answer("200 OK", PNG)]).await;
    let error = plain(&endpoint.url("/")).await.unwrap_err();
    assert_eq!(error.code, FetchCode::Unreachable);
    assert_eq!(error.detail, format!("{PUBLIC} answers with status 503"));
    assert_eq!(endpoint.requests.lock().len(), 3);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n\x89PNG\r\n\x1a\n".to_vec();
    let endpoint = endpoint(vec![cut, Vec::new(), answer("200 OK", PNG)]).await;
    assert!(plain(&endpoint.url("/")).await.is_ok());
}

#[tokio::test]
async fn an_error_of_ours_is_not_asked_for_again() {
    let endpoint = endpoint(vec![answer("404 Not Found", b"gone")]).await;
    let error = plain(&endpoint.url("/secret?token=x")).await.unwrap_err();
    assert_eq!(error.code, FetchCode::Unreachable);
    assert!(!error.detail.contains("token"), "{}", error.detail);
    assert_eq!(endpoint.requests.lock().len(), 1);
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let listener = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = plain(&format!("http://{PUBLIC}:{port}/"))
        .await
        .unwrap_err();
    assert_eq!(error.code, FetchCode::Unreachable);
    assert_eq!(error.code.error_code().class().status(), 502);
}

#[tokio::test]
async fn five_redirects_are_followed_and_no_sixth() {
    let hops = |count: usize| {
        let mut answers = vec![redirect("/next"); count];
        answers.push(answer("200 OK", PNG));
        endpoint(answers)
    };
    assert!(plain(&hops(5).await.url("/")).await.is_ok());
    let endpoint = hops(6).await;
    let error = plain(&endpoint.url("/")).await.unwrap_err();
    assert_eq!(error.code, FetchCode::Unreachable);
    assert_eq!(endpoint.requests.lock().len(), 6);
}

#[tokio::test]
async fn a_redirect_without_a_place_is_the_end() {
    for head in ["302 Found", "301 Moved Permanently\r\nlocation:  "] {
        let endpoint = endpoint(vec![answer(head, b""), answer("200 OK", PNG)]).await;
        let error = plain(&endpoint.url("/")).await.unwrap_err();
        assert_eq!(error.code, FetchCode::Unreachable);
        assert_eq!(endpoint.requests.lock().len(), 1);
    }
}

#[tokio::test]
async fn a_sender_that_stalls_costs_the_limit_and_no_more() {
    for head in ["", "HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n\u{89}PNG"] {
        let listener = TcpListener::bind((PUBLIC, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(runtime::spawn("stalling", async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            drop(stream.write_all(head.as_bytes()).await);
            std::future::pending::<()>().await;
        }));
        let begun = runtime::now();
        let short = FetchOptions {
            timeout: Duration::from_millis(300),
            ..options(Names::with(&[]))
        };
        let url = format!("http://{PUBLIC}:{port}/");
        let error = fetch(&fetcher(short), &url).await.unwrap_err();
        assert_eq!(error.code, FetchCode::Timeout);
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn more_than_a_few_at_a_time_are_refused_at_once() {
    let fetcher = fetcher(options(Names::with(&[])));
    let _taken = fetcher.0.places.acquire_many(64).await.unwrap();
    let error = fetch(&fetcher, &format!("http://{PUBLIC}/"))
        .await
        .unwrap_err();
    assert_eq!(error.code, FetchCode::Busy);
}
