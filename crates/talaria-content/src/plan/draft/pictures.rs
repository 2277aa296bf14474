//! The pictures of a draft: which may become pixels or words, and those that did.

use crate::attach::Attaching;
use crate::describe::{DescribeOutcome, ToDescribe};
use crate::plan::ResultKind;
use crate::render::{Format, ImageLimits};

use super::Draft;

impl Draft {
    /// The pictures that may become pixels: none where the gate is closed, where the format has
    /// no place for any, and where Hermes attaches none (specification 1.14 and 1.15).
    #[must_use]
    pub fn attaching(&mut self) -> Attaching {
        match self.place_for_pixels() {
            Some(limits) if !self.is_hermes_utility() => {
                Attaching::new(&self.artifacts, &self.origins, limits)
            }
            Some(_) | None => Attaching::nothing(),
        }
    }

    /// Attaches what was made ready and says what the model must know about it. Call before
    /// [`Self::settle`], whatever was reported.
    pub fn attach(&mut self, attaching: Attaching) {
        self.attached = Some(attaching.settle(&mut self.notices));
    }

    /// The pictures to describe next: none where pixels may leave instead, where a failed result
    /// is its tool's own words, and where Hermes' answer has no text to put one in. Without an
    /// outcome for [`Self::describe`] it names the same ones again.
    #[must_use]
    pub fn describing(&self) -> Vec<ToDescribe> {
        let is_words_of_tool = self.is_error && self.request.format.tells_failures_in_words();
        if self.place_for_pixels().is_some() || self.is_hermes_utility() || is_words_of_tool {
            return Vec::new();
        }
        self.describing.next(&self.artifacts)
    }

    /// Takes what came of pictures that [`Self::describing`] named, by their index. Call before
    /// [`Self::settle`].
    pub fn describe(&mut self, outcomes: Vec<(usize, DescribeOutcome)>) {
        if !self.describing().is_empty() {
            self.describing.report(&self.artifacts, outcomes);
        }
    }

    /// What the format takes in the way of pictures, where the gate lets any out.
    fn place_for_pixels(&self) -> Option<ImageLimits> {
        let limits = self.request.format.image_limits();
        limits.filter(|_| self.request.gate.open)
    }

    fn is_hermes_utility(&self) -> bool {
        self.request.format == Format::Hermes && self.request.kind != ResultKind::ToolCall
    }
}
