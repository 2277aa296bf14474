//! `docs/errors.md` has a row per code, with the status and retry advice of its class.

#![expect(clippy::expect_used, reason = "test support fails the test")]

use std::fs;
use std::path::PathBuf;

use talaria_types::{ErrorCode, NoticeCode};

/// The cells of each row of the table below a heading.
fn table(heading: &str) -> Vec<Vec<String>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let page = fs::read_to_string(path).expect("docs/errors.md is there");
    let (_, section) = page
        .split_once(&format!("## {heading}\n"))
        .expect("the heading is there");
    section
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect()
}

fn assert_is_prose(cells: &[String]) {
    for cell in cells {
        assert!(
            cell.len() > 5 && cell.ends_with('.'),
            "`{cell}` is not a sentence"
        );
    }
}

#[test]
fn every_error_code_has_a_row_with_its_status_and_retry_advice() {
    let rows = table("Errors");
    let documented: Vec<_> = rows.iter().map(|row| row[..3].to_vec()).collect();
    let wanted: Vec<_> = ErrorCode::ALL
        .iter()
        .map(|code| {
            let retryable = if code.retryable() { "yes" } else { "no" };
            vec![
                format!("`{code}`"),
                code.class().status().to_string(),
                retryable.to_owned(),
            ]
        })
        .collect();
    assert_eq!(documented, wanted);
    for row in &rows {
        assert_eq!(row.len(), 5, "{row:?}");
        assert_is_prose(&row[3..]);
    }
}

#[test]
fn every_notice_code_has_a_row() {
    let rows = table("Notices");
    let documented: Vec<_> = rows.iter().map(|row| row[0].clone()).collect();
    let wanted: Vec<_> = NoticeCode::ALL
        .iter()
        .map(|code| format!("`{}`", code.as_str()))
        .collect();
    assert_eq!(documented, wanted);
    for row in &rows {
        assert_eq!(row.len(), 3, "{row:?}");
        assert_is_prose(&row[1..]);
    }
}
