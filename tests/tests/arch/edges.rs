//! Which crate may use which, inside and outside the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crates of the workspace and the ones each may use. A new edge is a decision, not a detail.
const INTERNAL: &[(&str, &[&str])] = &[
    ("talaria-types", &[]),
    ("talaria-config", &["types"]),
    ("talaria-telemetry", &["types"]),
    ("talaria-content", &["types"]),
    (
        "talaria-media",
        &["types", "config", "telemetry", "content"],
    ),
    ("talaria-image", &["types", "telemetry"]),
    ("talaria-mcp", &["types", "config", "telemetry", "content"]),
    (
        "talaria-vision",
        &["types", "config", "telemetry", "content"],
    ),
    (
        "talaria-actors",
        &[
            "types",
            "config",
            "telemetry",
            "content",
            "media",
            "image",
            "mcp",
            "vision",
        ],
    ),
    (
        "talaria-http",
        &[
            "types",
            "config",
            "telemetry",
            "content",
            "media",
            "image",
            "mcp",
            "vision",
            "actors",
        ],
    ),
    (
        "talaria",
        &[
            "types",
            "config",
            "telemetry",
            "content",
            "media",
            "image",
            "mcp",
            "vision",
            "actors",
            "http",
        ],
    ),
    ("talaria-testkit", &["types"]),
];

/// Packages that are no part of the product and may use anything.
const OUTSIDE: &[&str] = &["talaria-tests", "talaria-benches"];

/// Crates of others that only some of ours may use.
const FENCES: &[(&str, &[&str])] = &[
    ("actix", &["talaria-actors", "talaria-http", "talaria"]),
    ("actix-web", &["talaria-http", "talaria"]),
    ("axum", &[]),
    (
        "base64",
        &[
            // Logins in headers.
            "talaria-config",
            "talaria-content",
            "talaria",
            "talaria-testkit",
        ],
    ),
    ("clap", &["talaria"]),
    ("image", &["talaria-image", "talaria-testkit"]),
    ("metrics", &["talaria-telemetry"]),
    ("metrics-exporter-prometheus", &["talaria-telemetry"]),
    ("nix", &["talaria-mcp", "talaria-media", "talaria-testkit"]),
    (
        "reqwest",
        &[
            "talaria-mcp",
            "talaria-vision",
            "talaria",
            "talaria-testkit",
        ],
    ),
    ("rmcp", &["talaria-mcp", "talaria"]),
    ("serde-saphyr", &["talaria-config"]),
    ("tracing-subscriber", &["talaria-telemetry"]),
];

#[test]
fn crates_use_only_what_the_design_allows() {
    let allowed: BTreeMap<&str, &[&str]> = INTERNAL.iter().copied().collect();
    for package in packages() {
        let name = name(&package);
        if OUTSIDE.contains(&name) {
            continue;
        }
        let allowed = allowed
            .get(name)
            .unwrap_or_else(|| panic!("{name} is new; say in the design and here what it may use"));
        for dependency in dependencies(&package) {
            let Some(internal) = dependency.strip_prefix("talaria-") else {
                continue;
            };
            assert!(
                allowed.contains(&internal),
                "{name} must not use {dependency}"
            );
        }
    }
}

#[test]
fn the_testkit_serves_tests_only() {
    for package in packages() {
        let name = name(&package);
        let uses = dependencies(&package).contains("talaria-testkit");
        assert!(!uses || OUTSIDE.contains(&name), "{name} ships the testkit");
    }
}

#[test]
fn crates_of_others_stay_behind_their_fences() {
    let fences: BTreeMap<&str, &[&str]> = FENCES.iter().copied().collect();
    for package in packages() {
        let name = name(&package);
        if OUTSIDE.contains(&name) {
            continue;
        }
        for dependency in dependencies(&package) {
            if let Some(allowed) = fences.get(dependency.as_str()) {
                assert!(allowed.contains(&name), "{name} must not use {dependency}");
            }
        }
    }
}

#[test]
fn every_crate_takes_versions_and_lints_from_the_workspace() {
    for path in super::tree::files("crates") {
        if path.file_name().is_none_or(|name| name != "Cargo.toml") {
            continue;
        }
        let manifest = super::tree::text(&path).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} lints",
            path.display()
        );
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let is_entry = line.contains('=') && !line.starts_with('[');
            let is_dependency = section.contains("dependencies]") && is_entry;
            let inherits = line.contains("workspace = true") || line.contains(".workspace = true");
            assert!(!is_dependency || inherits, "{}: {line}", path.display());
        }
    }
}

#[test]
fn only_the_client_and_drawings_start_processes() {
    let starters = ["process::Command", "Command::new("];
    for path in super::tree::rust_files() {
        let shown = path.to_string_lossy().into_owned();
        let allowed = [
            "crates/talaria-mcp/",
            // Drawings only (ADR 0002).
            "crates/talaria-image/src/apart.rs",
            // Starts itself anew, in its own place.
            "crates/talaria/src/allocator.rs",
            "crates/talaria-testkit/",
            "tests/",
            "benches/",
        ];
        let is_test = shown.contains("/tests/") || shown.ends_with("/tests.rs");
        if is_test || allowed.iter().any(|prefix| shown.starts_with(prefix)) {
            continue;
        }
        let text = super::tree::text(&path).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for starter in starters {
            assert!(!product.contains(starter), "{shown} starts processes");
        }
    }
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(super::tree::root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    assert!(
        packages.len() >= INTERNAL.len(),
        "cargo knows {} packages",
        packages.len()
    );
    packages
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

/// What is part of the product: neither for tests nor for building.
fn dependencies(package: &Value) -> BTreeSet<String> {
    let all = package["dependencies"].as_array().unwrap();
    all.iter()
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
        .collect()
}
