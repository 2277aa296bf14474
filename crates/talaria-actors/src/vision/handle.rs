//! The handle through which everybody else asks for descriptions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::SendError;
use actix::{Actor, Addr, Arbiter};
use parking_lot::Mutex;
use talaria_telemetry::events;
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, NoticeCode};
use talaria_vision::describe::BackendClient;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::actor::{VisionActor, busy};
use super::analysis::Analysis;
use super::messages::{Analyze, Close, Reply, Unmade};
use super::workshop::Backends;
use super::{Question, VisionParts};
use crate::supervisor::Placement;
use crate::supervisor::handle::join;

/// How long a caller waits for the actor's own word after its deadline, and once more after that: a
/// loop that has much to do still tells what was tried, and so does one that stood still with the
/// whole process.
const GRACE: Duration = Duration::from_millis(400);

/// Makes what asks backends, on the loop that will use it.
type Factory = Arc<dyn Fn() -> Box<dyn Backends> + Send + Sync>;

/// Handle to the vision actor; cheap to clone.
#[derive(Clone)]
pub struct VisionHandle {
    inner: Arc<Inner>,
}

struct Inner {
    parts: VisionParts,
    placement: Placement,
    factory: Factory,
    total_timeout: Duration,
    running: watch::Sender<usize>,
    place: Mutex<Place>,
}

/// Where the actor is.
struct Place {
    address: Option<Addr<VisionActor>>,
    /// Cancelled when the actor has ended, however it did.
    ended: CancellationToken,
    arbiter: Option<Arbiter>,
    is_closed: bool,
}

impl fmt::Debug for VisionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VisionHandle")
            .field("links", &self.inner.parts.chain.links.len())
            .finish_non_exhaustive()
    }
}

/// Ends when the actor's own word is not waited for any longer.
async fn silence(deadline: Deadline) {
    tokio::time::sleep_until(deadline.instant() + GRACE).await;
    tokio::time::sleep(GRACE).await;
}

impl VisionHandle {
    /// Starts the actor. Needs a running `actix::System`. Without a link in the chain nothing is
    /// started, and every question is refused.
    ///
    /// # Errors
    /// The system gives no thread for it.
    pub fn start(parts: VisionParts, placement: Placement) -> Result<Self, Failure> {
        let factory = || Box::new(BackendClient::new()) as Box<dyn Backends>;
        Self::start_with(parts, placement, Arc::new(factory))
    }

    /// Starts over anything that asks backends.
    pub(super) fn start_with(
        parts: VisionParts,
        placement: Placement,
        factory: Factory,
    ) -> Result<Self, Failure> {
        let place = Place {
            address: None,
            ended: CancellationToken::new(),
            arbiter: None,
            is_closed: false,
        };
        let inner = Inner {
            total_timeout: parts.config.vision.total_timeout,
            parts,
            placement,
            factory,
            running: watch::Sender::new(0),
            place: Mutex::new(place),
        };
        let handle = Self {
            inner: Arc::new(inner),
        };
        for problem in &handle.inner.parts.chain.problems {
            tracing::warn!("vision chain: {problem}");
        }
        if handle.is_configured() {
            let mut place = handle.inner.place.lock();
            handle.inner.start_actor(&mut place)?;
        }
        Ok(handle)
    }

    /// Whether anybody can be asked.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.inner.parts.chain.is_configured()
    }

    /// Limit of a whole description.
    #[must_use]
    pub fn total_timeout(&self) -> Duration {
        self.inner.total_timeout
    }

    /// Has a picture described along the chain. Dropping the future gives it up, unless somebody
    /// else waits for the same.
    ///
    /// # Errors
    /// Nobody was asked: the picture cannot be used, nothing is configured, every place is taken,
    /// the caller left, or time ran out. That everybody failed is an answer.
    pub async fn analyze(
        &self,
        ctx: &CallContext,
        question: Question,
    ) -> Result<Analysis, Failure> {
        let described = self.describe(ctx, question).await;
        described.map_err(|unmade| {
            let failure = unmade.failure;
            if failure.code() == ErrorCode::Timeout {
                return Failure::new(ErrorCode::VisionTimeout, failure.detail());
            }
            failure
        })
    }

    /// The same, with what a delivery says where nobody was asked.
    pub(crate) async fn describe(&self, ctx: &CallContext, question: Question) -> Reply {
        if !self.is_configured() {
            return Err(not_configured());
        }
        let whole = Deadline::after(self.inner.total_timeout);
        let deadline = ctx.deadline.earlier(whole);
        let asked = CallContext {
            deadline,
            cancel: ctx.cancel.child_token(),
            ..ctx.clone()
        };
        // Whatever ends this future is told to the actor.
        let _leaving = asked.cancel.clone().drop_guard();
        let (reply, answer) = oneshot::channel();
        let ended = self.send(Analyze {
            ctx: asked,
            question,
            reply,
        })?;
        tokio::select! {
            biased;
            answered = answer => answered.unwrap_or_else(|_| Err(self.unanswered())),
            () = ctx.cancel.cancelled() => Err(unmade(ErrorCode::Cancelled, "the caller went away")),
            () = ended.cancelled() => Err(self.unanswered()),
            () = silence(deadline) => {
                events::deadline_exceeded("vision");
                Err(unmade(ErrorCode::Timeout, "the description was not made in time"))
            }
        }
    }

    /// Takes no more questions, gives up what is under way, and waits until the actor and its
    /// thread have ended. Safe to call again.
    pub async fn close(&self, deadline: Deadline) {
        let (address, ended, arbiter) = {
            let mut place = self.inner.place.lock();
            place.is_closed = true;
            (
                place.address.take(),
                place.ended.clone(),
                place.arbiter.take(),
            )
        };
        if let Some(address) = address {
            let closing = async {
                // Whoever cannot be told has ended.
                if address.send(Close).await.is_ok() {
                    ended.cancelled().await;
                }
            };
            if tokio::time::timeout_at(deadline.instant(), closing)
                .await
                .is_err()
            {
                tracing::error!("the vision actor does not end");
            }
        }
        join(arbiter.into_iter().collect(), deadline).await;
    }

    /// Hands a question in; starts the actor again where it died.
    fn send(&self, message: Analyze) -> Result<CancellationToken, Unmade> {
        let inner = &self.inner;
        let mut place = inner.place.lock();
        if place.is_closed {
            return Err(shutting_down());
        }
        let mut message = message;
        for _ in 0..2 {
            let sent = match &place.address {
                Some(address) => address.try_send(message),
                None => Err(SendError::Closed(message)),
            };
            message = match sent {
                Ok(()) => return Ok(place.ended.clone()),
                Err(SendError::Full(_)) => return Err(busy()),
                Err(SendError::Closed(message)) => message,
            };
            tracing::error!("the vision actor has ended; starting another one");
            inner.start_actor(&mut place).map_err(|failure| Unmade {
                failure,
                notice: NoticeCode::ImageNotDescribed,
                refusal: None,
            })?;
        }
        Err(unmade(
            ErrorCode::Internal,
            "the vision actor does not start",
        ))
    }

    /// The actor ended without a word.
    fn unanswered(&self) -> Unmade {
        if self.inner.place.lock().is_closed {
            return shutting_down();
        }
        unmade(
            ErrorCode::Internal,
            "something broke while the picture was described",
        )
    }

    /// Descriptions that are made or wait for their turn.
    #[must_use]
    pub fn running(&self) -> usize {
        *self.inner.running.borrow()
    }

    /// Waits until nothing is being described, no longer than the deadline.
    pub async fn idle(&self, deadline: Deadline) {
        let mut running = self.inner.running.subscribe();
        let idle = running.wait_for(|running| *running == 0);
        if tokio::time::timeout_at(deadline.instant(), idle)
            .await
            .is_err()
        {
            tracing::debug!("descriptions are still being made");
        }
    }

    /// The actor itself.
    #[cfg(test)]
    pub(super) fn address(&self) -> Addr<VisionActor> {
        self.inner.place.lock().address.clone().unwrap()
    }
}

impl Inner {
    fn start_actor(&self, place: &mut Place) -> Result<(), Failure> {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let (parts, factory) = (self.parts.clone(), Arc::clone(&self.factory));
        self.running.send_replace(0);
        let running = self.running.clone();
        let make = move || VisionActor::new(parts, factory(), running, guard);
        let address = match self.placement {
            Placement::Current => make().start(),
            Placement::OwnArbiters => {
                // The loop of an actor that died may be in any state.
                if let Some(old) = place.arbiter.take() {
                    old.stop();
                }
                // A new arbiter panics where the system gives no thread.
                let Ok(arbiter) = std::panic::catch_unwind(Arbiter::new) else {
                    let words = "the system gives no thread for descriptions";
                    return Err(Failure::new(ErrorCode::Internal, words));
                };
                let address = VisionActor::start_in_arbiter(&arbiter.handle(), |_| make());
                place.arbiter = Some(arbiter);
                address
            }
        };
        place.address = Some(address);
        place.ended = ended;
        Ok(())
    }
}

fn unmade(code: ErrorCode, words: &str) -> Unmade {
    Unmade {
        failure: Failure::new(code, words),
        notice: if code == ErrorCode::Timeout {
            NoticeCode::ImageLate
        } else {
            NoticeCode::ImageNotDescribed
        },
        refusal: None,
    }
}

fn shutting_down() -> Unmade {
    unmade(
        ErrorCode::ShuttingDown,
        "Talaria is shutting down and describes no more pictures",
    )
}

/// What to configure, for whoever asks without a chain.
pub(crate) fn not_configured() -> Unmade {
    unmade(
        ErrorCode::VisionNotConfigured,
        "no vision backend is configured: `auxiliary.vision` can name a provider, a model or a \
         `base_url`, `auxiliary.vision.mcp_fallback` a tool of an MCP server",
    )
}
