//! The part of an entry that concerns servers over HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

use super::holds_something;
use crate::defaults::UNIX_SOCKET_PATH;
use crate::problem::Findings;
use crate::schema::Kind;
use crate::section::{Section, boolean_word, fill};
use crate::tree::{HttpConfig, HttpKind, Secret, TlsConfig, Verify};

/// Keys that concern servers over HTTP only.
pub(super) const KEYS: [&str; 7] = [
    "headers",
    "ssl_verify",
    "client_cert",
    "client_key",
    "identity_header",
    "strict_redirect_headers",
    "skip_preflight",
];

/// What an address is told that is none.
const WANTED_URL: &str = "must be an http or https address, such as `http://127.0.0.1:8000/mcp`, \
                          or a socket, such as `unix:///run/server.sock`";

pub(super) fn read(
    section: &Section<'_>,
    kind: HttpKind,
    findings: &mut Findings,
) -> Option<HttpConfig> {
    for key in ["args", "env", "cwd"] {
        if holds_something(section, key) {
            findings.warn(
                &section.path(key),
                "has no effect on a server reached over HTTP",
            );
        }
    }
    let headers = read_headers(section, findings);
    let tls = read_tls(section, findings);
    let strict_redirect_headers = section
        .boolean(findings, "strict_redirect_headers")
        .unwrap_or(false);
    let skip_preflight = section.boolean(findings, "skip_preflight").unwrap_or(false);
    let identity_header = read_identity(section, &headers, findings);
    let text = section.text(findings, "url", Kind::Url)?;
    let Some((url, unix_socket)) = read_address(text.trim()) else {
        findings.error(&section.path("url"), WANTED_URL);
        return None;
    };
    Some(HttpConfig {
        url,
        headers,
        kind,
        unix_socket,
        tls,
        strict_redirect_headers,
        skip_preflight,
        identity_header,
    })
}

/// The endpoint, and the socket it is reached over: `unix:///path.sock`, the same with
/// `:/http/path` behind it, or `http+unix://%2Fpath.sock/http/path`.
fn read_address(text: &str) -> Option<(String, Option<PathBuf>)> {
    if let Some(rest) = text.strip_prefix("unix://") {
        let (socket, path) = match rest.find(":/") {
            Some(colon) => (rest.get(..colon)?, rest.get(colon + 1..)?),
            None => (rest, UNIX_SOCKET_PATH),
        };
        return on_socket(socket, path);
    }
    if let Some(rest) = text.strip_prefix("http+unix://") {
        let (host, path) = match rest.find('/') {
            Some(slash) => (rest.get(..slash)?, rest.get(slash..)?),
            None => (rest, UNIX_SOCKET_PATH),
        };
        let socket = percent_decode_str(host).decode_utf8().ok()?;
        return on_socket(&socket, path);
    }
    let parsed = Url::parse(text).ok()?;
    let is_http = matches!(parsed.scheme(), "http" | "https") && parsed.has_host();
    is_http.then(|| (text.to_owned(), None))
}

fn on_socket(socket: &str, path: &str) -> Option<(String, Option<PathBuf>)> {
    let is_path = socket.len() > 1 && socket.starts_with('/') && !socket.contains('\0');
    let url = Url::parse(&format!("http://localhost{path}")).ok()?;
    is_path.then(|| (url.to_string(), Some(PathBuf::from(socket))))
}

fn read_headers(section: &Section<'_>, findings: &mut Findings) -> BTreeMap<String, String> {
    let entries = section.text_map(findings, "headers");
    for (name, value) in &entries {
        let path = format!("{}.{name}", section.path("headers"));
        check_header(&path, name, value, findings);
    }
    entries
        .into_iter()
        .map(|(name, value)| (name, value.trim().to_owned()))
        .collect()
}

fn check_header(path: &str, name: &str, value: &str, findings: &mut Findings) {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        findings.error(path, "is not a name a header can have");
    }
    if HeaderValue::from_str(value.trim()).is_err() {
        findings.error(path, "holds characters a header cannot carry");
    }
}

/// `identity_header`: a further header with a value that stands in the file.
fn read_identity(
    section: &Section<'_>,
    headers: &BTreeMap<String, String>,
    findings: &mut Findings,
) -> Option<(String, String)> {
    if !holds_something(section, "identity_header") {
        return None;
    }
    let identity = section.child("identity_header");
    let source = identity.text(findings, "value_from", Kind::Text);
    match source.as_deref().map(str::trim) {
        None | Some("static") => {}
        Some("profile") => {
            let message = "`profile` is not available, this service has no profiles; use \
                           `static` and set `value`";
            findings.error(&identity.path("value_from"), message);
            return None;
        }
        Some(_) => {
            findings.error(&identity.path("value_from"), "must be `static`");
            return None;
        }
    }
    let mut needed = |key: &str, kind| {
        if identity.get(key).is_none() {
            findings.error(&identity.path(key), "is missing");
        }
        let text = identity.text(findings, key, kind)?;
        Some(text.trim().to_owned())
    };
    let (name, value) = (needed("name", Kind::Text)?, needed("value", Kind::Secret)?);
    check_header(&identity.path("value"), &name, &value, findings);
    if headers.keys().any(|held| held.eq_ignore_ascii_case(&name)) {
        let message = format!("`{name}` is set under `headers` as well");
        findings.error(&identity.path("name"), message);
    }
    Some((name, value))
}

fn read_tls(section: &Section<'_>, findings: &mut Findings) -> TlsConfig {
    let mut tls = TlsConfig {
        verify: read_verify(section, findings),
        ..TlsConfig::default()
    };
    match section.get("client_cert") {
        Some(Value::Array(items)) => {
            if items.len() > 3 {
                let message = "must be a path, or a list of certificate, key and password";
                findings.error(&section.path("client_cert"), message);
            }
            let mut parts = items.iter().enumerate().map(|(index, item)| {
                let path = format!("{}[{index}]", section.path("client_cert"));
                let is_said = !item.is_null();
                is_said.then(|| fill(findings, section.variables(), &path, item, Kind::Secret))?
            });
            let (cert, key, password) = (
                parts.next().flatten(),
                parts.next().flatten(),
                parts.next().flatten(),
            );
            tls.client_cert = file(section, findings, "client_cert", cert);
            tls.client_key = file(section, findings, "client_cert", key);
            tls.key_password = password.map(Secret::from);
        }
        Some(_) => {
            let cert = section.text(findings, "client_cert", Kind::Url);
            tls.client_cert = file(section, findings, "client_cert", cert);
        }
        None => {}
    }
    let key = section.text(findings, "client_key", Kind::Url);
    if let Some(key) = file(section, findings, "client_key", key) {
        if tls.client_cert.is_none() {
            findings.error(&section.path("client_key"), "needs `client_cert`");
        }
        tls.client_key = Some(key);
    }
    tls
}

fn read_verify(section: &Section<'_>, findings: &mut Findings) -> Verify {
    let Some(value) = section.get("ssl_verify") else {
        return Verify::System;
    };
    let text = match value.as_bool() {
        Some(verify) => verify.to_string(),
        None => section
            .text(findings, "ssl_verify", Kind::Url)
            .unwrap_or_default(),
    };
    match boolean_word(&text) {
        Some(true) => Verify::System,
        Some(false) => {
            let message = "is off: anybody on the way can read and change what is said";
            findings.warn(&section.path("ssl_verify"), message);
            Verify::Off
        }
        None => {
            file(section, findings, "ssl_verify", Some(text)).map_or(Verify::System, Verify::Ca)
        }
    }
}

/// The path of a file: `~` is filled in, a relative path counts from the configuration file.
fn file(
    section: &Section<'_>,
    findings: &mut Findings,
    key: &str,
    text: Option<String>,
) -> Option<PathBuf> {
    let text = text?;
    let text = text.trim();
    let path = section.path(key);
    if text.is_empty() || text.contains('\0') {
        findings.error(&path, "must be the path of a file");
        return None;
    }
    let absolute = section.variables().absolute(text);
    if absolute.is_none() {
        findings.error(&path, "must be an absolute path, or one below `~/`");
    }
    absolute
}
