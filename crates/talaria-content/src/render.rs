//! A delivery in the format the caller asked for.

pub(crate) mod hermes;
mod python_json;

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

/// Renders a delivery. One that was planned for another format has no parts of format `hermes`;
/// its text stands in for them.
#[must_use]
pub fn render(delivery: &Delivery, format: Format) -> Rendered {
    match format {
        Format::Talaria => Rendered {
            content_type: "application/json",
            body: talaria(delivery),
        },
        Format::Hermes => Rendered {
            content_type: "application/json",
            body: match &delivery.hermes.body {
                Some(body) => body.clone(),
                None => hermes::of_text(&delivery.text, delivery.is_error),
            },
        },
        Format::Text => Rendered {
            content_type: "text/plain; charset=utf-8",
            body: delivery.text.clone(),
        },
    }
}

/// Every key of a delivery is a string, so that writing it cannot fail.
fn talaria(delivery: &Delivery) -> String {
    serde_json::to_string(delivery).unwrap_or_default()
}
