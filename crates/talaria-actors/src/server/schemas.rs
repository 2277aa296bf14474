//! What lazy servers offered the last time, in `<home>/cache/mcp_schema_cache.json`.
//!
//! An entry belongs to a server as it is configured: with another command, address or filter
//! there is none. The file is read once; everything here may block on the disk, so callers run it
//! on a blocking pool.

use std::collections::BTreeMap;
use std::path::Path;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use talaria_config::{ServerConfig, TransportConfig};
use talaria_media::PrivateFile;

use crate::catalogue::Catalogue;
use crate::directory::{ToolDraft, ToolTarget, Utility, definition};

/// The file may grow so far.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// One entry may have so much of it.
const MAX_ENTRY_BYTES: usize = 4 * 1024 * 1024;
/// Servers that are remembered.
const MAX_SERVERS: usize = 1024;
/// Hex digits of a fingerprint.
const FINGERPRINT_DIGITS: usize = 16;

/// The utilities, to find them by name.
const UTILITIES: &[Utility] = &[
    Utility::ListResources,
    Utility::ReadResource,
    Utility::ListPrompts,
    Utility::GetPrompt,
];

/// The file.
#[derive(Debug)]
pub(crate) struct Schemas {
    file: PrivateFile,
    /// What it holds, once it was read; one server reads or writes at a time.
    entries: Mutex<Option<BTreeMap<String, Entry>>>,
}

/// What one server offered, as JSON text: it is needed rarely.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    server: String,
    text: String,
}

impl Schemas {
    /// The file below that home.
    pub(crate) fn below(home: &Path) -> Self {
        let path = home.join("cache").join("mcp_schema_cache.json");
        Self {
            file: PrivateFile::new(path),
            entries: Mutex::new(None),
        }
    }

    /// What the server offered the last time, if it was configured the same way.
    pub(crate) fn recall(&self, config: &ServerConfig) -> Option<Catalogue> {
        let key = fingerprint(config);
        let text = {
            let mut entries = self.entries.lock();
            let entries = entries.get_or_insert_with(|| self.read());
            entries.get(&key)?.text.clone()
        };
        let entry: Value = serde_json::from_str(&text).ok()?;
        let tools = entry.get("tools")?.as_array()?;
        Some(Catalogue {
            tools: tools.iter().filter_map(draft).collect(),
            resources: entry.get("resources") == Some(&Value::Bool(true)),
            cut: None,
        })
    }

    /// Remembers what the server offers, in place of what it offered before.
    pub(crate) fn remember(&self, config: &ServerConfig, offered: &Catalogue) {
        let server = config.name.as_str();
        let offer = json!({
            "server": server,
            "resources": offered.resources,
            "tools": offered.tools.iter().map(written).collect::<Vec<_>>(),
        });
        let entry = Entry {
            server: server.to_owned(),
            text: offer.to_string(),
        };
        let key = fingerprint(config);
        let mut entries = self.entries.lock();
        let entries = entries.get_or_insert_with(|| self.read());
        if entries.get(&key) == Some(&entry) {
            return;
        }
        entries.retain(|_, other| other.server != server);
        let held: usize = entries.values().map(|entry| entry.text.len()).sum();
        let is_too_much = entry.text.len() > MAX_ENTRY_BYTES
            || held + entry.text.len() > MAX_BYTES / 2
            || entries.len() >= MAX_SERVERS;
        if is_too_much {
            tracing::warn!(
                server,
                "the tools of a lazy server are too many to remember"
            );
        } else {
            entries.insert(key, entry);
        }
        if let Err(error) = self.file.replace(whole(entries).as_bytes()) {
            tracing::warn!(%error, "the tools of a lazy server could not be remembered");
        }
    }

    fn read(&self) -> BTreeMap<String, Entry> {
        let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
        let bytes = match self.file.read(limit) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "the tools of lazy servers cannot be recalled");
                return BTreeMap::new();
            }
        };
        // A broken file is written anew.
        let entries: Map<String, Value> = serde_json::from_slice(&bytes).unwrap_or_default();
        let read = entries.into_iter().filter_map(|(key, entry)| {
            let server = entry.get("server")?.as_str()?.to_owned();
            let text = entry.to_string();
            Some((key, Entry { server, text }))
        });
        read.collect()
    }
}

/// The text of the file; the entries are JSON already.
fn whole(entries: &BTreeMap<String, Entry>) -> String {
    let lines: Vec<_> = entries
        .iter()
        .map(|(key, entry)| format!("{}:{}", Value::from(key.as_str()), entry.text))
        .collect();
    format!("{{{}}}", lines.join(","))
}

/// Sixteen hex digits of all that decides what a server offers.
fn fingerprint(config: &ServerConfig) -> String {
    let reached = match &config.transport {
        TransportConfig::Stdio {
            command, args, cwd, ..
        } => json!(["stdio", command, args, cwd]),
        TransportConfig::Http(http) => json!(["http", http.url, http.unix_socket]),
    };
    let what = format!("{}\n{reached}\n{:?}", config.name, config.tools);
    let mut digits = hex::encode(Sha256::digest(what.as_bytes()));
    digits.truncate(FINGERPRINT_DIGITS);
    digits
}

fn written(tool: &ToolDraft) -> Value {
    let (kind, name) = match &tool.target {
        ToolTarget::Tool(name) => ("tool", name.as_str()),
        ToolTarget::Utility(utility) => ("utility", utility.as_str()),
    };
    json!({ kind: name, "read_only": tool.read_only, "definition": tool.definition })
}

fn draft(entry: &Value) -> Option<ToolDraft> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let target = match (text("tool"), text("utility")) {
        (Some(name), _) => ToolTarget::Tool(name.to_owned()),
        (None, name) => {
            let known = UTILITIES.iter().find(|known| Some(known.as_str()) == name);
            ToolTarget::Utility(*known?)
        }
    };
    let definition = entry.get("definition")?.as_object()?.clone();
    let read_only = entry.get("read_only") == Some(&Value::Bool(true));
    Some(definition::recalled(target, read_only, definition))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(names: &[&str]) -> Catalogue {
        let tool = |name: &&str| ToolDraft {
            target: ToolTarget::Tool((*name).to_owned()),
            read_only: *name == "read",
            definition: Map::new(),
            mended: Vec::new(),
            findings: Vec::new(),
        };
        let mut tools: Vec<_> = names.iter().map(tool).collect();
        tools.push(ToolDraft {
            target: ToolTarget::Utility(Utility::ReadResource),
            read_only: true,
            definition: Map::new(),
            mended: Vec::new(),
            findings: Vec::new(),
        });
        Catalogue {
            tools,
            resources: true,
            cut: None,
        }
    }

    #[test]
    fn what_was_offered_is_recalled_for_the_same_configuration_only() {
        let home = tempfile::tempdir().unwrap();
        let schemas = Schemas::below(home.path());
        let config = ServerConfig::stdio("s", "program", ["-x"]);
        assert!(schemas.recall(&config).is_none());
        schemas.remember(&config, &offered(&["read", "write"]));
        let recalled = Schemas::below(home.path()).recall(&config).unwrap();
        assert_eq!(recalled.tools, offered(&["read", "write"]).tools);
        assert!(recalled.resources);
        let changed = ServerConfig::stdio("s", "program", ["-y"]);
        assert!(schemas.recall(&changed).is_none());
        schemas.remember(&changed, &offered(&["other"]));
        assert!(schemas.recall(&config).is_none(), "one entry for a server");
    }

    #[test]
    fn a_broken_file_is_written_anew() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache/mcp_schema_cache.json");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{ not json").unwrap();
        let schemas = Schemas::below(home.path());
        let config = ServerConfig::stdio("s", "program", ["-x"]);
        assert!(schemas.recall(&config).is_none());
        schemas.remember(&config, &offered(&["a"]));
        assert_eq!(schemas.recall(&config).unwrap().tools.len(), 2);
    }
}
