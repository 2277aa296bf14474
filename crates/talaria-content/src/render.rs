//! A delivery in the format the caller asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::delivery::Delivery;

/// The formats of design §5 that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The delivery as JSON.
    #[default]
    Talaria,
    /// Hermes' keys, key order and shapes.
    Hermes,
    /// The text only.
    Text,
}

impl Format {
    /// The word used in requests and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Talaria => "talaria",
            Self::Hermes => "hermes",
            Self::Text => "text",
        }
    }
}

/// A rendered body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// `application/json` or `text/plain; charset=utf-8`.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// Renders a delivery.
#[must_use]
pub fn render(delivery: &Delivery, format: Format) -> Rendered {
    let _ = (delivery, format);
    todo!()
}
