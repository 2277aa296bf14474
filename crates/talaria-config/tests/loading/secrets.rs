//! Which configured values are looked for in what servers say.

use std::collections::BTreeSet;

use talaria_config::Config;

use crate::good;

fn secrets(config: &Config) -> BTreeSet<String> {
    config.secrets().expose().map(ToOwned::to_owned).collect()
}

fn set(values: &[&str]) -> BTreeSet<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

#[test]
fn every_configured_secret_is_known() {
    let config = good(
        r#"
talaria: { auth: { tokens: [{ name: ci, token: "0123456789abcdef-ci" }] } }
model: { provider: x, api_key: model-key-1 }
providers: { p: { api_key: provider-key-1, base_url: "http://u:pass-of-p@h/v1" } }
auxiliary: { vision: { provider: y, api_key: vision-key-1, fallback_chain: [{ provider: z, api_key: chain-key-1 }] } }
mcp_servers:
  a: { command: x, args: [--api-key, arg-key-1, "--token=arg-key-2", sk-arg-key-3, "${KEY}-tail"],
       env: { SERVICE_TOKEN: env-token-1, DATABASE_URL: "postgres://me:db-pass-1@h/d", SOME: "x ${KEY}", LEVEL: debugging } }
  b: { url: "https://h/mcp?api_key=query-key-1", headers: { Authorization: "Bearer head-key-1", X-Api-Key: head-key-2, Accept: application/json },
       client_cert: [c.pem, k.pem, pem-pass-1] }
"#,
    );
    assert_eq!(
        secrets(&config),
        set(&[
            "0123456789abcdef-ci",
            "model-key-1",
            "provider-key-1",
            "pass-of-p",
            "vision-key-1",
            "chain-key-1",
            "arg-key-1",
            "arg-key-2",
            "sk-arg-key-3",
            "env-token-1",
            "db-pass-1",
            "k3y-from-the-environment",
            "query-key-1",
            "Bearer head-key-1",
            "head-key-1",
            "head-key-2",
            "pem-pass-1",
        ])
    );
}

#[test]
fn short_and_plain_values_are_not_looked_for() {
    let config = good(
        r#"
mcp_servers:
  a: { command: x, args: ["--token", "--verbose", --level, debugging, "npm:some-package@1.2.3", "python:3.12-slim-bookworm@sha256:0a1b"], env: { TOKEN: short, DB_PASSWORD: postgres, AUTHOR: Jane Doe-Smith, KEY_PATH: /home/me/key.pem, HOME_DIR: "${HOME}/somewhere" } }
  b: { url: "https://h.example/mcp?page=long-enough", headers: { X-Environment: production, User-Agent: "talaria/1.0 (linux)", X-Region: ap-southeast-2 } }
"#,
    );
    assert_eq!(secrets(&config), BTreeSet::new());
}

#[test]
fn a_key_of_many_lines_is_known_by_its_lines() {
    let config = good(
        "mcp_servers: { a: { command: x, env: { PRIVATE_KEY: \"-----BEGIN KEY-----\\nabcdefgh1234\\n-----END KEY-----\" } } }",
    );
    assert_eq!(
        secrets(&config),
        set(&[
            "-----BEGIN KEY-----\nabcdefgh1234\n-----END KEY-----",
            "abcdefgh1234"
        ])
    );
}

#[test]
fn headers_that_look_random_are_known_without_a_name() {
    let config = good(
        r#"mcp_servers: { b: { url: "https://h.example/mcp", headers: { X-Workspace: 9f86d081884c7d65, Cookie: "theme=light; session=9f86d081884c7d66" } } }"#,
    );
    assert_eq!(
        secrets(&config),
        set(&[
            "9f86d081884c7d65",
            "theme=light; session=9f86d081884c7d66",
            "9f86d081884c7d66"
        ])
    );
}

#[test]
fn secrets_inside_arguments_and_variables_are_known() {
    let config = good(
        r#"
mcp_servers:
  a: { command: npx, args: [mcp-remote, "https://h.example/mcp", --header, "Authorization: Bearer head-key-1",
         "--header=X-Api-Key:head-key-2", "--//host.example/:_authToken=npm-key-1", "ns:token=ns-key-123",
         --cookie, "sid=cookie-key-1", '{"apiKey":"json-key-1"}', "me:login-key-1@db.example:5432/x",
         "image:latest", "-e", "API_KEY=env-key-1", "https://ghp_user-key-1@github.example/x",
         "https://hooks.example/services/T00/B00/abcDEF0123456789abcdef01"],
       env: { HEADERS: '{"Authorization":"Bearer json-key-2","Accept":"application/json"}' } }
  b: { url: "https://h.example/mcp", headers: { Authorization: "Basic bWU6YmFzaWMtcGFzcy0x" } }
  c: { url: "https://h.example/mcp", headers: { Authorization: "basic YmFzaWMtdXNlci0xOg" } }
"#,
    );
    assert_eq!(
        secrets(&config),
        set(&[
            "Bearer head-key-1",
            "head-key-1",
            "head-key-2",
            "npm-key-1",
            "ns-key-123",
            "sid=cookie-key-1",
            "cookie-key-1",
            "json-key-1",
            "login-key-1",
            "env-key-1",
            "ghp_user-key-1",
            "abcDEF0123456789abcdef01",
            "Bearer json-key-2",
            "json-key-2",
            "Basic bWU6YmFzaWMtcGFzcy0x",
            "bWU6YmFzaWMtcGFzcy0x",
            "basic-pass-1",
            "basic YmFzaWMtdXNlci0xOg",
            "YmFzaWMtdXNlci0xOg",
            "basic-user-1",
        ])
    );
    let shown = config.show().to_string();
    for secret in secrets(&config) {
        assert!(!shown.contains(&secret), "{secret} in {shown}");
    }
}

#[test]
fn no_secret_is_printed() {
    let config = good("model: { provider: x, api_key: model-key-1 }");
    let secrets = config.secrets();
    assert_eq!(format!("{secrets:?}"), "SecretValues(1 hidden)");
}
