//! The program from outside: exit codes, what goes to stdout and what to stderr.

#![expect(clippy::unwrap_used, reason = "functions that only support tests")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The program with a home of its own and nothing of the caller's settings.
fn talaria(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talaria"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    talaria(home, arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// A configuration with the demo server under the name `demo`.
fn demo_config(home: &Path) -> String {
    let path = home.join("config.yaml");
    let config = json!({
        "talaria": { "listen": "127.0.0.1:0", "home": home.join("talaria") },
        "mcp_servers": {
            "demo": {
                "command": env!("CARGO_BIN_EXE_talaria"),
                "args": ["demo-server"],
                "env": { "SECRET": "s3cret-value" },
            },
        },
    });
    std::fs::write(&path, config.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn help_is_no_failure_and_a_wrong_command_line_is_usage() {
    let home = TempDir::new().unwrap();
    let help = run(home.path(), &["--help"]);
    assert_eq!((code(&help), help.stderr.len()), (0, 0));
    assert!(stdout(&help).contains("Exit codes:"));
    let wrong = run(home.path(), &["call"]);
    assert_eq!((code(&wrong), wrong.stdout.len()), (2, 0));
    let not_json = run(home.path(), &["call", "mcp__a__b", "{"]);
    assert_eq!(code(&not_json), 2);
    assert!(stderr(&not_json).starts_with("error: the arguments of the tool are not JSON"));
}

#[test]
fn a_service_that_is_not_there_is_unreachable() {
    let home = TempDir::new().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}");
    for command in [&["servers"][..], &["call", "mcp__a__b"]] {
        let arguments = [command, &["--url", &url]].concat();
        let output = run(home.path(), &arguments);
        assert_eq!(code(&output), 3, "{}", stderr(&output));
        assert!(stderr(&output).contains("does not answer"));
    }
}

#[test]
fn a_service_that_cannot_start_says_why() {
    let home = TempDir::new().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let in_use = run(home.path(), &["serve", "--listen", &address]);
    assert_eq!(code(&in_use), 5);
    assert!(stderr(&in_use).contains(&format!("error: listen on {address}: ")));
    let open = run(home.path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(code(&open), 2, "{}", stderr(&open));
    assert!(stderr(&open).contains("talaria.auth.tokens"));
    let missing = run(home.path(), &["serve", "--config", "/no/such/file.yaml"]);
    assert_eq!(code(&missing), 2);
}

#[test]
fn config_check_prints_every_problem_with_its_key() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("config.yaml");
    std::fs::write(
        &file,
        "talaria: { listen: nowhere, media: { ttl: soon } }\n",
    )
    .unwrap();
    let output = run(
        home.path(),
        &["config", "check", "--config", file.to_str().unwrap()],
    );
    assert_eq!(code(&output), 2);
    assert!(
        stdout(&output).contains("error: talaria.listen: "),
        "{}",
        stdout(&output)
    );
    assert!(
        stdout(&output).contains("error: talaria.media.ttl: "),
        "{}",
        stdout(&output)
    );
    let sound = run(
        home.path(),
        &["config", "check", "--config", &demo_config(home.path())],
    );
    assert_eq!(code(&sound), 0, "{}", stdout(&sound));
    let defaults = run(home.path(), &["config", "check", "--json"]);
    assert_eq!(code(&defaults), 0);
    let report: Value = serde_json::from_slice(&defaults.stdout).unwrap();
    assert_eq!(report["problems"], json!([]));
    assert_eq!(report["describers"]["links"], json!([]));
}

#[test]
fn config_check_names_backends_that_cannot_describe_anything() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("config.yaml");
    let config = json!({ "auxiliary": { "vision": {
        "provider": "custom",
        "model": "m",
        "base_url": "http://127.0.0.1:1/v1",
        "mcp_fallback": [{ "server": "eyes", "tool": "look" }],
    } } });
    std::fs::write(&file, config.to_string()).unwrap();
    let check = ["config", "check", "--config", file.to_str().unwrap()];
    let output = run(home.path(), &check);
    assert_eq!(code(&output), 1, "{}", stdout(&output));
    let told = stdout(&output);
    assert!(
        told.contains("images are described by: custom/m\n"),
        "{told}"
    );
    assert!(
        told.contains("error: auxiliary.vision.mcp_fallback[0].server: there is no server `eyes`"),
        "{told}"
    );
}

#[test]
fn config_show_keeps_secrets() {
    let home = TempDir::new().unwrap();
    let output = run(
        home.path(),
        &["config", "show", "--config", &demo_config(home.path())],
    );
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stdout(&output).contains("demo-server"),
        "{}",
        stdout(&output)
    );
    assert!(
        !stdout(&output).contains("s3cret-value"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_call_in_its_own_process_delivers() {
    let home = TempDir::new().unwrap();
    let config = demo_config(home.path());
    let echo = [
        "call",
        "mcp__demo__echo",
        r#"{"text": "hi"}"#,
        "--config",
        &config,
        "--json",
    ];
    let output = run(home.path(), &echo);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let delivery: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(delivery["text"], "hi");
    let failing = run(
        home.path(),
        &["call", "failing", "--server", "demo", "--config", &config],
    );
    assert_eq!(code(&failing), 1, "{}", stderr(&failing));
    assert!(stdout(&failing).contains("The printer is out of paper."));
    let unknown = run(
        home.path(),
        &["call", "mcp__demo__none", "--config", &config],
    );
    assert_eq!(code(&unknown), 4);
    assert!(
        stderr(&unknown).starts_with("error: unknown_tool: "),
        "{}",
        stderr(&unknown)
    );
}

#[test]
fn a_server_test_follows_links_and_reads_files() {
    let home = TempDir::new().unwrap();
    let config = demo_config(home.path());
    let mixed = ["test", "demo", "--tool", "mixed", "--config", &config];
    let output = run(home.path(), &mixed);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    for found in [
        "PDF, 3 pages",
        "Excel, 2 sheets",
        "image, 1280 × 800 px",
        "WAV, 1.000 s",
    ] {
        assert!(
            stdout(&output).contains(found),
            "{found} is not in {}",
            stdout(&output)
        );
    }
    assert!(!stdout(&output).contains("s3cret-value"));
    let json = run(home.path(), &[&mixed[..], &["--json"]].concat());
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(report["passed"], true);
    assert_eq!(report["files"].as_array().unwrap().len(), 4);
    let failing = run(
        home.path(),
        &["test", "demo", "--tool", "failing", "--config", &config],
    );
    assert_eq!(code(&failing), 1);
    let unknown = run(home.path(), &["test", "nobody", "--config", &config]);
    assert_eq!(code(&unknown), 2);
}

#[test]
fn a_server_that_does_not_start_fails_its_test() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("config.yaml");
    std::fs::write(&file, "mcp_servers: { broken: { command: /bin/false } }\n").unwrap();
    let config = file.to_str().unwrap();
    let tested = run(
        home.path(),
        &["test", "broken", "--config", config, "--timeout", "20"],
    );
    assert_eq!(code(&tested), 1, "{}", stderr(&tested));
    assert!(
        stdout(&tested).contains("FAILED  connect"),
        "{}",
        stdout(&tested)
    );
    let listed = run(home.path(), &["servers", "--config", config]);
    assert_eq!(code(&listed), 1, "{}", stdout(&listed));
}

#[test]
fn a_result_from_stdin_is_delivered_without_a_service() {
    let home = TempDir::new().unwrap();
    let mut child = talaria(home.path(), &["deliver", "-", "--format", "text"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let result = json!({ "content": [{ "type": "text", "text": "from a file" }] });
    child
        .stdin
        .take()
        .unwrap()
        .write_all(result.to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stdout(&output)), (0, "from a file\n"));
}

#[test]
fn the_demo_passes_and_its_files_stay() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("demo");
    let output = run(
        home.path(),
        &["demo", "--json", "--home", folder.to_str().unwrap()],
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let failed: Vec<_> = checks
        .iter()
        .filter(|check| check["passed"] != true)
        .collect();
    assert_eq!(
        (code(&output), failed),
        (0, Vec::new()),
        "{}",
        stderr(&output)
    );
    let files = report["files"].as_array().unwrap();
    assert!(files.len() >= 18, "{}", files.len());
    for file in files {
        assert!(
            Path::new(file["path"].as_str().unwrap()).is_file(),
            "{file}"
        );
    }
}

#[test]
fn image_prepare_writes_what_a_model_would_get_and_refuses_what_is_none() {
    let home = TempDir::new().unwrap();
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/images/web1080.png"
    );
    let folder = home.path().join("prepared");
    let folder = folder.to_str().unwrap();
    let output = run(
        home.path(),
        &["image", "prepare", page, "-o", folder, "--json"],
    );
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let reports: Value = serde_json::from_str(stdout(&output)).unwrap();
    let picture = &reports[0]["pictures"][0];
    assert_eq!(
        (&picture["width"], &picture["height"]),
        (&json!(1568), &json!(882))
    );
    let written = std::fs::read(picture["path"].as_str().unwrap()).unwrap();
    assert_eq!(json!(written.len()), picture["bytes"]);
    assert!(picture["url_length"].as_u64().unwrap() <= 262_144);

    let text = home.path().join("notes.txt");
    std::fs::write(&text, "no picture").unwrap();
    let output = run(home.path(), &["image", "prepare", text.to_str().unwrap()]);
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains("refused: not_an_image"));
}
