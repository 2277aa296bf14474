//! Hermes' sections, and sections that are misspelt.

use std::time::Duration;

use talaria_config::{
    HttpKind, ImageInputMode, ProtocolWish, ServerEntry, TransportConfig, Trust, Verify,
};
use talaria_types::ServerName;

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
  vision: { provider: openai, model: m, timeout: 60, fallback_chain: [{ provider: x }], mcp_fallback: [{ server: a, tool: t, image_form: path }] }
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

/// Everything Hermes knows of a server, in one file.
const EVERYTHING: &str = r#"
_config_version: 12
mcp: { client: "on", stdio_servers: true }
timeouts: { mcp: { tool_call: 240 } }
agent: { image_input_mode: auto }
tool_budget: { mcp_result_size_chars: 40000 }
gateway: { max_inbound_media_bytes: 134217728 }
security: { allow_private_urls: false, allow_tun_fakeip: false }
mcp_servers:
  files:
    command: "${userHome}/bin/npx"
    args: "-y @modelcontextprotocol/server-filesystem '${workspaceFolder}${/}docs'"
    env: { API_KEY: "${env:KEY}", LEVEL: 3 }
    cwd: ~/work
    enabled: "yes"
    timeout: 300
    connect_timeout: 60
    keepalive_interval: 2
    idle_timeout_seconds: 900
    max_lifetime_seconds: 86400
    lazy: "on"
    supports_parallel_tool_calls: true
    trust: trusted-ish
    tools: { include: "read_*", exclude: [read_secret], resources: false, prompts: "no" }
    sampling: { enabled: true, model: m, allowed_models: [a], max_rpm: 10, timeout: 30, max_tokens_cap: 4096, max_tool_rounds: 5, log_level: info, expose_client_tools: false }
    elicitation: { enabled: true, timeout: 300 }
  remote:
    url: "https://mcp.example.com/mcp"
    headers: { Authorization: "Bearer ${KEY}", X-Team: docs }
    transport: sse
    ssl_verify: /etc/ssl/corp.pem
    client_cert: [/etc/me.pem, /etc/me.key, "${KEY}"]
    identity_header: { name: X-Agent, value_from: static, value: hermes }
    strict_redirect_headers: true
    skip_preflight: true
    protocol: legacy
    lifecycle: { idle_timeout_seconds: 0, max_lifetime_seconds: 3600 }
    auth: oauth
    oauth: { client_id: c, client_secret: s, scope: "a b", redirect_port: 8910, redirect_uri: "http://localhost:8910/cb", redirect_host: localhost, client_name: Hermes, client_metadata_url: "https://h/c.json", cimd: true, user_agent: u, timeout: 300, flow: authorization_code }
  off: { command: old-server, enabled: false }
"#;

#[test]
fn everything_hermes_knows_of_a_server_is_read() {
    let config = good(EVERYTHING);
    let server = |name: &str| match &config.servers[&ServerName::from(name)] {
        ServerEntry::Usable(server) => server.as_ref().clone(),
        ServerEntry::Broken { problem } => panic!("{problem}"),
    };
    let files = server("files");
    let TransportConfig::Stdio { command, args, .. } = &files.transport else {
        panic!("not stdio")
    };
    assert_eq!(command, "/home/me/bin/npx");
    assert_eq!(
        args,
        &[
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "/srv/work/docs"
        ]
    );
    let seconds = |duration: Option<Duration>| duration.map(|it| it.as_secs());
    assert!(files.lazy && files.enabled);
    assert_eq!(seconds(files.keepalive_interval), Some(5));
    assert_eq!(seconds(files.idle_timeout), Some(900));
    assert_eq!(seconds(files.max_lifetime), Some(86_400));
    assert_eq!(files.trust, Trust::Untrusted);
    let remote = server("remote");
    let TransportConfig::Http(http) = &remote.transport else {
        panic!("not over HTTP")
    };
    assert_eq!(http.kind, HttpKind::Sse);
    assert_eq!(http.tls.verify, Verify::Ca("/etc/ssl/corp.pem".into()));
    assert_eq!(remote.timeout, Duration::from_secs(240));
    assert_eq!(remote.protocol, ProtocolWish::Legacy);
    assert_eq!(seconds(remote.max_lifetime), Some(3_600));
    assert!(!server("off").enabled);
    let unused: Vec<_> = config
        .warnings
        .iter()
        .map(|line| line.split_once(": ").unwrap_or((line, "")))
        .collect();
    assert!(
        unused
            .iter()
            .all(|(path, told)| *told == "is accepted but not used yet"
                && (path.contains(".oauth.")
                    || path.contains(".sampling.")
                    || path.ends_with(".auth"))),
        "{unused:?}"
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
