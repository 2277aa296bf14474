//! The project's own files, as a clean clone has them.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold what is built, installed or belongs to git.
const FOREIGN: &[&str] = &[
    "target",
    ".git",
    ".tools",
    ".peers",
    "node_modules",
    "artifacts",
];

/// The root of the project.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("the test package stands in the root")
        .to_owned()
}

/// Every file below a folder of the project, relative to the root, in order.
pub fn files(below: &str) -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    collect(&root.join(below), &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| path.strip_prefix(&root).unwrap().to_owned())
        .collect()
}

/// Every Rust file.
pub fn rust_files() -> Vec<PathBuf> {
    let mut files = files("");
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    assert!(
        files.len() > 50,
        "the walk found only {} Rust files",
        files.len()
    );
    files
}

/// The text of a file; `None` when it is not text.
pub fn text(path: &Path) -> Option<String> {
    String::from_utf8(fs::read(root().join(path)).unwrap()).ok()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let kind = entry.file_type().unwrap();
        if FOREIGN.iter().any(|foreign| name == *foreign) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}
