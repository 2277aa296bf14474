//! A client that sends exactly what it is told.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(10);

/// An answer, taken apart.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    fn parse(received: &[u8]) -> Self {
        let head_ends = received
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = std::str::from_utf8(&received[..head_ends]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap();
                (name.to_ascii_lowercase(), value.to_owned())
            })
            .collect();
        Self {
            status,
            headers,
            body: received[head_ends + 4..].to_vec(),
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} stands twice");
        value
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.body)))
    }

    /// The problem of a refusal, after checking that it is well formed.
    #[track_caller]
    pub(super) fn problem(&self) -> Value {
        let problem = self.json();
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{problem}"
        );
        assert_eq!(problem["status"], self.status, "{problem}");
        assert_eq!(
            problem["request_id"].as_str(),
            self.header("x-request-id"),
            "{problem}"
        );
        problem
    }

    #[track_caller]
    pub(super) fn refused(&self, status: u16, code: &str) -> String {
        let problem = self.problem();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(self.status, status, "{problem}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

/// A connection that stays open.
pub(super) struct Connection {
    address: SocketAddr,
    pub(super) stream: TcpStream,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Self {
        Self {
            address,
            stream: TcpStream::connect(address).await.unwrap(),
        }
    }

    /// Sends one request. A `Host` is added unless `headers` has one.
    pub(super) async fn send(&mut self, method: &str, path: &str, headers: &[&str], body: &[u8]) {
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        let measured = headers.iter().any(|header| {
            header.starts_with("Content-Length:") || header.starts_with("Transfer-Encoding:")
        });
        if !measured && !body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for header in headers {
            request.push_str(&format!("{header}\r\n"));
        }
        let mut request = format!("{request}\r\n").into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await.unwrap();
    }

    /// Sends one request and reads its answer to the end.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> Reply {
        self.send(method, path, headers, body).await;
        let mut received = Vec::new();
        loop {
            let read = timeout(PATIENCE, self.stream.read_buf(&mut received)).await;
            if read.unwrap().unwrap() == 0 {
                return Reply::parse(&received);
            }
            if !received.windows(4).any(|four| four == b"\r\n\r\n") {
                continue;
            }
            let reply = Reply::parse(&received);
            let length = reply
                .header("content-length")
                .and_then(|length| length.parse().ok());
            let bodiless = method == "HEAD" || matches!(reply.status, 204 | 304);
            if bodiless || length == Some(reply.body.len()) {
                return reply;
            }
        }
    }
}

/// Sends one request on a connection of its own.
pub(super) async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Reply {
    Connection::open(address)
        .await
        .ask(method, path, headers, body)
        .await
}

/// Sends bytes and reads until the server closes.
pub(super) async fn send(address: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut received = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut received))
        .await
        .unwrap()
        .unwrap();
    Reply::parse(&received)
}
