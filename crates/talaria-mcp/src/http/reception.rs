//! How an endpoint received the first `initialize`, for whoever decides what to try next.

use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;

/// What stands out in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// An HTTP error.
    Refused(StatusCode),
    /// A body of this media type, in which no answer was.
    Foreign(String),
    /// JSON-RPC error -32603: something broke, and nobody says what.
    Opaque,
}

impl Received {
    /// Whether a server that speaks the older HTTP+SSE may answer like this (specification 4.3).
    /// Such a server often does not know the method `POST` on this path, or the path without it.
    pub(crate) fn may_be_legacy(&self) -> bool {
        match self {
            Self::Refused(status) => matches!(status.as_u16(), 400 | 404 | 405 | 406 | 411),
            Self::Opaque => true,
            Self::Foreign(_) => false,
        }
    }
}

/// Shared between the transport and who opened it; the first that is noted counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reception(Arc<Mutex<Option<Received>>>);

impl Reception {
    pub(super) fn note(&self, received: Received) {
        self.0.lock().get_or_insert(received);
    }

    pub(crate) fn take(&self) -> Option<Received> {
        self.0.lock().take()
    }
}
