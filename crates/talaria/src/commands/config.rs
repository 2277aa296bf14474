//! `talaria config`.

use serde_json::json;

use super::Surroundings;
use crate::arguments::ConfigArguments;
use crate::configuration;
use crate::exit::{CommandError, Exit};
use crate::table::count;
use talaria_config::{Config, ServerEntry};

/// Prints every problem; the configuration is not used.
pub(super) fn check(
    surroundings: &Surroundings,
    arguments: &ConfigArguments,
) -> Result<Exit, CommandError> {
    let (source, problems, warnings) =
        match configuration::load(arguments, &surroundings.environment) {
            Ok(loaded) => {
                let problems = broken_servers(&loaded.config);
                (Some(loaded.source), problems, loaded.config.warnings)
            }
            Err(error) if error.exit() == Exit::Usage => (None, error.lines().to_vec(), Vec::new()),
            Err(error) => return Err(error),
        };
    let report = json!({
        "source": source, "usable": source.is_some(), "problems": problems, "warnings": warnings,
    });
    surroundings.output.print(&report, |_| {
        let mut text = source
            .as_ref()
            .map_or_else(String::new, |source| format!("{source}\n"));
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
    Ok(if problems.is_empty() {
        Exit::Ok
    } else {
        Exit::Usage
    })
}

/// Prints the configuration without its secrets.
pub(super) fn show(
    surroundings: &Surroundings,
    arguments: &ConfigArguments,
) -> Result<Exit, CommandError> {
    let loaded = configuration::load(arguments, &surroundings.environment)?;
    surroundings
        .output
        .print(&loaded.config.show(), |_| loaded.config.show())?;
    Ok(Exit::Ok)
}

/// Servers that the service would not start, as problems.
fn broken_servers(config: &Config) -> Vec<String> {
    let broken = config.servers.values().filter_map(|entry| match entry {
        ServerEntry::Broken { problem } => Some(problem.clone()),
        ServerEntry::Usable(_) => None,
    });
    broken.collect()
}
