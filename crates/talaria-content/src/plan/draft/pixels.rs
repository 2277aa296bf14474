//! The pictures of a draft: which may become pixels, and those that did.

use crate::attach::Attaching;
use crate::plan::{PlanRequest, ResultKind};
use crate::render::Format;

use super::Draft;

impl Draft {
    /// The pictures that may become pixels: none where the gate is closed, where the format has
    /// no place for any, and where Hermes attaches none (specification 1.14 and 1.15).
    #[must_use]
    pub fn attaching(&mut self) -> Attaching {
        let PlanRequest {
            kind, format, gate, ..
        } = &self.request;
        let is_hermes_utility = *format == Format::Hermes && *kind != ResultKind::ToolCall;
        match format.image_limits() {
            Some(limits) if gate.open && !is_hermes_utility => {
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
}
