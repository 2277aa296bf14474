//! The delivery pipeline: pure rules, then files on the blocking pool, then the bounded text.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use talaria_config::ImageInputMode;
use talaria_content::{
    BlockFate, BlockRecord, Delivery, Draft, FileOutcome, FileRequest, Format, Gate, Plan,
    PlanRequest, ReaderTool, ResultKind, TextToRead, plan,
};
use talaria_mcp::wire::{self, Scrubbed};
use talaria_media::MediaStore;
use talaria_telemetry::events;
use talaria_types::runtime::{self, BlockingPool};
use talaria_types::{CallContext, Deadline, Failure, RawResult, ServerName, TokenName};

mod received;
#[cfg(test)]
mod tests;

/// A result with fewer bytes, no payload and no file is delivered without a worker.
const INLINE_BYTES: u64 = 64 * 1024;
/// What a delivery gets at least: a result that is there is not thrown away for a moment's delay.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// Turns raw results into deliveries; cheap to clone.
#[derive(Clone, Debug)]
pub struct DeliveryService {
    store: MediaStore,
    blocking: BlockingPool,
    result_size_chars: usize,
    mode: ImageInputMode,
}

/// What one delivery needs besides the result.
#[derive(Clone, Debug)]
pub struct DeliverOptions {
    /// What was asked of the server.
    pub kind: ResultKind,
    /// Raw server name.
    pub server: Option<ServerName>,
    /// Raw tool name.
    pub tool: Option<String>,
    /// The tool that reads this server's resources.
    pub reader: ReaderTool,
    /// Format asked for.
    pub format: Format,
}

impl DeliveryService {
    /// A service over a store.
    #[must_use]
    pub fn new(config: &talaria_config::Config, store: MediaStore, blocking: BlockingPool) -> Self {
        Self {
            store,
            blocking,
            result_size_chars: config.result_size_chars,
            mode: config.gate.mode,
        }
    }

    /// Delivers a raw result. A file that cannot be stored costs its block, never the call.
    ///
    /// # Errors
    /// `busy` when no worker came free before the deadline.
    pub async fn deliver(
        &self,
        ctx: &CallContext,
        raw: RawResult,
        options: DeliverOptions,
    ) -> Result<Delivery, Failure> {
        let started = runtime::now();
        let format = options.format;
        let received = received::kinds(&raw.json, &options.kind);
        let small = raw.payloads.is_empty() && raw.wire_bytes < INLINE_BYTES;
        let request = self.request(options);
        let mut delivery = if small {
            self.deliver_inline(ctx, raw, request).await?
        } else {
            self.on_worker(ctx, move |desk| desk.whole(raw, request))
                .await?
        };
        let took = started.elapsed();
        delivery.elapsed_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        // Counted together, so that a delivery that failed does not look like lost blocks.
        for kind in received {
            events::block_received(kind);
        }
        for block in &delivery.blocks {
            count_settled(*block);
        }
        events::delivery_made(
            format.as_str(),
            delivery.text.len(),
            took,
            delivery.is_error,
        );
        Ok(delivery)
    }

    /// Until when a result that is there may wait for a worker, whatever the call's deadline.
    #[must_use]
    pub fn patience(ctx: &CallContext) -> Deadline {
        ctx.deadline.max(Deadline::after(LEAST_TIME))
    }

    /// Reads a JSON body that holds a result (`/v1/results/deliver`), staging its payloads.
    ///
    /// # Errors
    /// `malformed_message` when it is not JSON.
    pub async fn read_body(
        &self,
        ctx: &CallContext,
        body: Vec<u8>,
        result_at: &'static str,
    ) -> Result<Scrubbed, Failure> {
        let store = self.store.clone();
        self.blocking
            .run(ctx.deadline, move || wire::scrub(&body, result_at, &store))
            .await?
    }

    fn request(&self, options: DeliverOptions) -> PlanRequest {
        PlanRequest {
            kind: options.kind,
            server: options.server,
            tool: options.tool,
            reader: options.reader,
            format: options.format,
            result_size_chars: self.result_size_chars,
            gate: Gate {
                open: false,
                mode: self.mode.as_str().to_owned(),
                reason: "this version of Talaria does not attach pixels; images are saved as \
                         files and named in the text"
                    .to_owned(),
            },
        }
    }

    /// Runs the rules here and goes to a worker only where a file is wanted.
    async fn deliver_inline(
        &self,
        ctx: &CallContext,
        raw: RawResult,
        request: PlanRequest,
    ) -> Result<Delivery, Failure> {
        let mut plan = plan(raw, request);
        let files = plan.take_files();
        if !files.is_empty() {
            return self
                .on_worker(ctx, move |desk| desk.save_files(plan, files))
                .await;
        }
        let mut draft = plan.finish(Vec::new());
        let spills = draft.take_spills();
        if !spills.is_empty() {
            return self
                .on_worker(ctx, move |desk| desk.save_spills(draft, spills))
                .await;
        }
        Ok(draft.settle(Vec::new()))
    }

    async fn on_worker(
        &self,
        ctx: &CallContext,
        job: impl FnOnce(&Desk) -> Delivery + Send + 'static,
    ) -> Result<Delivery, Failure> {
        let deadline = Self::patience(ctx);
        let desk = Desk {
            store: self.store.clone(),
            owner: ctx.token.clone(),
        };
        let delivered = self.blocking.run(deadline, move || job(&desk)).await;
        if delivered.is_err() && deadline.expired() {
            events::deadline_exceeded("delivery");
        }
        delivered
    }
}

/// Where a worker stores the files of one delivery.
struct Desk {
    store: MediaStore,
    owner: Option<TokenName>,
}

impl Desk {
    fn whole(&self, raw: RawResult, request: PlanRequest) -> Delivery {
        let mut plan = plan(raw, request);
        let texts = plan.texts_to_read().iter().map(read_text).collect();
        plan.put_texts(texts);
        let files = plan.take_files();
        self.save_files(plan, files)
    }

    fn save_files(&self, plan: Plan, files: Vec<FileRequest>) -> Delivery {
        let mut draft = plan.finish(self.store_all(files));
        let spills = draft.take_spills();
        self.save_spills(draft, spills)
    }

    fn save_spills(&self, draft: Draft, spills: Vec<FileRequest>) -> Delivery {
        draft.settle(self.store_all(spills))
    }

    fn store_all(&self, files: Vec<FileRequest>) -> Vec<FileOutcome> {
        files.into_iter().map(|file| self.store_one(file)).collect()
    }

    fn store_one(&self, file: FileRequest) -> FileOutcome {
        match self.store.save(file, self.owner.as_ref()) {
            Ok(artifact) => FileOutcome::Stored(artifact),
            Err(error) => FileOutcome::Failed {
                code: error.code,
                detail: error.detail,
            },
        }
    }
}

/// A staged text, if it is still as long as it was.
fn read_text(text: &TextToRead) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(text.bytes).ok()?);
    let file = File::open(&text.path).ok()?;
    // One byte more shows that the file has grown.
    file.take(text.bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .ok()?;
    (u64::try_from(bytes.len()).ok()? == text.bytes).then_some(bytes)
}

fn count_settled(block: BlockRecord) {
    let (fate, code) = match block.fate {
        BlockFate::Delivered => ("delivered", None),
        BlockFate::Saved => ("saved", None),
        BlockFate::Spilled => ("spilled", None),
        BlockFate::Refused(code) => ("refused", Some(code)),
    };
    events::block_settled(block.kind, fate, code);
}
