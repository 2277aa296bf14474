//! One entry of `mcp_servers`. What is wrong with it costs this server only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use talaria_types::ServerName;

mod http;

use crate::audit::{audit, is_default};
use crate::command_check;
use crate::defaults::{
    CONNECT_TIMEOUT, KEEPALIVE_INTERVAL, MIN_KEEPALIVE_INTERVAL, PARALLEL_RPC_CONCURRENCY,
    RPC_CONCURRENCY,
};
use crate::interpolate::Variables;
use crate::problem::{Findings, Problem};
use crate::schema::{self, Kind, Place};
use crate::section::{Section, fill, scalar_text};
use crate::tree::{
    HttpKind, NamePrefix, ProtocolWish, ServerConfig, ServerEntry, ToolFilter, TransportConfig,
    Trust,
};

/// Longest name of a server.
const MAX_NAME_CHARS: usize = 128;

/// Switches that concern every server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switches {
    /// `mcp.client`, and no safe mode.
    pub(crate) client: bool,
    /// `mcp.stdio_servers`.
    pub(crate) stdio: bool,
    /// `timeouts.mcp.tool_call`.
    pub(crate) timeout: Duration,
}

/// Reads one entry; its warnings join those of the file.
pub(crate) fn read(
    name: &str,
    value: &Value,
    variables: Variables<'_>,
    switches: Switches,
    findings: &mut Findings,
) -> ServerEntry {
    let mut own = Findings::default();
    let at = format!("mcp_servers.{name}");
    let section = Section::new(at.clone(), Some(value), variables);
    check_name(&at, name, &mut own);
    if value.is_object() {
        audit(&mut own, &at, "mcp_servers.*", value);
    } else {
        own.error(&at, "must be a map with `command` or `url`");
    }
    let entry = read_section(&section, name, switches, &mut own);
    let problems = own.take_problems();
    findings.absorb_warnings(own);
    match entry {
        Some(server) if problems.is_empty() => ServerEntry::Usable(Box::new(server)),
        Some(_) | None => {
            let lines: Vec<_> = problems.iter().map(Problem::to_string).collect();
            ServerEntry::Broken {
                problem: lines.join("; "),
            }
        }
    }
}

fn check_name(at: &str, name: &str, findings: &mut Findings) {
    let is_odd = name.trim().is_empty()
        || name.chars().count() > MAX_NAME_CHARS
        || name.chars().any(char::is_control);
    if is_odd {
        let message =
            format!("a server's name is 1 to {MAX_NAME_CHARS} characters, no control characters");
        findings.error(at, message);
    }
}

fn read_section(
    section: &Section<'_>,
    name: &str,
    switches: Switches,
    findings: &mut Findings,
) -> Option<ServerConfig> {
    let enabled = section.boolean(findings, "enabled").unwrap_or(true);
    let parallel = section
        .boolean(findings, "supports_parallel_tool_calls")
        .unwrap_or(false);
    let timeout = section
        .positive_duration(findings, "timeout")
        .unwrap_or(switches.timeout);
    let connect_timeout = section
        .positive_duration(findings, "connect_timeout")
        .unwrap_or(CONNECT_TIMEOUT);
    let rpc_concurrency = section
        .count(findings, "rpc_concurrency")
        .unwrap_or(if parallel {
            PARALLEL_RPC_CONCURRENCY
        } else {
            RPC_CONCURRENCY
        });
    let tools = read_filter(&section.child("tools"), findings);
    let name_prefix = read_prefix(section, findings);
    let keepalive = section.duration(findings, "keepalive_interval");
    let trust = read_trust(section);
    let lazy = section.boolean(findings, "lazy").unwrap_or(false);
    let idle_timeout = read_age(section, findings, "idle_timeout_seconds");
    let max_lifetime = read_age(section, findings, "max_lifetime_seconds");
    let protocol = section
        .one_of(findings, "protocol", ProtocolWish::ALL, |it| it.as_str())
        .unwrap_or(ProtocolWish::Auto);
    let transport = read_transport(section, findings)?;
    let (is_on, keepalive_default) = match &transport {
        TransportConfig::Stdio { .. } => (switches.client && switches.stdio, None),
        TransportConfig::Http(_) => (switches.client, Some(KEEPALIVE_INTERVAL)),
    };
    Some(ServerConfig {
        name: ServerName::from(name),
        transport,
        enabled: enabled && is_on,
        timeout,
        connect_timeout,
        rpc_concurrency,
        tools,
        name_prefix,
        trust,
        keepalive_interval: keepalive
            .map(|interval| interval.max(MIN_KEEPALIVE_INTERVAL))
            .or(keepalive_default),
        lazy,
        idle_timeout,
        max_lifetime,
        protocol,
    })
}

/// An age, of the entry itself or of its section `lifecycle`; zero means never.
fn read_age(section: &Section<'_>, findings: &mut Findings, key: &str) -> Option<Duration> {
    let own = section.duration(findings, key);
    let nested = section.child("lifecycle").duration(findings, key);
    own.or(nested).filter(|age| !age.is_zero())
}

fn read_filter(section: &Section<'_>, findings: &mut Findings) -> ToolFilter {
    ToolFilter {
        include: section.text_list(findings, "include"),
        exclude: section.text_list(findings, "exclude").unwrap_or_default(),
        without_resources: !section.boolean(findings, "resources").unwrap_or(true),
        without_prompts: !section.boolean(findings, "prompts").unwrap_or(true),
    }
}

fn read_prefix(section: &Section<'_>, findings: &mut Findings) -> NamePrefix {
    let Some(word) = section.text(findings, "name_prefix", Kind::Text) else {
        return NamePrefix::Default;
    };
    match word.trim().to_ascii_lowercase().as_str() {
        "default" => NamePrefix::Default,
        "none" => NamePrefix::None,
        _ => {
            findings.error(&section.path("name_prefix"), "must be `default` or `none`");
            NamePrefix::Default
        }
    }
}

/// Fails closed: whatever is not the word `full` means untrusted.
fn read_trust(section: &Section<'_>) -> Trust {
    match section.get("trust") {
        None => Trust::Full,
        Some(value) => match value.as_str() {
            Some(word) if word.trim().eq_ignore_ascii_case("full") => Trust::Full,
            Some(_) | None => Trust::Untrusted,
        },
    }
}

/// How a server says it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Stdio,
    Http(HttpKind),
}

fn read_transport(section: &Section<'_>, findings: &mut Findings) -> Option<TransportConfig> {
    let wish = read_wish(section, findings)?;
    let is_there = |key| {
        section
            .get(key)
            .is_some_and(|value| scalar_text(value).is_none_or(|t| !t.trim().is_empty()))
    };
    match (is_there("command"), is_there("url")) {
        (true, true) => {
            findings.error(
                &section.path("command"),
                "a server has either `command` or `url`, not both",
            );
            None
        }
        (false, false) => {
            findings.error(
                &section.path("command"),
                "a server needs `command` or `url`",
            );
            None
        }
        (true, false) if matches!(wish, Some(Wish::Http(_))) => {
            findings.error(
                &section.path("transport"),
                "a server reached over HTTP needs `url`",
            );
            None
        }
        (false, true) if wish == Some(Wish::Stdio) => {
            findings.error(&section.path("transport"), "a stdio server needs `command`");
            None
        }
        (true, false) => read_stdio(section, findings),
        (false, true) => {
            let kind = match wish {
                Some(Wish::Http(kind)) => kind,
                Some(Wish::Stdio) | None => HttpKind::Auto,
            };
            let http = http::read(section, kind, findings)?;
            Some(TransportConfig::Http(Box::new(http)))
        }
    }
}

/// The outer `None` refuses the server.
fn read_wish(section: &Section<'_>, findings: &mut Findings) -> Option<Option<Wish>> {
    let path = section.path("transport");
    let Some(word) = section.text(findings, "transport", Kind::Text) else {
        return Some(None);
    };
    match word.trim().to_ascii_lowercase().replace('_', "-").as_str() {
        "" => Some(None),
        "stdio" => Some(Some(Wish::Stdio)),
        "http" | "streamable-http" | "streamablehttp" => {
            Some(Some(Wish::Http(HttpKind::Streamable)))
        }
        "sse" => Some(Some(Wish::Http(HttpKind::Sse))),
        _ => {
            findings.error(&path, "must be `stdio`, `http` or `sse`");
            None
        }
    }
}

fn read_stdio(section: &Section<'_>, findings: &mut Findings) -> Option<TransportConfig> {
    for key in http::KEYS {
        if holds_something(section, key) && !holds_default(section, key) {
            findings.warn(&section.path(key), "has no effect on a stdio server");
        }
    }
    let command = section.text(findings, "command", Kind::Command)?;
    let command = expand(section, findings, "command", command.trim())?;
    let args = read_args(section, findings);
    let env = read_env(section, findings);
    let cwd = match section.text(findings, "cwd", Kind::Text) {
        Some(text) => Some(PathBuf::from(expand(
            section,
            findings,
            "cwd",
            text.trim(),
        )?)),
        None => None,
    };
    let args = args?;
    if let Some(refusal) = command_check::refusal(&command, &args) {
        findings.error(&section.path("command"), refusal);
        return None;
    }
    Some(TransportConfig::Stdio {
        command,
        args,
        env,
        cwd,
    })
}

fn holds_something(section: &Section<'_>, key: &str) -> bool {
    match section.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => true,
    }
}

/// Whether a key says what would be so without it.
fn holds_default(section: &Section<'_>, key: &str) -> bool {
    let place = schema::place(&format!("mcp_servers.*.{key}"));
    if let (Place::Leaf(known), Some(value)) = (place, section.get(key)) {
        is_default(known, value)
    } else {
        false
    }
}

fn expand(section: &Section<'_>, findings: &mut Findings, key: &str, text: &str) -> Option<String> {
    let path = section.path(key);
    if text.contains('\0') {
        findings.error(&path, "must not hold a NUL character");
        return None;
    }
    let expanded = section.variables().expand_tilde(text);
    if expanded.is_none() {
        findings.error(
            &path,
            "`~/` needs the variable `HOME`, and no other home than that is known",
        );
    }
    expanded
}

/// A list, a JSON list in a string, or a line as for a shell (specification 4.3).
fn read_args(section: &Section<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    let path = section.path("args");
    let items: Vec<Value> = match section.get("args") {
        None => return Some(Vec::new()),
        Some(Value::Array(items)) => items.clone(),
        Some(Value::String(line)) => match split_args(line) {
            Ok(items) => items,
            Err(message) => {
                findings.error(&path, message);
                return None;
            }
        },
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            findings.error(&path, "must be a list of texts, or a line as for a shell");
            return None;
        }
    };
    let args: Vec<Option<String>> = items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let path = format!("{path}[{index}]");
            let text = fill(findings, section.variables(), &path, item, Kind::Args);
            if text.as_ref().is_some_and(|text| text.contains('\0')) {
                findings.error(&path, "must not hold a NUL character");
            }
            text
        })
        .collect();
    args.into_iter().collect()
}

/// Splits before variables are filled in, so that a value with blanks stays one argument.
fn split_args(line: &str) -> Result<Vec<Value>, &'static str> {
    let line = line.trim();
    if line.starts_with('[') {
        return serde_json::from_str(line)
            .map_err(|_not_a_list| "looks like a JSON list but is not one");
    }
    if line.starts_with('{') && serde_json::from_str::<Value>(line).is_ok() {
        return Err("must be a list, not a JSON object");
    }
    let words = shlex::split(line).ok_or("has an open quote")?;
    Ok(words.into_iter().map(Value::String).collect())
}

fn read_env(section: &Section<'_>, findings: &mut Findings) -> BTreeMap<String, String> {
    let entries = section.text_map(findings, "env");
    for (name, value) in &entries {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let path = format!("{}.{name}", section.path("env"));
            findings.error(&path, "is not a variable an environment can hold");
        }
    }
    entries.into_iter().collect()
}
