//! What the tests of this crate share: a payload sink, options, a server written by hand.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use talaria_config::{ProtocolWish, TransportConfig};
use talaria_types::runtime::{self, BlockingPool};
use talaria_types::{
    Deadline, ErrorCode, PayloadError, PayloadSink, PayloadWriter, ServerName, StagedPayload,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::habits::Habits;
use crate::session::{ConnectOptions, RpcLimits, SessionEvent};

/// Stages payloads in a folder that goes away with it.
#[derive(Debug)]
pub(crate) struct FolderSink {
    folder: tempfile::TempDir,
    count: AtomicUsize,
}

impl FolderSink {
    pub(crate) fn new() -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        Arc::new(Self {
            folder,
            count: AtomicUsize::new(0),
        })
    }

    /// Files that are there now.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }
}

impl PayloadSink for FolderSink {
    fn begin(&self) -> Result<Box<dyn PayloadWriter>, PayloadError> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(number.to_string());
        let file = std::fs::File::create(&path).map_err(|error| not_written(&error))?;
        Ok(Box::new(FileWriter {
            path: Some(path),
            file,
            bytes: 0,
            head: Vec::new(),
        }))
    }
}

struct FileWriter {
    path: Option<PathBuf>,
    file: std::fs::File,
    bytes: u64,
    head: Vec<u8>,
}

impl PayloadWriter for FileWriter {
    fn write(&mut self, decoded: &[u8]) -> Result<(), PayloadError> {
        use std::io::Write;
        self.file
            .write_all(decoded)
            .map_err(|error| not_written(&error))?;
        self.bytes += u64::try_from(decoded.len()).unwrap_or(u64::MAX);
        let room = talaria_types::payload::HEAD_BYTES.saturating_sub(self.head.len());
        self.head
            .extend_from_slice(&decoded[..room.min(decoded.len())]);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<StagedPayload, PayloadError> {
        let path = self.path.take().unwrap_or_default();
        Ok(StagedPayload::new(
            path,
            self.bytes,
            [0; 32],
            std::mem::take(&mut self.head),
        ))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            drop(std::fs::remove_file(path));
        }
    }
}

fn not_written(error: &std::io::Error) -> PayloadError {
    PayloadError {
        code: ErrorCode::MediaUnavailable,
        detail: error.to_string(),
    }
}

/// Options for a server reached by `transport`, and where its events come out.
pub(crate) fn options(
    transport: TransportConfig,
    sink: Arc<dyn PayloadSink>,
) -> (ConnectOptions, mpsc::Receiver<SessionEvent>) {
    let (events, events_rx) = mpsc::channel(16);
    let log = std::env::temp_dir().join(format!("talaria-mcp-tests-{}.log", std::process::id()));
    let options = ConnectOptions {
        server: ServerName::from("odd"),
        transport,
        protocol: ProtocolWish::Auto,
        deadline: Deadline::after(Duration::from_secs(20)),
        message_bytes: 4 * 1024 * 1024,
        sink,
        blocking: BlockingPool::new(4),
        guard: None,
        stderr_log: log,
        stderr_log_bytes: 1024 * 1024,
        environment: Arc::new(runtime::environment()),
        habits: Habits::default(),
        packages: None,
        events,
    };
    (options, events_rx)
}

/// Limits of a call that should be answered at once.
pub(crate) fn limits() -> RpcLimits {
    RpcLimits {
        idle: Duration::from_secs(10),
        deadline: Deadline::after(Duration::from_secs(20)),
        cancel: CancellationToken::new(),
    }
}

/// The server's side of a pair of pipes.
pub(crate) struct Server {
    reader: BufReader<DuplexStream>,
    writer: DuplexStream,
}

impl Server {
    /// The server and the client's ends: what it reads and what it writes.
    pub(crate) fn new() -> (Self, DuplexStream, DuplexStream) {
        let (client_reads, writer) = tokio::io::duplex(64 * 1024);
        let (server_reads, client_writes) = tokio::io::duplex(64 * 1024);
        (
            Self {
                reader: BufReader::new(server_reads),
                writer,
            },
            client_reads,
            client_writes,
        )
    }

    /// The next message of the client; `None` once it has closed the pipe.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        let bytes = tokio::time::timeout(Duration::from_secs(10), read)
            .await
            .unwrap()
            .unwrap();
        (bytes > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The next message, which has to be of that method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await.unwrap();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
        self.writer.flush().await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// Plays an old server until it is ready.
    pub(crate) async fn shake_hands(&mut self) {
        let discover = self.expect("server/discover").await;
        let error = json!({ "code": -32601, "message": "Method not found" });
        self.send(&json!({ "jsonrpc": "2.0", "id": discover["id"], "error": error }))
            .await;
        self.initialize().await;
    }

    /// Plays the old handshake.
    pub(crate) async fn initialize(&mut self) -> Value {
        let initialize = self.expect("initialize").await;
        let result = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "odd", "version": "1" },
        });
        self.send(&json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": result }))
            .await;
        self.expect("notifications/initialized").await;
        initialize
    }

    /// Closes its output; its input stays open.
    pub(crate) async fn close_output(&mut self) {
        self.writer.shutdown().await.unwrap();
    }
}
