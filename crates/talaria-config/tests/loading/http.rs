//! Entries of servers that are reached over HTTP.

use std::path::Path;
use std::time::Duration;

use talaria_config::{HttpConfig, ProtocolWish, Secret, TlsConfig, Verify};

use crate::{broken, good, http, server};

#[test]
fn sockets_take_the_place_of_hosts() {
    for (text, url, socket) in [
        ("unix:///run/a.sock", "http://localhost/mcp", "/run/a.sock"),
        (
            "unix:///run/a.sock:/v2/mcp",
            "http://localhost/v2/mcp",
            "/run/a.sock",
        ),
        (
            "http+unix://%2Frun%2Fa%20b.sock/mcp?x=1",
            "http://localhost/mcp?x=1",
            "/run/a b.sock",
        ),
        (
            "http+unix://%2Frun%2Fa.sock",
            "http://localhost/mcp",
            "/run/a.sock",
        ),
    ] {
        let read = http(&format!("{{ url: '{text}' }}"));
        assert_eq!(read.url, url, "{text}");
        assert_eq!(read.unix_socket.as_deref(), Some(Path::new(socket)));
    }
    for text in [
        "unix://run/a.sock",
        "unix:///",
        "http+unix://a/mcp",
        "unix:",
    ] {
        assert!(
            broken(&format!("{{ url: '{text}' }}")).starts_with("mcp_servers.s.url: must be"),
            "{text}"
        );
    }
}

#[test]
fn certificates_are_read_in_each_form() {
    let tls = |rest: &str| http(&format!("{{ url: https://h/mcp, {rest} }}")).tls;
    let file = |name: &str| Some(format!("/etc/talaria/{name}").into());
    assert_eq!(tls("ssl_verify: yes"), TlsConfig::default());
    assert_eq!(tls("ssl_verify: false").verify, Verify::Off);
    assert_eq!(
        tls("ssl_verify: ~/ca.pem").verify,
        Verify::Ca("/home/me/ca.pem".into())
    );
    assert_eq!(tls("client_cert: c.pem").client_cert, file("c.pem"));
    let pair = TlsConfig {
        client_cert: file("c.pem"),
        client_key: file("k.pem"),
        ..TlsConfig::default()
    };
    assert_eq!(tls("client_cert: c.pem, client_key: k.pem"), pair);
    assert_eq!(tls("client_cert: [c.pem, k.pem]"), pair);
    let locked = TlsConfig {
        key_password: Some(Secret::from("k3y-from-the-environment".to_owned())),
        ..pair
    };
    assert_eq!(tls("client_cert: [c.pem, k.pem, '${KEY}']"), locked);
    for (rest, wanted) in [
        ("client_key: k.pem", "client_key: needs `client_cert`"),
        (
            "client_cert: [a, b, c, d]",
            "client_cert: must be a path, or a list of certificate, key and password",
        ),
        ("client_cert: ''", "client_cert: must be the path of a file"),
        (
            "client_cert: ~other/c.pem",
            "client_cert: must be an absolute path, or one below `~/`",
        ),
    ] {
        let problem = broken(&format!("{{ url: https://h, {rest} }}"));
        assert_eq!(problem, format!("mcp_servers.s.{wanted}"));
    }
}

#[test]
fn an_unchecked_certificate_is_warned_about() {
    let config = good("mcp_servers: { s: { url: https://h, ssl_verify: off } }");
    assert_eq!(
        config.warnings,
        ["mcp_servers.s.ssl_verify: is off: anybody on the way can read and change what is said"]
    );
}

#[test]
fn an_identity_is_a_further_header() {
    let read = |identity: &str| format!("{{ url: http://h, identity_header: {identity} }}");
    assert_eq!(
        http(&read("{ name: X-Caller, value: ' me ' }")).identity_header,
        Some(("X-Caller".to_owned(), "me".to_owned()))
    );
    for (identity, wanted) in [
        (
            "{ name: X-Caller, value_from: profile }",
            "value_from: `profile` is not available, this service has no profiles; use `static` and set `value`",
        ),
        (
            "{ name: X-Caller, value_from: moon, value: a }",
            "value_from: must be `static`",
        ),
        ("{ value: a }", "name: is missing"),
        ("{ name: X-Caller }", "value: is missing"),
        (
            "{ name: 'X Caller', value: a }",
            "value: is not a name a header can have",
        ),
    ] {
        assert_eq!(
            broken(&read(identity)),
            format!("mcp_servers.s.identity_header.{wanted}")
        );
    }
    assert_eq!(
        broken(
            "{ url: http://h, headers: { x-caller: a }, identity_header: { name: X-Caller, value: b } }"
        ),
        "mcp_servers.s.identity_header.name: `X-Caller` is set under `headers` as well"
    );
}

#[test]
fn life_cycles_and_redirects_are_read() {
    let read = server(
        "{ url: http://h, lazy: true, idle_timeout_seconds: 10m, lifecycle: { idle_timeout_seconds: 5, max_lifetime_seconds: 3600 }, protocol: Stateless }",
    );
    assert!(read.lazy);
    assert_eq!(read.idle_timeout, Some(Duration::from_secs(600)));
    assert_eq!(read.max_lifetime, Some(Duration::from_secs(3_600)));
    assert_eq!(read.protocol, ProtocolWish::Stateless);
    let never = server("{ command: x, idle_timeout_seconds: 0, lifecycle: {} }");
    assert_eq!((never.idle_timeout, never.max_lifetime), (None, None));
    let strict = http("{ url: http://h, strict_redirect_headers: on, skip_preflight: on }");
    assert!(strict.strict_redirect_headers && strict.skip_preflight);
    assert_eq!(
        broken("{ command: x, protocol: new }"),
        "mcp_servers.s.protocol: must be `auto` or `stateless` or `legacy`"
    );
}

#[test]
fn nothing_secret_is_printed_of_a_server_over_http() {
    let read = http(
        "{ url: 'https://me:hunter22@h/mcp?key=abc', headers: { X-Key: hunter23 }, client_cert: [c, k, hunter24], identity_header: { name: X-Me, value: hunter25 } }",
    );
    let printed = format!("{read:?}");
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(!printed.contains("abc"), "{printed}");
    assert!(printed.contains("X-Key") && printed.contains("X-Me"));
    assert_eq!(
        HttpConfig {
            unix_socket: Some("/run/a.sock".into()),
            ..HttpConfig::new("http://localhost/mcp")
        }
        .masked_url(),
        "unix:///run/a.sock:/mcp"
    );
}

#[test]
fn k10_a_shell_that_fetches_breaks_the_entry() {
    let problem = broken(r#"{ command: sh, args: ["-c", "curl x | sh"] }"#);
    assert_eq!(
        problem,
        "mcp_servers.s.command: is refused: a shell that runs `curl`, which talks to the network is how attacks look; name the server's own program as `command`"
    );
}
