//! Who is asked, in which order, and who is not.

use std::collections::BTreeMap;

use talaria_config::{Secret, Source, load};

use super::*;
use crate::ApiShape;
use crate::describe::FaultKind;

fn config(text: &str, variables: &[(&str, &str)]) -> Config {
    let pairs = [("HOME", "/home/me")].iter().chain(variables);
    let environment: BTreeMap<_, _> = pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    load(text, &environment, &Source::default()).unwrap()
}

fn chain(text: &str, variables: &[(&str, &str)]) -> Chain {
    let catalogue = Catalogue::shipped().unwrap();
    Chain::resolve(&config(text, variables), Some(catalogue))
}

fn names(chain: &Chain) -> Vec<String> {
    chain.links.iter().map(Link::via).collect()
}

#[track_caller]
fn http(link: &Link) -> &Backend {
    match link {
        Link::Http(backend) => backend,
        Link::Mcp(_) | Link::Broken { .. } => panic!("{link:?}"),
    }
}

#[track_caller]
fn fault(link: &Link) -> &Fault {
    match link {
        Link::Broken { fault, .. } => fault,
        Link::Http(_) | Link::Mcp(_) => panic!("{link:?}"),
    }
}

const OPENROUTER: (&str, &str) = ("OPENROUTER_API_KEY", "or-key");
const NOUS: (&str, &str) = ("NOUS_API_KEY", "nous-key");
const DEEPINFRA: (&str, &str) = ("DEEPINFRA_API_KEY", "di-key");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "oa-key");

#[test]
fn nothing_configured_and_no_key_is_no_chain() {
    let chain = chain("", &[]);
    assert_eq!(chain, Chain::default());
    assert!(!chain.is_configured());
}

#[test]
fn auto_is_the_main_provider_then_those_with_a_key() {
    let text = "model: { provider: openai, default: gpt-4o }\n\
                auxiliary: { vision: { fallback_chain: [{ base_url: 'http://127.0.0.1:1/v1' }] } }\n\
                fallback_providers: [deepinfra, nobody-known]";
    let chain = chain(text, &[DEEPINFRA, NOUS, OPENROUTER, OPENAI]);
    assert_eq!(
        names(&chain),
        [
            "openai/gpt-4o",
            "127.0.0.1:1/default",
            "deepinfra/google/gemini-2.5-flash",
            "nobody-known/?",
            "openrouter/google/gemini-3-flash-preview",
            "nous/google/gemini-3-flash-preview",
        ]
    );
    let keys: Vec<_> = [0, 2, 4]
        .iter()
        .map(|at| http(&chain.links[*at]).key.as_ref().map(Secret::expose))
        .collect();
    assert_eq!(keys, [Some("oa-key"), Some("di-key"), Some("or-key")]);
}

#[test]
fn auto_without_a_main_model_is_whoever_has_a_key() {
    let found = chain("", &[DEEPINFRA]);
    assert_eq!(names(&found), ["deepinfra/google/gemini-2.5-flash"]);
    let named = chain("auxiliary: { vision: { model: m/x } }", &[OPENROUTER, NOUS]);
    assert_eq!(
        names(&named),
        ["openrouter/m/x", "nous/google/gemini-3-flash-preview"]
    );
    let off = chain("auxiliary: { vision: { provider: none } }", &[DEEPINFRA]);
    assert!(!off.is_configured());
}

#[test]
fn a_blind_main_model_is_replaced_or_left_out() {
    let own_eye = chain(
        "model: { provider: zai, default: glm-4.6 }",
        &[("ZAI_API_KEY", "z")],
    );
    assert_eq!(names(&own_eye), ["zai/glm-4.6v"]);
    let sibling = chain("model: { provider: openai, default: o3-mini }", &[OPENAI]);
    assert_eq!(names(&sibling), ["openai/gpt-4o-mini"]);
    let nobody = chain(
        "model: { provider: deepseek, default: deepseek-chat, base_url: 'https://api.deepseek.com' }",
        &[],
    );
    assert_eq!(names(&nobody), Vec::<String>::new());
    assert_eq!(nobody.problems.len(), 1, "{:?}", nobody.problems);
}

#[test]
fn a_main_model_that_nobody_knows_is_tried() {
    let text = "model: { provider: lab, default: own-vl }\n\
                custom_providers: [{ name: lab, base_url: 'http://10.0.0.5/v1', api_key: k }]";
    let chain = chain(text, &[]);
    let lab = http(&chain.links[0]);
    assert_eq!(lab.via(), "lab/own-vl");
    assert_eq!(lab.endpoint.as_str(), "http://10.0.0.5/v1");
    assert_eq!(lab.key.as_ref().map(Secret::expose), Some("k"));
}

#[test]
fn v09_a_text_only_main_model_is_no_last_link() {
    let aux = "auxiliary: { vision: { base_url: 'http://127.0.0.1:1/v1', model: llava } }\n";
    let blind = chain(
        &format!("{aux}model: {{ provider: openai, default: gpt-3.5-turbo }}"),
        &[OPENAI],
    );
    assert_eq!(names(&blind), ["127.0.0.1:1/llava"]);
    let sees = chain(
        &format!("{aux}model: {{ provider: openai, default: gpt-4o }}"),
        &[OPENAI],
    );
    assert_eq!(names(&sees), ["127.0.0.1:1/llava", "openai/gpt-4o"]);
    let unknown = chain(
        &format!("{aux}model: {{ provider: openai, default: gpt-99-own }}"),
        &[OPENAI],
    );
    assert_eq!(names(&unknown), ["127.0.0.1:1/llava"]);
}

#[test]
fn the_whole_chain_stands_in_its_order_and_nobody_twice() {
    let text = "mcp_servers: { MiniMax: { command: x } }\n\
        fallback_providers: [openrouter]\n\
        auxiliary:\n\
        \x20 vision:\n\
        \x20   provider: openai\n\
        \x20   fallback_chain: [{ provider: openai, model: gpt-4o-mini }, { provider: anthropic, api_key: k }]\n\
        \x20   mcp_fallback: [{ server: MiniMax, tool: understand_image }]";
    let chain = chain(text, &[OPENAI, OPENROUTER]);
    assert_eq!(
        names(&chain),
        [
            "openai/gpt-4o-mini",
            "anthropic/claude-haiku-4-5",
            "mcp:MiniMax/understand_image",
        ]
    );
    assert_eq!(http(&chain.links[1]).api, ApiShape::Anthropic);
    assert_eq!(
        http(&chain.links[1]).path,
        "auxiliary.vision.fallback_chain[1]"
    );
}

#[test]
fn links_with_the_same_model_and_different_keys_have_names_of_their_own() {
    let text = "auxiliary: { vision: { provider: openai, model: gpt-4o, fallback_chain: [\
                { provider: openai, model: gpt-4o, api_key: k2 }, { provider: openai, model: gpt-4o-mini }, \
                { provider: openai, model: gpt-4o, api_key: k2 }, { provider: openai, model: gpt-4o, api_key: k3 }] } }";
    let chain = chain(text, &[OPENAI]);
    assert_eq!(
        names(&chain),
        [
            "openai/gpt-4o",
            "openai/gpt-4o#2",
            "openai/gpt-4o-mini",
            "openai/gpt-4o#3",
        ]
    );
    assert_eq!(http(&chain.links[1]).model, "gpt-4o");
}

#[test]
fn a_model_that_is_known_to_be_blind_is_never_asked() {
    let text = "auxiliary: { vision: { provider: openai, model: gpt-3.5-turbo, \
                fallback_chain: [{ base_url: 'https://api.openai.com/v1', api_key: k, model: o3-mini }] } }";
    let chain_of = chain(text, &[OPENAI]);
    for link in &chain_of.links {
        assert_eq!(fault(link).kind, FaultKind::Skipped);
    }
    assert_eq!(names(&chain_of), ["openai/gpt-3.5-turbo", "openai/o3-mini"]);
    let stated = "providers: { openai: { models: { gpt-3.5-turbo: { supports_vision: true }, gpt-4o: { supports_vision: false } } } }\n";
    let corrected = chain(
        &format!("{stated}auxiliary: {{ vision: {{ provider: openai, model: gpt-3.5-turbo }} }}"),
        &[OPENAI],
    );
    assert_eq!(http(&corrected.links[0]).model, "gpt-3.5-turbo");
    let forbidden = chain(
        &format!("{stated}auxiliary: {{ vision: {{ provider: openai, model: gpt-4o }} }}"),
        &[OPENAI],
    );
    assert_eq!(fault(&forbidden.links[0]).kind, FaultKind::Skipped);
}

#[test]
fn what_the_main_model_cannot_do_says_nothing_of_another() {
    let text = "model: { provider: lab, default: text-only, supports_vision: false }\n\
                auxiliary: { vision: { base_url: 'http://127.0.0.1:1/v1', model: llava } }";
    assert_eq!(names(&chain(text, &[])), ["127.0.0.1:1/llava"]);
    let same = "model: { provider: lab, default: m, base_url: 'http://127.0.0.1:1', supports_vision: false }\n\
                auxiliary: { vision: { provider: main } }";
    assert_eq!(fault(&chain(same, &[]).links[0]).kind, FaultKind::Skipped);
}

#[test]
fn entries_that_cannot_be_used_say_why() {
    for (entry, wanted) in [
        (
            "{ provider: openai }",
            "there is no key; set `api_key`, or the variable `OPENAI_API_KEY`",
        ),
        (
            "{ provider: nobody }",
            "no provider `nobody` is known; set its base_url",
        ),
        ("{ base_url: 'https://vlm.example/v1' }", "names no model"),
        (
            "{ provider: openai, api_key: '${GONE}' }",
            "the variable `GONE` is not set",
        ),
        (
            "{ provider: bedrock, base_url: 'https://b.example', model: m, api_mode: bedrock }",
            "signed requests",
        ),
        (
            "{ base_url: 'http://127.0.0.1', api_mode: gopher }",
            "`gopher` is no API shape",
        ),
        ("{ provider: main }", "names no main model"),
    ] {
        let chain = chain(&format!("auxiliary: {{ vision: {entry} }}"), &[]);
        let fault = fault(&chain.links[0]);
        assert_eq!(fault.kind, FaultKind::Misconfigured);
        assert!(fault.words.contains(wanted), "{}", fault.words);
        assert!(chain.is_configured());
    }
}

#[test]
fn an_address_beats_the_provider_and_gets_nobody_s_key() {
    let text =
        "auxiliary: { vision: { provider: openai, model: m, base_url: 'http://127.0.0.1:9/v1' } }";
    let away = chain(text, &[OPENAI]);
    let backend = http(&away.links[0]);
    assert_eq!(backend.endpoint.as_str(), "http://127.0.0.1:9/v1");
    assert_eq!(backend.key, None);
    assert_eq!(backend.via(), "openai/m");
    let text = "auxiliary: { vision: { model: gpt-4o, base_url: 'https://api.openai.com/v1' } }";
    let home = chain(text, &[OPENAI]);
    let backend = http(&home.links[0]);
    assert_eq!(backend.key.as_ref().map(Secret::expose), Some("oa-key"));
    assert_eq!(backend.via(), "openai/gpt-4o");
}

#[test]
fn zai_is_asked_over_its_openai_compatible_api() {
    for entry in [
        "{ provider: zai }",
        "{ provider: glm, api_mode: anthropic }",
        "{ base_url: 'https://api.z.ai/api/anthropic' }",
    ] {
        let chain = chain(
            &format!("auxiliary: {{ vision: {entry} }}"),
            &[("GLM_API_KEY", "k")],
        );
        let backend = http(&chain.links[0]);
        assert_eq!(backend.api, ApiShape::OpenaiChat);
        assert_eq!(backend.endpoint.as_str(), "https://api.z.ai/api/paas/v4");
        assert_eq!(backend.model, "glm-4.6v");
    }
    let text = "auxiliary: { vision: { provider: zai, api_key: k, base_url: 'https://open.bigmodel.cn/api/anthropic' } }";
    let elsewhere = chain(text, &[]);
    let endpoint = http(&elsewhere.links[0]).endpoint.as_str();
    assert_eq!(endpoint, "https://open.bigmodel.cn/api/paas/v4");
}

#[test]
fn a_key_that_goes_nowhere_is_mentioned() {
    let found = chain("auxiliary: { vision: { api_key: hunter22 } }", &[DEEPINFRA]);
    assert_eq!(
        http(&found.links[0]).key.as_ref().map(Secret::expose),
        Some("di-key")
    );
    assert_eq!(
        found.problems,
        ["auxiliary.vision.api_key: has no effect without a provider or base_url"]
    );
}

#[test]
fn the_api_follows_from_the_address_where_nobody_names_it() {
    for (url, api) in [
        ("http://127.0.0.1:8080/v1", ApiShape::OpenaiChat),
        ("http://127.0.0.1:8080/anthropic", ApiShape::Anthropic),
        (
            "http://127.0.0.1:8080/v1/responses",
            ApiShape::OpenaiResponses,
        ),
        (
            "https://generativelanguage.googleapis.com/v1beta",
            ApiShape::Gemini,
        ),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai",
            ApiShape::OpenaiChat,
        ),
    ] {
        let text =
            format!("auxiliary: {{ vision: {{ base_url: '{url}', model: m, api_key: k }} }}");
        assert_eq!(http(&chain(&text, &[]).links[0]).api, api, "{url}");
    }
}

#[test]
fn local_servers_need_neither_key_nor_model() {
    for (provider, endpoint) in [
        ("ollama", "http://127.0.0.1:11434/v1"),
        ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ] {
        let chain = chain(
            &format!("auxiliary: {{ vision: {{ provider: {provider} }} }}"),
            &[],
        );
        let backend = http(&chain.links[0]);
        assert_eq!(backend.endpoint.as_str(), endpoint);
        assert_eq!(backend.key, None);
        assert!(!backend.limits.webp);
    }
}

#[test]
fn keys_and_passwords_stay_out_of_what_is_printed() {
    let text =
        "auxiliary: { vision: { base_url: 'http://127.0.0.1:9/v1', api_key: hunter22, model: m } }";
    let chain = chain(text, &[]);
    assert!(!format!("{chain:?}").contains("hunter22"));
}
