//! Takes in what comes over the wire: bounded, looked at, and written off the loop.

use std::sync::Arc;

use talaria_types::payload::HEAD_BYTES;
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, Failure, PayloadError, PayloadSink, PayloadWriter, StagedPayload};

use super::error::{FetchCode, FetchError};

/// How much is collected before it is written.
const PIECE_BYTES: usize = 512 * 1024;

/// Whether the first bytes of a file are those of a picture.
pub type LooksLikeImage = fn(&[u8]) -> bool;

/// One file being taken in. Dropping it leaves no file.
pub(super) struct Intake<'a> {
    pub(super) sink: &'a Arc<dyn PayloadSink>,
    pub(super) blocking: &'a BlockingPool,
    pub(super) deadline: Deadline,
    pub(super) max_bytes: u64,
    pub(super) looks_like_image: LooksLikeImage,
    piece: Vec<u8>,
    writer: Option<Box<dyn PayloadWriter>>,
    taken: u64,
    is_checked: bool,
}

impl<'a> Intake<'a> {
    pub(super) fn new(
        sink: &'a Arc<dyn PayloadSink>,
        blocking: &'a BlockingPool,
        deadline: Deadline,
        max_bytes: u64,
        looks_like_image: LooksLikeImage,
    ) -> Self {
        Self {
            sink,
            blocking,
            deadline,
            max_bytes,
            looks_like_image,
            piece: Vec::new(),
            writer: None,
            taken: 0,
            is_checked: false,
        }
    }

    /// Refuses a file that says beforehand that it is too large.
    pub(super) fn announce(&self, bytes: Option<u64>) -> Result<(), FetchError> {
        match bytes {
            Some(bytes) if bytes > self.max_bytes => Err(self.too_large()),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes the next bytes.
    pub(super) async fn push(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        self.taken = self.taken.saturating_add(bytes.len() as u64);
        if self.taken > self.max_bytes {
            return Err(self.too_large());
        }
        self.piece.extend_from_slice(bytes);
        if !self.is_checked && self.piece.len() >= HEAD_BYTES {
            self.check()?;
        }
        if self.piece.len() >= PIECE_BYTES {
            self.write().await?;
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) async fn finish(mut self) -> Result<StagedPayload, FetchError> {
        if !self.is_checked {
            self.check()?;
        }
        self.write().await?;
        let Some(writer) = self.writer.take() else {
            return Err(not_an_image());
        };
        let finished = self.blocking.run(self.deadline, move || writer.finish());
        finished
            .await
            .map_err(|failure| failed(&failure))?
            .map_err(not_stored)
    }

    fn check(&mut self) -> Result<(), FetchError> {
        let head = self.piece.get(..self.piece.len().min(HEAD_BYTES));
        if !(self.looks_like_image)(head.unwrap_or_default()) {
            return Err(not_an_image());
        }
        self.is_checked = true;
        Ok(())
    }

    async fn write(&mut self) -> Result<(), FetchError> {
        let piece = std::mem::take(&mut self.piece);
        let writer = self.writer.take();
        let sink = Arc::clone(self.sink);
        let write = move || {
            let mut writer = match writer {
                Some(writer) => writer,
                None => sink.begin()?,
            };
            writer.write(&piece)?;
            Ok(writer)
        };
        let written = self.blocking.run(self.deadline, write).await;
        self.writer = Some(
            written
                .map_err(|failure| failed(&failure))?
                .map_err(not_stored)?,
        );
        Ok(())
    }

    fn too_large(&self) -> FetchError {
        let detail = format!(
            "the file behind the URL has more than {} bytes",
            self.max_bytes
        );
        FetchError::new(FetchCode::TooLarge, detail)
    }
}

fn not_an_image() -> FetchError {
    let detail = "what the URL leads to is no image".to_owned();
    FetchError::new(FetchCode::NotAnImage, detail)
}

fn not_stored(error: PayloadError) -> FetchError {
    FetchError::new(FetchCode::NotStored(error.code), error.detail)
}

fn failed(failure: &Failure) -> FetchError {
    FetchError::new(
        FetchCode::NotStored(failure.code()),
        failure.detail().to_owned(),
    )
}
