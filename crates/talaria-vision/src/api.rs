//! The shapes of model APIs, under all the names they go by.

/// The shape of an API, which decides what a tool result may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiShape {
    /// `OpenAI`'s Chat Completions.
    OpenaiChat,
    /// `OpenAI`'s Responses.
    OpenaiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// Amazon's Converse.
    Bedrock,
}

impl ApiShape {
    /// The shape behind a word of a request, a format or the configuration.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase().replace('_', "-");
        match word.as_str() {
            "openai-chat" | "chat-completions" | "openai-completions" | "chat" => {
                Some(Self::OpenaiChat)
            }
            "openai-responses"
            | "codex-responses"
            | "responses"
            | "openai-codex-responses"
            | "azure-openai-responses" => Some(Self::OpenaiResponses),
            "anthropic" | "anthropic-messages" | "messages" => Some(Self::Anthropic),
            "gemini" | "google-generative-ai" | "generate-content" | "google-vertex" => {
                Some(Self::Gemini)
            }
            "bedrock" | "bedrock-converse" | "converse" | "bedrock-converse-stream" => {
                Some(Self::Bedrock)
            }
            _ => None,
        }
    }

    /// Our word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_known_under_the_names_of_formats_and_of_hermes() {
        for (word, shape) in [
            ("openai-chat", Some(ApiShape::OpenaiChat)),
            ("chat_completions", Some(ApiShape::OpenaiChat)),
            (" Codex_Responses ", Some(ApiShape::OpenaiResponses)),
            ("openai-responses", Some(ApiShape::OpenaiResponses)),
            ("anthropic_messages", Some(ApiShape::Anthropic)),
            ("gemini", Some(ApiShape::Gemini)),
            ("bedrock_converse", Some(ApiShape::Bedrock)),
            ("talaria", None),
            ("", None),
        ] {
            assert_eq!(ApiShape::from_word(word), shape, "{word}");
        }
    }
}
