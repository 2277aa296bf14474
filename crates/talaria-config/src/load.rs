//! From text to a checked configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};
use talaria_types::ServerName;

use crate::audit::{audit, audit_list, audit_named, audit_top_level};
use crate::defaults;
use crate::gate;
use crate::interpolate::Variables;
use crate::own;
use crate::problem::{ConfigErrors, Findings, Problem};
use crate::schema::{self, Place};
use crate::secrets::SecretValues;
use crate::section::{Section, boolean_word};
use crate::server::{self, Switches};
use crate::tree::{Config, ServerEntry, TokenConfig};
use crate::vision;
use crate::yaml;

/// Variable that switches all MCP servers off, as in Hermes.
const SAFE_MODE: &str = "HERMES_SAFE_MODE";

/// Where a configuration comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The file; relative paths count from its directory.
    pub file: Option<PathBuf>,
    /// The directory behind `${workspaceFolder}`; the variable `PWD` when absent.
    pub workspace: Option<PathBuf>,
}

impl Source {
    /// A file.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(path.into()),
            workspace: None,
        }
    }

    fn name(&self) -> String {
        self.file
            .as_ref()
            .map_or_else(|| "(none)".to_owned(), |path| path.display().to_string())
    }
}

/// Reads a configuration.
///
/// A server's entry that is not usable is kept as [`ServerEntry::Broken`]; everything else that
/// is wrong is an error, all of it at once.
///
/// # Errors
/// The text is not YAML, or a value outside `mcp_servers` is not usable.
pub fn load(
    text: &str,
    environment: &BTreeMap<String, String>,
    source: &Source,
) -> Result<Config, ConfigErrors> {
    let failed = |problems| ConfigErrors::new(source.name(), problems);
    let whole = |message| {
        failed(vec![Problem {
            path: String::new(),
            message,
        }])
    };
    let root = match yaml::parse(text).map_err(whole)? {
        Value::Object(root) => root,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(whole("the file must be a map of sections".to_owned()));
        }
    };
    let mut findings = Findings::default();
    let config = read(
        &root,
        Variables {
            environment,
            source,
        },
        &mut findings,
    );
    if findings.has_problems() {
        return Err(failed(findings.take_problems()));
    }
    Ok(Config {
        environment_values: std::mem::take(&mut findings.secrets),
        environment_secrets: std::mem::take(&mut findings.named_secrets),
        warnings: findings.into_warnings(),
        ..config
    })
}

/// The configuration without a file: defaults, no servers.
///
/// # Errors
/// There is no home directory to put files in.
pub fn load_default(environment: &BTreeMap<String, String>) -> Result<Config, ConfigErrors> {
    load("", environment, &Source::default())
}

fn read(root: &Map<String, Value>, variables: Variables<'_>, findings: &mut Findings) -> Config {
    audit_top_level(findings, root);
    for (name, value) in root {
        // Each server is audited on its own, so that it costs itself only.
        if name == "mcp_servers" || name.contains(['.', '*', '[']) {
            continue;
        }
        match schema::place(name) {
            // The name of the main model alone will do.
            Place::Section if name == "model" && value.is_string() => {}
            Place::Section => audit(findings, name, name, value),
            Place::NamedSections => audit_named(findings, name, &format!("{name}.*"), value),
            Place::ListOfSections => audit_list(findings, name, &format!("{name}[]"), value),
            Place::Leaf(_) | Place::Unknown => {}
        }
    }
    let section = |name: &str| Section::new(name.to_owned(), root.get(name), variables);
    let talaria = own::read(&section("talaria"), &section("vision"), findings);
    let switches = read_switches(&section("mcp"), &section("timeouts"), variables, findings);
    let servers = read_servers(root.get("mcp_servers"), variables, switches, findings);
    warn_of_unknown_servers(&talaria.tokens, &servers, findings);
    Config {
        talaria,
        servers,
        result_size_chars: section("tool_budget")
            .count(findings, "mcp_result_size_chars")
            .map_or(defaults::RESULT_SIZE_CHARS, Into::into),
        gate: gate::read(root, variables, findings),
        vision: vision::read(root, variables, findings),
        security: own::read_security(&section("security"), findings),
        environment_values: SecretValues::default(),
        environment_secrets: SecretValues::default(),
        warnings: Vec::new(),
    }
}

fn read_switches(
    mcp: &Section<'_>,
    timeouts: &Section<'_>,
    variables: Variables<'_>,
    findings: &mut Findings,
) -> Switches {
    let safe_mode = variables
        .environment
        .get(SAFE_MODE)
        .and_then(|word| boolean_word(word))
        .unwrap_or(false);
    let client = mcp.boolean(findings, "client").unwrap_or(true);
    let stdio = mcp.boolean(findings, "stdio_servers").unwrap_or(true);
    if safe_mode {
        findings.warn("", format!("`{SAFE_MODE}` is set: no server is started"));
    } else if !client {
        findings.warn("mcp.client", "is off: no server is started");
    } else if !stdio {
        findings.warn("mcp.stdio_servers", "is off: no stdio server is started");
    }
    Switches {
        client: client && !safe_mode,
        stdio,
        timeout: timeouts
            .child("mcp")
            .positive_duration(findings, "tool_call")
            .unwrap_or(defaults::TOOL_CALL_TIMEOUT),
    }
}

fn read_servers(
    value: Option<&Value>,
    variables: Variables<'_>,
    switches: Switches,
    findings: &mut Findings,
) -> BTreeMap<ServerName, ServerEntry> {
    match value {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(Value::Object(entries)) => entries
            .iter()
            .map(|(name, entry)| {
                let entry = server::read(name, entry, variables, switches, findings);
                (ServerName::from(name.as_str()), entry)
            })
            .collect(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            findings.error(
                "mcp_servers",
                "must be a map of server names and their settings",
            );
            BTreeMap::new()
        }
    }
}

fn warn_of_unknown_servers(
    tokens: &[TokenConfig],
    servers: &BTreeMap<ServerName, ServerEntry>,
    findings: &mut Findings,
) {
    for (index, token) in tokens.iter().enumerate() {
        for name in token
            .servers
            .iter()
            .filter(|name| !name.contains(['*', '?', '[']))
        {
            if !servers.contains_key(&ServerName::from(name.as_str())) {
                let path = format!("talaria.auth.tokens[{index}].servers");
                findings.warn(&path, format!("there is no server `{name}`"));
            }
        }
    }
}
