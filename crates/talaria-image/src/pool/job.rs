//! One picture on its way through the pool.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use talaria_types::{CallContext, Deadline, runtime};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{Input, PoolRefusal};
use crate::prepared::{Prepared, SourceFormat};
use crate::target::Target;
use crate::watch::Watch;

/// Where the answer goes.
pub(super) type Reply = oneshot::Sender<Result<Prepared, PoolRefusal>>;

/// One picture to prepare.
pub(super) struct Job {
    input: Input,
    pub(super) target: Target,
    deadline: Deadline,
    cancel: CancellationToken,
    pub(super) span: Span,
    queued: Instant,
    reply: Reply,
    /// Format and pixels of the source, once its header was read.
    source: Cell<(SourceFormat, u64)>,
}

impl Job {
    pub(super) fn new(
        ctx: &CallContext,
        cancel: CancellationToken,
        input: Input,
        target: Target,
        reply: Reply,
    ) -> Self {
        Self {
            input,
            target,
            deadline: ctx.deadline,
            cancel,
            span: ctx.span.clone(),
            queued: runtime::now(),
            reply,
            source: Cell::new((SourceFormat::Unknown, 0)),
        }
    }

    /// How long it has been in the queue.
    pub(super) fn waited(&self) -> Duration {
        self.queued.elapsed()
    }

    /// Whether somebody still waits for it.
    pub(super) fn still_wanted(&self) -> Result<(), PoolRefusal> {
        if self.deadline.expired() {
            return Err(PoolRefusal::Late);
        }
        if self.cancel.is_cancelled() {
            return Err(PoolRefusal::Abandoned);
        }
        Ok(())
    }

    /// Stops the work when the call is over.
    pub(super) fn watch(&self) -> Watch {
        let (deadline, cancel) = (self.deadline, self.cancel.clone());
        Watch::new(move || cancel.is_cancelled() || deadline.expired())
    }

    /// Keeps what the header said, for the metrics.
    pub(super) fn learned(&self, format: SourceFormat, pixels: u64) {
        self.source.set((format, pixels));
    }

    pub(super) fn format(&self) -> &'static str {
        self.source.get().0.as_str()
    }

    pub(super) fn pixels(&self) -> u64 {
        self.source.get().1
    }

    /// The bytes of the picture.
    pub(super) fn read(&self) -> Result<Cow<'_, [u8]>, PoolRefusal> {
        match &self.input {
            Input::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            Input::File { path, bytes } => read_file(path, *bytes).map(Cow::Owned),
        }
    }

    /// Hands the outcome to whoever waits.
    pub(super) fn answer(self, outcome: Result<Prepared, PoolRefusal>) {
        // Nobody waits any more: then nobody misses it.
        drop(self.reply.send(outcome));
    }
}

fn read_file(path: &Path, length: u64) -> Result<Vec<u8>, PoolRefusal> {
    let unreadable = |error: std::io::Error| PoolRefusal::Unreadable(error.to_string());
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(64 << 20)).unwrap_or(0));
    // One byte more shows that the file has grown.
    file.take(length.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > length {
        return Err(PoolRefusal::Unreadable(
            "the file has grown since it was named".to_owned(),
        ));
    }
    Ok(bytes)
}
