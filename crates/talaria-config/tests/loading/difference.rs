//! What counts only after a restart.

use crate::good;

fn restart(before: &str, after: &str) -> Vec<String> {
    good(before).restart_keys(&good(after))
}

#[test]
fn servers_and_what_a_reload_takes_over_need_no_restart() {
    let none: [&str; 0] = [];
    assert_eq!(
        restart(
            "mcp_servers: { a: { command: x } }",
            "{ talaria: { watch_config: false }, mcp: { client: off }, timeouts: { mcp: { tool_call: 5 } }, mcp_servers: { a: { command: y }, b: { url: http://h } } }",
        ),
        none
    );
}

#[test]
fn keys_that_need_a_restart_are_named() {
    assert_eq!(
        restart(
            "talaria: { limits: { body_bytes: 1MiB }, allowed_hosts: [a] }",
            "{ talaria: { allowed_hosts: [b] }, tool_budget: { mcp_result_size_chars: 7 }, providers: { p: { base_url: http://h } }, security: { osv_check: off } }",
        ),
        [
            "providers.p.api_key",
            "providers.p.api_mode",
            "providers.p.base_url",
            "providers.p.default_model",
            "providers.p.name",
            "providers.p.tool_result_images",
            "security.osv_check",
            "talaria.allowed_hosts",
            "talaria.limits.body_bytes",
            "tool_budget.mcp_result_size_chars",
        ]
    );
}

#[test]
fn secrets_are_compared_and_not_shown() {
    let tokens =
        |token: &str| format!("talaria: {{ auth: {{ tokens: [{{ name: a, token: {token} }}] }} }}");
    assert_eq!(
        restart(&tokens("0123456789abcdef"), &tokens("0123456789abcdeg")),
        ["talaria.auth.tokens"]
    );
    assert_eq!(
        restart(
            "model: { provider: x, api_key: key-number-1 }",
            "model: { provider: x, api_key: key-number-2 }"
        ),
        ["model"]
    );
    assert_eq!(
        restart(
            "auxiliary: { vision: { provider: x, api_key: key-number-1 } }",
            "auxiliary: { vision: { provider: x, api_key: key-number-2 } }"
        ),
        ["auxiliary.vision"]
    );
}
