//! From a file to what goes over a link: within 1568 px and the budget from the start, as PNG or
//! JPEG, which everybody takes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use talaria_content::base64_guard::encode;
use talaria_image::{ImagePool, Input, Picture, PoolRefusal, RefusalKind, Target, Tiling};
use talaria_types::runtime::BlockingPool;
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, NoticeCode};
use talaria_vision::describe::{Encoded, Fault, FaultKind};
use tokio::sync::{OnceCell, Semaphore};

use super::Question;
use super::messages::{Unmade, rectangle};
use crate::deliver::Unready;

/// What tells pictures apart: the bytes, and the part of them.
type PictureKey = (String, Option<[i64; 4]>);
/// A picture that several descriptions may wait for.
type Shared = Rc<OnceCell<Ready>>;

/// Makes pictures ready, each once for all who ask about it at the time.
#[derive(Debug)]
pub(super) struct Darkroom {
    pool: ImagePool,
    blocking: BlockingPool,
    frame: Frame,
    /// Who may stand in the pool's queue: others want a place there, too.
    places: Semaphore,
    /// Those that somebody still holds.
    shared: RefCell<HashMap<PictureKey, Weak<OnceCell<Ready>>>>,
}

/// How large a picture may be that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Most characters of a data URL.
    pub(super) budget: usize,
    /// Longest side in pixels.
    pub(super) max_side: u32,
}

/// A picture that can be sent.
#[derive(Clone, Debug)]
pub(super) struct Ready(Rc<Print>);

#[derive(Debug)]
struct Print {
    picture: Arc<Picture>,
    /// The same in base64, once somebody wanted it.
    encoded: OnceCell<Encoded>,
}

impl Ready {
    /// The encoded picture and its facts.
    pub(super) fn picture(&self) -> &Arc<Picture> {
        &self.0.picture
    }

    /// How to map coordinates back to the original.
    pub(super) fn scale_note(&self) -> Option<String> {
        self.0.picture.scale_note.clone()
    }

    pub(super) fn media_type(&self) -> &'static str {
        self.0.picture.format.media_type()
    }
}

impl Darkroom {
    /// `queue` is how many pictures may wait in the pool.
    pub(super) fn new(pool: ImagePool, blocking: BlockingPool, frame: Frame, queue: usize) -> Self {
        Self {
            pool,
            blocking,
            frame,
            places: Semaphore::new((queue / 2).max(1)),
            shared: RefCell::default(),
        }
    }

    /// The picture of a question. What is answered second keeps it for others.
    ///
    /// # Errors
    /// It is no picture that can be shown to anybody, or there was no place or time for it.
    pub(super) async fn develop(
        &self,
        ctx: &CallContext,
        question: &Question,
    ) -> Result<(Ready, Shared), Unmade> {
        let shared = self.shared(question);
        // Whoever fails leaves it to the next one who waits.
        let developing = || self.within(ctx, question, self.frame.budget);
        let developing = shared.get_or_try_init(developing);
        // It may be somebody else, with more time, who prepares it.
        let developed = tokio::time::timeout_at(ctx.deadline.instant(), developing).await;
        match developed.unwrap_or(Err(PoolRefusal::Late)).cloned() {
            Ok(ready) => Ok((ready, shared)),
            Err(refusal) => Err(unmade(ctx, refusal)),
        }
    }

    fn shared(&self, question: &Question) -> Shared {
        let key = (question.picture.sha256.clone(), rectangle(question.region));
        let mut shared = self.shared.borrow_mut();
        if let Some(held) = shared.get(&key).and_then(Weak::upgrade) {
            return held;
        }
        shared.retain(|_, held| held.strong_count() > 0);
        let fresh = Shared::default();
        shared.insert(key, Rc::downgrade(&fresh));
        fresh
    }

    /// The same picture in fewer bytes.
    ///
    /// # Errors
    /// There is no smaller one, or no place or time for it.
    pub(super) async fn smaller(
        &self,
        ctx: &CallContext,
        question: &Question,
        full: &Ready,
    ) -> Result<Ready, Fault> {
        let length = full.picture().url_length();
        // Half of it, and where nothing is to be seen in that, whatever is less.
        for budget in [length / 2, length / 4 * 3, length.saturating_sub(1)] {
            match self.within(ctx, question, budget).await {
                Ok(ready) if ready.picture().bytes.len() < full.picture().bytes.len() => {
                    return Ok(ready);
                }
                Ok(_) => {}
                Err(PoolRefusal::Refused(refusal)) if refusal.kind == RefusalKind::OverBudget => {}
                Err(refusal) => return Err(unsendable(&refusal.to_string())),
            }
        }
        Err(unsendable("it cannot be made any smaller"))
    }

    /// A picture in base64.
    ///
    /// # Errors
    /// No worker came free in time.
    pub(super) async fn encoded<'a>(
        &self,
        ready: &'a Ready,
        deadline: Deadline,
    ) -> Result<&'a Encoded, Fault> {
        let encoding = || async {
            let picture = Arc::clone(ready.picture());
            let encode = move || Arc::<str>::from(encode(&picture.bytes));
            let base64 = self.blocking.run(deadline, encode).await;
            let base64 = base64.map_err(|failure| unsendable(failure.detail()))?;
            Ok(Encoded {
                media_type: ready.media_type().to_owned(),
                base64,
            })
        };
        ready.0.encoded.get_or_try_init(encoding).await
    }

    async fn within(
        &self,
        ctx: &CallContext,
        question: &Question,
        budget: usize,
    ) -> Result<Ready, PoolRefusal> {
        let input = Input::File {
            path: question.picture.path.clone(),
            bytes: question.picture.bytes,
        };
        let target = Target {
            budget,
            max_side: self.frame.max_side,
            webp: false,
            region: question.region,
            tiling: Tiling::Off,
        };
        let place = tokio::time::timeout_at(ctx.deadline.instant(), self.places.acquire()).await;
        let _place = place.map_err(|_late| PoolRefusal::Late)?;
        let prepared = self.pool.prepare(ctx, input, target).await?;
        let picture = prepared.pictures.into_iter().next();
        Ok(Ready(Rc::new(Print {
            picture: Arc::new(picture.ok_or(PoolRefusal::Failed)?),
            encoded: OnceCell::new(),
        })))
    }
}

pub(super) fn unsendable(words: &str) -> Fault {
    Fault::new(FaultKind::Unsendable, words)
}

/// Why nobody is asked about a picture.
fn unmade(ctx: &CallContext, refusal: PoolRefusal) -> Unmade {
    let is_cancelled = ctx.cancel.is_cancelled();
    let code = match &refusal {
        PoolRefusal::Busy => ErrorCode::Busy,
        PoolRefusal::Late => ErrorCode::Timeout,
        PoolRefusal::Abandoned if is_cancelled => ErrorCode::Cancelled,
        PoolRefusal::Abandoned => ErrorCode::ShuttingDown,
        PoolRefusal::Unreadable(_) => ErrorCode::MediaUnavailable,
        PoolRefusal::Failed => ErrorCode::Internal,
        PoolRefusal::Refused(refusal) if refusal.kind == RefusalKind::NotAnImage => {
            ErrorCode::NotAnImage
        }
        PoolRefusal::Refused(_) => ErrorCode::InvalidRequest,
    };
    let Unready {
        code: notice,
        detail,
        kind: refusal,
    } = Unready::from(refusal);
    Unmade {
        failure: Failure::new(code, format!("the picture is not described: {detail}")),
        notice: if notice == NoticeCode::ImageFailed {
            NoticeCode::ImageNotDescribed
        } else {
            notice
        },
        refusal,
    }
}
