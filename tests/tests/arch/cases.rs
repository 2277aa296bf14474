//! Every case of the specification that this version answers for has a test of its name.

use super::tree::{rust_files, text};

/// The cases of conversion, base64, names, TAG characters, `_meta`, gate, pictures, descriptions,
/// servers and configuration.
const CASES: &[&str] = &[
    "c04", "c05", "c06", "c08", "c09", "c11", "c15", "c16", "c18", "c19", "c21", "c24", "c25",
    "c26", "c27", "c29", "c30", "c37", "c39", "c40", "c41", "c42", "c44", "c45", "c47", "c50",
    "c53", "b02", "b03", "b04", "b05", "b07", "b08", "b09", "b11", "b12", "b14", "b15", "f02",
    "f04", "f06", "f08", "f11", "f12", "f15", "t01", "t02", "t08", "t09", "m02", "m03", "m04",
    "m07", "c22", "g55", "g57", "g59", "g61", "g63", "g65", "g67", "g68", "e02", "e08", "e09",
    "e10", "e11", "e12", "e16", "e17", "e26", "v06", "v08", "v09", "v10", "v11", "v12", "v13",
    "v14", "v16", "v17", "v20", "s08", "l02", "l03", "l07", "l08", "l10", "l12", "l16", "l19",
    "l22", "l25", "l28", "l29", "l31", "l33", "l34", "l37", "l38", "n01", "n03", "n05", "n06",
    "n09", "k01", "k05", "k06", "k07", "k09", "k10", "s02", "s05", "s06", "s11", "s12", "s13",
    "s15",
];

/// Rows of the gate's truth table.
const GATE_ROWS: u32 = 54;

#[test]
fn every_case_has_a_test_through_the_service() {
    let outside = rust_files()
        .into_iter()
        .filter(|path| path.starts_with("tests/tests"))
        .map(|path| text(&path).unwrap())
        .collect::<Vec<_>>()
        .join("\n");
    let rows: Vec<String> = (1..=GATE_ROWS).map(|row| format!("g{row:02}")).collect();
    let missing: Vec<&str> = CASES
        .iter()
        .copied()
        .chain(rows.iter().map(String::as_str))
        .filter(|case| !has_test(&outside, case))
        .collect();
    assert!(missing.is_empty(), "no test is named after {missing:?}");
}

/// Whether a test is named after a case: a function, or a row of a table that becomes one.
fn has_test(text: &str, case: &str) -> bool {
    text.contains(&format!("fn {case}_")) || text.contains(&format!("\n    {case}_"))
}
