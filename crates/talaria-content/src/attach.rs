//! Which pictures of a call become pixels (specification 2.7): four of at most sixteen that are
//! looked at, in the order of their blocks, from files of this very call.
//!
//! Preparing a picture is work of others. They ask [`Attaching::next_wave`] what to prepare, report
//! every outcome in whatever order it comes, and hand the whole to [`crate::Draft::attach`].

mod settle;

use std::path::PathBuf;

use talaria_types::{ArtifactId, NoticeCode};

use crate::delivery::{Area, Artifact, ArtifactKind};
use crate::render::{ImageLimits, MAX_ATTACHED};

pub(crate) use settle::Attached;

/// Pictures of one call that are looked at (specification 2.7).
pub const MAX_CANDIDATES: usize = 16;

/// The pictures of one call on their way to being pixels.
#[derive(Debug)]
pub struct Attaching {
    pictures: Vec<Picture>,
    /// Pictures of the call, those that nobody looks at included.
    total: usize,
    limits: ImageLimits,
    pace: Pace,
}

/// A picture to prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What [`Attaching::report`] wants back.
    pub index: usize,
    /// The file.
    pub artifact: ArtifactId,
    /// Where it lies.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its sniffed type.
    pub media_type: String,
    /// How many pictures may come of it: tiles share the places.
    pub most: usize,
}

/// What came of a candidate.
#[derive(Debug)]
pub enum AttachOutcome {
    /// It is ready.
    Ready(ReadyPicture),
    /// It stays a file.
    Refused {
        /// Why.
        code: NoticeCode,
        /// The same in words.
        detail: String,
    },
}

/// A picture made ready, in one piece or in tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyPicture {
    /// At least one and at most [`Candidate::most`]; tiles in reading order.
    pub images: Vec<ReadyImage>,
    /// What the model must know of it.
    pub notes: Vec<ImageNote>,
    /// Pixels of the original, upright.
    pub original_width: u32,
    /// Pixels of the original, upright.
    pub original_height: u32,
}

/// Pixels ready to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyImage {
    /// Type of `bytes`.
    pub media_type: &'static str,
    /// The encoded picture.
    pub bytes: Vec<u8>,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// The part of the original it shows.
    pub area: Area,
    /// How to map coordinates back.
    pub scale_note: Option<String>,
}

/// One thing the model must know of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageNote {
    /// Which.
    pub code: NoticeCode,
    /// In words.
    pub text: String,
}

/// How many candidates are handed out at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// As many as there are free places.
    Waves,
    /// One, so that places it leaves go to the next.
    Single,
}

/// One candidate and how far it is.
#[derive(Debug)]
struct Picture {
    artifact: ArtifactId,
    path: PathBuf,
    bytes: u64,
    media_type: String,
    block: Option<usize>,
    file_sha256: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Not looked at yet.
    Waiting,
    /// Handed out, with so many places.
    Asked {
        most: usize,
    },
    /// The same file as an earlier candidate.
    SameFile(usize),
    Ready(ReadyPicture),
    Refused {
        code: NoticeCode,
        detail: String,
    },
}

impl Attaching {
    /// The pictures among the artifacts, which stand in block order with the blocks they are of.
    pub(crate) fn new(
        artifacts: &[Artifact],
        origins: &[Option<usize>],
        limits: ImageLimits,
    ) -> Self {
        let is_picture = |artifact: &&Artifact| artifact.kind == ArtifactKind::Image;
        let pictures = artifacts
            .iter()
            .zip(origins)
            .filter(|(artifact, _)| is_picture(artifact))
            .take(MAX_CANDIDATES)
            .map(|(artifact, block)| Picture {
                artifact: artifact.id.clone(),
                path: artifact.path.clone(),
                bytes: artifact.bytes,
                media_type: artifact.media_type.clone(),
                block: *block,
                file_sha256: artifact.sha256.clone(),
                state: State::Waiting,
            })
            .collect();
        Self {
            pictures,
            total: artifacts.iter().filter(is_picture).count(),
            limits,
            pace: Pace::Waves,
        }
    }

    /// Nothing to attach.
    pub(crate) fn nothing() -> Self {
        Self {
            pictures: Vec::new(),
            total: 0,
            limits: ImageLimits {
                types: &[],
                most: 0,
                max_side: 0,
                max_characters: 0,
            },
            pace: Pace::Waves,
        }
    }

    /// Keeps to the limits of a route besides those of the format.
    #[must_use]
    pub fn within(mut self, limits: ImageLimits) -> Self {
        self.limits = self.limits.narrowed(limits);
        self
    }

    /// Hands out one candidate at a time, with every place that the ones behind it do not need.
    /// For pictures that may be cut into tiles.
    #[must_use]
    pub fn tiled(mut self) -> Self {
        self.pace = Pace::Single;
        self
    }

    /// Whether no picture comes into question.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pictures.is_empty()
    }

    /// The candidates to prepare next; empty when every place is taken or promised, or no
    /// candidate is left.
    pub fn next_wave(&mut self) -> Vec<Candidate> {
        self.find_same_files();
        let free = self.free();
        let waiting: Vec<usize> = self.indices(|state| matches!(state, State::Waiting));
        let shares = match self.pace {
            Pace::Waves => shares(free, waiting.len()),
            Pace::Single if self.is_asking() || free == 0 || waiting.is_empty() => Vec::new(),
            Pace::Single => vec![free - (waiting.len() - 1).min(free - 1)],
        };
        waiting
            .into_iter()
            .zip(shares)
            .filter_map(|(index, most)| {
                let picture = self.pictures.get_mut(index)?;
                picture.state = State::Asked { most };
                Some(Candidate {
                    index,
                    artifact: picture.artifact.clone(),
                    path: picture.path.clone(),
                    bytes: picture.bytes,
                    media_type: picture.media_type.clone(),
                    most,
                })
            })
            .collect()
    }

    /// Takes the outcome of a candidate that was handed out; any other index is ignored.
    pub fn report(&mut self, index: usize, outcome: AttachOutcome) {
        let limits = self.limits;
        let Some(picture) = self.pictures.get_mut(index) else {
            return;
        };
        let State::Asked { most } = picture.state else {
            return;
        };
        picture.state = match outcome {
            AttachOutcome::Refused { code, detail } => State::Refused { code, detail },
            AttachOutcome::Ready(ready) => match fault(&ready, most, &limits) {
                Some((code, detail)) => State::Refused { code, detail },
                None => State::Ready(ready),
            },
        };
    }

    /// Marks waiting pictures whose file has the bytes of an earlier one.
    fn find_same_files(&mut self) {
        for index in self.indices(|state| matches!(state, State::Waiting)) {
            let earlier = self.pictures.get(index).and_then(|picture| {
                self.pictures
                    .iter()
                    .take(index)
                    .position(|other| other.file_sha256 == picture.file_sha256)
            });
            if let Some((earlier, picture)) = earlier.zip(self.pictures.get_mut(index)) {
                picture.state = State::SameFile(earlier);
            }
        }
    }

    /// Places nobody has taken or been promised.
    fn free(&self) -> usize {
        let taken: usize = self
            .pictures
            .iter()
            .map(|picture| match &picture.state {
                State::Asked { most } => *most,
                State::Ready(ready) => ready.images.len(),
                State::Waiting | State::SameFile(_) | State::Refused { .. } => 0,
            })
            .sum();
        self.limits.most.min(MAX_ATTACHED).saturating_sub(taken)
    }

    fn is_asking(&self) -> bool {
        !self
            .indices(|state| matches!(state, State::Asked { .. }))
            .is_empty()
    }

    fn indices(&self, is_wanted: impl Fn(&State) -> bool) -> Vec<usize> {
        self.pictures
            .iter()
            .enumerate()
            .filter(|(_, picture)| is_wanted(&picture.state))
            .map(|(index, _)| index)
            .collect()
    }
}

/// So many places, dealt out to at most so many: one each, and what is left over to the first.
fn shares(free: usize, waiting: usize) -> Vec<usize> {
    let wave = free.min(waiting);
    (0..wave)
        .map(|place| free / wave + usize::from(place < free % wave))
        .collect()
}

/// Why a picture that was made ready still cannot leave.
fn fault(ready: &ReadyPicture, most: usize, limits: &ImageLimits) -> Option<(NoticeCode, String)> {
    if ready.images.is_empty() || ready.images.len() > most {
        let detail = format!("{} pictures were made of it", ready.images.len());
        return Some((NoticeCode::ImageFailed, detail));
    }
    ready.images.iter().find_map(|image| {
        let side = image.width.max(image.height);
        let characters = image.bytes.len().div_ceil(3).saturating_mul(4);
        if !limits.types.contains(&image.media_type) {
            let detail = format!("the model's API does not take {}", image.media_type);
            Some((NoticeCode::ImageUnsupported, detail))
        } else if side > limits.max_side {
            let detail = format!("{side} pixels, the model's API takes {}", limits.max_side);
            Some((NoticeCode::ImageTooLarge, detail))
        } else if characters > limits.max_characters {
            let most = limits.max_characters;
            let detail = format!("{characters} characters, the model's API takes {most}");
            Some((NoticeCode::ImageOverBudget, detail))
        } else {
            None
        }
    })
}
