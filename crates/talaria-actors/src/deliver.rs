//! The delivery pipeline: the gate, pure rules, files on the blocking pool, pictures on theirs,
//! then the bounded text.

use std::time::Duration;

use talaria_config::{DescribeImages, ImageInputMode, Tiles};
use talaria_content::{
    Attaching, Delivery, Draft, Format, Gate, ImageDelivery, PlanRequest, ReaderTool, ResultKind,
    is_picture, plan,
};
use talaria_image::ImagePool;
use talaria_mcp::wire::{self, Scrubbed};
use talaria_media::{AllowedRoots, MediaStore};
use talaria_telemetry::events;
use talaria_types::runtime::{self, BlockingPool};
use talaria_types::{CallContext, Deadline, Failure, RawResult, ServerName, SessionKey};
use talaria_vision::fetch::{FetchOptions, Fetcher};
use talaria_vision::{Decision, GateQuestion, Gatekeeper, ImageSource};

use crate::masking::SharedMasker;
use crate::vision::VisionHandle;

mod address;
mod described;
mod desk;
mod fates;
mod pictures;
mod received;
mod repeats;
mod single;
#[cfg(test)]
mod tests;

use desk::{Desk, Stage};
pub(crate) use pictures::Unready;
use pictures::{Counted, Pictures};
use received::Tally;

pub use single::{PictureInput, PictureRequest};

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
    gatekeeper: Gatekeeper,
    pictures: Pictures,
    roots: AllowedRoots,
    fetcher: Fetcher,
    vision: Option<VisionHandle>,
    describe_images: DescribeImages,
    masker: SharedMasker,
    wrap_untrusted: bool,
}

/// What a service is made of.
#[derive(Clone, Debug)]
pub struct DeliveryParts {
    /// Where files go.
    pub store: MediaStore,
    /// Workers for files and rules.
    pub blocking: BlockingPool,
    /// Decides whether pixels leave.
    pub gatekeeper: Gatekeeper,
    /// Prepares pixels.
    pub pool: ImagePool,
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
    /// What the caller wishes for its pictures.
    pub images: ImageWishes,
}

/// What a caller wishes for the pictures of a delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageWishes {
    /// In place of the configured mode.
    pub mode: Option<ImageInputMode>,
    /// In place of the configured choice.
    pub tiles: Option<Tiles>,
    /// Whether they are described where no pixels leave, in place of the configured choice.
    pub describe: Option<DescribeImages>,
}

/// A delivery, and how its pictures travel.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The delivery.
    pub delivery: Delivery,
    /// Whether pictures stand in the tool result or in a message after it.
    pub image_delivery: ImageDelivery,
}

impl DeliveryService {
    /// A service over a store.
    #[must_use]
    pub fn new(config: &talaria_config::Config, parts: DeliveryParts) -> Self {
        let DeliveryParts {
            store,
            blocking,
            gatekeeper,
            pool,
        } = parts;
        let images = &config.talaria.images;
        Self {
            pictures: Pictures::new(images, pool, blocking.clone()),
            roots: AllowedRoots::new(images.allowed_roots.clone()),
            store,
            blocking,
            result_size_chars: config.result_size_chars,
            gatekeeper,
            fetcher: Fetcher::new(FetchOptions::new(&config.vision, is_picture)),
            vision: None,
            describe_images: config.vision.describe_images,
            masker: SharedMasker::new(config.secrets()),
            wrap_untrusted: config.talaria.calls.wrap_untrusted,
        }
    }

    /// Delivers a raw result. A file that cannot be stored costs its block, a picture that
    /// cannot be prepared its pixels, never the call.
    ///
    /// # Errors
    /// `busy` when no worker came free before the deadline.
    pub async fn deliver(
        &self,
        ctx: &CallContext,
        raw: RawResult,
        options: DeliverOptions,
    ) -> Result<Delivered, Failure> {
        let started = runtime::now();
        let format = options.format;
        let wishes = options.images;
        let (raw, received) = self.received(ctx, raw, &options.kind).await?;
        let may_show = !raw.payloads.is_empty() || received::may_hold_pictures(&received);
        let decision = self
            .decide(ctx, format, wishes.mode, ImageSource::Mcp, may_show)
            .await;
        let terms = self.pictures.terms(&decision, wishes.tiles, None);
        let small = raw.payloads.is_empty() && raw.wire_bytes < INLINE_BYTES;
        let describes = self.describes(&decision, wishes.describe, format != Format::Hermes);
        let request = self.request(options, &decision);
        let stage = if small {
            self.stage_inline(ctx, raw, request, describes).await?
        } else {
            self.on_worker(ctx, move |desk| desk.whole(raw, request, describes))
                .await?
        };
        let delivery = match stage {
            Stage::Done(delivery) => *delivery,
            Stage::Pictures(draft, attaching) => {
                let patient = patient(ctx);
                let prepared = self.pictures.prepare_all(&patient, attaching, &terms);
                self.attach(ctx, *draft, prepared.await).await?
            }
            Stage::Words(draft) => Box::pin(self.describe_all(ctx, *draft)).await?,
        };
        // Counted together, so that a delivery that failed does not look like lost blocks.
        received::tell(&received);
        let delivery = self.marked(delivery);
        Ok(made(delivery, &decision, format, started).await)
    }

    /// Counts what a result holds, on a worker where it may hold much.
    async fn received(
        &self,
        ctx: &CallContext,
        raw: RawResult,
        kind: &ResultKind,
    ) -> Result<(RawResult, Tally), Failure> {
        let kind = kind.clone();
        let count = move |raw: RawResult| {
            let tally = received::tally(received::kinds(&raw.json, &kind));
            (raw, tally)
        };
        if raw.wire_bytes < INLINE_BYTES {
            return Ok(count(raw));
        }
        self.on_worker(ctx, move |_desk| count(raw)).await
    }

    /// Marks a delivery as data of others, where that is wanted.
    fn marked(&self, delivery: Delivery) -> Delivery {
        if self.wrap_untrusted {
            delivery.untrusted()
        } else {
            delivery
        }
    }

    /// Asks the gate, once for a delivery. Where no picture can leave, no model server is asked.
    async fn decide(
        &self,
        ctx: &CallContext,
        format: Format,
        mode: Option<ImageInputMode>,
        source: ImageSource,
        may_show: bool,
    ) -> Decision {
        let session = session_of(ctx);
        let question = GateQuestion {
            route: ctx.route.as_ref(),
            session: session.as_ref(),
            mode,
            api: api_of(format),
            source,
        };
        let deadline = if may_show && format.image_limits().is_some() {
            Self::patience(ctx)
        } else {
            Deadline::after(Duration::ZERO)
        };
        let decision = self.gatekeeper.decide(&question, deadline).await;
        events::gate_decided(
            decision.open,
            decision.cause.as_str(),
            source.as_str(),
            &decision.reason,
        );
        decision
    }

    /// Remembers that the provider of this session's route refused pictures, so that the gate
    /// stays closed for them from now on.
    pub fn remember_refusal(&self, ctx: &CallContext) {
        if let Some(route) = &ctx.route {
            self.gatekeeper
                .remember_refusal(session_of(ctx).as_ref(), route);
        }
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

    fn request(&self, options: DeliverOptions, decision: &Decision) -> PlanRequest {
        PlanRequest {
            kind: options.kind,
            server: options.server,
            tool: options.tool,
            reader: options.reader,
            format: options.format,
            result_size_chars: self.result_size_chars,
            gate: Gate {
                open: decision.open,
                mode: decision.mode.as_str().to_owned(),
                reason: decision.reason.clone(),
            },
            masker: self.masker.current(),
        }
    }

    /// What takes configured secrets out of everything; a reload adds to what it looks for.
    #[must_use]
    pub const fn masker(&self) -> &SharedMasker {
        &self.masker
    }

    /// Runs the rules here and goes to a worker only where a file is wanted.
    async fn stage_inline(
        &self,
        ctx: &CallContext,
        raw: RawResult,
        request: PlanRequest,
        describes: bool,
    ) -> Result<Stage, Failure> {
        let mut plan = plan(raw, request);
        let files = plan.take_files();
        if !files.is_empty() {
            return self
                .on_worker(ctx, move |desk| desk.save_files(plan, files, describes))
                .await;
        }
        // Without a file there is no picture.
        let mut draft = plan.finish(Vec::new());
        let spills = draft.take_spills();
        if !spills.is_empty() {
            let settled = self.on_worker(ctx, move |desk| desk.save_spills(draft, spills));
            return Ok(Stage::Done(Box::new(settled.await?)));
        }
        Ok(Stage::Done(Box::new(draft.settle(Vec::new()))))
    }

    /// Ends a delivery whose pictures are prepared.
    async fn attach(
        &self,
        ctx: &CallContext,
        draft: Draft,
        (attaching, counted): (Attaching, Counted),
    ) -> Result<Delivery, Failure> {
        let attached = self.on_worker(ctx, move |desk| desk.attach(draft, attaching));
        let delivery = attached.await?;
        counted.keep_attached(&delivery);
        Ok(delivery)
    }

    async fn on_worker<T: Send + 'static>(
        &self,
        ctx: &CallContext,
        job: impl FnOnce(&Desk) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let deadline = Self::patience(ctx);
        let desk = Desk {
            store: self.store.clone(),
            owner: ctx.token.clone(),
        };
        let done = self.blocking.run(deadline, move || job(&desk)).await;
        if done.is_err() && deadline.expired() {
            events::deadline_exceeded("delivery");
        }
        done
    }
}

/// The context with the time that pictures get at least, as files do.
fn patient(ctx: &CallContext) -> CallContext {
    CallContext {
        deadline: DeliveryService::patience(ctx),
        ..ctx.clone()
    }
}

/// What leaves, counted and logged once.
async fn made(
    mut delivery: Delivery,
    decision: &Decision,
    format: Format,
    started: tokio::time::Instant,
) -> Delivered {
    let took = started.elapsed();
    delivery.elapsed_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    fates::count(&delivery, decision, format).await;
    events::delivery_made(
        format.as_str(),
        delivery.text.len(),
        took,
        delivery.is_error,
    );
    Delivered {
        delivery,
        image_delivery: image_delivery(decision),
    }
}

/// A caller's conversation. Two tokens may call theirs by one name.
fn session_of(ctx: &CallContext) -> Option<SessionKey> {
    let session = ctx.session.as_ref()?;
    let token = ctx.token.as_ref().map_or("", |token| token.as_str());
    Some(SessionKey::from(format!("{token}\n{}", session.as_str())))
}

/// The API shape of a format.
const fn api_of(format: Format) -> Option<&'static str> {
    match format {
        Format::Anthropic | Format::OpenaiResponses | Format::OpenaiChat | Format::Gemini => {
            Some(format.as_str())
        }
        Format::Talaria | Format::Hermes | Format::Text | Format::Mcp => None,
    }
}

const fn image_delivery(decision: &Decision) -> ImageDelivery {
    match decision.image_delivery {
        talaria_config::ImageDelivery::ToolResult => ImageDelivery::ToolResult,
        talaria_config::ImageDelivery::UserMessage => ImageDelivery::UserMessage,
    }
}
