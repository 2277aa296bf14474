//! Pictures in words, where the gate keeps pixels in (design decision 15).

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use talaria_config::DescribeImages;
use talaria_content::{
    Artifact, Delivery, DescribeOutcome, Draft, Format, Gate, Masker, PlanRequest, ReaderTool,
    ResultKind, ToDescribe,
};
use talaria_image::{RefusalKind, Region};
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, NoticeCode};
use talaria_vision::{Decision, ImageSource};

use super::single::{draft, stage};
use super::{Counted, DeliveryService, PictureInput};
use crate::vision::{Analysis, PictureFile, Question, Unmade, VisionHandle, not_configured};

/// What a delivery keeps of its time for what follows its descriptions.
const FINISHING: Duration = Duration::from_millis(250);

/// What is asked about the pictures of a delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) question: Option<&'a str>,
    pub(super) region: Option<Region>,
}

impl DeliveryService {
    /// The same service with somebody who describes pictures.
    #[must_use]
    pub fn with_vision(self, vision: VisionHandle) -> Self {
        Self {
            vision: Some(vision),
            ..self
        }
    }

    /// Whether anybody can be asked to describe a picture.
    #[must_use]
    pub fn has_vision(&self) -> bool {
        self.vision
            .as_ref()
            .is_some_and(VisionHandle::is_configured)
    }

    /// Whether pictures are described; `unasked` is whether also where nobody wishes it.
    pub(super) fn describes(
        &self,
        decision: &Decision,
        wish: Option<DescribeImages>,
        unasked: bool,
    ) -> bool {
        !decision.open
            && match wish.unwrap_or(self.describe_images) {
                DescribeImages::True => true,
                DescribeImages::Auto => self.has_vision() && unasked,
                DescribeImages::False => false,
            }
    }

    /// Has the pictures of a draft described, a few at a time, and ends the delivery.
    pub(super) async fn describe_all(
        &self,
        ctx: &CallContext,
        mut draft: Draft,
    ) -> Result<Delivery, Failure> {
        loop {
            let wave = draft.describing();
            if wave.is_empty() {
                break;
            }
            let asking = wave.into_iter().map(|picture| async move {
                let index = picture.index;
                let outcome = self.describe_one(ctx, picture, Asked::default()).await;
                (index, outcome.unwrap_or_else(|unmade| failed(&unmade)))
            });
            draft.describe(join_all(asking).await);
        }
        self.end_described(ctx, draft).await
    }

    /// Has the one picture of a draft described, and ends the delivery.
    ///
    /// # Errors
    /// It is no picture, or the region lies outside of it, as where pixels leave. Any other
    /// trouble with it is a notice.
    pub(super) async fn describe_alone(
        &self,
        ctx: &CallContext,
        mut draft: Draft,
        asked: Asked<'_>,
    ) -> Result<Delivery, Failure> {
        for picture in draft.describing() {
            let index = picture.index;
            let outcome = match self.describe_one(ctx, picture, asked).await {
                Err(Unmade {
                    refusal: Some(RefusalKind::NotAnImage | RefusalKind::BadRegion),
                    failure,
                    ..
                }) => return Err(failure),
                described => described.unwrap_or_else(|unmade| failed(&unmade)),
            };
            draft.describe(vec![(index, outcome)]);
        }
        self.end_described(ctx, draft).await
    }

    async fn end_described(
        &self,
        ctx: &CallContext,
        mut draft: Draft,
    ) -> Result<Delivery, Failure> {
        let nothing = draft.attaching();
        self.attach(ctx, draft, (nothing, Counted::default())).await
    }

    async fn describe_one(
        &self,
        ctx: &CallContext,
        picture: ToDescribe,
        asked: Asked<'_>,
    ) -> Result<DescribeOutcome, Unmade> {
        let vision = self.vision.as_ref().ok_or_else(not_configured)?;
        let ctx = CallContext {
            deadline: early(ctx.deadline),
            ..ctx.clone()
        };
        let question = Question {
            picture: PictureFile {
                path: picture.path,
                bytes: picture.bytes,
                sha256: picture.sha256,
                artifact: Some(picture.artifact),
            },
            prompt: asked.question.map(ToOwned::to_owned),
            region: asked.region,
        };
        let described = vision.describe(&ctx, question).await;
        described.map(|analysis| masked(outcome(analysis), &self.masker.current()))
    }

    /// Has one picture described, whatever the gate says, and stores it.
    ///
    /// # Errors
    /// It is no picture, the region lies outside of it, nobody can be asked, or every place is
    /// taken. That everybody failed is an answer.
    pub async fn analyze(
        &self,
        ctx: &CallContext,
        input: PictureInput,
        prompt: Option<String>,
        region: Option<Region>,
    ) -> Result<(Analysis, Artifact), Failure> {
        let configured = self.vision.as_ref().filter(|it| it.is_configured());
        let vision = configured.ok_or_else(|| not_configured().failure)?;
        // Storing the picture counts.
        let whole = Deadline::after(vision.total_timeout());
        let artifact = self.store_picture(ctx, input).await?;
        let question = Question {
            picture: PictureFile {
                path: artifact.path.clone(),
                bytes: artifact.bytes,
                sha256: artifact.sha256.clone(),
                artifact: Some(artifact.id.clone()),
            },
            prompt,
            region,
        };
        let ctx = CallContext {
            deadline: ctx.deadline.earlier(whole),
            ..ctx.clone()
        };
        let mut analysis = vision.analyze(&ctx, question).await?;
        let masker = self.masker.current();
        if let Some(answer) = &mut analysis.answer {
            masker.mask_text(&mut answer.text);
        }
        let details = analysis.attempts.iter_mut().map(|it| &mut it.detail);
        for detail in details.flatten() {
            masker.mask_text(detail);
        }
        Ok((analysis, artifact))
    }

    /// Stores a picture as the one file of a delivery nobody reads.
    async fn store_picture(
        &self,
        ctx: &CallContext,
        input: PictureInput,
    ) -> Result<Artifact, Failure> {
        let request = PlanRequest {
            kind: ResultKind::ToolCall,
            server: None,
            tool: Some(ImageSource::VisionAnalyze.as_str().to_owned()),
            reader: ReaderTool::Missing,
            format: Format::Talaria,
            result_size_chars: self.result_size_chars,
            gate: Gate {
                open: false,
                mode: String::new(),
                reason: String::new(),
            },
            masker: self.masker.current(),
        };
        let stored = self.on_worker(ctx, move |desk| {
            let staged = stage(&desk.store, input)?;
            let mut draft = draft(desk, staged, None, request)?;
            let nothing = draft.attaching();
            Ok::<_, Failure>(desk.attach(draft, nothing))
        });
        let delivery = stored.await??;
        if let Some(artifact) = delivery.artifacts.into_iter().next() {
            return Ok(artifact);
        }
        let notice = delivery.notices.into_iter().next();
        let detail = notice.map_or_else(|| "it could not be stored".to_owned(), |it| it.message);
        Err(Failure::new(ErrorCode::MediaUnavailable, detail))
    }
}

/// A little before a deadline, which is that of the delivery.
fn early(deadline: Deadline) -> Deadline {
    let instant = deadline.instant();
    Deadline::at(instant.checked_sub(FINISHING).unwrap_or(instant))
}

fn outcome(analysis: Analysis) -> DescribeOutcome {
    let sentence = analysis.failure_line();
    let attempts = serde_json::to_value(&analysis.attempts).unwrap_or(Value::Null);
    match analysis.answer {
        Some(answer) => DescribeOutcome::Described {
            text: answer.text,
            via: answer.via,
            scale_note: answer.scale_note,
            is_reasoning: answer.is_reasoning,
            attempts,
        },
        None => DescribeOutcome::Failed {
            code: NoticeCode::ImageNotDescribed,
            sentence,
            attempts,
        },
    }
}

/// A backend may have read a secret off the picture, and one that fails may quote its key.
fn masked(mut outcome: DescribeOutcome, masker: &Masker) -> DescribeOutcome {
    match &mut outcome {
        DescribeOutcome::Described { text, attempts, .. }
        | DescribeOutcome::Failed {
            sentence: text,
            attempts,
            ..
        } => {
            masker.mask_text(text);
            masker.mask_value(attempts);
        }
    }
    outcome
}

/// Nobody was asked.
fn failed(unmade: &Unmade) -> DescribeOutcome {
    DescribeOutcome::Failed {
        code: unmade.notice,
        sentence: unmade.failure.detail().to_owned(),
        attempts: json!([]),
    }
}
