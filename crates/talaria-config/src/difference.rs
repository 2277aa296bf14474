//! What a newer configuration changes that a running service does not take over.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::tree::{Config, TalariaConfig};

/// Sections and keys that a reload brings into force.
const IN_FORCE: [&str; 2] = ["mcp_servers", "talaria.watch_config"];

impl Config {
    /// Key paths outside `mcp_servers` whose value differs in a newer configuration and counts
    /// only after a restart. Secrets are compared and never named.
    #[must_use]
    pub fn restart_keys(&self, newer: &Self) -> Vec<String> {
        let (ours, theirs) = (leaves(&self.show()), leaves(&newer.show()));
        let paths: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let mut changed: BTreeSet<String> = paths
            .into_iter()
            .filter(|path| ours.get(*path) != theirs.get(*path))
            .filter(|path| !is_in_force(path))
            .cloned()
            .collect();
        // What is shown masked may differ all the same.
        let hidden = [
            (
                "talaria.auth.tokens",
                self.talaria.tokens != newer.talaria.tokens,
            ),
            (
                "talaria",
                without_watch(&self.talaria) != without_watch(&newer.talaria),
            ),
            ("model", self.gate.main != newer.gate.main),
            ("providers", self.gate.providers != newer.gate.providers),
            ("auxiliary.vision", self.vision != newer.vision),
            ("security", self.security != newer.security),
        ];
        for (section, differs) in hidden {
            if differs && !changed.iter().any(|path| is_under(path, section)) {
                changed.insert(section.to_owned());
            }
        }
        changed.into_iter().collect()
    }
}

fn without_watch(talaria: &TalariaConfig) -> TalariaConfig {
    TalariaConfig {
        watch_config: false,
        ..talaria.clone()
    }
}

fn is_in_force(path: &str) -> bool {
    IN_FORCE.iter().any(|known| is_under(path, known))
}

fn is_under(path: &str, section: &str) -> bool {
    path.strip_prefix(section)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Every value that is no map, by its path.
fn leaves(value: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    collect(String::new(), value, &mut found);
    found
}

fn collect(path: String, value: &Value, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let separator = if path.is_empty() { "" } else { "." };
                collect(format!("{path}{separator}{key}"), member, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            found.insert(path, value.clone());
        }
    }
}
