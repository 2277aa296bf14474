//! The scripts of `tests/peers/pictures` and the test pictures they work on.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of the test pictures.
pub fn picture(name: &str) -> PathBuf {
    root().join("tests/data/images").join(name)
}

/// Runs a Python script in the peers' environment: JSON in, JSON out.
pub fn python(script: &str, arguments: &[&Path], input: &Value) -> Value {
    let python = root().join(".peers/python/bin/python");
    assert!(
        python.exists(),
        "{} is missing: run .ci/peers",
        python.display()
    );
    run(Command::new(python), script, arguments, input)
}

/// Runs a script with an interpreter: JSON in, JSON out.
pub fn run(mut command: Command, script: &str, arguments: &[&Path], input: &Value) -> Value {
    let mut child = command
        .arg(root().join("tests/peers/pictures").join(script))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{script} failed: {}",
        output.status
    );
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{script}: {error}: {}",
            String::from_utf8_lossy(&output.stdout)
        )
    })
}
