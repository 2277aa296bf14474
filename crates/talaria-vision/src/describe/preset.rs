//! Providers that are known by name: endpoint, API, and the model that describes pictures.

use crate::ApiShape;

/// What is known of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preset {
    /// Name; also that of its key in `talaria_config::KeyRing`.
    pub(crate) name: &'static str,
    /// Further names.
    pub(crate) aliases: &'static [&'static str],
    /// Endpoint.
    pub(crate) endpoint: &'static str,
    /// Shape of requests.
    pub(crate) api: ApiShape,
    /// The model that describes pictures where none is named.
    pub(crate) model: Option<&'static str>,
    /// Whether that model describes pictures although another is the main one: where most models
    /// of a provider are blind.
    pub(crate) is_own_eye: bool,
    /// Whether it answers without a key.
    pub(crate) is_keyless: bool,
}

const fn cloud(
    name: &'static str,
    aliases: &'static [&'static str],
    endpoint: &'static str,
    model: &'static str,
) -> Preset {
    Preset {
        name,
        aliases,
        endpoint,
        api: ApiShape::OpenaiChat,
        model: Some(model),
        is_own_eye: false,
        is_keyless: false,
    }
}

const fn local(
    name: &'static str,
    aliases: &'static [&'static str],
    endpoint: &'static str,
    model: &'static str,
) -> Preset {
    Preset {
        is_keyless: true,
        ..cloud(name, aliases, endpoint, model)
    }
}

/// Every provider that is known. Local servers that serve one model take any name for it.
pub(crate) const PRESETS: &[Preset] = &[
    cloud(
        "openai",
        &["openai-api", "openai-chat", "openai-responses"],
        "https://api.openai.com/v1",
        "gpt-4o-mini",
    ),
    Preset {
        api: ApiShape::Anthropic,
        ..cloud(
            "anthropic",
            &["claude", "anthropic-direct"],
            "https://api.anthropic.com",
            "claude-haiku-4-5",
        )
    },
    Preset {
        api: ApiShape::Gemini,
        ..cloud(
            "google",
            &["gemini", "google-gemini", "google-ai-studio"],
            "https://generativelanguage.googleapis.com/v1beta",
            "gemini-2.5-flash",
        )
    },
    cloud(
        "openrouter",
        &["or"],
        "https://openrouter.ai/api/v1",
        "google/gemini-3-flash-preview",
    ),
    cloud(
        "nous",
        &["nous-portal"],
        "https://inference-api.nousresearch.com/v1",
        "google/gemini-3-flash-preview",
    ),
    cloud(
        "deepinfra",
        &[],
        "https://api.deepinfra.com/v1/openai",
        "google/gemini-2.5-flash",
    ),
    Preset {
        is_own_eye: true,
        ..cloud(
            ZAI,
            &["glm", "z-ai", "z.ai", "zhipu", "zhipuai"],
            "https://api.z.ai/api/paas/v4",
            "glm-4.6v",
        )
    },
    Preset {
        is_own_eye: true,
        ..cloud(
            "xiaomi",
            &["mimo", "xiaomi-mimo"],
            "https://api.xiaomimimo.com/v1",
            "mimo-v2-omni",
        )
    },
    cloud(
        "minimax",
        &["minimax-code"],
        "https://api.minimax.io/v1",
        "MiniMax-M3",
    ),
    cloud(
        "xai",
        &["grok", "x-ai", "x.ai"],
        "https://api.x.ai/v1",
        "grok-4-1-fast-non-reasoning",
    ),
    cloud(
        "mistral",
        &["mistralai"],
        "https://api.mistral.ai/v1",
        "mistral-small-latest",
    ),
    cloud(
        "groq",
        &[],
        "https://api.groq.com/openai/v1",
        "meta-llama/llama-4-scout-17b-16e-instruct",
    ),
    cloud(
        "together",
        &["togetherai"],
        "https://api.together.xyz/v1",
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    ),
    Preset {
        model: None,
        ..cloud(
            "fireworks",
            &["fw", "fireworks-ai"],
            "https://api.fireworks.ai/inference/v1",
            "",
        )
    },
    cloud(
        "alibaba",
        &["dashscope", "qwen"],
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "qwen3-vl-plus",
    ),
    cloud(
        "moonshot",
        &["moonshotai", "kimi"],
        "https://api.moonshot.ai/v1",
        "kimi-k2.5",
    ),
    cloud(
        "huggingface",
        &["hf"],
        "https://router.huggingface.co/v1",
        "Qwen/Qwen3-VL-235B-A22B-Instruct",
    ),
    local("ollama", &[], "http://127.0.0.1:11434/v1", "llava"),
    local(
        "llamacpp",
        &["llama.cpp", "llama-cpp", "llama-server"],
        "http://127.0.0.1:8080/v1",
        ANY_MODEL,
    ),
    local(
        "lmstudio",
        &["lm-studio"],
        "http://127.0.0.1:1234/v1",
        ANY_MODEL,
    ),
    local("vllm", &[], "http://127.0.0.1:8000/v1", ANY_MODEL),
];

/// The provider that is always asked over its `OpenAI`-compatible API (specification 3.3).
pub(crate) const ZAI: &str = "zai";
/// What a server that serves one model is asked for.
pub(crate) const ANY_MODEL: &str = "default";
/// Who is tried after the main provider where the provider is `auto` (specification 3.3).
pub(crate) const DISCOVERED: [&str; 3] = ["openrouter", "nous", "deepinfra"];

/// The preset of a provider.
pub(crate) fn preset(provider: &str) -> Option<&'static Preset> {
    let name = provider.trim().to_lowercase().replace('_', "-");
    PRESETS
        .iter()
        .find(|preset| preset.name == name || preset.aliases.contains(&name.as_str()))
}

/// The preset whose endpoint stands on a host.
pub(crate) fn preset_at(host: &str) -> Option<&'static Preset> {
    PRESETS
        .iter()
        .filter(|preset| !preset.is_keyless)
        .find(|preset| {
            let rest = preset.endpoint.strip_prefix("https://");
            rest.and_then(|rest| rest.split('/').next()) == Some(host)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use talaria_config::KeyRing;
    use url::Url;

    use super::*;
    use crate::Catalogue;

    #[test]
    fn every_name_means_one_provider() {
        let mut names = BTreeSet::new();
        for it in PRESETS {
            for name in it.aliases.iter().chain([&it.name]) {
                assert!(names.insert(*name), "{name}");
                assert_eq!(preset(name), Some(it), "{name}");
            }
            let url = Url::parse(it.endpoint).unwrap();
            assert!(!it.endpoint.ends_with('/'), "{}", it.name);
            assert_eq!(url.scheme(), if it.is_keyless { "http" } else { "https" });
        }
        assert_eq!(preset(" Z_AI ").map(|it| it.name), Some(ZAI));
        assert_eq!(preset("nobody"), None);
    }

    #[test]
    fn no_preset_names_a_model_that_is_blind_or_unknown() {
        let catalogue = Catalogue::shipped().unwrap();
        for it in PRESETS.iter().filter(|it| !it.is_keyless) {
            if let Some(model) = it.model {
                assert_eq!(catalogue.sees(it.name, model), Some(true), "{}", it.name);
            }
        }
    }

    #[test]
    fn every_provider_that_wants_a_key_has_a_variable_for_it() {
        for it in PRESETS.iter().filter(|it| !it.is_keyless) {
            assert!(!KeyRing::variables(it.name).is_empty(), "{}", it.name);
        }
        for name in DISCOVERED {
            assert!(preset(name).is_some(), "{name}");
        }
    }

    /// The table in `docs/vision.md`.
    fn table() -> String {
        let quoted = |names: &[&str]| {
            let names = names.iter().map(|name| format!("`{name}`"));
            names.collect::<Vec<_>>().join(", ")
        };
        let row = |it: &Preset| {
            let (name, api, also) = (it.name, it.api.as_str(), quoted(it.aliases));
            let model = it
                .model
                .map(|model| format!("`{model}`"))
                .unwrap_or_default();
            format!(
                "| `{name}` | {also} | `{}` | `{api}` | {model} |\n",
                it.endpoint
            )
        };
        let head = "\n| Provider | Also | Asked at | How | Model, where none is named |\n|---|---|---|---|---|\n";
        let rows: String = PRESETS.iter().map(row).collect();
        format!("{head}{rows}\n")
    }

    #[test]
    fn every_preset_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vision.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (head, rest) = page.split_once("<!-- presets: begin -->\n").unwrap();
        let (written, tail) = rest.split_once("<!-- presets: end -->").unwrap();
        if talaria_types::runtime::environment().contains_key("UPDATE_DOCS") {
            let marks = ("<!-- presets: begin -->\n", "<!-- presets: end -->");
            let page = format!("{head}{}{}{}{tail}", marks.0, table(), marks.1);
            std::fs::write(path, page).unwrap();
        } else {
            assert_eq!(written, table(), "run the test with UPDATE_DOCS=1");
        }
    }

    #[test]
    fn hosts_are_known() {
        assert_eq!(
            preset_at("api.openai.com").map(|it| it.name),
            Some("openai")
        );
        assert_eq!(preset_at("127.0.0.1:8080"), None);
        assert_eq!(preset_at("api.openai.com.example"), None);
    }
}
