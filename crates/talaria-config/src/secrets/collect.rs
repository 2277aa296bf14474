//! Every secret of a configuration, so that it can be looked for in what servers say.

use url::Url;

use super::{SecretValues, has_secret_prefix, is_secret_flag, is_secret_name};
use crate::tree::{BackendConfig, Config, HttpConfig, ServerConfig, ServerEntry, TransportConfig};

/// Ways to log in that stand before the secret in a header.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Shortest text that can look like a key without a name that says so.
const MIN_RANDOM_CHARS: usize = 16;

impl Config {
    /// Every secret that is configured: tokens, keys, passwords, headers, and those parts of
    /// environments, arguments and addresses whose name says so. Those shorter than
    /// [`MIN_SECRET_CHARS`](crate::defaults::MIN_SECRET_CHARS) are left out, since they may
    /// stand in any text.
    #[must_use]
    pub fn secrets(&self) -> SecretValues {
        let mut secrets = self.environment_secrets.clone();
        for token in &self.talaria.tokens {
            secrets.keep(&token.token);
        }
        let providers = &self.gate.providers;
        let keys = std::iter::once(&self.gate.main.api_key)
            .chain(providers.iter().map(|provider| &provider.api_key));
        for key in keys.flatten() {
            secrets.keep(key.expose());
        }
        let addresses = std::iter::once(&self.gate.main.base_url)
            .chain(providers.iter().map(|provider| &provider.base_url));
        for address in addresses.flatten() {
            of_address(address.as_str(), &mut secrets);
        }
        let vision = &self.vision;
        let links = vision
            .fallback_chain
            .iter()
            .chain(&vision.fallback_providers);
        for backend in std::iter::once(&vision.aux).chain(links) {
            of_backend(backend, &mut secrets);
        }
        for (_, key) in vision.keys.iter() {
            secrets.keep(key.expose());
        }
        for entry in self.servers.values() {
            if let ServerEntry::Usable(server) = entry {
                of_server(server, &mut secrets);
            }
        }
        secrets
    }
}

fn of_backend(backend: &BackendConfig, secrets: &mut SecretValues) {
    if let Some(key) = &backend.api_key {
        secrets.keep(key.expose());
    }
    if let Some(address) = &backend.base_url {
        of_address(address.as_str(), secrets);
    }
}

fn of_server(server: &ServerConfig, secrets: &mut SecretValues) {
    match &server.transport {
        TransportConfig::Stdio { args, env, .. } => {
            for (name, value) in env {
                of_pair(name, value, secrets);
            }
            of_args(args, secrets);
        }
        TransportConfig::Http(http) => of_http(http, secrets),
    }
}

fn of_http(http: &HttpConfig, secrets: &mut SecretValues) {
    of_address(&http.url, secrets);
    for (name, value) in &http.headers {
        of_header(name, value, secrets);
    }
    if let Some((name, value)) = &http.identity_header {
        of_header(name, value, secrets);
    }
    if let Some(password) = &http.tls.key_password {
        secrets.keep(password.expose());
    }
}

/// A header's value and what follows its scheme, where the name says that it is a secret or the
/// value looks like one.
fn of_header(name: &str, value: &str, secrets: &mut SecretValues) {
    let after_scheme = value
        .split_once(' ')
        .filter(|(scheme, _)| SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it)))
        .map(|(_, rest)| rest);
    if !is_secret_name(name) && after_scheme.is_none() && !looks_random(value) {
        return;
    }
    secrets.keep(value);
    secrets.keep(after_scheme.unwrap_or_default());
    for (name, value) in value.split(';').filter_map(|part| part.split_once('=')) {
        // Each cookie of a line of them.
        if is_secret_name(name) || looks_random(value) {
            secrets.keep(value);
        }
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

fn of_pair(name: &str, value: &str, secrets: &mut SecretValues) {
    if is_secret_name(name) || has_secret_prefix(value) {
        secrets.keep(value);
    } else {
        of_address(value, secrets);
    }
}

fn of_args(args: &[String], secrets: &mut SecretValues) {
    let mut after_secret_flag = false;
    for arg in args {
        if after_secret_flag && !arg.starts_with('-') && !arg.contains("://") {
            secrets.keep(arg);
        }
        after_secret_flag = is_secret_flag(arg) && is_secret_name(arg);
        match arg.split_once('=') {
            Some((name, value)) if !name.contains("://") => of_pair(name, value, secrets),
            Some(_) | None => of_pair("", arg, secrets),
        }
    }
}

/// The password of an address and the secret parts of its query, as they stand and decoded.
fn of_address(text: &str, secrets: &mut SecretValues) {
    if !text.contains("://") {
        return;
    }
    let Ok(url) = Url::parse(text) else {
        return;
    };
    if let Some(password) = url.password() {
        secrets.keep(password);
        if let Ok(decoded) = percent_encoding::percent_decode_str(password).decode_utf8() {
            secrets.keep(&decoded);
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
