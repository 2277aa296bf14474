//! Runs the reference renderer as a separate process.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::generate::Case;

/// What the reference made of one result.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Rendered {
    pub(crate) id: usize,
    /// The whole output.
    pub(crate) rendered: String,
    /// The part made of each block alone.
    pub(crate) blocks: Vec<Option<String>>,
    /// Whether the SDK's own types took the result.
    pub(crate) typed: bool,
}

pub(crate) fn render_all(cases: &[Case]) -> Vec<Rendered> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = root.join(".peers/python/bin/python");
    assert!(
        python.exists(),
        "the reference is not installed: run .ci/peers"
    );
    let home = tempfile::tempdir().unwrap();
    let input: String = cases
        .iter()
        .map(|case| {
            format!(
                "{}\n",
                serde_json::json!({"id": case.id, "result": case.result})
            )
        })
        .collect();

    let mut child = Command::new(python)
        .arg(root.join("tests/peers/reference_render.py"))
        .env("HERMES_HOME", home.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "the reference renderer failed");

    let rendered: Vec<Rendered> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<usize> = rendered.iter().map(|answer| answer.id).collect();
    assert_eq!(ids, cases.iter().map(|case| case.id).collect::<Vec<_>>());
    rendered
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    found
}

/// Replaces the path of every file written since `before` by `file:<sha256>`.
pub(crate) fn with_digests(text: &str, cache: &Path, before: &BTreeSet<PathBuf>) -> String {
    let mut new: Vec<PathBuf> = files(cache).difference(before).cloned().collect();
    new.sort_by_key(|path| std::cmp::Reverse(path.as_os_str().len()));
    let mut text = text.to_owned();
    for path in new {
        let digest = hex::encode(Sha256::digest(std::fs::read(&path).unwrap()));
        let plain = path.to_str().unwrap();
        let quoted = serde_json::to_string(plain).unwrap();
        for spelling in [plain, quoted.trim_matches('"')] {
            text = text.replace(spelling, &format!("file:{digest}"));
        }
    }
    text
}
