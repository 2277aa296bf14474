//! The formats of design §5: their names, what they ask of a request, and which pictures they take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most pictures in one result (specification 2.7).
pub const MAX_ATTACHED: usize = 4;

/// Media types.
type Types = &'static [&'static str];

const EVERY_TYPE: Types = &["image/png", "image/jpeg", "image/webp", "image/gif"];
const PLAIN_TYPES: Types = &["image/png", "image/jpeg"];

/// The formats a delivery is rendered in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The delivery as JSON.
    #[default]
    Talaria,
    /// Hermes' keys, key order and shapes.
    Hermes,
    /// The text only.
    Text,
    /// A `tool_result` block of Anthropic's Messages API.
    Anthropic,
    /// A `function_call_output` item of OpenAI's Responses API.
    OpenaiResponses,
    /// Messages of OpenAI's Chat Completions API.
    OpenaiChat,
    /// A `functionResponse` part of the Gemini API.
    Gemini,
    /// A `CallToolResult` of the Model Context Protocol.
    Mcp,
}

/// What an API takes in the way of pictures. A plain picture of [`crate::Attaching`] is far below
/// most of it; the limits stand guard over configured budgets and odd routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Media types.
    pub types: &'static [&'static str],
    /// Pictures in one result.
    pub most: usize,
    /// Longest side in pixels.
    pub max_side: u32,
    /// Longest base64 of one picture.
    pub max_characters: usize,
}

impl ImageLimits {
    /// What both take.
    #[must_use]
    pub fn narrowed(self, other: Self) -> Self {
        Self {
            types: common_types(self.types, other.types),
            most: self.most.min(other.most),
            max_side: self.max_side.min(other.max_side),
            max_characters: self.max_characters.min(other.max_characters),
        }
    }
}

/// The types of both lists. Lists that overlap differ in WebP and GIF only: every API takes PNG
/// and JPEG.
fn common_types(ours: Types, theirs: Types) -> Types {
    let are_among = |some: Types, all: Types| some.iter().all(|one| all.contains(one));
    if are_among(theirs, ours) {
        theirs
    } else if are_among(ours, theirs) {
        ours
    } else {
        PLAIN_TYPES
    }
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Talaria,
        Self::Hermes,
        Self::Text,
        Self::Anthropic,
        Self::OpenaiResponses,
        Self::OpenaiChat,
        Self::Gemini,
        Self::Mcp,
    ];

    /// The word used in requests and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Talaria => "talaria",
            Self::Hermes => "hermes",
            Self::Text => "text",
            Self::Anthropic => "anthropic",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiChat => "openai-chat",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
        }
    }

    /// Whether a body without the provider's tool-use id would be refused by the provider.
    #[must_use]
    pub const fn requires_call_id(self) -> bool {
        match self {
            Self::Anthropic | Self::OpenaiResponses | Self::OpenaiChat => true,
            Self::Talaria | Self::Hermes | Self::Text | Self::Gemini | Self::Mcp => false,
        }
    }

    /// Whether a body without the tool's name would be refused by the provider.
    #[must_use]
    pub const fn requires_tool_name(self) -> bool {
        match self {
            Self::Gemini => true,
            Self::Talaria
            | Self::Hermes
            | Self::Text
            | Self::Anthropic
            | Self::OpenaiResponses
            | Self::OpenaiChat
            | Self::Mcp => false,
        }
    }

    /// What is wrong with a request's `call_id` for this format, in words for its sender.
    #[must_use]
    pub fn call_id_fault(self, call_id: Option<&str>) -> Option<String> {
        let word = self.as_str();
        match call_id {
            None | Some("") if self.requires_call_id() => Some(format!(
                "format `{word}` needs `call_id`, the id of the tool call that this result answers"
            )),
            Some(id) if self == Self::Anthropic && !id.bytes().all(is_anthropic_id) => Some(
                format!("`call_id` must hold only letters, digits, `_` and `-` in format `{word}`"),
            ),
            None | Some(_) => None,
        }
    }

    /// Whether failed results are answered as one string without files (specification 1.14).
    #[must_use]
    pub const fn tells_failures_in_words(self) -> bool {
        match self {
            Self::Hermes | Self::Text => true,
            Self::Talaria
            | Self::Anthropic
            | Self::OpenaiResponses
            | Self::OpenaiChat
            | Self::Gemini
            | Self::Mcp => false,
        }
    }

    /// Which pictures its API takes; `None` where it has no place for any.
    #[must_use]
    pub const fn image_limits(self) -> Option<ImageLimits> {
        let limits = ImageLimits {
            types: EVERY_TYPE,
            most: MAX_ATTACHED,
            max_side: u32::MAX,
            max_characters: usize::MAX,
        };
        match self {
            Self::Text => None,
            Self::Talaria | Self::Hermes | Self::Mcp => Some(limits),
            // 5 MiB of base64 a picture, 8,000 pixels a side.
            Self::Anthropic => Some(ImageLimits {
                max_side: 8_000,
                max_characters: 5 * 1024 * 1024,
                ..limits
            }),
            // 50 MB of payload a request.
            Self::OpenaiResponses | Self::OpenaiChat => Some(ImageLimits {
                max_characters: 20_000_000,
                ..limits
            }),
            // 20 MB of inline data a request, and no GIF.
            Self::Gemini => Some(ImageLimits {
                types: &["image/png", "image/jpeg", "image/webp"],
                max_characters: 7_000_000,
                ..limits
            }),
        }
    }
}

const fn is_anthropic_id(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::{Format, ImageLimits};

    #[test]
    fn words_are_those_of_requests() {
        for format in Format::ALL {
            assert_eq!(serde_json::to_value(format).unwrap(), format.as_str());
        }
    }

    #[test]
    fn a_call_id_is_asked_for_where_a_body_needs_one() {
        for format in Format::ALL {
            assert_eq!(
                format.call_id_fault(None).is_some(),
                format.requires_call_id(),
                "{format:?}"
            );
            assert_eq!(format.call_id_fault(Some("toolu_01-a")), None);
        }
        assert!(Format::Anthropic.call_id_fault(Some("a b")).is_some());
        assert!(Format::OpenaiChat.call_id_fault(Some("")).is_some());
        assert_eq!(Format::OpenaiChat.call_id_fault(Some("call|a")), None);
    }

    #[test]
    fn limits_narrow_each_other() {
        let gemini = Format::Gemini.image_limits().unwrap();
        let route = ImageLimits {
            types: &["image/png"],
            most: 2,
            max_side: 1_000,
            max_characters: usize::MAX,
        };
        let both = gemini.narrowed(route);
        assert_eq!(
            (both.types, both.most, both.max_side, both.max_characters),
            (&["image/png"][..], 2, 1_000, 7_000_000)
        );
        let no_webp = ImageLimits {
            types: &["image/png", "image/jpeg", "image/gif"],
            ..route
        };
        assert_eq!(gemini.narrowed(no_webp).types, ["image/png", "image/jpeg"]);
        let every = Format::Talaria.image_limits().unwrap();
        assert_eq!(gemini.narrowed(every).types, gemini.types);
    }
}
