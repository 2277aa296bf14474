//! Which parts of a configured text are secrets: headers, pairs, arguments, addresses, JSON.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use url::Url;

use super::{SecretValues, has_secret_prefix, is_secret_flag, is_secret_name};

/// Ways to log in that stand before the secret in a header.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Shortest text that can look like a key without a name that says so.
const MIN_RANDOM_CHARS: usize = 16;
/// The same for a part of a path, which may be the name of what is asked for.
const MIN_RANDOM_SEGMENT: usize = 20;

/// Base64 with or without its padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Name and value of a header written as `Name: value`, as command lines take it.
pub(super) fn split_header(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(':')?;
    let value = value.trim();
    let is_name = name.len() > 1
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    (is_name && !value.is_empty() && !value.starts_with("//")).then_some((name, value))
}

/// The way to log in and what follows it, where a header's value begins with one.
pub(super) fn split_scheme(value: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = value.trim().split_once(' ')?;
    let is_known = SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it));
    is_known.then(|| (scheme, rest.trim()))
}

/// A header's value and what follows its scheme, where the name says that it is a secret or the
/// value looks like one.
pub(super) fn of_header(name: &str, value: &str, secrets: &mut SecretValues) {
    let login = split_scheme(value);
    if !is_secret_name(name) && login.is_none() && !looks_random(value) {
        return;
    }
    secrets.keep(value);
    if let Some((scheme, rest)) = login {
        secrets.keep(rest);
        if scheme.eq_ignore_ascii_case("basic") {
            of_basic(rest, secrets);
        }
    }
    for (name, value) in value.split(';').filter_map(|part| part.split_once('=')) {
        // Each cookie of a line of them.
        if is_secret_name(name) || looks_random(value) {
            secrets.keep(value);
        }
    }
}

/// The password of `user:password` in base64; the user, where the other is empty.
fn of_basic(encoded: &str, secrets: &mut SecretValues) {
    let Some(login) = LENIENT
        .decode(encoded)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
    else {
        return;
    };
    match login.split_once(':') {
        Some((user, "")) => secrets.keep(user),
        Some((_, password)) => secrets.keep(password),
        None => secrets.keep(&login),
    }
}

/// Long, letters and digits mixed, and neither an address nor a path nor a sentence.
fn looks_random(text: &str) -> bool {
    text.chars().count() >= MIN_RANDOM_CHARS
        && text.chars().any(|c| c.is_ascii_digit())
        && text.chars().any(|c| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_graphic() && !matches!(c, '/' | '@' | '=' | ';' | ','))
}

/// A named value: whole, where its name or its beginning says so, and what is inside it.
pub(super) fn of_pair(name: &str, value: &str, secrets: &mut SecretValues) {
    if is_secret_name(name) || has_secret_prefix(value) {
        of_header(name, value, secrets);
        secrets.keep(value);
    }
    of_inside(value, secrets);
}

/// What a value holds that has a form of its own: JSON, a header, an address, a login.
fn of_inside(value: &str, secrets: &mut SecretValues) {
    if value.trim_start().starts_with(['{', '['])
        && let Ok(json) = serde_json::from_str::<Value>(value)
    {
        return of_json("", &json, secrets);
    }
    if let Some((name, value)) = split_header(value) {
        of_header(name, value, secrets);
    }
    if value.contains("://") {
        of_address(value, secrets);
    } else if let Some((login, host)) = value.rsplit_once('@')
        && let Some((user, password)) = login.split_once(':')
        && !user.contains(|c: char| c.is_whitespace() || c == '/')
        && is_host(host)
    {
        secrets.keep(password);
    }
}

/// Whether what follows an at sign is a host, not the version or the digest of a package.
fn is_host(text: &str) -> bool {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.contains('.');
    let has_port_or_path = text.contains([':', '/']) && !text.starts_with("sha256:");
    is_name || has_port_or_path || text == "localhost"
}

/// The members of JSON that some servers take in one variable, such as a map of headers.
fn of_json(name: &str, value: &Value, secrets: &mut SecretValues) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => of_pair(name, text, secrets),
        Value::Array(items) => {
            for item in items {
                of_json(name, item, secrets);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                of_json(name, member, secrets);
            }
        }
    }
}

pub(super) fn of_args(args: &[String], secrets: &mut SecretValues) {
    let mut after_secret_flag = false;
    for arg in args {
        if after_secret_flag && !arg.starts_with('-') && !arg.contains("://") {
            secrets.keep(arg);
            if let Some((_, value)) = arg.split_once('=') {
                // A cookie.
                secrets.keep(value);
            }
        }
        after_secret_flag = is_secret_flag(arg) && is_secret_name(arg);
        match arg.split_once('=') {
            Some((name, value)) if is_option(name) => of_pair(name, value, secrets),
            Some(_) | None => of_pair("", arg, secrets),
        }
    }
}

/// Whether what stands before an equals sign is the name of an option or a variable.
pub(super) fn is_option(name: &str) -> bool {
    !name.contains("://")
        && !name.contains(['{', '"', ' '])
        && split_header(name).is_none_or(|(_, rest)| is_secret_name(rest))
}

/// The password of an address, a user who is none, the secret parts of its query as they stand
/// and decoded, and those parts of its path that look like a key.
pub(super) fn of_address(text: &str, secrets: &mut SecretValues) {
    if !text.contains("://") {
        return;
    }
    let Ok(url) = Url::parse(text) else {
        return;
    };
    let user = url.username();
    let login = match url.password() {
        Some(password) => password,
        None if has_secret_prefix(user) || looks_random(user) => user,
        None => "",
    };
    secrets.keep(login);
    if let Ok(decoded) = percent_encoding::percent_decode_str(login).decode_utf8() {
        secrets.keep(&decoded);
    }
    for segment in url.path_segments().into_iter().flatten() {
        let is_plain = segment.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_plain && segment.len() >= MIN_RANDOM_SEGMENT && looks_random(segment) {
            secrets.keep(segment);
        }
    }
    for (name, value) in url.query_pairs() {
        if is_secret_name(&name) {
            secrets.keep(&value);
        }
    }
    let written = url.query().unwrap_or_default().split('&');
    for (name, value) in written.filter_map(|pair| pair.split_once('=')) {
        if is_secret_name(name) {
            secrets.keep(value);
        }
    }
}
