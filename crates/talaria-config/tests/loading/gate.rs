//! What the gate for pictures is told.

use talaria_config::{GateConfig, ImageInputMode};

use crate::{good, problems};

fn gate(text: &str) -> GateConfig {
    good(text).gate
}

#[test]
fn image_input_mode_falls_back_to_auto() {
    for (word, mode, warnings) in [
        ("text", ImageInputMode::Text, 0),
        ("' NATIVE '", ImageInputMode::Native, 0),
        ("sometimes", ImageInputMode::Auto, 1),
        ("5", ImageInputMode::Auto, 1),
        ("[native]", ImageInputMode::Auto, 1),
        ("null", ImageInputMode::Auto, 0),
    ] {
        let config = good(&format!("agent: {{ image_input_mode: {word} }}"));
        assert_eq!(
            (config.gate.mode, config.warnings.len()),
            (mode, warnings),
            "{word}"
        );
    }
}

#[test]
fn g55_blanks_and_case_around_the_mode_do_not_count() {
    let gate = gate("agent: { image_input_mode: \" Native \" }");
    assert_eq!(gate.mode, ImageInputMode::Native);
}

#[test]
fn a_vision_backend_is_explicit_when_it_is_named() {
    for (vision, explicit) in [
        ("{}", false),
        ("null", false),
        ("[1]", false),
        ("openai", false),
        ("{ provider: auto }", false),
        ("{ provider: '' }", false),
        ("{ timeout: 60 }", false),
        ("{ provider: null, model: null, base_url: null }", false),
        ("{ provider: '  AUTO ' }", false),
        ("{ provider: auto, model: '  ' }", false),
        ("{ provider: auto, model: x }", true),
        ("{ base_url: 'http://127.0.0.1:1' }", true),
        ("{ provider: openrouter }", true),
        ("{ provider: main }", true),
        ("{ provider: none }", false),
        ("{ provider: ' OFF ' }", false),
    ] {
        let gate = gate(&format!("auxiliary: {{ vision: {vision} }}"));
        assert_eq!(gate.explicit_aux, explicit, "{vision}");
    }
    assert!(!gate("auxiliary: { compression: { model: z } }").explicit_aux);
}

#[test]
fn sight_is_coerced_from_words_and_from_0_and_1() {
    for (word, opinion) in [
        ("true", Some(true)),
        ("1", Some(true)),
        ("'yes'", Some(true)),
        ("' ON '", Some(true)),
        ("'True'", Some(true)),
        ("'1'", Some(true)),
        ("false", Some(false)),
        ("0", Some(false)),
        ("'no'", Some(false)),
        ("'Off'", Some(false)),
        ("'0'", Some(false)),
        ("'maybe'", None),
        ("2", None),
        ("-1", None),
        ("1.5", None),
        ("''", None),
        ("[true]", None),
        ("{ a: true }", None),
        ("null", None),
    ] {
        let gate = gate(&format!(
            "model: {{ supports_vision: {word} }}\n\
             providers: {{ p: {{ models: {{ m: {{ vision: {word} }} }} }} }}\n\
             custom_providers: [{{ name: c, models: {{ m: {{ supports_vision: {word} }} }} }}]"
        ));
        assert_eq!(gate.main.supports_vision, opinion, "{word}");
        for provider in &gate.providers {
            let facts = provider.models.get("m");
            assert_eq!(
                facts.and_then(|facts| facts.supports_vision),
                opinion,
                "{word}"
            );
        }
    }
}

#[test]
fn the_main_model_is_a_map_or_a_name() {
    let main = gate(
        "model: { provider: openrouter, default: anthropic/x, base_url: ' https://h/v1 ', api_mode: chat_completions }",
    )
    .main;
    assert_eq!(main.provider.as_deref(), Some("openrouter"));
    assert_eq!(main.model.as_deref(), Some("anthropic/x"));
    assert_eq!(main.base_url.unwrap().as_str(), "https://h/v1");
    assert_eq!(main.api.as_deref(), Some("chat_completions"));

    let plain = good("model: ' some/model '");
    assert_eq!(plain.gate.main.model.as_deref(), Some("some/model"));
    assert_eq!(plain.gate.main.provider, None);
    assert_eq!(plain.warnings, Vec::<String>::new());

    assert_eq!(
        gate("model: { name: n, model: m }").main.model.unwrap(),
        "n"
    );
    assert_eq!(gate("model: { model: m }").main.model.unwrap(), "m");
    assert_eq!(gate("model: { provider: Auto }").main.provider, None);
    assert_eq!(gate("model: [x]").main, GateConfig::default().main);
}

#[test]
fn providers_are_read_in_order_with_their_places() {
    let gate = gate(
        r#"
providers:
  local: { api: "http://127.0.0.1:8080/v1", transport: chat_completions, models: [a, b] }
  p: { models: { "x/y.z": { supports_vision: yes, tool_result_images: off } } }
custom_providers:
  - { name: Mine, base_url: "http://192.168.1.5:11434", models: { m: {} } }
  - { base_url: "http://nameless" }
  - 5
"#,
    );
    let seen: Vec<_> = gate
        .providers
        .iter()
        .map(|it| (it.path.as_str(), it.name.as_str(), it.is_custom))
        .collect();
    assert_eq!(
        seen,
        [
            ("providers.local", "local", false),
            ("providers.p", "p", false),
            ("custom_providers[0]", "Mine", true),
        ]
    );
    let url = gate.providers[0].base_url.as_ref().unwrap();
    assert_eq!(url.as_str(), "http://127.0.0.1:8080/v1");
    assert_eq!(gate.providers[0].api.as_deref(), Some("chat_completions"));
    let facts = &gate.providers[1].models["x/y.z"];
    assert_eq!(facts.supports_vision, Some(true));
    assert_eq!(facts.tool_result_images, Some(false));
    assert!(gate.providers[2].models.is_empty());
}

#[test]
fn tool_result_images_are_stated_as_a_whole_or_by_api_shape() {
    let stated = |value: &str| {
        gate(&format!(
            "providers: {{ p: {{ tool_result_images: {value} }} }}"
        ))
        .providers
        .remove(0)
        .tool_result_images
    };
    assert_eq!(stated("on").any, Some(true));
    assert_eq!(stated("false").any, Some(false));
    assert_eq!(stated("null").any, None);
    let by_api = stated("{ OpenAI-Chat: no, anthropic: true, gemini: perhaps }").by_api;
    assert_eq!(
        by_api.into_iter().collect::<Vec<_>>(),
        [
            ("anthropic".to_owned(), true),
            ("openai-chat".to_owned(), false)
        ]
    );
    assert_eq!(
        problems("providers: { p: { tool_result_images: [a] } }"),
        [
            "providers.p.tool_result_images: must be true or false, or a map of API shapes to true or false"
        ]
    );
    assert_eq!(
        problems("custom_providers: [{ name: c, tool_result_images: perhaps }]"),
        ["custom_providers[0].tool_result_images: must be true or false"]
    );
}

#[test]
fn passwords_in_endpoints_are_not_shown() {
    let config = good(
        "model: { base_url: 'https://me:hunter22@h/v1?key=hunter22' }\n\
         providers: { p: { base_url: 'https://me:hunter22@h/v1' } }",
    );
    assert!(!config.show().to_string().contains("hunter22"));
    assert!(!format!("{config:?}").contains("hunter22"));
}
