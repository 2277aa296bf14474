//! Hermes' sections, and sections that are misspelt.

use talaria_config::{ImageInputMode, ServerEntry};

use crate::{good, problems};

#[test]
fn a_hermes_file_works_as_it_is() {
    let config = good(
        r#"
model: { default: some/model, provider: openrouter, supports_vision: "maybe", base_url: https://x }
providers: { openai: { api_key: "${UNSET}", models: { m: { supports_vision: yes, context: 5 } } } }
custom_providers: [{ name: mine, models: { m: { vision: true } } }]
fallback_providers: [{ provider: a, model: b }]
agent: { image_input_mode: " Native ", max_turns: 60, reasoning: { effort: high } }
auxiliary:
  vision: { provider: openai, model: m, timeout: 60, fallback_chain: [{ provider: x }], mcp_fallback: [{ server: s, tool: t, image_form: path }] }
  compression: { model: z }
vision: { embed_target_bytes: "x" }
terminal: { backend: local }
tool_budget: { mcp_result_size_chars: 1000, other: 5 }
security: { allow_private_urls: true, redact: [a] }
gateway: { max_inbound_media_bytes: 0, telegram: { token: t } }
timeouts: { mcp: { tool_call: 120 }, api: 5 }
toolsets: [all]
_config_version: 12
mcp_servers:
  a: { command: npx, args: ["-y", "pkg"], env: { K: v }, timeout: 120, connect_timeout: 30, sampling: { enabled: false } }
  b: { url: "https://h.example/mcp", headers: { Authorization: Bearer abc }, auth: oauth, tools: { exclude: [x] } }
"#,
    );
    assert_eq!(config.gate.mode, ImageInputMode::Native);
    assert_eq!(config.result_size_chars, 1_000);
    assert!(
        config
            .servers
            .values()
            .all(|entry| matches!(entry, ServerEntry::Usable(_)))
    );
    let told: Vec<_> = config
        .warnings
        .iter()
        .filter(|line| !line.ends_with("is accepted but not used yet"))
        .collect();
    assert_eq!(
        told,
        [
            "model.supports_vision: is not true or false and is ignored",
            "vision.embed_target_bytes: is not a number of bytes; 262144 is used",
        ]
    );
}

#[test]
fn unknown_keys_of_vision_sections_are_errors_when_they_look_misspelt() {
    assert_eq!(
        problems("auxiliary: { vision: { modell: x, colour: red } }"),
        ["auxiliary.vision.modell: is not a known key; did you mean `model`?"]
    );
    assert_eq!(
        problems("vision: { embed_target_byte: 5 }"),
        ["vision.embed_target_byte: is not a known key; did you mean `embed_target_bytes`?"]
    );
    assert_eq!(
        problems("auxiliary: { vision: { fallback_chain: [{ modle: x }], timeout: never } }"),
        [
            "auxiliary.vision.fallback_chain[0].modle: is not a known key; did you mean `model`?",
            "auxiliary.vision.timeout: must be a number of seconds, or a duration with its unit, such as `180s`, `10m` or `24h`",
        ]
    );
    assert_eq!(
        good("auxiliary: { vision: [1] }").warnings,
        ["auxiliary.vision: is not a map and is ignored"]
    );
}

#[test]
fn paths_as_keys_are_not_taken_for_sections() {
    assert_eq!(
        good("talaria.listen: 0.0.0.0:1\nmcp_servers.a: { command: x }").warnings,
        [
            "mcp_servers.a: is not a section and is ignored; write sections as nested maps",
            "talaria.listen: is not a section and is ignored; write sections as nested maps",
        ]
    );
    assert_eq!(problems("talaria: { media.ttl: 5h }").len(), 1);
    assert_eq!(problems("talaria: { 'auth.tokens[].name': 5h }").len(), 1);
    assert!(
        good("mcp_servers: { s: { command: x, tools.include: [a] } }")
            .warnings
            .len()
            == 1
    );
}

#[test]
fn misspelt_sections_leave_a_warning() {
    let config = good("mcpServers: { a: { command: x } }\nmodle: {}\nterminal: {}");
    assert_eq!(
        config.warnings,
        [
            "mcpServers: is not a section and is ignored; did you mean `mcp_servers`?",
            "modle: is not a section and is ignored; did you mean `model`?",
        ]
    );
}
