//! The section `talaria`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use talaria_config::{Scope, Source, load, load_default};

use crate::{environment, good, problems};

#[test]
fn no_file_at_all_means_defaults_and_no_servers() {
    let config = load_default(&environment()).expect("valid");
    assert_eq!(config.talaria.listen.to_string(), "127.0.0.1:8700");
    assert_eq!(config.talaria.home, Path::new("/home/me/.talaria"));
    assert_eq!(config.servers, BTreeMap::new());
    assert_eq!(config.warnings, Vec::<String>::new());
    for empty in [
        "",
        "\n",
        "# only a comment\n",
        "---\n",
        "talaria:\nmcp_servers:\n",
    ] {
        assert_eq!(good(empty).show(), config.show(), "{empty:?}");
    }
}

#[test]
fn without_a_home_directory_an_absolute_path_is_asked_for() {
    let errors = load_default(&BTreeMap::new()).expect_err("no home");
    assert_eq!(
        errors.to_string(),
        "configuration (none) is not usable\n  talaria.home: `~/` needs the variable `HOME`; set an absolute path instead"
    );
    let text = "talaria: { home: /var/lib/talaria }";
    let config = load(text, &BTreeMap::new(), &Source::default()).expect("valid");
    assert_eq!(config.talaria.home, Path::new("/var/lib/talaria"));
}

#[test]
fn relative_home_counts_from_the_file() {
    assert_eq!(
        good("talaria: { home: data }").talaria.home,
        Path::new("/etc/talaria/data")
    );
    let config = load(
        "talaria: { home: data }",
        &environment(),
        &Source::default(),
    );
    assert_eq!(
        config.expect("valid").talaria.home,
        Path::new("/srv/work/data")
    );
}

#[test]
fn homes_of_other_users_are_refused() {
    let wanted = ["talaria.home: `~/` needs the variable `HOME`; set an absolute path instead"];
    assert_eq!(problems("talaria: { home: ~root/x }"), wanted);
}

#[test]
fn names_cannot_break_lines_of_a_report() {
    let found = problems("talaria: { \"a\\nERROR b\": 1, limits: { \"\\e[2J\": 2 } }");
    assert!(
        found.iter().all(|line| !line.contains(char::is_control)),
        "{found:?}"
    );
    assert_eq!(found.len(), 2);
}

#[test]
fn own_section_is_read() {
    let config = good(
        r#"
talaria:
  listen: "[::]:9000"
  home: ${userHome}/t
  allowed_hosts: [a.example, b.example]
  auth:
    open_probes: yes
    tokens:
      - { name: ci, token: "${env:TALARIA_TOKEN}" }
      - { name: ops, token: another-long-token-1, scopes: [admin, metrics], servers: [s] }
  media: { max_bytes: 5GB, ttl: 1h 30m, grace: 0s, public_url: "https://t.example/base/", fsync: true }
  calls: { max_call_duration: 10m, drain_timeout: 5s }
  limits: { message_bytes: 1MiB, body_bytes: 2MiB, pending_per_server: 1, pending_per_token: 2,
            stderr_log_bytes: 64KiB, blocking_jobs: 3 }
mcp_servers: { s: { command: x } }
"#,
    );
    let own = &config.talaria;
    assert_eq!(own.listen.to_string(), "[::]:9000");
    assert_eq!(own.home, Path::new("/home/me/t"));
    assert_eq!(own.allowed_hosts, ["a.example", "b.example"]);
    assert!(own.open_probes);
    let [ci, ops] = own.tokens.as_slice() else {
        panic!("two tokens")
    };
    assert_eq!(
        (ci.name.as_str(), ci.token.as_str()),
        ("ci", "token-of-sixteen-or-more")
    );
    assert_eq!(
        (ci.scopes.as_slice(), ci.servers.as_slice()),
        (&[Scope::Call][..], &["*".to_owned()][..])
    );
    assert_eq!(ops.scopes, [Scope::Admin, Scope::Metrics]);
    assert_eq!(own.media.max_bytes, 5_000_000_000);
    assert_eq!(own.media.ttl, Duration::from_secs(5_400));
    assert_eq!(own.media.grace, Duration::ZERO);
    assert_eq!(
        own.media.public_url.as_deref(),
        Some("https://t.example/base")
    );
    assert!(own.media.fsync);
    assert_eq!(own.calls.max_call_duration, Duration::from_secs(600));
    assert_eq!(own.calls.drain_timeout, Duration::from_secs(5));
    assert_eq!(own.limits.message_bytes, 1 << 20);
    assert_eq!(own.limits.body_bytes, 2 << 20);
    assert_eq!(own.limits.pending_per_server.get(), 1);
    assert_eq!(own.limits.pending_per_token.get(), 2);
    assert_eq!(own.limits.stderr_log_bytes, 64 << 10);
    assert_eq!(own.limits.blocking_jobs.get(), 3);
    assert_eq!(config.warnings, Vec::<String>::new());
}

#[test]
fn every_problem_is_reported_with_its_path() {
    let found = problems(
        r"
talaria:
  listen: nowhere
  medai: {}
  media: { ttl: 24, max_bytes: 10, fsync: maybe, public_url: ftp://x }
  limits: { pending_per_server: 0, message_bytes: 1KiB, colour: red }
  calls: [1]
  images: { queue: many, tiles: sideways }
",
    );
    assert_eq!(
        found,
        [
            "talaria.medai: is not a known key; did you mean `media`?",
            "talaria.limits.colour: is not a known key; known are `message_bytes`, `body_bytes`, `pending_per_server`, `pending_per_token`, `stderr_log_bytes`, `blocking_jobs`",
            "talaria.calls: must be a map",
            "talaria.listen: must be an IP address and a port, such as `127.0.0.1:8700` or `[::1]:8700`",
            "talaria.media.max_bytes: must be a size with its unit, such as `64KiB` or `10GiB`",
            "talaria.media.ttl: must be a duration with its unit, such as `180s`, `10m` or `24h`",
            "talaria.media.public_url: must be an http or https address without query, such as `https://talaria.example.com`",
            "talaria.media.fsync: must be true or false",
            "talaria.images.queue: must be a whole number, 1 to 1000000",
            "talaria.images.tiles: must be `off` or `on` or `auto`",
            "talaria.limits.message_bytes: must be 65536 to 2147483647 bytes",
            "talaria.limits.pending_per_server: must be a whole number, 1 to 1000000",
        ]
    );
}

#[test]
fn only_loopback_listens_without_tokens() {
    let wanted = [
        "talaria.listen: an address other than loopback needs at least one entry in `talaria.auth.tokens`",
    ];
    for open in ["0.0.0.0:1", "[::]:1", "192.168.1.1:1"] {
        assert_eq!(
            problems(&format!("talaria: {{ listen: '{open}' }}")),
            wanted,
            "{open}"
        );
    }
    for local in ["127.0.0.1:0", "127.8.8.8:1", "[::1]:1", "localhost:1"] {
        assert!(
            good(&format!("talaria: {{ listen: '{local}' }}"))
                .talaria
                .listen
                .ip()
                .is_loopback()
        );
    }
}

#[test]
fn weak_and_doubled_tokens_are_refused() {
    let found = problems(
        r"
talaria:
  auth:
    tokens:
      - { name: a, token: short }
      - { name: b, token: 0123456789abcdef }
      - { name: b, token: '0123456789abcdef' }
      - { name: c, token: 'with blanks in the middle' }
      - { name: d, token: '${env:UNSET}' }
      - { token: fedcba9876543210, scopes: [call, everything] }
      - just-a-text
",
    );
    assert_eq!(
        found,
        [
            "talaria.auth.tokens[6]: must be a map",
            "talaria.auth.tokens[0].token: must be at least 16 characters long",
            "talaria.auth.tokens[2].name: is the name of another token too",
            "talaria.auth.tokens[2].token: is the same as that of another token",
            "talaria.auth.tokens[3].token: must be visible ASCII characters without blanks",
            "talaria.auth.tokens[4].token: the variable `UNSET` is not set",
            "talaria.auth.tokens[5].name: is missing",
            "talaria.auth.tokens[5].scopes: `everything` is not a scope; known are `call`, `approve`, `artifacts`, `metrics`, `admin`",
            "talaria.auth.tokens[6].name: is missing",
            "talaria.auth.tokens[6].token: is missing",
        ]
    );
}

#[test]
fn tokens_that_name_no_server_leave_a_warning() {
    let text = "talaria: { auth: { tokens: [{ name: a, token: 0123456789abcdef, servers: [gone, 'g*'] }] } }";
    assert_eq!(
        good(text).warnings,
        ["talaria.auth.tokens[0].servers: there is no server `gone`"]
    );
}
