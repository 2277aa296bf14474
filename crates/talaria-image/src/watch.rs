//! Whether anybody still waits for a picture.

use std::fmt;
use std::sync::Arc;

/// Says whether work should stop; asked between rows and steps.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn() -> bool + Send + Sync>);

impl Watch {
    /// Stops when `stop` says so.
    #[must_use]
    pub fn new(stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(stop))
    }

    /// Never stops.
    #[must_use]
    pub fn never() -> Self {
        Self::new(|| false)
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_over(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.is_over()).finish()
    }
}
