//! Which providers take pictures in tool results: specification 2.4 as a table, each row with
//! its source in words for an operator. Published tables of models do not say it.

use crate::ApiShape;

/// What a provider does with pictures in tool results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Takes them.
    Accepts,
    /// Takes them for Gemini 3 and later, by the name of the model.
    AcceptsGemini3,
    /// Refuses them.
    Refuses,
    /// Refuses them over this API, which is its usual one.
    RefusesOver(ApiShape),
    /// Takes them over this API only; its usual one is another.
    AcceptsOnlyOver(ApiShape),
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteFact {
    /// Names of the provider.
    pub(crate) providers: &'static [&'static str],
    /// What it does.
    pub(crate) takes: Takes,
    /// Where that is from.
    pub(crate) source: &'static str,
}

/// The rows.
pub(crate) const ROUTE_FACTS: &[RouteFact] = &[
    RouteFact {
        providers: &[
            "anthropic",
            "claude",
            "anthropic-direct",
            "claude-oauth",
            "claude-code",
        ],
        takes: Takes::Accepts,
        source: "Messages API: tool_result.content holds image blocks",
    },
    RouteFact {
        providers: OPENAI_OWN,
        takes: Takes::Accepts,
        source: "Responses API: function_call_output.output holds input_image",
    },
    RouteFact {
        providers: &["openrouter", "or", "nous", "nous-portal"],
        takes: Takes::Accepts,
        source: "image parts in tool messages are passed on",
    },
    RouteFact {
        providers: &["bedrock", "aws", "amazon-bedrock"],
        takes: Takes::Accepts,
        source: "Converse API: toolResult.content holds image",
    },
    RouteFact {
        providers: &[
            "vertex",
            "google-vertex",
            "gcp-vertex",
            "vertex-ai",
            "anthropic-vertex",
        ],
        takes: Takes::Accepts,
        source: "Hermes' list of routes",
    },
    RouteFact {
        providers: &[
            "google",
            "gemini",
            "google-gemini",
            "google-vertex-gemini",
            "google-ai-studio",
        ],
        takes: Takes::AcceptsGemini3,
        source: "Gemini API: multimodal function responses",
    },
    RouteFact {
        providers: &["router", "ramp-router", "router.com"],
        takes: Takes::Accepts,
        source: "Hermes' profile of the provider",
    },
    RouteFact {
        providers: &[
            "xiaomi",
            "mimo",
            "xiaomi-mimo",
            "xiaomi-token-plan-ams",
            "xiaomi-token-plan-cn",
            "xiaomi-token-plan-sgp",
        ],
        takes: Takes::Refuses,
        source: "NousResearch/hermes-agent#111441: 400 \"text is not set\" for list content",
    },
    RouteFact {
        providers: &["meta", "meta-ai", "muse", "msl", "muse-code"],
        takes: Takes::RefusesOver(ApiShape::OpenaiResponses),
        source: "NousResearch/hermes-agent#101668",
    },
    RouteFact {
        providers: &["opencode-go"],
        takes: Takes::AcceptsOnlyOver(ApiShape::OpenaiResponses),
        source: "NousResearch/hermes-agent#132837",
    },
];

/// Hosts whose providers refuse, under whatever name a configuration knows them: host, beginning
/// of the path, provider.
pub(crate) const REFUSING_HOSTS: &[(&str, &str, &str)] = &[
    ("api.xiaomimimo.com", "/", "xiaomi"),
    ("api.meta.ai", "/", "meta-ai"),
    ("opencode.ai", "/zen/go", "opencode-go"),
];

/// Vendors whose models refuse whoever serves them.
pub(crate) const REFUSING_VENDORS: &[&str] = &["xiaomi", "xiaomimimo"];

/// Providers that are `OpenAI`'s own: their Chat Completions take text only in tool messages.
pub(crate) const OPENAI_OWN: &[&str] = &[
    "openai",
    "openai-chat",
    "openai-api",
    "openai-responses",
    "openai-codex",
    "codex",
    "azure-openai",
];

/// Parts of names that Gemini 3 and later go by (specification 2.4).
pub(crate) const GEMINI_3: &[&str] = &["gemini-3", "gemini-pro-3", "gemini-flash-3"];
