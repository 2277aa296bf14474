//! Every secret of a configuration, so that it can be looked for in what servers say.

use super::SecretValues;
use super::texts::{of_address, of_args, of_header, of_pair};
use crate::tree::{BackendConfig, Config, HttpConfig, ServerConfig, ServerEntry, TransportConfig};

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
