//! The stdio transport: our own, because rmcp's drops what it cannot read and leaves the caller
//! to its timeout. Generic over the pipes, so that tests need no process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode as RpcErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use talaria_telemetry::events;
use talaria_types::runtime;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::framing::{Frame, LineFramer};
use crate::intake::Intake;
use crate::intake::calls::Kind;

/// Frames that wait for a server to read its stdin.
const OUTGOING_FRAMES: usize = 64;

/// Messages read ahead of rmcp.
const INCOMING_MESSAGES: usize = 16;

/// What is read at a time while nothing of size comes; every session holds it.
const CHUNK_BYTES: usize = 8 * 1024;

/// What is read at a time while something does: as much as a pipe holds.
const BIG_CHUNK_BYTES: usize = 64 * 1024;

/// Both ends of a server's pipes, as rmcp sees them.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    intake: Arc<Intake>,
    outgoing: mpsc::Sender<Outgoing>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    /// Only for the answers we make up; the reader owns the sender that keeps the channel open.
    made_up: mpsc::WeakSender<ServerJsonRpcMessage>,
    closing: CancellationToken,
    discover_silence: Duration,
}

#[derive(Debug)]
struct Outgoing {
    line: Vec<u8>,
    written: oneshot::Sender<io::Result<()>>,
}

/// When the pipes close.
#[derive(Clone, Debug, Default)]
pub(crate) struct PipeEnds {
    /// Cancel it to close the server's stdin.
    pub(crate) closing: CancellationToken,
    /// Cancelled once the server's stdout has ended and everything in it was read.
    pub(crate) output_ended: CancellationToken,
}

/// Starts reading and writing the pipes.
///
/// A server that says nothing to `server/discover` for `discover_silence` is taken for an old
/// one, as if it had refused the method.
pub(crate) fn open<R, W>(
    reader: R,
    writer: W,
    intake: &Arc<Intake>,
    ends: &PipeEnds,
    discover_silence: Duration,
) -> StdioTransport
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (outgoing, outgoing_rx) = mpsc::channel(OUTGOING_FRAMES);
    let (incoming_tx, incoming) = mpsc::channel(INCOMING_MESSAGES);
    let made_up = incoming_tx.downgrade();
    let ended = ends.output_ended.clone();
    let reading = read_all(reader, Arc::clone(intake), incoming_tx);
    drop(runtime::spawn("mcp_stdio_reader", async move {
        let _ended = ended.drop_guard();
        reading.await;
    }));
    drop(runtime::spawn(
        "mcp_stdio_writer",
        write_all(writer, outgoing_rx, ends.closing.clone()),
    ));
    StdioTransport {
        intake: Arc::clone(intake),
        outgoing,
        incoming,
        made_up,
        closing: ends.closing.clone(),
        discover_silence,
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = self.intake.calls.sent(&item);
        if let Some(id) = id
            && self.intake.calls.kind(id) == Some(Kind::Discover)
        {
            self.answer_for_silence(id);
        }
        let may_wait = match item {
            ClientJsonRpcMessage::Request(_) | ClientJsonRpcMessage::Notification(_) => true,
            // As many as the server asks for: one that asks without reading must cost nothing.
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => false,
        };
        let queued = enqueue(&self.outgoing, &item);
        let outgoing = self.outgoing.clone();
        async move {
            let (waiting, written) = queued?;
            if let Some(frame) = waiting {
                if !may_wait {
                    events::queue_refused("stdio_outgoing");
                    return Ok(());
                }
                outgoing
                    .send(frame)
                    .await
                    .map_err(|_gone| io::ErrorKind::BrokenPipe)?;
            }
            written
                .await
                .unwrap_or_else(|_gone| Err(io::ErrorKind::BrokenPipe.into()))
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.closing.cancel();
        Ok(())
    }
}

impl StdioTransport {
    fn answer_for_silence(&self, id: i64) {
        let made_up = self.made_up.clone();
        let intake = Arc::clone(&self.intake);
        let silence = self.discover_silence;
        let closing = self.closing.clone();
        drop(runtime::spawn("mcp_discover_silence", async move {
            if closing
                .run_until_cancelled(tokio::time::sleep(silence))
                .await
                .is_none()
            {
                return;
            }
            if let Some(incoming) = made_up.upgrade()
                && intake.calls.waiting(id).is_some()
            {
                intake.calls.discovered_in_vain(id);
                let error = ErrorData::new(
                    RpcErrorCode::METHOD_NOT_FOUND,
                    "the server is silent to server/discover",
                    None,
                );
                let message = ServerJsonRpcMessage::error(error, Some(RequestId::Number(id)));
                if incoming.send(message).await.is_err() {
                    tracing::debug!("the session ended during its handshake");
                }
            }
        }));
    }
}

type Queued = (Option<Outgoing>, oneshot::Receiver<io::Result<()>>);

/// Queues a message at once where there is room, so that what is sent later cannot overtake it.
fn enqueue(outgoing: &mpsc::Sender<Outgoing>, item: &ClientJsonRpcMessage) -> io::Result<Queued> {
    let mut line = serde_json::to_vec(item)?;
    line.push(b'\n');
    let (written, outcome) = oneshot::channel();
    match outgoing.try_send(Outgoing { line, written }) {
        Ok(()) => Ok((None, outcome)),
        Err(mpsc::error::TrySendError::Full(frame)) => Ok((Some(frame), outcome)),
        Err(mpsc::error::TrySendError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// One write per message, then the acknowledgement. Dropping the writer closes the stdin.
async fn write_all<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut outgoing: mpsc::Receiver<Outgoing>,
    closing: CancellationToken,
) {
    while let Some(Some(Outgoing { line, written })) =
        closing.run_until_cancelled(outgoing.recv()).await
    {
        let writing = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        let Some(outcome) = closing.run_until_cancelled(writing).await else {
            return;
        };
        let is_broken = outcome.is_err();
        if written.send(outcome).is_err() {
            tracing::trace!("nobody waited for this write");
        }
        if is_broken {
            return;
        }
    }
}

async fn read_all<R: AsyncRead + Unpin>(
    mut reader: R,
    intake: Arc<Intake>,
    incoming: mpsc::Sender<ServerJsonRpcMessage>,
) {
    let mut framer = LineFramer::new(intake.message_bytes);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = tokio::select! {
            read = reader.read(&mut chunk) => read,
            () = incoming.closed() => return,
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::debug!(server = %intake.server, %error, "stdout cannot be read");
                0
            }
        };
        match chunk.get(..bytes) {
            Some(piece) if !piece.is_empty() => framer.push(piece),
            Some(_) | None => framer.finish(),
        }
        while let Some(frame) = framer.next_frame() {
            for message in take_in(&intake, frame).await {
                if incoming.send(message).await.is_err() {
                    return;
                }
            }
        }
        if bytes == 0 {
            return;
        }
        match (bytes == chunk.len(), framer.pending_bytes()) {
            (true, _) if chunk.len() < BIG_CHUNK_BYTES => chunk = vec![0; BIG_CHUNK_BYTES],
            (false, 0) if chunk.len() > CHUNK_BYTES => chunk = vec![0; CHUNK_BYTES],
            (true | false, _) => {}
        }
    }
}

async fn take_in(intake: &Intake, frame: Frame) -> Vec<ServerJsonRpcMessage> {
    match frame {
        Frame::Line(line) => intake.accept(line, None).await,
        Frame::Cut(line) => intake.cut(line).await,
        Frame::OversizeBegan { head } => intake.oversize_began(&head, None).into_iter().collect(),
        Frame::OversizeEnded { head, tail, bytes } => intake
            .oversize_ended(&head, &tail, bytes)
            .into_iter()
            .collect(),
    }
}
