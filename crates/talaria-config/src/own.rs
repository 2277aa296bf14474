//! The section `talaria`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde_json::Value;
use url::Url;

use crate::defaults::{self, MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES, MIN_TOKEN_CHARS};
use crate::images;
use crate::problem::Findings;
use crate::schema::Kind;
use crate::section::Section;
use crate::tree::{
    CallsConfig, LimitsConfig, MediaConfig, Scope, SecurityConfig, TalariaConfig, TokenConfig,
};

/// Reads the section.
pub(crate) fn read(
    section: &Section<'_>,
    vision: &Section<'_>,
    findings: &mut Findings,
) -> TalariaConfig {
    let auth = section.child("auth");
    let listen = read_listen(section, findings);
    let tokens = read_tokens(&auth, findings);
    if !listen.ip().is_loopback() && tokens.is_empty() {
        findings.error(
            &section.path("listen"),
            "an address other than loopback needs at least one entry in `talaria.auth.tokens`",
        );
    }
    TalariaConfig {
        listen,
        home: read_home(section, findings),
        tokens,
        allowed_hosts: section
            .text_list(findings, "allowed_hosts")
            .unwrap_or_default(),
        open_probes: auth.boolean(findings, "open_probes").unwrap_or(false),
        media: read_media(&section.child("media"), findings),
        images: images::read(&section.child("images"), vision, findings),
        calls: read_calls(&section.child("calls"), findings),
        limits: read_limits(&section.child("limits"), findings),
        watch_config: section.boolean(findings, "watch_config").unwrap_or(true),
    }
}

fn read_listen(section: &Section<'_>, findings: &mut Findings) -> SocketAddr {
    let Some(text) = section.text(findings, "listen", Kind::Text) else {
        return defaults::LISTEN;
    };
    let text = text.trim();
    let local = text
        .strip_prefix("localhost:")
        .and_then(|port| port.parse::<u16>().ok());
    if let Some(port) = local {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    }
    text.parse().unwrap_or_else(|_| {
        let message = "must be an IP address and a port, such as `127.0.0.1:8700` or `[::1]:8700`";
        findings.error(&section.path("listen"), message);
        defaults::LISTEN
    })
}

fn read_home(section: &Section<'_>, findings: &mut Findings) -> PathBuf {
    let text = section.text(findings, "home", Kind::Text);
    let text = text.as_deref().map_or(defaults::HOME, str::trim);
    let path = section.path("home");
    if text.is_empty() || text.contains('\0') {
        findings.error(&path, "must be the path of a directory");
        return PathBuf::new();
    }
    let variables = section.variables();
    if variables.expand_tilde(text).is_none() {
        findings.error(
            &path,
            "`~/` needs the variable `HOME`; set an absolute path instead",
        );
        return PathBuf::new();
    }
    variables.absolute(text).unwrap_or_else(|| {
        findings.error(&path, "must be an absolute path");
        PathBuf::new()
    })
}

fn read_media(section: &Section<'_>, findings: &mut Findings) -> MediaConfig {
    let default = MediaConfig::default();
    MediaConfig {
        max_bytes: section
            .size(findings, "max_bytes", 1..=u64::MAX)
            .unwrap_or(default.max_bytes),
        ttl: section
            .positive_duration(findings, "ttl")
            .unwrap_or(default.ttl),
        grace: section.duration(findings, "grace").unwrap_or(default.grace),
        public_url: read_public_url(section, findings),
        fsync: section.boolean(findings, "fsync").unwrap_or(default.fsync),
    }
}

fn read_public_url(section: &Section<'_>, findings: &mut Findings) -> Option<String> {
    let text = section.text(findings, "public_url", Kind::Url)?;
    let text = text.trim().trim_end_matches('/');
    match Url::parse(text) {
        Ok(url)
            if matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.query().is_none()
                && url.fragment().is_none() =>
        {
            Some(text.to_owned())
        }
        Ok(_) | Err(_) => {
            let message = "must be an http or https address without query, such as `https://talaria.example.com`";
            findings.error(&section.path("public_url"), message);
            None
        }
    }
}

fn read_calls(section: &Section<'_>, findings: &mut Findings) -> CallsConfig {
    let default = CallsConfig::default();
    CallsConfig {
        max_call_duration: section
            .positive_duration(findings, "max_call_duration")
            .unwrap_or(default.max_call_duration),
        drain_timeout: section
            .duration(findings, "drain_timeout")
            .unwrap_or(default.drain_timeout),
        wrap_untrusted: section
            .boolean(findings, "wrap_untrusted")
            .unwrap_or(default.wrap_untrusted),
    }
}

/// What of the section `security` concerns servers; Hermes reads other parts of it.
pub(crate) fn read_security(section: &Section<'_>, findings: &mut Findings) -> SecurityConfig {
    let default = SecurityConfig::default();
    SecurityConfig {
        osv_check: section
            .boolean(findings, "osv_check")
            .unwrap_or(default.osv_check),
        osv_url: read_osv_url(section, findings).unwrap_or(default.osv_url),
    }
}

fn read_osv_url(section: &Section<'_>, findings: &mut Findings) -> Option<String> {
    let text = section.text(findings, "osv_url", Kind::Url)?;
    let text = text.trim();
    let is_one = Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if !is_one {
        let message = format!(
            "must be an http or https address, such as `{}`",
            defaults::OSV_URL
        );
        findings.error(&section.path("osv_url"), message);
    }
    is_one.then(|| text.to_owned())
}

fn read_limits(section: &Section<'_>, findings: &mut Findings) -> LimitsConfig {
    let default = LimitsConfig::default();
    let message_bounds = MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES;
    let bytes = |size: Option<u64>, default: usize| {
        size.and_then(|size| usize::try_from(size).ok())
            .unwrap_or(default)
    };
    LimitsConfig {
        message_bytes: bytes(
            section.size(findings, "message_bytes", message_bounds.clone()),
            default.message_bytes,
        ),
        body_bytes: bytes(
            section.size(findings, "body_bytes", message_bounds),
            default.body_bytes,
        ),
        pending_per_server: section
            .count(findings, "pending_per_server")
            .unwrap_or(default.pending_per_server),
        pending_per_token: section
            .count(findings, "pending_per_token")
            .unwrap_or(default.pending_per_token),
        stderr_log_bytes: section
            .size(findings, "stderr_log_bytes", 4_096..=u64::MAX)
            .unwrap_or(default.stderr_log_bytes),
        blocking_jobs: section
            .count(findings, "blocking_jobs")
            .unwrap_or(default.blocking_jobs),
    }
}

fn read_tokens(auth: &Section<'_>, findings: &mut Findings) -> Vec<TokenConfig> {
    let mut names = BTreeSet::new();
    let mut secrets = BTreeSet::new();
    let items = auth
        .get("tokens")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items
        .enumerate()
        .filter_map(|(index, item)| {
            let at = format!("{}[{index}]", auth.path("tokens"));
            let section = Section::new(at, Some(item), auth.variables());
            let token = read_token(&section, findings)?;
            if !names.insert(token.name.clone()) {
                findings.error(&section.path("name"), "is the name of another token too");
            }
            if !secrets.insert(token.token.clone()) {
                findings.error(
                    &section.path("token"),
                    "is the same as that of another token",
                );
            }
            Some(token)
        })
        .collect()
}

fn read_token(section: &Section<'_>, findings: &mut Findings) -> Option<TokenConfig> {
    let name = required(section, findings, "name", Kind::Text);
    if name.as_ref().is_some_and(|name| {
        name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control)
    }) {
        findings.error(
            &section.path("name"),
            "must be 1 to 64 characters, no control characters",
        );
    }
    let token = required(section, findings, "token", Kind::Secret);
    if let Some(token) = &token {
        check_token(section, findings, token);
    }
    let scopes = section.text_list(findings, "scopes").map_or_else(
        || vec![Scope::Call],
        |words| {
            words
                .iter()
                .filter_map(|word| read_scope(section, findings, word))
                .collect()
        },
    );
    let servers = section
        .text_list(findings, "servers")
        .unwrap_or_else(|| vec!["*".to_owned()]);
    Some(TokenConfig {
        name: name?,
        token: token?,
        scopes,
        servers,
    })
}

fn check_token(section: &Section<'_>, findings: &mut Findings, token: &str) {
    let path = section.path("token");
    if token.chars().count() < MIN_TOKEN_CHARS {
        findings.error(
            &path,
            format!("must be at least {MIN_TOKEN_CHARS} characters long"),
        );
    }
    if !token.chars().all(|c| c.is_ascii_graphic()) {
        findings.error(&path, "must be visible ASCII characters without blanks");
    }
}

fn read_scope(section: &Section<'_>, findings: &mut Findings, word: &str) -> Option<Scope> {
    let scope = Scope::ALL
        .iter()
        .find(|scope| scope.as_str() == word.trim())
        .copied();
    if scope.is_none() {
        let known: Vec<_> = Scope::ALL
            .iter()
            .map(|scope| format!("`{}`", scope.as_str()))
            .collect();
        findings.error(
            &section.path("scopes"),
            format!("`{word}` is not a scope; known are {}", known.join(", ")),
        );
    }
    scope
}

fn required(
    section: &Section<'_>,
    findings: &mut Findings,
    key: &str,
    kind: Kind,
) -> Option<String> {
    if section.get(key).is_none() {
        findings.error(&section.path(key), "is missing");
    }
    section.text(findings, key, kind)
}
