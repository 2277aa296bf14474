//! Arranges the exported text: families in catalogue order, families without a series
//! present with their help and type, gauges of servers that are gone left out.

use std::collections::HashMap;
use std::fmt::Write;

use metrics::SharedString;

use crate::metrics::{Family, Kind};

/// Arranges what the exporter wrote. `catalogue` gives the order; what it lacks comes last.
/// Gauges of the servers in `gone` are left out.
pub(super) fn arrange(exported: &str, catalogue: &[Family], gone: &[SharedString]) -> String {
    let mut blocks = split(exported);
    let gone: Vec<String> = gone
        .iter()
        .map(|label| format!("server=\"{label}\""))
        .collect();
    let mut out = String::with_capacity(exported.len() + 4096);
    for family in catalogue {
        match blocks.remove(family.name) {
            Some(mut lines) => {
                if family.kind == Kind::Gauge && !gone.is_empty() {
                    lines.retain(|line| {
                        line.starts_with('#') || !gone.iter().any(|label| line.contains(label))
                    });
                }
                write_block(&mut out, &lines);
            }
            None => {
                // Writing to a string cannot fail.
                let _written = write!(
                    out,
                    "# HELP {0} {1}\n# TYPE {0} {2}\n\n",
                    family.name,
                    family.help,
                    family.kind.as_str()
                );
            }
        }
    }
    let mut rest: Vec<_> = blocks.into_iter().collect();
    rest.sort_unstable_by_key(|(name, _)| *name);
    for (_, lines) in rest {
        write_block(&mut out, &lines);
    }
    out
}

fn split(exported: &str) -> HashMap<&str, Vec<&str>> {
    let mut blocks: HashMap<&str, Vec<&str>> = HashMap::new();
    for block in exported.split("\n\n") {
        let lines: Vec<&str> = block.lines().filter(|line| !line.is_empty()).collect();
        let name = lines
            .iter()
            .find_map(|line| line.strip_prefix("# TYPE "))
            .and_then(|rest| rest.split(' ').next());
        if let Some(name) = name {
            blocks.insert(name, lines);
        }
    }
    blocks
}

fn write_block(out: &mut String, lines: &[&str]) {
    for line in lines {
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
}
