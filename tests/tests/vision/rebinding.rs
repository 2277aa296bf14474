//! A name that changes its mind between the check and the connection.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use talaria_testkit::Reply;
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, PayloadError, PayloadSink, PayloadWriter, StagedPayload};
use talaria_vision::fetch::{FetchCode, FetchOptions, Fetcher, Lookup, Resolver};
use tempfile::TempDir;

use crate::scene::{endpoint, picture};

const LOOPBACK: [u8; 4] = [127, 0, 0, 1];
const METADATA: [u8; 4] = [169, 254, 169, 254];

/// Answers each look-up with the next list, the last again and again.
#[derive(Debug)]
struct Fickle {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Fickle {
    fn new(answers: &[&[[u8; 4]]]) -> Arc<Self> {
        let answers = answers
            .iter()
            .map(|list| list.iter().map(|address| IpAddr::from(*address)).collect());
        Arc::new(Self {
            answers: answers.collect(),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Resolver for Fickle {
    fn resolve(&self, _host: &str) -> Lookup {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.get(turn).or(self.answers.last()).cloned();
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("no such name")) })
    }
}

/// Keeps files in a folder of the test.
#[derive(Debug)]
struct Folder(TempDir);

struct Writer {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl PayloadSink for Folder {
    fn begin(&self) -> Result<Box<dyn PayloadWriter>, PayloadError> {
        Ok(Box::new(Writer {
            path: self.0.path().join("picture"),
            bytes: Vec::new(),
        }))
    }
}

impl PayloadWriter for Writer {
    fn write(&mut self, decoded: &[u8]) -> Result<(), PayloadError> {
        self.bytes.extend_from_slice(decoded);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<StagedPayload, PayloadError> {
        std::fs::write(&self.path, &self.bytes).unwrap();
        let bytes = u64::try_from(self.bytes.len()).unwrap();
        Ok(StagedPayload::new(self.path, bytes, [0; 32], self.bytes))
    }
}

fn fetcher(resolver: &Arc<Fickle>) -> Fetcher {
    Fetcher::new(FetchOptions {
        // Loopback stands for the public network here; metadata services stay closed.
        allow_private: true,
        allow_fake_ip: false,
        timeout: Duration::from_secs(20),
        max_bytes: 1024 * 1024,
        resolver: Arc::clone(resolver) as Arc<dyn Resolver>,
        looks_like_image: |head| head.starts_with(b"\x89PNG"),
    })
}

async fn fetch(fetcher: &Fetcher, url: &str) -> Result<Vec<u8>, FetchCode> {
    let sink: Arc<dyn PayloadSink> = Arc::new(Folder(tempfile::tempdir().unwrap()));
    let deadline = Deadline::after(Duration::from_secs(20));
    let fetched = fetcher
        .fetch(url, deadline, &sink, &BlockingPool::new(2))
        .await;
    let fetched = fetched.map_err(|error| error.code)?;
    Ok(std::fs::read(fetched.payload.path().unwrap()).unwrap())
}

#[tokio::test]
async fn s08_what_was_checked_is_what_is_connected_to() {
    let host = endpoint(Reply::raw(200, picture(1)));
    let url = format!("http://pictures.example:{}/a.png", host.address().port());
    let resolver = Fickle::new(&[&[LOOPBACK], &[METADATA]]);
    let fetcher = fetcher(&resolver);
    assert_eq!(fetch(&fetcher, &url).await, Ok(picture(1)));
    assert_eq!(
        resolver.asked.load(Ordering::SeqCst),
        1,
        "looked up once, for check and connection"
    );
    // The next request is checked anew and no connection of the last one is used for it.
    assert_eq!(fetch(&fetcher, &url).await, Err(FetchCode::Blocked));
    assert_eq!(
        (host.count(), resolver.asked.load(Ordering::SeqCst)),
        (1, 2)
    );
}

#[tokio::test]
async fn every_address_of_a_name_must_pass() {
    let host = endpoint(Reply::raw(200, picture(1)));
    let url = format!("http://pictures.example:{}/a.png", host.address().port());
    for answer in [[LOOPBACK, METADATA], [METADATA, LOOPBACK]] {
        let resolver = Fickle::new(&[&answer]);
        assert_eq!(
            fetch(&fetcher(&resolver), &url).await,
            Err(FetchCode::Blocked)
        );
        assert_eq!(
            resolver.asked.load(Ordering::SeqCst),
            1,
            "a blocked name is not tried again"
        );
    }
    assert_eq!(host.connections().total, 0);
}

#[tokio::test]
async fn a_redirect_to_a_name_that_changed_is_checked_anew() {
    let host = endpoint(Reply::redirect(302, "/b.png"));
    let url = format!("http://pictures.example:{}/a.png", host.address().port());
    let resolver = Fickle::new(&[&[LOOPBACK], &[METADATA]]);
    assert_eq!(
        fetch(&fetcher(&resolver), &url).await,
        Err(FetchCode::Blocked)
    );
    assert_eq!(
        (host.count(), resolver.asked.load(Ordering::SeqCst)),
        (1, 2)
    );
}

#[tokio::test]
async fn a_name_without_an_address_is_blocked() {
    let resolver = Fickle::new(&[]);
    let code = fetch(&fetcher(&resolver), "http://nowhere.example/a.png").await;
    assert_eq!(code, Err(FetchCode::Blocked));
}
