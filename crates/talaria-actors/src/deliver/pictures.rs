//! From the pictures of a draft to pixels: wave after wave through the pool, each guarded
//! against being shown too often.
//!
//! Nothing here decodes: pictures are read and prepared on the pool's own threads.

mod outcome;

use std::collections::HashMap;

use futures_util::future::join_all;
use talaria_config::{ImagesConfig, Tiles};
use talaria_content::{
    Attaching, Candidate, Delivery, Format, ImageLimits, MAX_ATTACHED, ReadyPicture,
};
use talaria_image::{DEFAULT_MAX_SIDE, ImagePool, Input, RefusalKind, Region, Target, Tiling};
use talaria_types::runtime::BlockingPool;
use talaria_types::{ArtifactId, CallContext, NoticeCode, SessionKey};
use talaria_vision::Decision;

use super::repeats::{RepeatGuard, Reservation, SeenEnough};
use super::{DeliveryService, session_of};

/// Makes pictures ready; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Pictures {
    pool: ImagePool,
    blocking: BlockingPool,
    repeats: RepeatGuard,
    /// Most characters of a data URL.
    budget: usize,
    tiles: Tiles,
}

/// What the pictures of one delivery must become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    budget: usize,
    max_side: u32,
    webp: bool,
    tiles: Tiles,
    region: Option<Region>,
    /// What the route takes besides what the format takes.
    limits: ImageLimits,
}

/// Why a picture is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unready {
    pub(crate) code: NoticeCode,
    pub(crate) detail: String,
    /// The verdict on the picture itself, where there is one.
    pub(crate) kind: Option<RefusalKind>,
}

/// A picture made ready, and what tells its pixels apart where somebody counts them.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) ready: ReadyPicture,
    pub(super) identities: Vec<String>,
}

/// Pixels counted for a session, by what tells them apart, and which of them each file shows:
/// two files may show the same.
#[derive(Debug, Default)]
pub(super) struct Counted {
    reserved: HashMap<String, Reservation>,
    shown: HashMap<ArtifactId, Vec<String>>,
}

impl Pictures {
    pub(super) fn new(config: &ImagesConfig, pool: ImagePool, blocking: BlockingPool) -> Self {
        Self {
            pool,
            blocking,
            repeats: RepeatGuard::new(config.max_calls_per_image),
            budget: config.budget,
            tiles: config.tiles,
        }
    }

    /// The terms of a delivery, by the gate's decision and the caller's wish.
    pub(super) fn terms(
        &self,
        decision: &Decision,
        tiles: Option<Tiles>,
        region: Option<Region>,
    ) -> Terms {
        let limits = ImageLimits {
            types: types(decision),
            most: decision.limits.max_images,
            max_side: decision.limits.max_side,
            max_characters: decision.limits.max_bytes,
        };
        Terms {
            budget: self.budget.min(limits.max_characters),
            max_side: DEFAULT_MAX_SIDE.min(limits.max_side),
            webp: decision.webp,
            tiles: tiles.unwrap_or(self.tiles),
            region,
            limits,
        }
    }

    /// Prepares what the attaching asks for, until every place is taken or nothing is left.
    pub(super) async fn prepare_all(
        &self,
        ctx: &CallContext,
        attaching: Attaching,
        terms: &Terms,
    ) -> (Attaching, Counted) {
        let session = session_of(ctx);
        let mut attaching = terms.bind(attaching);
        let mut counted = Counted::default();
        loop {
            let wave = attaching.next_wave();
            if wave.is_empty() {
                return (attaching, counted);
            }
            let jobs = wave.into_iter().map(|candidate| async move {
                let input = Input::File {
                    path: candidate.path.clone(),
                    bytes: candidate.bytes,
                };
                let prepared = self.prepare(ctx, input, terms, candidate.most).await;
                (candidate, prepared)
            });
            for (candidate, prepared) in join_all(jobs).await {
                let ready = prepared.and_then(|made| {
                    counted.count(&self.repeats, session.as_ref(), &candidate, made)
                });
                attaching.report(candidate.index, outcome::attach_outcome(ready));
            }
        }
    }

    /// Hands over the one picture of a draft, which was prepared before.
    pub(super) fn hand_over(
        &self,
        ctx: &CallContext,
        attaching: Attaching,
        terms: &Terms,
        prepared: Result<Made, Unready>,
    ) -> (Attaching, Counted) {
        let session = session_of(ctx);
        let mut attaching = terms.bind(attaching);
        let mut counted = Counted::default();
        if let Some(candidate) = attaching.next_wave().into_iter().next() {
            let ready = prepared
                .and_then(|made| counted.count(&self.repeats, session.as_ref(), &candidate, made));
            attaching.report(candidate.index, outcome::attach_outcome(ready));
        }
        (attaching, counted)
    }

    /// Prepares one picture, in at most so many pieces.
    pub(super) async fn prepare(
        &self,
        ctx: &CallContext,
        input: Input,
        terms: &Terms,
        most: usize,
    ) -> Result<Made, Unready> {
        let target = Target {
            budget: terms.budget,
            max_side: terms.max_side,
            webp: terms.webp,
            region: terms.region,
            tiling: match terms.tiles {
                Tiles::Off => Tiling::Off,
                Tiles::On => Tiling::On { most },
                Tiles::Auto => Tiling::Auto { most },
            },
        };
        let prepared = self
            .pool
            .prepare(ctx, input, target)
            .await
            .map_err(Unready::from)?;
        let ready = outcome::ready(prepared);
        if !self.repeats.counts(ctx.session.as_ref()) {
            return Ok(Made {
                ready,
                identities: Vec::new(),
            });
        }
        // Hashing some hundred kilobytes is no work for a loop.
        let deadline = DeliveryService::patience(ctx);
        let hashed = self.blocking.run(deadline, move || Made {
            identities: ready.images.iter().map(outcome::identity).collect(),
            ready,
        });
        hashed.await.map_err(|failure| Unready {
            code: NoticeCode::ImageBusy,
            detail: failure.detail().to_owned(),
            kind: None,
        })
    }
}

/// The media types a route takes.
const fn types(decision: &Decision) -> &'static [&'static str] {
    match (decision.limits.webp, decision.limits.gif) {
        (true, true) => &["image/png", "image/jpeg", "image/webp", "image/gif"],
        (true, false) => &["image/png", "image/jpeg", "image/webp"],
        (false, true) => &["image/png", "image/jpeg", "image/gif"],
        (false, false) => &["image/png", "image/jpeg"],
    }
}

impl Terms {
    /// Most pieces of a picture that is alone in a delivery of this format; 0 where none is
    /// attached at all.
    pub(super) fn most_alone(&self, format: Format) -> usize {
        format.image_limits().map_or(0, |limits| {
            limits.narrowed(self.limits).most.min(MAX_ATTACHED)
        })
    }

    fn bind(&self, attaching: Attaching) -> Attaching {
        let attaching = attaching.within(self.limits);
        match self.tiles {
            Tiles::Off => attaching,
            Tiles::On | Tiles::Auto => attaching.tiled(),
        }
    }
}

impl Counted {
    /// Counts the pixels of a picture for a session; those that the call has already are not
    /// counted twice.
    pub(super) fn count(
        &mut self,
        repeats: &RepeatGuard,
        session: Option<&SessionKey>,
        candidate: &Candidate,
        Made { ready, identities }: Made,
    ) -> Result<ReadyPicture, Unready> {
        let mut fresh = HashMap::new();
        for identity in &identities {
            if self.reserved.contains_key(identity) || fresh.contains_key(identity) {
                continue;
            }
            let reserved = repeats.reserve(session, identity);
            let reserved = reserved.map_err(|SeenEnough { limit }| Unready {
                code: NoticeCode::ImageRepeatLimit,
                detail: format!(
                    "this session has been shown the picture as often as \
                     `vision.max_calls_per_image` allows ({limit})"
                ),
                kind: None,
            })?;
            fresh.insert(identity.clone(), reserved);
        }
        self.reserved.extend(fresh);
        self.shown.insert(candidate.artifact.clone(), identities);
        Ok(ready)
    }

    /// What is attached stays counted, the rest is given back.
    pub(super) fn keep_attached(mut self, delivery: &Delivery) {
        let attached = delivery.attachments.iter();
        for identity in attached
            .filter_map(|attachment| self.shown.get(&attachment.artifact))
            .flatten()
        {
            if let Some(reservation) = self.reserved.remove(identity) {
                reservation.keep();
            }
        }
    }
}
