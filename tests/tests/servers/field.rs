//! Every field case about servers has a test of its name.

use std::path::{Path, PathBuf};

use talaria_testkit::field_cases::FieldCase;

const DATA: &str = include_str!("../../data/field-cases.jsonl");

/// The areas of servers.
const AREAS: &[&str] = &[
    "stdio",
    "http",
    "timeouts",
    "shutdown",
    "concurrency",
    "names",
    "schemas",
    "env",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_case_about_servers_has_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let text: String = sources(&tests)
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let cases: Vec<FieldCase> = FieldCase::read_all(DATA)
        .unwrap()
        .into_iter()
        .filter(|case| AREAS.contains(&case.area.as_str()))
        .collect();
    assert!(cases.len() >= 25, "the file holds {} cases", cases.len());
    let missing: Vec<&str> = cases
        .iter()
        .filter(|case| {
            let name = case.id.to_lowercase().replace('-', "_");
            !text.contains(&format!("async fn {name}_"))
        })
        .map(|case| case.id.as_str())
        .collect();
    assert!(missing.is_empty(), "no test is named after {missing:?}");
}
