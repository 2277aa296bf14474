//! What a caller may wish for a delivery, the same in every route that makes one.

use std::num::NonZeroU64;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use talaria_actors::ImageWishes;
use talaria_config::{DescribeImages, ImageInputMode, Scope, Tiles};
use talaria_content::{Format, visible_line};
use talaria_types::{CallContext, ErrorCode, Failure, Route, SessionKey};

use crate::exchange::Asked;
use crate::problem::Rejection;

/// Longest name or id out of a request: they are copied, compared and remembered.
const MAX_KEY_BYTES: usize = 256;

/// How the delivery should look and how long it may take.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Wishes {
    /// The live model route of the agent.
    #[serde(default)]
    pub(crate) route: Option<Route>,
    /// One of `talaria` (default), `hermes`, `text`, `anthropic`, `openai-responses`,
    /// `openai-chat`, `gemini` and `mcp`.
    #[serde(default)]
    pub(crate) format: Option<String>,
    /// The provider's tool-use id, echoed into the provider's format; `anthropic`,
    /// `openai-responses` and `openai-chat` need one.
    #[serde(default)]
    pub(crate) call_id: Option<String>,
    /// What the caller calls its conversation.
    #[serde(default)]
    pub(crate) session: Option<String>,
    /// Hard limit of the whole request in milliseconds.
    #[serde(default)]
    pub(crate) timeout_ms: Option<NonZeroU64>,
    /// Whether images the model cannot see are described: `auto` where a vision chain is
    /// configured, `true` always, which needs one, `false` never.
    #[serde(default)]
    pub(crate) describe_images: Option<Choice>,
    /// `auto`, `native` or `text`, in place of the configured mode.
    #[serde(default)]
    pub(crate) image_input_mode: Option<ImageMode>,
    /// Whether images are cut into tiles in place of the configured choice: `auto` where one
    /// picture would be unreadable, `true` wherever it has to shrink, `false` never.
    #[serde(default)]
    pub(crate) tiles: Option<Choice>,
    /// Approves a tool that writes, on a server that is not trusted. Needs scope `approve`.
    #[serde(default)]
    pub(crate) approve: Option<bool>,
}

/// `auto`, or a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Choice {
    /// Yes or no.
    Decided(bool),
    /// In words.
    Word(ChoiceWord),
}

/// The words for a [`Choice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChoiceWord {
    /// As the service sees fit.
    Auto,
    /// Yes.
    On,
    /// No.
    Off,
}

impl Choice {
    const fn demands(self) -> bool {
        match self {
            Self::Decided(wanted) => wanted,
            Self::Word(ChoiceWord::On) => true,
            Self::Word(ChoiceWord::Auto | ChoiceWord::Off) => false,
        }
    }

    const fn describe(self) -> DescribeImages {
        match self {
            Self::Decided(true) | Self::Word(ChoiceWord::On) => DescribeImages::True,
            Self::Decided(false) | Self::Word(ChoiceWord::Off) => DescribeImages::False,
            Self::Word(ChoiceWord::Auto) => DescribeImages::Auto,
        }
    }

    const fn tiles(self) -> Tiles {
        match self {
            Self::Decided(true) | Self::Word(ChoiceWord::On) => Tiles::On,
            Self::Decided(false) | Self::Word(ChoiceWord::Off) => Tiles::Off,
            Self::Word(ChoiceWord::Auto) => Tiles::Auto,
        }
    }
}

/// The words of `image_input_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageMode {
    /// Pixels where the model is known to see.
    Auto,
    /// Pixels wherever the route takes them.
    Native,
    /// Never pixels.
    Text,
}

impl ImageMode {
    const fn configured(self) -> ImageInputMode {
        match self {
            Self::Auto => ImageInputMode::Auto,
            Self::Native => ImageInputMode::Native,
            Self::Text => ImageInputMode::Text,
        }
    }
}

impl Wishes {
    /// Every key, for requests that hold wishes among keys of their own.
    pub(crate) const KEYS: &[&str] = &[
        "route",
        "format",
        "call_id",
        "session",
        "timeout_ms",
        "describe_images",
        "image_input_mode",
        "tiles",
        "approve",
    ];

    /// Refuses what cannot be granted, before anything runs, and prepares the rest.
    pub(crate) fn grant(self, asked: &Asked<'_>) -> Result<Granted, Rejection> {
        let format = self
            .format
            .as_deref()
            .map_or(Ok(Format::default()), format)?;
        for (key, value) in [("session", &self.session), ("call_id", &self.call_id)] {
            let value = value.as_deref();
            if value.is_some_and(|value| value.is_empty() || value.len() > MAX_KEY_BYTES) {
                let detail = format!("`{key}` must have 1 to {MAX_KEY_BYTES} bytes");
                return Err(Rejection::invalid(detail));
            }
        }
        if let Some(route) = &self.route {
            bounded("route.provider", Some(&route.provider))?;
            bounded("route.model", Some(&route.model))?;
            bounded("route.api", route.api.as_deref())?;
        }
        if self.describe_images.is_some_and(Choice::demands) {
            need_vision(asked)?;
        }
        if let Some(fault) = format.call_id_fault(self.call_id.as_deref()) {
            return Err(Rejection::invalid(fault));
        }
        let approved = self.approve == Some(true);
        if approved {
            asked.caller.need(Scope::Approve)?;
        }
        let most = asked.state.config.talaria.calls.max_call_duration;
        let budget = self.timeout_ms.map_or(most, |timeout| {
            Duration::from_millis(timeout.get()).min(most)
        });
        let session = self.session.map(SessionKey::from);
        let route = self.route.as_ref().map(visible_route);
        let mut context = asked
            .exchange
            .call_context(asked.caller, route, session, budget);
        context.approved = approved;
        Ok(Granted {
            format,
            call_id: self.call_id,
            images: ImageWishes {
                mode: self.image_input_mode.map(ImageMode::configured),
                tiles: self.tiles.map(Choice::tiles),
                describe: self.describe_images.map(Choice::describe),
            },
            context,
        })
    }
}

/// Refuses what only a vision chain can do, where there is none.
pub(crate) fn need_vision(asked: &Asked<'_>) -> Result<(), Rejection> {
    if asked.state.delivery.has_vision() {
        return Ok(());
    }
    let detail = "no vision chain is configured: set `auxiliary.vision` with a provider and its \
                  key, `auxiliary.vision.fallback_chain` or `auxiliary.vision.mcp_fallback`";
    Err(Failure::new(ErrorCode::VisionNotConfigured, detail).into())
}

/// A route without anything that hides: its names stand in `gate.reason`, which models may read.
fn visible_route(route: &Route) -> Route {
    Route {
        provider: visible_line(&route.provider),
        model: visible_line(&route.model),
        api: route.api.as_deref().map(visible_line),
    }
}

/// Wishes that can be met.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) format: Format,
    pub(crate) call_id: Option<String>,
    pub(crate) images: ImageWishes,
    pub(crate) context: CallContext,
}

/// Refuses a name that is longer than any of a provider or a tool.
pub(crate) fn bounded(key: &str, value: Option<&str>) -> Result<(), Rejection> {
    if value.is_some_and(|value| value.len() > MAX_KEY_BYTES) {
        let detail = format!("`{key}` must have at most {MAX_KEY_BYTES} bytes");
        return Err(Rejection::invalid(detail));
    }
    Ok(())
}

/// The format of a word.
pub(crate) fn format(word: &str) -> Result<Format, Rejection> {
    let found = Format::ALL
        .into_iter()
        .find(|format| format.as_str() == word);
    found.ok_or_else(|| {
        let known = Format::ALL.map(Format::as_str);
        Rejection::invalid(crate::query::unknown_key("format", word, &known))
    })
}

#[cfg(test)]
mod tests {
    use talaria_types::Route;

    use super::visible_route;

    #[test]
    fn t01_the_names_of_a_route_hide_nothing() {
        let hidden = |name: &str| format!("{name}\u{e0041}\u{200b}\u{2060}\u{feff}\u{1b}[1m");
        let route = visible_route(&Route {
            provider: hidden("openrouter"),
            model: hidden("vendor/model-4.5:free"),
            api: Some(hidden("openai-chat")),
        });
        assert_eq!(route.provider, "openrouter");
        assert_eq!(route.model, "vendor/model-4.5:free");
        assert_eq!(route.api.as_deref(), Some("openai-chat"));
    }
}
