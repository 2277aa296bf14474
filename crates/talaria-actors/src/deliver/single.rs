//! One picture handed over by a caller (`/v1/images/deliver`): the same gate, the same
//! preparation and the same formats as for pictures of a tool's result.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use talaria_content::base64_guard::MAX_PAYLOAD_BYTES as MAX_PICTURE_BYTES;
use talaria_content::{
    Artifact, Draft, FileOutcome, Format, PlanRequest, ReaderTool, ResultKind, plan,
};
use talaria_image::{Input, RefusalKind, Region};
use talaria_media::{ArtifactRecord, LocalFile, MediaStore, OpenArtifact, StoreError};
use talaria_types::payload::HEAD_BYTES;
use talaria_types::{
    CallContext, ErrorCode, Failure, Payload, PayloadError, PayloadSink, RawResult, StagedPayload,
    runtime,
};
use talaria_vision::fetch::Fetched;
use talaria_vision::{Decision, ImageSource};

use super::described::Asked;
use super::pictures::{Made, Terms, Unready};
use super::received;
use super::{DeliverOptions, Delivered, DeliveryService, Desk, ImageWishes, made, patient};

/// Bytes copied at a time.
const PIECE: usize = 256 * 1024;

/// A picture and what is asked about it.
#[derive(Debug)]
pub struct PictureRequest {
    /// Where it comes from.
    pub source: ImageSource,
    /// The picture.
    pub input: PictureInput,
    /// What the model shall find out.
    pub question: Option<String>,
    /// The part that is wanted, in pixels of the upright original.
    pub region: Option<Region>,
    /// Format asked for.
    pub format: Format,
    /// Mode and tiles.
    pub images: ImageWishes,
}

/// A picture as it comes in.
#[derive(Debug)]
pub enum PictureInput {
    /// Bytes, and the type a data URL named.
    Bytes(Vec<u8>, Option<String>),
    /// A file of the media store.
    Stored(Box<ArtifactRecord>),
    /// A file of an allowed folder.
    Local(LocalFile),
    /// What an address led to.
    Fetched(Box<Fetched>),
}

/// A picture whose bytes are in the staging area, or were stored before.
#[derive(Debug)]
pub(super) struct Staged {
    payload: StagedPayload,
    /// Where its bytes are.
    path: PathBuf,
    declared: Option<String>,
    /// The artifact, where the store had it already; open, so that it stays until it is read.
    known: Option<OpenArtifact>,
    /// The address of a file that is not ours.
    uri: Option<String>,
}

impl DeliveryService {
    /// Finds the picture behind a path: a file of the media store, or of an allowed folder.
    ///
    /// # Errors
    /// `path_refused`, or the file cannot be used.
    pub async fn open_picture(
        &self,
        ctx: &CallContext,
        path: String,
    ) -> Result<PictureInput, Failure> {
        let (store, roots) = (self.store.clone(), self.roots.clone());
        let found = self.blocking.run(ctx.deadline, move || {
            let path = Path::new(&path);
            match store.find_path(path) {
                Some(record) => Ok(PictureInput::Stored(Box::new(record))),
                None => roots.open(path, MAX_PICTURE_BYTES).map(PictureInput::Local),
            }
        });
        found.await?.map_err(refused)
    }

    /// Delivers one picture.
    ///
    /// # Errors
    /// It is no picture, the region lies outside of it, or no worker came free.
    pub async fn deliver_picture(
        &self,
        ctx: &CallContext,
        request: PictureRequest,
    ) -> Result<Delivered, Failure> {
        let started = runtime::now();
        let PictureRequest {
            source,
            input,
            question,
            region,
            format,
            images,
        } = request;
        let decision = self.decide(ctx, format, images.mode, source, true).await;
        let terms = self.pictures.terms(&decision, images.tiles, region);
        let staged = self.on_worker(ctx, move |desk| stage(&desk.store, input));
        let staged = staged.await??;
        let prepared = self
            .prepare_alone(ctx, &staged, &decision, &terms, format)
            .await?;
        let text = words(source, question.as_deref(), &decision, prepared.as_ref());
        let options = DeliverOptions {
            kind: ResultKind::ToolCall,
            server: None,
            tool: Some(source.as_str().to_owned()),
            reader: ReaderTool::Missing,
            format,
            images,
        };
        let plan_request = self.request(options, &decision);
        let draft = self.on_worker(ctx, move |desk| draft(desk, staged, text, plan_request));
        let mut draft = draft.await??;
        let delivery = if self.describes(&decision, images.describe, true) {
            let question = question.as_deref();
            let asked = Asked { question, region };
            Box::pin(self.describe_alone(ctx, draft, asked)).await?
        } else {
            let attaching = draft.attaching();
            let handed = match prepared {
                Some(prepared) => self.pictures.hand_over(ctx, attaching, &terms, prepared),
                None => (attaching, super::Counted::default()),
            };
            self.attach(ctx, draft, handed).await?
        };
        received::tell(&received::tally(
            delivery.blocks.iter().map(|block| block.kind),
        ));
        Ok(made(delivery, &decision, format, started).await)
    }

    /// Prepares the picture where pixels will leave; `None` where they will not.
    async fn prepare_alone(
        &self,
        ctx: &CallContext,
        staged: &Staged,
        decision: &Decision,
        terms: &Terms,
        format: Format,
    ) -> Result<Option<Result<Made, Unready>>, Failure> {
        let most = terms.most_alone(format);
        if !decision.open || most == 0 {
            return Ok(None);
        }
        let input = Input::File {
            path: staged.path.clone(),
            bytes: staged.payload.bytes,
        };
        let patient = patient(ctx);
        match self.pictures.prepare(&patient, input, terms, most).await {
            Err(Unready {
                kind: Some(RefusalKind::NotAnImage | RefusalKind::BadRegion),
                detail,
                ..
            }) => Err(Failure::new(ErrorCode::InvalidRequest, detail)),
            prepared => Ok(Some(prepared)),
        }
    }
}

/// Brings the bytes into the staging area, unless the store has them.
pub(super) fn stage(store: &MediaStore, input: PictureInput) -> Result<Staged, Failure> {
    match input {
        PictureInput::Bytes(bytes, declared) => {
            let payload = write(store, &mut bytes.as_slice())?;
            Staged::fresh(payload, declared, None)
        }
        PictureInput::Local(mut local) => {
            // A file that grows meanwhile is cut off where it is too large.
            let most = MAX_PICTURE_BYTES + 1;
            let payload = write(store, &mut (&mut local.file).take(most))?;
            if payload.bytes >= most {
                let detail = format!("the file has more than {MAX_PICTURE_BYTES} bytes");
                return Err(Failure::new(ErrorCode::InvalidRequest, detail));
            }
            let uri = format!("file://{}", local.path.display());
            Staged::fresh(payload, None, Some(uri))
        }
        PictureInput::Fetched(fetched) => {
            let Fetched {
                payload,
                declared,
                url,
            } = *fetched;
            Staged::fresh(payload, declared, Some(url))
        }
        PictureInput::Stored(record) => Staged::known(store, &record.artifact),
    }
}

/// Copies bytes into the staging area.
fn write(store: &MediaStore, from: &mut impl Read) -> Result<StagedPayload, Failure> {
    let mut writer = store.begin().map_err(not_staged)?;
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).map_err(unreadable)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        writer.write(bytes).map_err(not_staged)?;
    }
    writer.finish().map_err(not_staged)
}

impl Staged {
    fn fresh(
        payload: StagedPayload,
        declared: Option<String>,
        uri: Option<String>,
    ) -> Result<Self, Failure> {
        let path = payload.path().map(Path::to_path_buf);
        let path =
            path.ok_or_else(|| Failure::new(ErrorCode::Internal, "a staged picture has no path"))?;
        Ok(Self {
            payload,
            path,
            declared,
            known: None,
            uri,
        })
    }

    /// A file the store has already: it is neither copied nor removed.
    fn known(store: &MediaStore, artifact: &Artifact) -> Result<Self, Failure> {
        let mut open = store.read(&artifact.id).map_err(refused)?;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let most = u64::try_from(HEAD_BYTES).unwrap_or(u64::MAX);
        let read = (&mut open.file).take(most).read_to_end(&mut head);
        read.map_err(unreadable)?;
        let mut sha256 = [0; 32];
        hex::decode_to_slice(&artifact.sha256, &mut sha256)
            .map_err(|error| unreadable(std::io::Error::other(error)))?;
        let path = artifact.path.clone();
        let mut payload = StagedPayload::new(path.clone(), artifact.bytes, sha256, head);
        drop(payload.take_path());
        Ok(Self {
            payload,
            path,
            declared: artifact.declared_type.clone(),
            known: Some(open),
            uri: None,
        })
    }

    /// The picture as the result of a tool, after the words, where there are any.
    fn into_result(self, text: Option<String>) -> RawResult {
        let (block, field) = match self.uri {
            // A file keeps its name.
            Some(uri) => (
                json!({"type": "resource", "resource": {
                    "uri": uri, "mimeType": self.declared, "blob": "",
                }}),
                "resource/blob",
            ),
            None => (
                json!({"type": "image", "data": "", "mimeType": self.declared}),
                "data",
            ),
        };
        let mut content: Vec<Value> = Vec::new();
        content.extend(text.map(|text| json!({"type": "text", "text": text})));
        let pointer = format!("/content/{}/{field}", content.len());
        content.push(block);
        let mut raw = RawResult::from_json(json!({ "content": content }));
        raw.wire_bytes = self.payload.bytes;
        raw.payloads.insert(pointer, Payload::Staged(self.payload));
        raw
    }
}

/// Runs the rules and stores the picture.
pub(super) fn draft(
    desk: &Desk,
    mut staged: Staged,
    text: Option<String>,
    request: PlanRequest,
) -> Result<Draft, Failure> {
    let known = staged.known.take();
    let mut plan = plan(staged.into_result(text), request);
    let files = plan.take_files();
    let is_picture = files
        .iter()
        .all(|file| file.media_type.starts_with("image/"));
    if files.len() != 1 || !is_picture {
        return Err(Failure::new(
            ErrorCode::InvalidRequest,
            "the bytes are no picture of a type that is known here",
        ));
    }
    let outcomes = files.into_iter().map(|file| match &known {
        Some(open) => FileOutcome::Stored(open.record.artifact.clone()),
        None => desk.store_one(file),
    });
    Ok(plan.finish(outcomes.collect()))
}

/// What the model reads before the line of the picture.
fn words(
    source: ImageSource,
    question: Option<&str>,
    decision: &Decision,
    prepared: Option<&Result<Made, Unready>>,
) -> Option<String> {
    let is_loaded = matches!(prepared, Some(Ok(_)));
    let mut lines = Vec::new();
    if is_loaded && matches!(source, ImageSource::VisionAnalyze) {
        lines.push("The picture is loaded: look at it yourself and answer from what you see.");
    }
    let closed;
    if !decision.open {
        closed = format!("The picture is not attached: {}.", decision.reason);
        lines.push(&closed);
    }
    let asked;
    if let Some(question) = question {
        asked = format!("Question: {question}");
        lines.push(&asked);
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn refused(error: StoreError) -> Failure {
    Failure::new(error.code, error.detail.clone()).caused_by(error)
}

fn not_staged(error: PayloadError) -> Failure {
    Failure::new(error.code, error.detail.clone()).caused_by(error)
}

fn unreadable(error: std::io::Error) -> Failure {
    Failure::new(ErrorCode::MediaUnavailable, "the picture could not be read").caused_by(error)
}
