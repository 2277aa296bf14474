//! Looking packages up, against a service on the loopback address.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// A service that answers every question like this, and how often it was asked.
async fn service(
    answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/query", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let answer = Arc::new(answer);
    drop(runtime::spawn("osv", async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (count, answer) = (Arc::clone(&count), Arc::clone(&answer));
            drop(runtime::spawn("osv_connection", async move {
                let mut request = Vec::new();
                while !request.ends_with(b"}") {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                count.fetch_add(1, Ordering::SeqCst);
                let request = String::from_utf8(request).unwrap();
                let Some(body) = answer(&request) else {
                    return std::future::pending().await;
                };
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                drop(stream.write_all((head + &body).as_bytes()).await);
            }));
        }
    }));
    (url, asked)
}

fn check_at(url: &str) -> PackageCheck {
    PackageCheck::new(url, &Arc::default())
}

async fn checked(check: &PackageCheck, line: &str) -> Result<(), Failure> {
    let mut words = line.split(' ').map(str::to_owned);
    let command = words.next().unwrap();
    let args: Vec<String> = words.collect();
    let deadline = Deadline::after(Duration::from_secs(60));
    check
        .check(&command, &args, deadline, &BlockingPool::new(1))
        .await
}

#[tokio::test]
async fn s11_malware_is_blocked_and_nothing_else() {
    let (url, asked) = service(|request| {
        let id = match request {
            request if request.contains("evil") => "MAL-2025-1234",
            request if request.contains("flawed") => "GHSA-aaaa-bbbb-cccc",
            _ => return Some("{}".to_owned()),
        };
        Some(json!({ "vulns": [{ "id": id }] }).to_string())
    })
    .await;
    let check = check_at(&url);
    let failure = checked(&check, "npx -y @scope/evil").await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ServerMisconfigured);
    for word in ["BLOCKED", "@scope/evil", "MAL-2025-1234"] {
        assert!(failure.detail().contains(word), "{}", failure.detail());
    }
    checked(&check, "uvx flawed").await.unwrap();
    checked(&check, "npx clean").await.unwrap();
    let before = asked.load(Ordering::SeqCst);
    checked(&check, "/usr/bin/node server.js").await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), before, "nothing to ask about");
}

#[tokio::test]
async fn an_advisory_on_a_later_page_counts_and_a_withdrawn_one_does_not() {
    let (url, _) = service(|request| {
        let withdrawn = json!({ "id": "MAL-1", "withdrawn": "2025-01-01T00:00:00Z" });
        let page = match request {
            request if request.contains("page_token") => json!({ "vulns": [{ "id": "MAL-2" }] }),
            request if request.contains("paged") => {
                json!({ "vulns": [withdrawn], "next_page_token": "t" })
            }
            _ => json!({ "vulns": [withdrawn] }),
        };
        Some(page.to_string())
    })
    .await;
    let check = check_at(&url);
    checked(&check, "npx taken-back").await.unwrap();
    let failure = checked(&check, "npx paged").await.unwrap_err();
    assert!(failure.detail().contains("MAL-2"), "{}", failure.detail());
}

#[tokio::test]
async fn many_servers_of_one_package_ask_once() {
    let (url, asked) = service(|_| Some("{}".to_owned())).await;
    let check = check_at(&url);
    let checks = (0..50).map(|_| checked(&check, "npx same@1.0.0"));
    for outcome in join_all(checks).await {
        outcome.unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    checked(&check, "npx same@1.0.1").await.unwrap();
    assert_eq!(
        asked.load(Ordering::SeqCst),
        2,
        "another version is another question"
    );
}

#[tokio::test]
async fn s11_a_service_that_cannot_be_asked_blocks_nothing_and_is_left_alone() {
    let check = check_at("http://127.0.0.1:1/v1/query");
    checked(&check, "npx pkg").await.unwrap();
    let (url, asked) = service(|_| Some("not json".to_owned())).await;
    let check = check_at(&url);
    for line in ["npx one", "npx two", "uvx three"] {
        checked(&check, line).await.unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "no storm");
}

#[tokio::test]
async fn who_waits_for_one_that_left_asks_itself() {
    let (url, asked) = service({
        let first = AtomicUsize::new(0);
        move |_| (first.fetch_add(1, Ordering::SeqCst) > 0).then(|| "{}".to_owned())
    })
    .await;
    let check = check_at(&url);
    let leaving = checked(&check, "npx pkg");
    tokio::pin!(leaving);
    let asked_once = async {
        while asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = &mut leaving => panic!("it is not answered"),
        () = asked_once => {}
    }
    let waiting = checked(&check, "npx pkg");
    tokio::pin!(waiting);
    let is_pending =
        std::future::poll_fn(|ctx| Poll::Ready(waiting.as_mut().poll(ctx).is_pending()));
    assert!(is_pending.await);
    leaving.set(checked(&check, "node x"));
    waiting.await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
