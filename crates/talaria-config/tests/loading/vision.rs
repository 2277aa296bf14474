//! What describes pictures.

use std::time::Duration;

use talaria_config::{Config, DescribeImages, ImageForm, Secret, Source, VisionConfig, load};

use crate::{environment, good, problems};

fn vision(text: &str) -> VisionConfig {
    good(text).vision
}

fn with_variables(text: &str, variables: &[(&str, &str)]) -> Config {
    let mut environment = environment();
    for (name, value) in variables {
        environment.insert((*name).to_owned(), (*value).to_owned());
    }
    load(text, &environment, &Source::default()).expect("valid")
}

#[test]
fn nothing_configured_is_the_defaults() {
    let read = vision("");
    assert_eq!(read, VisionConfig::default());
    assert_eq!(read.aux.provider, None);
    assert_eq!(read.aux.timeout, Duration::from_secs(120));
    assert_eq!(read.total_timeout, Duration::from_secs(180));
    assert_eq!(read.describe_images, DescribeImages::Auto);
}

#[test]
fn a_whole_chain_is_read() {
    let config = good(
        "mcp_servers: { MiniMax: { command: x } }\n\
         auxiliary:\n\
         \x20 vision:\n\
         \x20   provider: ' OpenAI '\n\
         \x20   model: gpt-4o-mini\n\
         \x20   api_key: ${KEY}\n\
         \x20   timeout: 30\n\
         \x20   temperature: 0\n\
         \x20   fallback_chain:\n\
         \x20     - { provider: anthropic, timeout: 500ms, key_env: KEY }\n\
         \x20     - { base_url: 'http://127.0.0.1:8080/v1', model: llava, api_mode: openai-chat }\n\
         \x20   mcp_fallback:\n\
         \x20     - { server: MiniMax, tool: understand_image, image_form: PATH, failure_patterns: '^no' }\n\
         talaria: { vision: { total_timeout: 5s, hedge_after: 2s, cache_ttl: 0s }, calls: { describe_images: false } }\n\
         security: { allow_private_urls: yes }",
    );
    assert_eq!(config.warnings, Vec::<String>::new());
    let read = config.vision;
    assert_eq!(read.aux.provider.as_deref(), Some("OpenAI"));
    assert_eq!(
        read.aux.api_key.as_ref().map(Secret::expose),
        Some("k3y-from-the-environment")
    );
    let [first, second] = read.fallback_chain.as_slice() else {
        panic!("two links");
    };
    assert_eq!(first.timeout, Duration::from_millis(500));
    assert_eq!(first.api_key, read.aux.api_key);
    assert_eq!(second.timeout, Duration::from_secs(30));
    assert_eq!(second.path, "auxiliary.vision.fallback_chain[1]");
    assert_eq!(second.api.as_deref(), Some("openai-chat"));
    let tool = read.mcp_fallback.first().expect("a tool");
    assert_eq!(tool.image_form, ImageForm::Path);
    assert_eq!(tool.timeout, Duration::from_secs(60));
    assert!(tool.failure_patterns.iter().all(|it| it.is_match("no.")));
    assert_eq!(read.temperature, 0.0);
    assert_eq!(read.hedge_after, Some(Duration::from_secs(2)));
    assert_eq!(read.cache_ttl, Duration::ZERO);
    assert_eq!(read.describe_images, DescribeImages::False);
    assert!(read.allow_private_urls);
}

#[test]
fn an_unset_variable_costs_one_backend_and_names_itself_and_the_key() {
    let config = good(
        "auxiliary: { vision: { provider: openai, api_key: '${NOT_SET}', \
         fallback_chain: [{ provider: anthropic, api_key: x }, { base_url: 'http://${NOPE}/v1' }, { provider: google, key_env: NOR_THIS }] } }",
    );
    let broken = |problem: &Option<String>| problem.clone().expect("a problem");
    assert_eq!(
        broken(&config.vision.aux.problem),
        "auxiliary.vision.api_key: the variable `NOT_SET` is not set"
    );
    let links = &config.vision.fallback_chain;
    assert_eq!(links[0].problem, None);
    assert_eq!(
        broken(&links[1].problem),
        "auxiliary.vision.fallback_chain[1].base_url: the variable `NOPE` is not set"
    );
    assert_eq!(
        broken(&links[2].problem),
        "auxiliary.vision.fallback_chain[2].key_env: the variable `NOR_THIS` is not set"
    );
    assert_eq!(config.warnings.len(), 3);
    assert!(config.gate.explicit_aux);
}

#[test]
fn a_backend_with_an_odd_key_or_address_costs_itself() {
    let config = good(
        "auxiliary: { vision: { base_url: 'ftp://h', fallback_chain: [{ api_key: \"a\\nb\" }] } }",
    );
    let problem = config.vision.aux.problem.expect("a problem");
    assert!(
        problem.starts_with("auxiliary.vision.base_url: must be an http"),
        "{problem}"
    );
    let problem = config.vision.fallback_chain[0].problem.clone();
    let problem = problem.expect("a problem");
    assert!(
        problem.ends_with("holds characters a header cannot carry"),
        "{problem}"
    );
}

#[test]
fn variables_of_hermes_stand_in() {
    let variables = [
        ("AUXILIARY_VISION_MODEL", " m "),
        ("HERMES_VISION_DOWNLOAD_TIMEOUT", "7.5"),
        ("OPENROUTER_API_KEY", "or-key-of-the-environment"),
    ];
    let config = with_variables("auxiliary: { vision: { download_timeout: 9 } }", &variables);
    assert_eq!(config.vision.aux.model.as_deref(), Some("m"));
    assert_eq!(config.vision.download_timeout, Duration::from_millis(7_500));
    let key = config.vision.keys.key("openrouter").map(Secret::expose);
    assert_eq!(key, Some("or-key-of-the-environment"));
    assert!(!config.gate.explicit_aux);
    assert!(!format!("{config:?} {}", config.show()).contains("or-key"));
    let named = with_variables("auxiliary: { vision: { model: mine } }", &variables);
    assert_eq!(named.vision.aux.model.as_deref(), Some("mine"));
    let odd = [("HERMES_VISION_DOWNLOAD_TIMEOUT", "soon")];
    let config = with_variables("auxiliary: { vision: { download_timeout: 9 } }", &odd);
    assert_eq!(config.vision.download_timeout, Duration::from_secs(9));
    assert_eq!(config.warnings.len(), 1);
}

#[test]
fn values_that_cannot_be_meant_are_errors_with_their_path() {
    for (text, wanted) in [
        (
            "auxiliary: { vision: { mcp_fallback: [{ server: s, tool: t, failure_patterns: ['(', 'ok'] }] } }",
            "auxiliary.vision.mcp_fallback[0].failure_patterns[0]: is not a regular expression",
        ),
        (
            "auxiliary: { vision: { mcp_fallback: [{ server: s }] } }",
            "auxiliary.vision.mcp_fallback[0].tool: is missing",
        ),
        (
            "auxiliary: { vision: { mcp_fallback: [{ server: s, tool: t, image_form: jpeg }] } }",
            "auxiliary.vision.mcp_fallback[0].image_form: must be `auto` or `path` or",
        ),
        (
            "auxiliary: { vision: { temperature: hot } }",
            "auxiliary.vision.temperature: must be a number, 0 to 2",
        ),
        (
            "auxiliary: { vision: { fallback_chain: [{ timeout: 0 }] } }",
            "auxiliary.vision.fallback_chain[0].timeout: must be more than zero",
        ),
        (
            "talaria: { vision: { total_timeout: 5 } }",
            "talaria.vision.total_timeout: must be a duration with its unit",
        ),
        (
            "talaria: { calls: { describe_images: sometimes } }",
            "talaria.calls.describe_images: must be `auto` or `true` or `false`",
        ),
    ] {
        let found = problems(text);
        let [problem] = found.as_slice() else {
            panic!("{text}: {found:?}");
        };
        assert!(problem.starts_with(wanted), "{problem}");
    }
}

#[test]
fn fallback_providers_are_names_or_maps() {
    let config = good(
        "fallback_providers: [openrouter, { provider: nous, model: m, api_key: '${KEY}' }, 5, '  ']",
    );
    let [name, map] = config.vision.fallback_providers.as_slice() else {
        panic!("two providers");
    };
    assert_eq!(name.provider.as_deref(), Some("openrouter"));
    assert_eq!(name.path, "fallback_providers[0]");
    assert_eq!(map.model.as_deref(), Some("m"));
    assert_eq!(config.warnings.len(), 2);
    assert!(
        good("fallback_providers: nous")
            .vision
            .fallback_providers
            .is_empty()
    );
}

#[test]
fn keys_of_providers_are_read_and_cost_only_themselves() {
    let config = good(
        "model: { provider: lab, default: m, api_key: '${NOT_SET}' }\n\
         providers: { lab: { base_url: 'http://127.0.0.1:1/v1', key_env: KEY, default_model: d } }\n\
         custom_providers: [{ name: c, base_url: 'http://h', api_key: '${KEY}', model: e }]",
    );
    assert_eq!(config.warnings, Vec::<String>::new());
    assert_eq!(config.gate.main.api_key, None);
    assert_eq!(
        config.gate.main.key_problem.as_deref(),
        Some("model.api_key: the variable `NOT_SET` is not set")
    );
    for (provider, model) in config.gate.providers.iter().zip(["d", "e"]) {
        let key = provider.api_key.as_ref().map(Secret::expose);
        assert_eq!(key, Some("k3y-from-the-environment"));
        assert_eq!(provider.default_model.as_deref(), Some(model));
    }
}

#[test]
fn keys_never_print_and_what_is_shown_reads_back() {
    let config = good(
        "mcp_servers: { s: { command: x } }\n\
         model: { provider: p, default: m, api_key: hunter22-a }\n\
         custom_providers: [{ name: c, base_url: 'http://h', api_key: hunter22-b }]\n\
         fallback_providers: [{ provider: nous, api_key: hunter22-c }]\n\
         auxiliary: { vision: { base_url: 'http://u:hunter22-d@h/v1', api_key: hunter22-e, \
         fallback_chain: [{ provider: x, api_key: hunter22-f }], \
         mcp_fallback: [{ server: s, tool: t, prompt: what }] } }",
    );
    let shown = config.show();
    assert!(!format!("{config:?} {shown}").contains("hunter22"));
    let again = load(&shown.to_string(), &environment(), &Source::default()).expect("valid");
    assert_eq!(again.show(), shown);
}

#[test]
fn a_tool_of_an_unknown_server_leaves_a_warning() {
    let config = good("auxiliary: { vision: { mcp_fallback: [{ server: gone, tool: t }] } }");
    assert_eq!(
        config.warnings,
        ["auxiliary.vision.mcp_fallback[0].server: there is no server `gone`"]
    );
    let tool = config.vision.mcp_fallback.first().expect("a tool");
    assert!(
        tool.failure_patterns
            .iter()
            .any(|it| it.is_match("Failed to perform VLM analysis: x"))
    );
}
