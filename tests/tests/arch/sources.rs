//! What source files may be called and hold.

use std::path::Path;

use super::tree::{files, rust_files, text};

/// Names that tell nothing of what a file owns.
const EMPTY_NAMES: &[&str] = &[
    "utils", "util", "helpers", "helper", "common", "misc", "manager",
];

#[test]
fn every_file_says_what_it_owns() {
    for path in rust_files() {
        let text = text(&path).unwrap();
        let first = text
            .lines()
            .find(|line| !line.starts_with("#!["))
            .unwrap_or_default();
        let owns = first.strip_prefix("//! ").unwrap_or_default();
        assert!(owns.len() > 10, "{} begins with {first:?}", path.display());
    }
}

#[test]
fn names_tell_what_a_file_owns() {
    for path in files("") {
        for part in path.components() {
            let part = part.as_os_str().to_string_lossy();
            let stem = part.split('.').next().unwrap_or_default();
            let empty = stem
                .split(['_', '-'])
                .any(|word| EMPTY_NAMES.contains(&word));
            assert!(!empty, "{}", path.display());
        }
        assert!(
            !path.ends_with("mod.rs"),
            "{}: use the folder's name",
            path.display()
        );
    }
}

#[test]
fn files_have_a_size_people_can_read() {
    let mut sizes: Vec<(usize, String)> = rust_files()
        .iter()
        .map(|path| {
            (
                text(path).unwrap().lines().count(),
                path.display().to_string(),
            )
        })
        .collect();
    sizes.sort();
    let (median, _) = &sizes[sizes.len() / 2];
    let (most, path) = &sizes[sizes.len() * 9 / 10];
    assert!(
        *median <= 300,
        "half of the files have more than {median} lines"
    );
    assert!(
        *most <= 500,
        "one in ten files is longer than {most} lines, {path} for example"
    );
}

#[test]
fn nothing_is_unfinished_or_switched_off() {
    let marks = [
        concat!("#[ig", "nore"),
        concat!("should_", "panic"),
        concat!("todo", "!("),
        concat!("FIX", "ME"),
    ];
    for path in rust_files() {
        let text = text(&path).unwrap();
        for mark in marks {
            assert!(!text.contains(mark), "{} has {mark}", path.display());
        }
    }
}

#[test]
fn no_test_sleeps() {
    let sleeps = [concat!("time::sl", "eep("), concat!("thread::sl", "eep(")];
    for path in rust_files() {
        let shown = path.to_string_lossy();
        let text = text(&path).unwrap();
        // In the testkit, waiting is the subject itself; a paused clock makes a sleep a step.
        let tested = if shown.starts_with("tests/tests/") {
            text.as_str()
        } else {
            text.split_once("#[cfg(test)]\nmod ")
                .map_or("", |(_, tests)| tests)
        };
        let paused = text.contains("start_paused") || text.contains("time::pause");
        for sleep in sleeps {
            let sleeping = tested.contains(sleep) && !paused;
            assert!(
                !sleeping,
                "{shown} sleeps; wait for a condition with a deadline"
            );
        }
    }
}

#[test]
fn the_project_speaks_of_itself_alone() {
    let foreign = [
        concat!("/wo", "rk/"),
        concat!("..", "/shared"),
        concat!("/ho", "me/runner"),
    ];
    for path in files("") {
        if is_generated(&path) {
            continue;
        }
        let Some(text) = text(&path) else { continue };
        for words in foreign {
            let named = text.match_indices(words).any(|(at, _)| {
                // The same letters inside a longer path are somebody else's folder.
                !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric())
            });
            assert!(!named, "{} names {words}", path.display());
        }
    }
}

/// Lock files and data are not written by us.
fn is_generated(path: &Path) -> bool {
    path.ends_with("Cargo.lock") || path.ends_with("package-lock.json")
}
