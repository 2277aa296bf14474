//! Messages of the vision actor, and what they carry.

use actix::Message;
use talaria_image::{RefusalKind, Region};
use talaria_types::{CallContext, Failure, NoticeCode};
use tokio::sync::oneshot;

use super::Question;
use super::analysis::Analysis;

/// What answers a question.
pub(super) type Reply = Result<Analysis, Unmade>;

/// Describe a picture. From a handle; answered through `reply`.
#[derive(Debug)]
pub(super) struct Analyze {
    /// Its deadline bounds the description; cancelled when the caller leaves.
    pub(super) ctx: CallContext,
    pub(super) question: Question,
    pub(super) reply: oneshot::Sender<Reply>,
}

impl Message for Analyze {
    type Result = ();
}

/// Give up what is under way and end.
#[derive(Debug)]
pub(super) struct Close;

impl Message for Close {
    type Result = ();
}

/// Why nobody was asked for a description, or nobody's answer was waited for.
#[derive(Clone, Debug)]
pub(crate) struct Unmade {
    /// For the caller of an analysis.
    pub(crate) failure: Failure,
    /// For a delivery.
    pub(crate) notice: NoticeCode,
    /// What is wrong with the picture, where that is why.
    pub(crate) refusal: Option<RefusalKind>,
}

/// What makes two questions the same. The chain is the same for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) sha256: String,
    pub(super) region: Option<[i64; 4]>,
    pub(super) prompt: String,
}

impl Key {
    pub(super) fn of(question: &Question) -> Self {
        let prompt = talaria_vision::describe::asked(question.prompt.as_deref());
        Self {
            sha256: question.picture.sha256.clone(),
            region: rectangle(question.region),
            prompt: prompt.unwrap_or_default().to_owned(),
        }
    }
}

/// A region as something that can be compared and hashed.
pub(super) fn rectangle(region: Option<Region>) -> Option<[i64; 4]> {
    region.map(|it| [it.x1, it.y1, it.x2, it.y2])
}
