//! Entries of `mcp_servers`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use talaria_config::{
    Config, HttpKind, NamePrefix, ServerConfig, ServerEntry, Source, TransportConfig, Trust, load,
};
use talaria_types::ServerName;

use crate::{args, broken, environment, good, http, problems, server};

#[test]
fn k01_unset_variables_break_the_server_where_they_matter() {
    for (text, path) in [
        ("{ url: 'http://${UNSET_X}/mcp' }", "url"),
        (
            "{ url: http://h/mcp, headers: { X-Key: 'a ${UNSET_X}' } }",
            "headers.X-Key",
        ),
        ("{ command: x, env: { A: '${env:UNSET_X}' } }", "env.A"),
        ("{ command: '${UNSET_X}/bin' }", "command"),
        ("{ command: x, args: [a, '${UNSET_X}'] }", "args[1]"),
        ("{ command: x, args: 'a ${UNSET_X}' }", "args[1]"),
    ] {
        let wanted = format!("mcp_servers.s.{path}: the variable `UNSET_X` is not set");
        assert_eq!(broken(text), wanted, "{text}");
    }
}

#[test]
fn k01_unset_variables_elsewhere_stay_literal_with_a_warning() {
    let config = good("mcp_servers: { s: { command: x, tools: { include: ['${UNSET_X}'] } } }");
    assert_eq!(
        config.warnings,
        [
            "mcp_servers.s.tools.include[0]: the variable `UNSET_X` is not set; the text stays as it is"
        ]
    );
    let ServerEntry::Usable(server) = &config.servers[&ServerName::from("s")] else {
        panic!("broken")
    };
    assert_eq!(
        server.tools.include.as_deref(),
        Some(&["${UNSET_X}".to_owned()][..])
    );
}

#[test]
fn k01_blanks_around_a_value_are_warned_about_once() {
    let config = good("mcp_servers: { s: { command: x, args: ['${BLANK}', '${BLANK}'] } }");
    assert_eq!(
        config.warnings,
        ["the variable `BLANK` begins or ends with blanks"]
    );
}

#[test]
fn k05_args_as_list_json_or_line() {
    assert_eq!(
        args("{ command: x, args: [-y, pkg, 8080, true, 1.5] }"),
        ["-y", "pkg", "8080", "true", "1.5"]
    );
    assert_eq!(
        args(r#"{ command: x, args: "[\"-y\",\"pkg\"]" }"#),
        ["-y", "pkg"]
    );
    assert_eq!(args(r#"{ command: x, args: "-y pkg" }"#), ["-y", "pkg"]);
    assert_eq!(
        args(r#"{ command: x, args: "--name 'two words' \"${HOME}/a b\"" }"#),
        ["--name", "two words", "/home/me/a b"]
    );
    assert_eq!(
        args("{ command: x, args: '${BLANK}' }"),
        [" blank-around\n"]
    );
    for none in ["[]", "''", "null"] {
        assert_eq!(
            args(&format!("{{ command: x, args: {none} }}")),
            Vec::<String>::new()
        );
    }
    let wanted = "mcp_servers.s.args: must be a list of texts, or a line as for a shell";
    assert_eq!(broken("{ command: x, args: { a: b } }"), wanted);
    assert_eq!(broken("{ command: x, args: 5 }"), wanted);
    assert_eq!(
        broken(r#"{ command: x, args: '{"a":1}' }"#),
        "mcp_servers.s.args: must be a list, not a JSON object"
    );
    assert_eq!(
        broken("{ command: x, args: '[a, b' }"),
        "mcp_servers.s.args: looks like a JSON list but is not one"
    );
    assert_eq!(
        broken("{ command: x, args: \"-y 'pkg\" }"),
        "mcp_servers.s.args: has an open quote"
    );
    assert_eq!(
        broken("{ command: x, args: [a, [b]] }"),
        "mcp_servers.s.args[1]: must be a list of texts, or a line as for a shell"
    );
}

#[test]
fn k06_keepalive_has_a_floor() {
    let seconds = |text| {
        server(text)
            .keepalive_interval
            .map(|interval| interval.as_secs())
    };
    assert_eq!(
        seconds("{ url: http://h/mcp, keepalive_interval: 1 }"),
        Some(5)
    );
    assert_eq!(
        seconds("{ url: http://h/mcp, keepalive_interval: 2m }"),
        Some(120)
    );
    assert_eq!(seconds("{ url: http://h/mcp }"), Some(180));
    assert_eq!(seconds("{ command: x }"), None);
    assert_eq!(seconds("{ command: x, keepalive_interval: 0 }"), Some(5));
}

#[test]
fn k07_neither_or_both_of_command_and_url_break_that_server_only() {
    let config = good(
        "mcp_servers: { none: {}, both: { command: x, url: http://h }, text: hello, good: { command: x } }",
    );
    let problem = |name: &str| match &config.servers[&ServerName::from(name)] {
        ServerEntry::Broken { problem } => problem.clone(),
        ServerEntry::Usable(_) => String::new(),
    };
    assert_eq!(
        problem("none"),
        "mcp_servers.none.command: a server needs `command` or `url`"
    );
    assert_eq!(
        problem("both"),
        "mcp_servers.both.command: a server has either `command` or `url`, not both"
    );
    assert_eq!(
        problem("text"),
        "mcp_servers.text: must be a map with `command` or `url`; mcp_servers.text.command: a server needs `command` or `url`"
    );
    assert_eq!(problem("good"), "");
}

#[test]
fn defaults_of_a_server_follow_the_specification() {
    let wanted = ServerConfig::stdio("s", "npx", ["-y", "pkg"]);
    assert_eq!(server("{ command: npx, args: [-y, pkg] }"), wanted);
    assert_eq!(
        server("{ url: http://h/mcp }"),
        ServerConfig::http("s", "http://h/mcp")
    );
    assert_eq!(wanted.timeout, Duration::from_secs(300));
    assert_eq!(wanted.connect_timeout, Duration::from_secs(60));
    assert_eq!(wanted.rpc_concurrency.get(), 1);
    assert_eq!(wanted.trust, Trust::Full);
}

#[test]
fn settings_of_a_server_are_read() {
    let read = server(
        r"{ command: ~/bin/x, env: { A: 1, B: true, C: '${KEY}' }, cwd: ~/w, enabled: 'Off', timeout: 1.5,
            connect_timeout: 2m, supports_parallel_tool_calls: yes, name_prefix: none, trust: unknown word,
            tools: { include: get_*, exclude: [a, b], resources: false, prompts: no } }",
    );
    let TransportConfig::Stdio {
        command, env, cwd, ..
    } = &read.transport
    else {
        panic!("stdio")
    };
    assert_eq!(command, "/home/me/bin/x");
    let pairs: Vec<_> = env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        pairs,
        [("A", "1"), ("B", "true"), ("C", "k3y-from-the-environment")]
    );
    assert_eq!(cwd.as_deref(), Some(Path::new("/home/me/w")));
    assert!(!read.enabled);
    assert_eq!(read.timeout, Duration::from_millis(1_500));
    assert_eq!(read.connect_timeout, Duration::from_secs(120));
    assert_eq!(read.rpc_concurrency.get(), 8);
    assert_eq!(read.name_prefix, NamePrefix::None);
    assert_eq!(read.trust, Trust::Untrusted);
    assert_eq!(
        read.tools.include.as_deref(),
        Some(&["get_*".to_owned()][..])
    );
    assert_eq!(read.tools.exclude, ["a", "b"]);
    assert!(read.tools.without_resources && read.tools.without_prompts);
    assert_eq!(
        server("{ command: x, supports_parallel_tool_calls: true, rpc_concurrency: 3 }")
            .rpc_concurrency
            .get(),
        3
    );
    assert_eq!(
        server("{ command: x, tools: { include: [] } }")
            .tools
            .include,
        Some(Vec::new())
    );
}

#[test]
fn trust_fails_closed() {
    for word in ["untrusted", "FULLY", "''", "true", "[]", "1"] {
        assert_eq!(
            server(&format!("{{ command: x, trust: {word} }}")).trust,
            Trust::Untrusted,
            "{word}"
        );
    }
    for word in ["full", "' Full '", "null"] {
        assert_eq!(
            server(&format!("{{ command: x, trust: {word} }}")).trust,
            Trust::Full,
            "{word}"
        );
    }
}

#[test]
fn wrong_values_of_a_server_are_named() {
    for (text, wanted) in [
        (
            "{ command: x, timeout: 0 }",
            "timeout: must be more than zero",
        ),
        (
            "{ command: x, timeout: -1 }",
            "timeout: must be a number of seconds, or a duration with its unit, such as `180s`, `10m` or `24h`",
        ),
        (
            "{ command: x, enabled: perhaps }",
            "enabled: must be true or false",
        ),
        (
            "{ command: x, rpc_concurrency: 0 }",
            "rpc_concurrency: must be a whole number, 1 to 1000000",
        ),
        (
            "{ command: x, name_prefix: short }",
            "name_prefix: must be `default` or `none`",
        ),
        (
            "{ command: x, comand: y }",
            "comand: is not a known key; did you mean `command`?",
        ),
        (
            "{ command: x, connectTimeout: 3 }",
            "connectTimeout: is not a known key; did you mean `connect_timeout`?",
        ),
        ("{ command: x, tools: [a] }", "tools: must be a map"),
        (
            "{ command: x, env: [A=1] }",
            "env: must be a map of names and texts",
        ),
        ("{ command: x, env: { A: [1] } }", "env.A: must be a text"),
        (
            "{ command: x, env: { 'A=B': 1 } }",
            "env.A=B: is not a variable an environment can hold",
        ),
        (
            "{ command: x, transport: http }",
            "transport: a server reached over HTTP needs `url`",
        ),
        (
            "{ url: http://h, transport: stdio }",
            "transport: a stdio server needs `command`",
        ),
        (
            "{ url: http://h, transport: carrier pigeon }",
            "transport: must be `stdio`, `http` or `sse`",
        ),
        (
            "{ url: 'h/mcp' }",
            "url: must be an http or https address, such as `http://127.0.0.1:8000/mcp`, or a socket, such as `unix:///run/server.sock`",
        ),
        (
            "{ url: file:///etc/passwd }",
            "url: must be an http or https address, such as `http://127.0.0.1:8000/mcp`, or a socket, such as `unix:///run/server.sock`",
        ),
        (
            "{ url: http://h, headers: { 'a b': c } }",
            "headers.a b: is not a name a header can have",
        ),
        (
            r#"{ url: http://h, headers: { a: "b\nc" } }"#,
            "headers.a: holds characters a header cannot carry",
        ),
        (
            "{ command: x, lazy: perhaps }",
            "lazy: must be true or false",
        ),
    ] {
        assert_eq!(broken(text), format!("mcp_servers.s.{wanted}"), "{text}");
    }
}

#[test]
fn forms_of_http_are_told_apart() {
    for word in [
        "http",
        "streamable-http",
        "streamable_http",
        "streamableHttp",
        "HTTP",
    ] {
        let read = http(&format!("{{ url: http://h, transport: {word} }}"));
        assert_eq!(read.kind, HttpKind::Streamable, "{word}");
    }
    assert_eq!(
        http("{ url: http://h, transport: sse }").kind,
        HttpKind::Sse
    );
    assert_eq!(http("{ url: http://h }").kind, HttpKind::Auto);
}

#[test]
fn odd_keys_of_a_server_leave_warnings_only() {
    let config = good(
        "mcp_servers: { s: { command: x, description: d, headers: { a: b }, ssl_verify: false, protocol: auto, sampling: { max_rpm: 10, timeout: 30s } } }",
    );
    assert_eq!(
        config.warnings,
        [
            "mcp_servers.s.description: is not a known key and is ignored",
            "mcp_servers.s.headers: has no effect on a stdio server",
            "mcp_servers.s.ssl_verify: has no effect on a stdio server",
        ]
    );
}

#[test]
fn names_of_servers_are_checked() {
    let long = "n".repeat(129);
    let config = good(&format!(
        "mcp_servers: {{ ' ': {{ command: x }}, \"a\\nb\": {{ command: x }}, {long}: {{ command: x }}, 报告: {{ command: x }} }}"
    ));
    let is_broken = |name: &str| {
        matches!(
            config.servers[&ServerName::from(name)],
            ServerEntry::Broken { .. }
        )
    };
    assert!(is_broken(" ") && is_broken("a\nb") && is_broken(&long) && !is_broken("报告"));
}

#[test]
fn switches_turn_servers_off() {
    let servers = "mcp_servers: { a: { command: x }, b: { url: http://h } }";
    let enabled = |config: &Config| -> Vec<bool> {
        config
            .servers
            .values()
            .map(|entry| matches!(entry, ServerEntry::Usable(server) if server.enabled))
            .collect()
    };
    assert_eq!(enabled(&good(servers)), [true, true]);
    assert_eq!(
        enabled(&good(&format!("mcp: {{ client: off }}\n{servers}"))),
        [false, false]
    );
    let stdio_off = good(&format!("mcp: {{ stdio_servers: false }}\n{servers}"));
    assert_eq!(enabled(&stdio_off), [false, true]);
    assert_eq!(
        stdio_off.warnings,
        ["mcp.stdio_servers: is off: no stdio server is started"]
    );
    let mut environment = environment();
    environment.insert("HERMES_SAFE_MODE".to_owned(), "1".to_owned());
    let safe = load(servers, &environment, &Source::default()).expect("valid");
    assert_eq!(enabled(&safe), [false, false]);
    assert_eq!(
        safe.warnings,
        ["`HERMES_SAFE_MODE` is set: no server is started"]
    );
}

#[test]
fn timeout_falls_back_to_the_section_timeouts() {
    let config = good(
        "timeouts: { mcp: { tool_call: 20 } }\nmcp_servers: { a: { command: x }, b: { command: x, timeout: 7 } }",
    );
    let seconds: Vec<_> = config
        .servers
        .values()
        .map(|entry| match entry {
            ServerEntry::Usable(server) => server.timeout.as_secs(),
            ServerEntry::Broken { .. } => 0,
        })
        .collect();
    assert_eq!(seconds, [20, 7]);
    assert_eq!(
        problems("timeouts: { mcp: { tool_call: soon } }"),
        [
            "timeouts.mcp.tool_call: must be a number of seconds, or a duration with its unit, such as `180s`, `10m` or `24h`"
        ]
    );
}

#[test]
fn workspace_may_be_given() {
    let source = Source {
        file: None,
        workspace: Some(PathBuf::from("/w/project")),
    };
    let text = "mcp_servers: { s: { command: x, args: ['${workspaceFolder}', '${workspaceFolderBasename}'] } }";
    let config = load(text, &environment(), &source).expect("valid");
    let ServerEntry::Usable(server) = &config.servers[&ServerName::from("s")] else {
        panic!("broken")
    };
    let TransportConfig::Stdio { args, .. } = &server.transport else {
        panic!("stdio")
    };
    assert_eq!(args, &["/w/project", "project"]);
}
