//! `talaria config`.

use serde_json::{Value, json};

use super::Surroundings;
use crate::arguments::ConfigArguments;
use crate::configuration;
use crate::describers::Describers;
use crate::exit::{CommandError, Exit};
use crate::table::count;
use talaria_config::{Config, ServerEntry};
use talaria_vision::Gatekeeper;

/// Prints every problem; the configuration is not used.
pub(super) fn check(
    surroundings: &Surroundings,
    arguments: &ConfigArguments,
) -> Result<Exit, CommandError> {
    let mut describers = None;
    let (source, problems, warnings) =
        match configuration::load(arguments, &surroundings.environment) {
            Ok(loaded) => {
                let mut problems = broken_servers(&loaded.config);
                let keeper = Gatekeeper::new(&loaded.config);
                let chain = Describers::of(&loaded.config, keeper.catalogue());
                problems.extend(chain.broken().map(ToOwned::to_owned));
                describers = Some(chain);
                let mut warnings = loaded.config.warnings;
                warnings.retain(|warning| !problems.iter().any(|it| key(it) == key(warning)));
                (Some(loaded.source), problems, warnings)
            }
            Err(error) if error.exit() == Exit::Usage => (None, error.lines().to_vec(), Vec::new()),
            Err(error) => return Err(error),
        };
    let report = json!({
        "source": source, "usable": source.is_some(), "problems": problems, "warnings": warnings,
        "describers": describers,
    });
    surroundings.output.print(&report, |_| {
        let mut text = source
            .as_ref()
            .map_or_else(String::new, |source| format!("{source}\n"));
        if let Some(describers) = &describers {
            text.push_str(&format!("images are described by: {}\n", describers.line()));
        }
        for problem in &problems {
            text.push_str(&format!("error: {problem}\n"));
        }
        for warning in &warnings {
            text.push_str(&format!("warning: {warning}\n"));
        }
        let (errors, warnings) = (
            count(problems.len(), "error"),
            count(warnings.len(), "warning"),
        );
        text.push_str(&format!("{errors}, {warnings}\n"));
        text
    })?;
    Ok(match (source, problems.is_empty()) {
        (Some(_), true) => Exit::Ok,
        // The service starts, without the servers that are not usable.
        (Some(_), false) => Exit::CheckFailed,
        (None, _) => Exit::Usage,
    })
}

/// Prints the configuration without its secrets.
pub(super) fn show(
    surroundings: &Surroundings,
    arguments: &ConfigArguments,
) -> Result<Exit, CommandError> {
    let loaded = configuration::load(arguments, &surroundings.environment)?;
    let shown = loaded.config.show();
    surroundings.output.print(&shown, |shown| {
        let mut text = format!(
            "# {}
",
            loaded.source
        );
        write_yaml(&mut text, shown, 0);
        text
    })?;
    Ok(Exit::Ok)
}

/// The path of the key that a line speaks of.
fn key(line: &str) -> &str {
    line.split_once(": ").map_or(line, |(key, _)| key)
}

/// Servers that the service would not start, as problems.
fn broken_servers(config: &Config) -> Vec<String> {
    let broken = config.servers.values().filter_map(|entry| match entry {
        ServerEntry::Broken { problem } => Some(problem.clone()),
        ServerEntry::Usable(_) => None,
    });
    broken.collect()
}

/// Writes a tree as YAML; every scalar stands as JSON, which YAML reads the same.
fn write_yaml(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                text.push_str(&format!("{indent}{}:", yaml_key(key)));
                write_yaml_value(text, value, depth);
            }
        }
        Value::Array(list) => {
            for value in list {
                text.push_str(&format!("{indent}-"));
                write_yaml_value(text, value, depth);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&format!("{indent}{value}\n"));
        }
    }
}

/// Writes what follows a key or a dash: on the same line what fits there, else below.
fn write_yaml_value(text: &mut String, value: &Value, depth: usize) {
    let below = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if below {
        text.push('\n');
        write_yaml(text, value, depth.saturating_add(1));
    } else {
        text.push_str(&format!(" {value}\n"));
    }
}

/// A key, quoted unless it is plainly a word.
fn yaml_key(key: &str) -> String {
    let plain = key
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
        && key.starts_with(|first: char| first.is_ascii_alphabetic())
        && !matches!(key, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    if plain {
        key.to_owned()
    } else {
        Value::from(key).to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::write_yaml;

    #[test]
    fn a_tree_is_written_as_yaml() {
        let tree = json!({
            "talaria": { "listen": "127.0.0.1:8700", "tokens": [], "media": { "url": null } },
            "mcp_servers": { "my server": { "args": ["-y", "a: b"], "env": {} } },
            "list": [{ "a": 1, "b": true }],
        });
        let mut text = String::new();
        write_yaml(&mut text, &tree, 0);
        assert_eq!(
            text,
            "talaria:\n  listen: \"127.0.0.1:8700\"\n  tokens: []\n  media:\n    url: null\n\
             mcp_servers:\n  \"my server\":\n    args:\n      - \"-y\"\n      - \"a: b\"\n    env: {}\n\
             list:\n  -\n    a: 1\n    b: true\n"
        );
    }
}
