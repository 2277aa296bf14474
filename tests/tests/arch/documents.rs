//! Documents and deployment files name what exists.

use std::collections::BTreeSet;
use std::path::Path;

use talaria_telemetry::metrics::{CATALOGUE, Kind};
use talaria_types::{ErrorCode, NoticeCode};

use super::tree::{files, root, text};

/// Beginnings of the names of our series.
const PREFIXES: &[&str] = &[
    "talaria_",
    "mcp_client_",
    "mcp_server_",
    "http_server_",
    "process_",
];

#[test]
fn every_code_has_its_row() {
    let document = text(Path::new("docs/errors.md")).unwrap();
    let rows: BTreeSet<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let errors = ErrorCode::ALL.iter().map(|code| code.as_str());
    let codes: BTreeSet<&str> = errors
        .chain(NoticeCode::ALL.iter().map(|code| code.as_str()))
        .collect();
    assert_eq!(rows, codes);
}

#[test]
fn every_metric_has_its_row() {
    let document = text(Path::new("docs/metrics.md")).unwrap();
    let rows: BTreeSet<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    let names: BTreeSet<&str> = CATALOGUE.iter().map(|family| family.name).collect();
    assert_eq!(rows, names);
}

#[test]
fn deployment_names_only_metrics_that_exist() {
    let exposed = exposed_names();
    for path in files("deploy") {
        let Some(text) = text(&path) else { continue };
        for name in metric_names(&text) {
            assert!(exposed.contains(name), "{} names {name}", path.display());
        }
    }
}

#[test]
fn metric_names_are_found_in_queries() {
    let query =
        "sum by (server) (rate(talaria_server_up{server=\"x\"}[5m])) / mcp_x_seconds_bucket";
    assert_eq!(
        metric_names(query),
        ["talaria_server_up", "mcp_x_seconds_bucket"]
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut checked = 0;
    let documents = files("")
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    for path in documents {
        let text = text(&path).unwrap();
        for target in link_targets(&text) {
            let (file, _anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let place = root().join(path.parent().unwrap()).join(file);
            assert!(place.exists(), "{} links to {target}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 0, "no document links to another");
}

/// Targets of `[text](target)`.
fn link_targets(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect()
}

/// Words that only a series can be called.
fn metric_names(text: &str) -> Vec<&str> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.split(|character| !is_name(character))
        .filter(|word| {
            word.contains("_seconds") || word.ends_with("_total") || word.starts_with("talaria_")
        })
        .collect()
}

fn exposed_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for family in CATALOGUE {
        names.insert(family.name.to_owned());
        if family.kind == Kind::Histogram {
            names.extend(["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", family.name)));
        }
    }
    names
}
