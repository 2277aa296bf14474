//! What providers take at most, as data.
//!
//! Bounds of a single request that a delivery alone could break. The fit of 1568 px and the
//! budget of a data URL are far below most of them.

/// The bounds of one provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProviderLimits {
    /// Pictures in one request.
    pub max_images: usize,
    /// Longest side in pixels, so low that any number of pictures may have it.
    pub max_side: u32,
    /// Characters of base64 of one picture.
    pub max_bytes: usize,
    /// Takes WebP.
    pub webp: bool,
    /// Takes GIF.
    pub gif: bool,
}

const MIB: usize = 1024 * 1024;

/// Where nothing is known: what every provider of the table takes.
const UNKNOWN: ProviderLimits = ProviderLimits {
    max_images: 4,
    max_side: 2000,
    max_bytes: 3 * MIB,
    webp: false,
    gif: false,
};

/// Anthropic, Vision: 5 MB of base64 for a picture, 8000 px a side and 2000 px in requests of
/// more than 20 pictures (400 "exceed max allowed size for many-image requests"), 100 pictures;
/// JPEG, PNG, GIF, WebP. Earlier turns count, so 2000 px it is.
const ANTHROPIC: ProviderLimits = ProviderLimits {
    max_images: 100,
    max_side: 2000,
    max_bytes: 5 * MIB,
    webp: true,
    gif: true,
};

/// `OpenAI`, Images and vision: 500 pictures and 50 MB for a request, 20 MB for a picture; PNG,
/// JPEG, WebP, GIF that does not move. Larger pictures are scaled down to 2048 px.
const OPENAI: ProviderLimits = ProviderLimits {
    max_images: 500,
    max_side: 2048,
    max_bytes: 20 * MIB,
    webp: true,
    gif: true,
};

/// Google, Image understanding: 3000 pictures for a prompt, 7 MB inline for each on Vertex; PNG,
/// JPEG, WebP, HEIC, HEIF, and no GIF. No bound on sides; larger pictures are scaled to 3072 px.
const GOOGLE: ProviderLimits = ProviderLimits {
    max_images: 3000,
    max_side: 3072,
    max_bytes: 7 * MIB,
    webp: true,
    gif: false,
};

/// Amazon Bedrock, Message: 20 pictures, 3.75 MB (5 MB of base64) and 8000 px for each; PNG,
/// JPEG, GIF, WebP. Claude's bound of 2000 px begins beyond 20 pictures.
const BEDROCK: ProviderLimits = ProviderLimits {
    max_images: 20,
    max_side: 8000,
    max_bytes: 5 * MIB,
    webp: true,
    gif: true,
};

/// `OpenRouter`, Images: PNG, JPEG, WebP, GIF. The bounds are those of whoever serves the model,
/// so the narrowest of them.
const OPENROUTER: ProviderLimits = ProviderLimits {
    max_images: 20,
    max_side: 2000,
    max_bytes: 5 * MIB,
    webp: true,
    gif: false,
};

/// xAI, Image understanding: 20 MiB for a picture (10 MiB earlier); JPEG and PNG only.
const XAI: ProviderLimits = ProviderLimits {
    max_images: 100,
    max_side: 2048,
    max_bytes: 10 * MIB,
    webp: false,
    gif: false,
};

/// Mistral, Vision: 8 pictures for a request, 10 MB for each; PNG, JPEG, WebP, still GIF. No
/// bound on sides; larger pictures are scaled to 1540 px.
const MISTRAL: ProviderLimits = ProviderLimits {
    max_images: 8,
    max_side: 2048,
    max_bytes: 10 * MIB,
    webp: true,
    gif: false,
};

/// Groq, Images and vision: 5 pictures for a request, 4 MB of base64 for each.
const GROQ: ProviderLimits = ProviderLimits {
    max_images: 5,
    max_side: 2000,
    max_bytes: 4 * MIB,
    webp: false,
    gif: false,
};

/// llama.cpp decodes with stb_image: PNG, JPEG, BMP, GIF, and no WebP (specification 2.7);
/// Ollama is built on it.
const LOCAL: ProviderLimits = ProviderLimits {
    max_images: 16,
    max_side: 2048,
    max_bytes: 10 * MIB,
    webp: false,
    gif: false,
};

/// Name of a provider, in the catalogue's spelling, and its limits.
const TABLE: &[(&str, ProviderLimits)] = &[
    ("anthropic", ANTHROPIC),
    ("openai", OPENAI),
    ("openai-codex", OPENAI),
    ("azure", OPENAI),
    ("google", GOOGLE),
    ("google-vertex", GOOGLE),
    ("amazon-bedrock", BEDROCK),
    ("openrouter", OPENROUTER),
    ("xai", XAI),
    ("mistral", MISTRAL),
    ("groq", GROQ),
    ("ollama", LOCAL),
    ("llamacpp", LOCAL),
];

/// Claude through Google: Anthropic's bounds.
const CLAUDE: &str = "claude";

impl Default for ProviderLimits {
    fn default() -> Self {
        UNKNOWN
    }
}

impl ProviderLimits {
    /// The limits of a provider under the catalogue's name.
    pub(crate) fn of(provider: &str, model: &str) -> Self {
        if provider == "google-vertex" && model.to_lowercase().contains(CLAUDE) {
            return ANTHROPIC;
        }
        let row = TABLE.iter().find(|(name, _)| *name == provider);
        row.map_or(UNKNOWN, |(_, limits)| *limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_known_provider_takes_less_than_the_unknown_one() {
        for (name, limits) in TABLE {
            assert!(limits.max_images >= UNKNOWN.max_images, "{name}");
            assert!(limits.max_side >= 1568, "{name}");
            assert!(limits.max_bytes >= UNKNOWN.max_bytes, "{name}");
        }
    }

    #[test]
    fn servers_of_this_machine_get_no_webp() {
        for provider in ["ollama", "llamacpp", "custom", "xai"] {
            assert!(!ProviderLimits::of(provider, "m").webp, "{provider}");
        }
        for provider in ["anthropic", "openai", "google", "amazon-bedrock"] {
            assert!(ProviderLimits::of(provider, "m").webp, "{provider}");
        }
    }

    #[test]
    fn claude_keeps_its_limits_behind_google() {
        assert_eq!(
            ProviderLimits::of("google-vertex", "claude-sonnet-4-5"),
            ANTHROPIC
        );
        assert_eq!(ProviderLimits::of("google-vertex", "gemini-3-pro"), GOOGLE);
    }
}
