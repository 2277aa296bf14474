//! What a file may say and what it is told when it is wrong.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support fails the test"
)]

mod difference;
mod gate;
mod hermes;
mod http;
mod images;
mod own;
mod robustness;
mod secrets;
mod server;
mod vision;

use std::collections::BTreeMap;

use talaria_config::{
    Config, ConfigErrors, HttpConfig, ServerConfig, ServerEntry, Source, TransportConfig, load,
};
use talaria_types::ServerName;

pub(crate) fn environment() -> BTreeMap<String, String> {
    [
        ("HOME", "/home/me"),
        ("PWD", "/srv/work"),
        ("TALARIA_TOKEN", "token-of-sixteen-or-more"),
        ("KEY", "k3y-from-the-environment"),
        ("BLANK", " blank-around\n"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

pub(crate) fn read(text: &str) -> Result<Config, ConfigErrors> {
    load(
        text,
        &environment(),
        &Source::file("/etc/talaria/config.yaml"),
    )
}

pub(crate) fn good(text: &str) -> Config {
    read(text).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(crate) fn problems(text: &str) -> Vec<String> {
    match read(text) {
        Ok(config) => panic!("was accepted: {config:?}"),
        Err(errors) => errors.problems().iter().map(ToString::to_string).collect(),
    }
}

/// A file with one server `s`, given as its flow map.
pub(crate) fn entry(server: &str) -> ServerEntry {
    let config = good(&format!("mcp_servers:\n  s: {server}\n"));
    config
        .servers
        .get(&ServerName::from("s"))
        .cloned()
        .expect("is there")
}

pub(crate) fn server(text: &str) -> ServerConfig {
    match entry(text) {
        ServerEntry::Usable(server) => *server,
        ServerEntry::Broken { problem } => panic!("{problem}"),
    }
}

pub(crate) fn broken(text: &str) -> String {
    match entry(text) {
        ServerEntry::Usable(server) => panic!("was accepted: {server:?}"),
        ServerEntry::Broken { problem } => problem,
    }
}

pub(crate) fn args(text: &str) -> Vec<String> {
    match server(text).transport {
        TransportConfig::Stdio { args, .. } => args,
        TransportConfig::Http(_) => panic!("not stdio"),
    }
}

pub(crate) fn http(text: &str) -> HttpConfig {
    match server(text).transport {
        TransportConfig::Http(http) => *http,
        TransportConfig::Stdio { .. } => panic!("not over HTTP"),
    }
}
