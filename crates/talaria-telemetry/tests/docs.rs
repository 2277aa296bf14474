//! `docs/metrics.md` says what the catalogue says. `UPDATE_DOCS=1` writes it anew.

#![expect(clippy::expect_used, reason = "test support fails the test")]

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use talaria_telemetry::metrics::{CATALOGUE, Family, SERVER_STATES, STATE_REASONS};
use talaria_types::{ErrorCode, runtime};

const BEGIN: &str = "<!-- catalogue: begin -->\n";
const END: &str = "<!-- catalogue: end -->\n";

fn catalogue() -> String {
    let mut out =
        String::from("| Name | Type | Unit | Labels | What it says |\n|---|---|---|---|---|\n");
    for family in CATALOGUE {
        let Family {
            name,
            kind,
            unit,
            labels,
            help,
            ..
        } = family;
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        let (kind, unit, labels) = (kind.as_str(), unit.as_str(), labels.join(", "));
        writeln!(out, "| `{name}` | {kind} | {unit} | {labels} | {help} |").expect("a string");
    }
    out.push_str("\n### Buckets\n\n| Histogram | Upper bounds |\n|---|---|\n");
    for family in CATALOGUE.iter().filter(|family| !family.buckets.is_empty()) {
        let bounds: Vec<_> = family.buckets.iter().map(ToString::to_string).collect();
        writeln!(out, "| `{}` | {} |", family.name, bounds.join(", ")).expect("a string");
    }
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    writeln!(
        out,
        "\n### Words\n\nStates of a server: {}.",
        words(SERVER_STATES)
    )
    .expect("a string");
    writeln!(
        out,
        "Reasons of a state: an error code, or one of {}; anything else is `other`.",
        words(STATE_REASONS)
    )
    .expect("a string");
    out
}

#[test]
fn metrics_page_equals_the_catalogue() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = fs::read_to_string(&path).expect("docs/metrics.md is there");
    let (head, rest) = page.split_once(BEGIN).expect("a begin mark");
    let (written, tail) = rest.split_once(END).expect("an end mark");
    let wanted = catalogue();
    if runtime::environment().contains_key("UPDATE_DOCS") {
        fs::write(&path, format!("{head}{BEGIN}{wanted}{END}{tail}")).expect("docs are writable");
    } else {
        assert_eq!(written, wanted, "run the test with UPDATE_DOCS=1");
    }
}

#[test]
fn reasons_do_not_repeat_error_codes() {
    assert!(STATE_REASONS.is_sorted());
    for reason in STATE_REASONS {
        assert!(
            ErrorCode::ALL.iter().all(|code| code.as_str() != *reason),
            "{reason}"
        );
    }
}
