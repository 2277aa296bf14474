//! `docs/config.md` has every key; `deploy/talaria.example.yaml` equals the defaults.
//! `UPDATE_DOCS=1` writes the tables anew.

#![expect(clippy::expect_used, reason = "test support fails the test")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use talaria_config::schema::{KEYS, Key, Stage};
use talaria_config::{Config, Source, load, load_default};
use talaria_types::runtime;

const BEGIN: &str = "<!-- keys: begin -->\n";
const END: &str = "<!-- keys: end -->\n";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("HOME".to_owned(), "/home/me".to_owned())])
}

fn section_of(key: &Key) -> &str {
    key.path.split(['.', '[']).next().expect("a section")
}

fn tables() -> String {
    let mut out = String::new();
    let mut section = "";
    for key in KEYS {
        if section_of(key) != section {
            section = section_of(key);
            write!(
                out,
                "\n## `{section}`\n\n| Key | Kind | Default | What it does |\n|---|---|---|---|\n"
            )
            .expect("a string");
        }
        let default = if key.default.is_empty() {
            String::new()
        } else {
            format!("`{}`", key.default)
        };
        let later = if key.stage == Stage::Later {
            " *Later.*"
        } else {
            ""
        };
        let (path, kind, help) = (key.path, key.kind.describe(), key.help);
        writeln!(out, "| `{path}` | {kind} | {default} | {help}{later} |").expect("a string");
    }
    out
}

#[test]
fn every_key_is_documented() {
    let path = root().join("docs/config.md");
    let page = fs::read_to_string(&path).expect("docs/config.md is there");
    let (head, rest) = page.split_once(BEGIN).expect("a begin mark");
    let (written, tail) = rest.split_once(END).expect("an end mark");
    let wanted = tables();
    if runtime::environment().contains_key("UPDATE_DOCS") {
        fs::write(&path, format!("{head}{BEGIN}{wanted}{END}{tail}")).expect("docs are writable");
    } else {
        assert_eq!(written, wanted, "run the test with UPDATE_DOCS=1");
    }
}

fn example() -> Config {
    let path = root().join("deploy/talaria.example.yaml");
    let text = fs::read_to_string(&path).expect("the example is there");
    load(&text, &environment(), &Source::file(path)).expect("the example is valid")
}

#[test]
fn example_file_equals_the_defaults() {
    let [example, default] = [
        example(),
        load_default(&environment()).expect("defaults are valid"),
    ];
    assert_eq!(example.warnings, Vec::<String>::new());
    assert_eq!(example.show(), default.show());
    assert_eq!(format!("{example:?}"), format!("{default:?}"));
}

#[test]
fn example_file_names_every_key_with_its_documented_default() {
    let path = root().join("deploy/talaria.example.yaml");
    let text = fs::read_to_string(&path).expect("the example is there");
    let tree: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
    for key in KEYS.iter().filter(|key| section_of(key) == "talaria") {
        if key.path.contains("[]") {
            continue;
        }
        let pointer = format!("/{}", key.path.replace('.', "/"));
        let value = tree
            .pointer(&pointer)
            .unwrap_or_else(|| panic!("{} is missing", key.path));
        let default: serde_json::Value = serde_saphyr::from_str(key.default).expect("YAML");
        assert_eq!(*value, default, "{}", key.path);
    }
}

#[test]
fn documented_defaults_are_the_real_ones() {
    let plain = "mcp_servers:\n  s: { command: x }\n";
    let plain = load(plain, &environment(), &Source::default()).expect("valid");
    let mut text = String::from("mcp_servers:\n  s:\n    command: x\n");
    for key in KEYS
        .iter()
        .filter(|key| key.stage == Stage::Used && !key.default.is_empty())
    {
        let Some(name) = key.path.strip_prefix("mcp_servers.*.") else {
            continue;
        };
        if !name.contains('.') && name != "keepalive_interval" {
            writeln!(text, "    {name}: {}", key.default).expect("a string");
        }
    }
    for key in KEYS.iter().filter(|key| key.stage == Stage::Used) {
        let names: Vec<_> = key.path.split('.').collect();
        let is_in_list = key.path.contains("[]");
        if !matches!(names[0], "talaria" | "mcp_servers") && !is_in_list && !key.default.is_empty()
        {
            let open: String = names.iter().map(|name| format!("{{{name}: ")).collect();
            let line = format!("{open}{}{}", key.default, "}".repeat(names.len()));
            let one = load(&line, &environment(), &Source::default()).expect("valid");
            let default = load_default(&environment()).expect("valid");
            assert_eq!(one.show(), default.show(), "{}", key.path);
        }
    }
    let spelt = load(&text, &environment(), &Source::default()).expect("valid");
    assert_eq!(spelt.warnings, Vec::<String>::new());
    assert_eq!(spelt.show(), plain.show());
}

#[test]
fn every_variable_that_holds_a_key_is_documented() {
    let page = fs::read_to_string(root().join("docs/config.md")).expect("docs/config.md is there");
    for (provider, variables) in talaria_config::defaults::KEY_VARIABLES {
        for variable in *variables {
            assert!(
                page.contains(&format!("`{variable}`")),
                "{provider}: {variable}"
            );
        }
    }
}
