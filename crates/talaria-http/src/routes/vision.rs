//! `POST /v1/vision/analyze`: one picture in words, always through the vision chain.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use talaria_actors::{Analysis, AnalysisAttempt, DeliveryService};
use talaria_content::{Artifact, MAX_ANALYSIS_CHARACTERS, backend_words, description_text};
use talaria_types::{ErrorCode, Failure};

use crate::body::{self, JsonRequest, LARGE_JSON};
use crate::exchange::Asked;
use crate::picture::{self, Image};
use crate::problem::Rejection;
use crate::query;
use crate::routes::json as answer_json;
use crate::wishes::{self, Wishes};

/// Body of `POST /v1/vision/analyze`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct AnalyzeRequest {
    /// The picture.
    image: Image,
    /// What the description shall answer; everything that is to be seen, when absent.
    #[serde(default)]
    prompt: Option<String>,
    /// `[x1, y1, x2, y2]` in pixels of the upright picture: the part that is wanted, cut out
    /// before anything is scaled.
    #[serde(default)]
    region: Option<[i64; 4]>,
    /// What the caller calls its conversation.
    #[serde(default)]
    session: Option<String>,
    /// Hard limit of the whole request in milliseconds.
    #[serde(default)]
    timeout_ms: Option<NonZeroU64>,
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: BTreeMap<String, IgnoredAny>,
}

impl JsonRequest for AnalyzeRequest {
    const OWN_KEYS: &'static [&'static str] =
        &["image", "prompt", "region", "session", "timeout_ms"];

    fn unknown(&self) -> Option<&str> {
        self.unknown.keys().next().map(String::as_str)
    }
}

/// Answer of `POST /v1/vision/analyze`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnalyzeAnswer {
    /// Always `true`; an analysis that failed is a problem.
    success: bool,
    /// The description; at most 64,000 characters of it.
    analysis: String,
    /// How many characters of it were left out.
    left_out: usize,
    /// The backend that gave it: `openai/gpt-4o-mini`, `mcp:MiniMax/understand_image`.
    via: String,
    /// How to map coordinates in the description back to the original.
    scale_note: Option<String>,
    /// Whether the description is only what the backend thought on its way to no answer.
    is_reasoning: bool,
    /// Everybody who was asked, in order.
    attempts: Vec<AttemptReport>,
    /// Whether the description is one that was made before.
    cached: bool,
    /// Whether the description was already being made for another request.
    coalesced: bool,
    /// From request to answer.
    elapsed_ms: u64,
    /// The picture, stored.
    artifact: Artifact,
}

/// What the problem of an analysis that failed says besides what every problem does.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VisionFailure {
    /// Always `false`.
    success: bool,
    /// Everybody who was asked, in order.
    attempts: Vec<AttemptReport>,
    /// Why the first of them failed.
    first_error: Option<String>,
    /// Why the last of them failed.
    last_error: Option<String>,
    /// The picture, stored; null where time ran out before anybody was asked.
    artifact: Option<Artifact>,
}

/// One attempt at a description.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AttemptReport {
    /// Who was asked.
    via: String,
    /// `answered`, `reasoned`, `cancelled`, or the code of the failure.
    outcome: &'static str,
    /// How long it took.
    ms: u64,
    /// Code of the failure.
    code: Option<&'static str>,
    /// Status of the backend's HTTP answer.
    status: Option<u16>,
    /// The failure in words.
    detail: Option<String>,
}

/// Describes a picture that came with the request.
pub(super) async fn analyze(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    asked.state.accept_work()?;
    query::read(asked.request, &[])?;
    let (request, _large) = body::read_json::<AnalyzeRequest>(asked, payload).await?;
    let wishes = Wishes {
        session: request.session,
        timeout_ms: request.timeout_ms,
        ..Wishes::default()
    };
    let context = wishes.grant(asked)?.context;
    let prompt = picture::question("prompt", request.prompt)?;
    let region = request.region.map(picture::region).transpose()?;
    wishes::need_vision(asked)?;
    let input = request.image.open(asked, &context).await?;
    let (analysis, artifact) = asked
        .state
        .delivery
        .analyze(&context, input, prompt, region)
        .await
        .map_err(unasked)?;
    let elapsed_ms = asked.exchange.elapsed_ms();
    let length = analysis.answer.as_ref().map_or(0, |it| it.text.len());
    let report = if length > LARGE_JSON {
        // Cleaning a text of that size is no work for a loop.
        let deadline = DeliveryService::patience(&context);
        let job = move || report(&analysis, artifact, elapsed_ms);
        asked.state.blocking.run(deadline, job).await?
    } else {
        report(&analysis, artifact, elapsed_ms)
    };
    answer_json(&report?)
}

/// The answer, or the problem of a picture that nobody described.
fn report(
    analysis: &Analysis,
    artifact: Artifact,
    elapsed_ms: u64,
) -> Result<AnalyzeAnswer, Rejection> {
    let attempts = analysis.attempts.iter().map(AttemptReport::of).collect();
    let Some(answer) = &analysis.answer else {
        return Err(undescribed(analysis, attempts, artifact));
    };
    let shown = description_text(&answer.text, MAX_ANALYSIS_CHARACTERS);
    Ok(AnalyzeAnswer {
        success: true,
        analysis: shown.text,
        left_out: shown.left_out,
        via: backend_words(&answer.via),
        scale_note: answer.scale_note.clone(),
        is_reasoning: answer.is_reasoning,
        attempts,
        cached: analysis.cached,
        coalesced: analysis.coalesced,
        elapsed_ms,
        artifact,
    })
}

/// Time ran out before anybody was asked, which is told in the same shape.
fn unasked(failure: Failure) -> Rejection {
    if failure.code() != ErrorCode::VisionTimeout {
        return Rejection::from(failure);
    }
    let nothing = VisionFailure {
        success: false,
        attempts: Vec::new(),
        first_error: None,
        last_error: None,
        artifact: None,
    };
    nothing.beside(failure)
}

/// Tells the first failure and the last: the first says what is wrong with the backend that was
/// meant to answer (specification 3.4).
fn undescribed(analysis: &Analysis, attempts: Vec<AttemptReport>, artifact: Artifact) -> Rejection {
    let code = if analysis.ran_out_of_time() {
        ErrorCode::VisionTimeout
    } else {
        ErrorCode::VisionFailed
    };
    let line = analysis.failure_line();
    let failure = Failure::new(code, format!("nobody could describe the picture: {line}"));
    let besides = VisionFailure {
        success: false,
        attempts,
        first_error: analysis.first_error().map(sentence),
        last_error: analysis.last_error().map(sentence),
        artifact: Some(artifact),
    };
    besides.beside(failure)
}

impl VisionFailure {
    /// The problem that says this too.
    fn beside(self, failure: Failure) -> Rejection {
        let members = serde_json::to_value(self).unwrap_or_default();
        Rejection::from(failure).with_members(members.as_object().cloned().unwrap_or_default())
    }
}

/// Who failed, and how.
fn sentence(attempt: &AnalysisAttempt) -> String {
    let words = attempt.detail.as_deref().unwrap_or(attempt.outcome);
    backend_words(&format!("{}: {words}", attempt.via))
}

impl AttemptReport {
    fn of(made: &AnalysisAttempt) -> Self {
        Self {
            via: backend_words(&made.via),
            outcome: made.outcome,
            ms: made.ms,
            code: made.code,
            status: made.status,
            detail: made.detail.as_deref().map(backend_words),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn problem(code: ErrorCode) -> Value {
        let response = unasked(Failure::new(code, "too late")).respond("req_1");
        let body = to_bytes(response.into_body()).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    #[actix_web::test]
    async fn an_analysis_that_never_began_has_the_shape_of_one_that_failed() {
        let late = problem(ErrorCode::VisionTimeout).await;
        assert_eq!(
            (&late["status"], &late["success"]),
            (&json!(504), &json!(false))
        );
        assert_eq!(late["attempts"], json!([]));
        let busy = problem(ErrorCode::Busy).await;
        assert!(busy.get("success").is_none(), "{busy}");
    }
}
