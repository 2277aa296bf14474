//! Every case of the specification that this version answers for has a test of its name.

use super::tree::{rust_files, text};

/// The cases of conversion, base64, names, TAG characters and `_meta`.
const CASES: &[&str] = &[
    "c04", "c05", "c06", "c08", "c09", "c11", "c15", "c16", "c18", "c19", "c21", "c24", "c25",
    "c26", "c27", "c29", "c30", "c37", "c39", "c40", "c41", "c42", "c44", "c45", "c47", "c50",
    "c53", "b02", "b03", "b04", "b05", "b07", "b08", "b09", "b11", "b12", "b14", "b15", "f02",
    "f04", "f06", "f08", "f11", "f12", "f15", "t01", "t02", "t08", "t09", "m02", "m03", "m04",
    "m07",
];

#[test]
fn every_case_has_a_test_through_the_service() {
    let outside = rust_files()
        .into_iter()
        .filter(|path| path.starts_with("tests/tests"))
        .map(|path| text(&path).unwrap())
        .collect::<Vec<_>>()
        .join("\n");
    let missing: Vec<&&str> = CASES
        .iter()
        .filter(|case| !outside.contains(&format!("fn {case}_")))
        .collect();
    assert!(missing.is_empty(), "no test is named after {missing:?}");
}
