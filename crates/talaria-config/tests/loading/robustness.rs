//! YAML itself, hostile files, secrets.

use std::collections::BTreeMap;

use proptest::prelude::*;
use talaria_config::{ServerEntry, Source, TransportConfig, load};

use crate::{good, problems, read, server};

#[test]
fn yaml_faults_name_the_place_and_hide_the_line() {
    let secret = "s3cret-in-the-file";
    for text in [
        format!("talaria: {{ auth: [{secret}\n"),
        format!("a: {secret}\na: {secret}\n"),
        format!("talaria:\n  x: \"{secret}\n"),
        format!("key: {secret}\n\tbad: 1\n"),
    ] {
        let found = problems(&text);
        assert_eq!(found.len(), 1, "{text}");
        assert!(found[0].starts_with("not readable as YAML: "), "{found:?}");
        assert!(found[0].contains("line"), "{found:?}");
        assert!(!found[0].contains(secret), "{found:?}");
    }
    assert_eq!(
        problems("just a text"),
        ["the file must be a map of sections"]
    );
    assert_eq!(problems("- a\n- b"), ["the file must be a map of sections"]);
    assert_eq!(
        problems("mcp_servers: [a]"),
        ["mcp_servers: must be a map of server names and their settings"]
    );
}

#[test]
fn yaml_is_1_2_and_keeps_spellings() {
    let server = server(
        "{ command: x, env: { A: yes, B: 0755, C: 1_000, D: 'on', E: ~, F: 0x1F, G: no } }"
            .replace("E: ~, ", "")
            .as_str(),
    );
    let TransportConfig::Stdio { env, .. } = server.transport else {
        panic!("stdio")
    };
    let values: Vec<_> = env.values().map(String::as_str).collect();
    assert_eq!(values, ["yes", "0755", "1_000", "on", "31", "no"]);
}

#[test]
fn anchors_and_merge_keys_work() {
    let config = good(
        "x-common: &c { timeout: 9, connect_timeout: 3 }\nmcp_servers: { a: { <<: *c, command: x }, b: { <<: *c, command: y, timeout: 5 } }",
    );
    let seconds: Vec<_> = config
        .servers
        .values()
        .map(|entry| match entry {
            ServerEntry::Usable(server) => {
                (server.timeout.as_secs(), server.connect_timeout.as_secs())
            }
            ServerEntry::Broken { problem } => panic!("{problem}"),
        })
        .collect();
    assert_eq!(seconds, [(9, 3), (5, 3)]);
}

#[test]
fn bombs_are_refused() {
    let mut billion = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = level - 1;
        let items = vec![format!("*a{before}"); 9].join(", ");
        billion.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert_eq!(problems(&billion).len(), 1);
    assert_eq!(problems(&"[".repeat(100_000)).len(), 1);
    assert_eq!(
        problems(&"a".repeat(5 << 20)),
        ["the file is larger than 4194304 bytes"]
    );
}

#[test]
fn secrets_never_print() {
    let text = r#"
talaria: { auth: { tokens: [{ name: ci, token: top-secret-token-1 }] } }
mcp_servers:
  a: { command: x, args: [--api-key, top-secret-2, --token=top-secret-3, "${KEY}"], env: { K: top-secret-4 } }
  b: { url: "https://u:top-secret-5@h/mcp?key=top-secret-6", headers: { Authorization: Bearer top-secret-7 } }
  c: { url: "nonsense top-secret-8", headers: { "x y": top-secret-9 } }
"#;
    let config = good(text);
    let shown = format!("{config:?} {config:#?} {}", config.show());
    assert!(!shown.contains("top-secret"), "{shown}");
    assert!(!shown.contains("k3y-from-the-environment"), "{shown}");
    let errors = read("talaria: { listen: 1, auth: { tokens: [{ name: x, token: s3cr3t }] } }")
        .expect_err("weak");
    assert!(!format!("{errors} {errors:?}").contains("s3cr3t"));
}

#[test]
fn shown_configuration_reads_back_as_itself() {
    let config = good(
        "talaria: { home: /h, media: { ttl: 90m } }\nmcp_servers: { a: { command: x, args: [1], timeout: 5 }, b: { url: http://h/mcp, trust: untrusted } }",
    );
    let shown = config.show();
    let again = load(&shown.to_string(), &BTreeMap::new(), &Source::default()).expect("valid");
    assert_eq!(again.show(), shown);
}

/// Texts that look like configurations: known keys, odd values, odd nesting.
fn yamlish() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "talaria",
        "mcp_servers",
        "auth",
        "tokens",
        "name",
        "token",
        "scopes",
        "listen",
        "home",
        "media",
        "ttl",
        "limits",
        "command",
        "url",
        "args",
        "env",
        "headers",
        "tools",
        "include",
        "timeout",
        "trust",
        "transport",
        "auxiliary",
        "vision",
        "fallback_chain",
        "agent",
        "mcp",
        "s",
        "*",
        "<<",
        "报告",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "",
            "~",
            "true",
            "1e999",
            "-0",
            "18446744073709551616",
            "24h",
            "9999999y",
            "10GiB",
            "${HOME}",
            "${",
            "${env:}",
            "'[\"a\"'",
            "&a x",
            "*a",
            "!!int x",
            "[",
            "{",
            "]",
            "|",
            "'",
            "\"\\u0000\"",
            "0x",
            ".inf",
            ".nan",
            "~/x",
            "http://[::",
            "npx",
            "{a: b}",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,12}",
    ];
    prop::collection::vec((0usize..4, key, any::<bool>(), value), 0..12).prop_map(|lines| {
        lines
            .into_iter()
            .map(|(depth, key, item, value)| {
                let dash = if item { "- " } else { "" };
                format!("{}{dash}{key}: {value}\n", "  ".repeat(depth))
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in prop_oneof![yamlish(), "\\PC{0,200}", "(?s).{0,200}"]) {
        if let Ok(config) = read(&text) {
            let shown = config.show();
            prop_assert!(shown.is_object());
            let debug = format!("{config:?}");
            prop_assert!(!debug.is_empty());
        }
    }

    #[test]
    fn any_value_of_a_known_key_is_taken_or_refused(
        index in 0..talaria_config::schema::KEYS.len(),
        value in prop_oneof![
            "[a-z0-9${}:/ .-]{0,16}",
            prop::sample::select(vec!["0", "-1", "1.5", "true", "null", "[a]", "{a: b}", "[{a: [b]}]"])
                .prop_map(str::to_owned),
        ],
    ) {
        let path = talaria_config::schema::KEYS[index].path;
        let mut text = value;
        for name in path.split('.').rev() {
            text = match name.strip_suffix("[]") {
                Some(name) => format!("{{{name}: [{text}]}}"),
                None if name == "*" => format!("{{any: {text}}}"),
                None => format!("{{{name}: {text}}}"),
            };
        }
        match read(&text) {
            Ok(config) => prop_assert!(config.show().is_object()),
            Err(errors) => prop_assert!(!errors.problems().is_empty()),
        }
    }
}
