//! How connections end: a caller that goes away ends its request at once, in every way a client
//! can leave, and a server that stops answers what runs. Over real sockets.

use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{HttpResponse, web};
use talaria_types::runtime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::listen;

/// Far more than the server needs and far less than any call.
const SOON: Duration = Duration::from_secs(2);

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Began,
    Answered,
    Dropped,
}

/// Tells when the future that holds it is dropped before it said that it is done.
struct Witness {
    seen: mpsc::Sender<Seen>,
    end: Seen,
}

impl Drop for Witness {
    fn drop(&mut self) {
        let end = std::mem::replace(&mut self.end, Seen::Dropped);
        self.seen.try_send(end).unwrap();
    }
}

/// A server with `/wait`, which answers when it is released, and `/now`.
struct Fixture {
    address: SocketAddr,
    seen: mpsc::Receiver<Seen>,
    release: CancellationToken,
    handle: ServerHandle,
}

fn fixture() -> Fixture {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, seen) = mpsc::channel(16);
    let release = CancellationToken::new();
    let released = release.clone();
    let server = listen(listener, NonZeroUsize::new(1), SOON, move |services| {
        let (sender, released) = (sender.clone(), released.clone());
        let wait = move |_body: web::Bytes| {
            let (sender, released) = (sender.clone(), released.clone());
            async move {
                sender.try_send(Seen::Began).unwrap();
                let mut witness = Witness {
                    seen: sender,
                    end: Seen::Dropped,
                };
                released.cancelled().await;
                witness.end = Seen::Answered;
                HttpResponse::Ok().body("waited")
            }
        };
        services.route("/wait", web::to(wait));
        services.route("/now", web::to(|| async { HttpResponse::Ok().body("now") }));
    })
    .unwrap();
    let handle = server.handle();
    drop(runtime::spawn("tested_server", server));
    Fixture {
        address,
        seen,
        release,
        handle,
    }
}

impl Fixture {
    async fn next(&mut self) -> Seen {
        timeout(SOON, self.seen.recv())
            .await
            .expect("nothing happened")
            .unwrap()
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a call and waits until it runs.
    async fn call(&mut self, connection: &mut TcpStream) {
        let request = b"POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody";
        connection.write_all(request).await.unwrap();
        assert_eq!(self.next().await, Seen::Began);
    }
}

async fn read_until(connection: &mut TcpStream, end: &str) -> String {
    let mut received = Vec::new();
    let mut piece = [0; 1024];
    while !received.ends_with(end.as_bytes()) {
        let read = timeout(SOON, connection.read(&mut piece))
            .await
            .unwrap()
            .unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..read]);
    }
    String::from_utf8(received).unwrap()
}

#[actix_web::test]
async fn closing_the_connection_drops_the_request() {
    let mut server = fixture();
    let mut connection = server.connect().await;
    server.call(&mut connection).await;
    drop(connection);
    assert_eq!(server.next().await, Seen::Dropped);
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn closing_a_kept_alive_connection_drops_its_second_request() {
    let mut server = fixture();
    let mut connection = server.connect().await;
    connection
        .write_all(b"GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    read_until(&mut connection, "now").await;
    server.call(&mut connection).await;
    drop(connection);
    assert_eq!(server.next().await, Seen::Dropped);
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn resetting_the_connection_drops_the_request() {
    let mut server = fixture();
    let mut connection = server.connect().await;
    server.call(&mut connection).await;
    connection.set_zero_linger().unwrap();
    drop(connection);
    assert_eq!(server.next().await, Seen::Dropped);
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn closing_one_side_only_drops_the_request() {
    let mut server = fixture();
    let mut connection = server.connect().await;
    server.call(&mut connection).await;
    connection.shutdown().await.unwrap();
    assert_eq!(server.next().await, Seen::Dropped);
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn closing_drops_the_running_request_and_starts_none_behind_it() {
    let mut server = fixture();
    let mut connection = server.connect().await;
    server.call(&mut connection).await;
    let behind = b"POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    connection.write_all(behind).await.unwrap();
    drop(connection);
    assert_eq!(server.next().await, Seen::Dropped);
    server.handle.stop(true).await;
    assert_eq!(timeout(SOON, server.seen.recv()).await.ok().flatten(), None);
}

#[actix_web::test]
async fn an_answered_request_is_not_dropped_and_the_connection_stays() {
    let mut server = fixture();
    let mut connection = server.connect().await;
    server.call(&mut connection).await;
    server.release.cancel();
    read_until(&mut connection, "waited").await;
    assert_eq!(server.next().await, Seen::Answered);
    server.call(&mut connection).await;
    read_until(&mut connection, "waited").await;
    assert_eq!(server.next().await, Seen::Answered);
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn a_graceful_stop_answers_what_runs_first() {
    let mut server = fixture();
    let mut connection = server.connect().await;
    let mut idle = server.connect().await;
    server.call(&mut connection).await;
    let stopping = server.handle.stop(true);
    // The idle connection ends at once, the busy one with its answer.
    let mut nothing = [0; 1];
    let read = timeout(SOON, idle.read(&mut nothing)).await.unwrap();
    assert_eq!(read.unwrap(), 0);
    server.release.cancel();
    let answer = read_until(&mut connection, "waited").await;
    assert!(
        answer.to_ascii_lowercase().contains("connection: close"),
        "{answer}"
    );
    assert_eq!(server.next().await, Seen::Answered);
    timeout(SOON, stopping).await.unwrap();
}
