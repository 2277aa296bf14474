//! A delivery in the format the caller asked for.

mod format;
pub(crate) mod hermes;
mod mcp;
mod provider;
mod python_json;

use std::borrow::Cow;

use serde_json::Value;

use crate::delivery::Delivery;
use crate::text_only::told_in_words;
use crate::untrusted;

pub(crate) use provider::USER_MESSAGE;

pub use format::{Format, ImageLimits, MAX_ATTACHED};

/// What stands in for a result that holds nothing.
pub(crate) const NO_OUTPUT: &str = "(no output: the tool returned nothing to show)";

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What a provider's format needs besides the delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// The provider's id of the tool call; the delivery's own id stands in for it.
    pub call_id: Option<String>,
    /// The name under which the model called the tool.
    pub tool_name: Option<String>,
    /// Where pictures stand in format `openai-chat`.
    pub image_delivery: ImageDelivery,
}

/// Where pictures stand in format `openai-chat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ImageDelivery {
    /// In the tool message itself.
    #[default]
    ToolResult,
    /// In a user message that follows it.
    UserMessage,
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
pub fn render(delivery: &Delivery, format: Format, options: &RenderOptions) -> Rendered {
    let body = match format {
        Format::Text => {
            let text = told_in_words(delivery);
            return Rendered {
                content_type: TEXT,
                body: marked(&text, delivery, options).into_owned(),
            };
        }
        Format::Hermes if delivery.is_untrusted => return hermes_marked(delivery, options),
        Format::Talaria => talaria(delivery),
        Format::Hermes => hermes::answer(delivery, &str::to_owned),
        Format::Anthropic => json(&provider::anthropic(delivery, options)),
        Format::OpenaiResponses => json(&provider::openai_responses(delivery, options)),
        Format::OpenaiChat => json(&provider::openai_chat(delivery, options)),
        Format::Gemini => json(&provider::gemini(delivery, options)),
        Format::Mcp => json(&mcp::call_tool_result(delivery)),
    };
    Rendered {
        content_type: JSON,
        body,
    }
}

/// The answer as Hermes hands it to its model: a text, or an envelope of texts and pictures.
fn hermes_marked(delivery: &Delivery, options: &RenderOptions) -> Rendered {
    let mark = |text: &str| marked(text, delivery, options).into_owned();
    let body = hermes::answer(delivery, &mark);
    Rendered {
        content_type: if body.starts_with('{') { JSON } else { TEXT },
        body,
    }
}

/// A text as data of others, where the delivery is marked so.
fn marked<'t>(text: &'t str, delivery: &Delivery, options: &RenderOptions) -> Cow<'t, str> {
    if !delivery.is_untrusted {
        return Cow::Borrowed(text);
    }
    let source = options.tool_name.clone().unwrap_or_else(|| {
        let server = delivery.server.as_deref().unwrap_or_default();
        let tool = delivery.tool.as_deref().unwrap_or_default();
        format!("mcp__{server}__{tool}")
    });
    untrusted::wrap(text, &source)
}

/// Every key of a delivery is a string, so that writing it cannot fail.
fn talaria(delivery: &Delivery) -> String {
    serde_json::to_string(delivery).unwrap_or_default()
}

fn json(value: &Value) -> String {
    value.to_string()
}
