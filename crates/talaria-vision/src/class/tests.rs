//! Classes and vetoes by the live route.

use std::collections::BTreeMap;

use talaria_config::{Endpoint, ModelFacts, ToolResultImages};
use talaria_types::Route;

use super::RouteClass::{Accepts, Neutral, Veto};
use super::*;

fn live(config: &GateConfig, provider: &str, model: &str, api: Option<&str>) -> LiveRoute {
    let route = Route {
        provider: provider.to_owned(),
        model: model.to_owned(),
        api: api.map(ToOwned::to_owned),
    };
    LiveRoute::new(config, &route, None)
}

fn class_in(config: &GateConfig, provider: &str, model: &str, api: Option<&str>) -> RouteClass {
    let route = live(config, provider, model, api);
    classify(config, ImageDelivery::ToolResult, &route).class
}

fn class(provider: &str, model: &str, api: Option<&str>) -> RouteClass {
    class_in(&GateConfig::default(), provider, model, api)
}

#[test]
fn providers_of_the_list_accept() {
    for provider in [
        "openrouter",
        "nous",
        "vertex",
        "bedrock",
        "anthropic-vertex",
        "google-vertex",
        "anthropic",
        "claude",
        "anthropic-direct",
        "openai",
        "openai-chat",
        "openai-codex",
        "azure-openai",
        " Anthropic ",
        "OPENROUTER",
    ] {
        assert_eq!(class(provider, "m", None), Accepts, "{provider}");
    }
}

#[test]
fn the_gemini_family_accepts_from_gemini_3_on() {
    for provider in ["google", "gemini", "google-gemini", "google-vertex-gemini"] {
        for model in [
            "gemini-3-pro-preview",
            "models/gemini-3.5-flash",
            "gemini-pro-3",
            "x-gemini-flash-3",
        ] {
            assert_eq!(class(provider, model, None), Accepts, "{provider} {model}");
        }
        for model in ["gemini-2.5-pro", "gemini-flash-latest", "gemma-3-27b-it"] {
            assert_eq!(class(provider, model, None), Neutral, "{provider} {model}");
        }
    }
}

#[test]
fn unknown_providers_are_neutral() {
    for provider in [
        "",
        "custom",
        "custom:lab",
        "lmstudio",
        "ollama",
        "llamacpp",
        "anthropic2",
    ] {
        assert_eq!(class(provider, "m", None), Neutral, "{provider}");
    }
}

#[test]
fn g61_xiaomi_is_vetoed_also_through_an_aggregator() {
    for (provider, model) in [
        ("xiaomi", "mimo-v2-omni"),
        ("mimo", "mimo-v2-omni"),
        ("openrouter", "xiaomi/mimo-x"),
        ("openrouter", "Xiaomi/mimo-v2.5:free"),
        ("nous", "xiaomi/mimo-v2.5"),
        ("huggingface", "XiaomiMiMo/MiMo-V2.5"),
    ] {
        assert_eq!(class(provider, model, None), Veto, "{provider} {model}");
    }
    assert_eq!(class("openrouter", "someone/xiaomi-mimo", None), Accepts);
}

#[test]
fn meta_is_vetoed_over_responses_which_is_its_usual_api() {
    assert_eq!(class("meta-ai", "muse-spark-1.3", None), Veto);
    assert_eq!(
        class("meta", "muse-spark-1.3", Some("codex_responses")),
        Veto
    );
    assert_eq!(
        class("meta", "muse-spark-1.3", Some("chat_completions")),
        Neutral
    );
}

#[test]
fn opencode_go_is_vetoed_except_over_responses() {
    assert_eq!(class("opencode-go", "m", None), Veto);
    assert_eq!(class("opencode-go", "m", Some("chat_completions")), Veto);
    assert_eq!(class("opencode-go", "m", Some("anthropic_messages")), Veto);
    assert_eq!(class("opencode-go", "m", Some("codex_responses")), Accepts);
    assert_eq!(class("opencode_go", "m", Some("openai-responses")), Accepts);
}

#[test]
fn a_vetoed_host_is_vetoed_under_any_name() {
    let at = |url: &str| {
        let facts = ProviderFacts {
            name: "lab".to_owned(),
            base_url: Some(Endpoint::from(url.to_owned())),
            ..ProviderFacts::default()
        };
        let config = GateConfig {
            providers: vec![facts],
            ..GateConfig::default()
        };
        class_in(&config, "custom:lab", "m", None)
    };
    assert_eq!(at("https://api.xiaomimimo.com/v1"), Veto);
    assert_eq!(at("https://api.meta.ai/v1"), Veto);
    assert_eq!(at("https://opencode.ai/zen/go/v1"), Veto);
    assert_eq!(at("https://opencode.ai/zen/v1"), Neutral);
    assert_eq!(at("https://api.meta.ai.example/v1"), Neutral);
}

#[test]
fn openai_s_chat_completions_carry_no_images_in_tool_messages() {
    let config = GateConfig::default();
    for provider in ["openai", "openai-chat", "azure-openai"] {
        let route = live(&config, provider, "gpt-4o", Some("openai-chat"));
        let closed = classify(&config, ImageDelivery::ToolResult, &route);
        assert_eq!((closed.class, closed.veto), (Veto, Cause::ApiRefuses));
        let open = classify(&config, ImageDelivery::UserMessage, &route);
        assert_eq!(
            (open.class, open.delivery),
            (Accepts, ImageDelivery::UserMessage)
        );
        assert_eq!(class(provider, "gpt-4o", Some("openai-responses")), Accepts);
    }
    for provider in ["openrouter", "nous"] {
        let route = live(&config, provider, "openai/gpt-4o", Some("openai-chat"));
        let open = classify(&config, ImageDelivery::UserMessage, &route);
        assert_eq!(
            (open.class, open.delivery),
            (Accepts, ImageDelivery::ToolResult)
        );
    }
}

#[test]
fn a_user_message_gets_round_a_veto_only_where_allowed_and_possible() {
    let config = GateConfig::default();
    let chat = live(&config, "xiaomi", "mimo-v2-omni", Some("openai-chat"));
    let other = live(&config, "xiaomi", "mimo-v2-omni", None);
    let by = |allowed, route| {
        let classified = classify(&config, allowed, route);
        (classified.class, classified.delivery)
    };
    let in_result = ImageDelivery::ToolResult;
    let in_message = ImageDelivery::UserMessage;
    assert_eq!(by(in_result, &chat), (Veto, in_result));
    assert_eq!(by(in_message, &other), (Veto, in_result));
    assert_eq!(by(in_message, &chat), (Neutral, in_message));
}

#[test]
fn the_operator_beats_what_is_known_and_the_narrower_word_the_wider() {
    let facts = ProviderFacts {
        name: "Xiaomi".to_owned(),
        path: "providers.Xiaomi".to_owned(),
        tool_result_images: ToolResultImages {
            any: None,
            by_api: BTreeMap::from([
                ("anthropic_messages".to_owned(), true),
                ("openai-chat".to_owned(), false),
            ]),
        },
        models: BTreeMap::from([(
            "mimo-x".to_owned(),
            ModelFacts {
                supports_vision: None,
                tool_result_images: Some(true),
            },
        )]),
        ..ProviderFacts::default()
    };
    let lab = ProviderFacts {
        name: "anthropic".to_owned(),
        path: "custom_providers[0]".to_owned(),
        tool_result_images: ToolResultImages {
            any: Some(false),
            by_api: BTreeMap::new(),
        },
        ..ProviderFacts::default()
    };
    let config = GateConfig {
        providers: vec![facts, lab],
        ..GateConfig::default()
    };
    let class = |provider, model, api| class_in(&config, provider, model, api);
    assert_eq!(class("xiaomi", "mimo-x", Some("openai-chat")), Accepts);
    assert_eq!(class("xiaomi", "mimo-x:free", None), Accepts);
    assert_eq!(class("xiaomi", "other", Some("anthropic")), Accepts);
    assert_eq!(class("xiaomi", "other", Some("openai-chat")), Veto);
    assert_eq!(class("xiaomi", "other", None), Veto);
    assert_eq!(class("anthropic", "claude-sonnet-4-5", None), Veto);
    let route = live(&config, "anthropic", "m", None);
    let why = classify(&config, ImageDelivery::ToolResult, &route).why;
    assert_eq!(
        why,
        "it refuses images in tool results (custom_providers[0].tool_result_images)"
    );
}

#[test]
fn every_row_of_the_table_names_its_source_and_no_provider_twice() {
    let mut seen = std::collections::BTreeSet::new();
    for fact in ROUTE_FACTS {
        assert!(!fact.source.is_empty());
        for provider in fact.providers {
            assert!(seen.insert(provider), "{provider}");
        }
    }
    assert!(OPENAI_OWN.iter().all(|name| seen.contains(name)));
}
