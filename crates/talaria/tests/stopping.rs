//! The service and its signals, from outside.

#![expect(clippy::unwrap_used, reason = "functions that only support tests")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talaria_types::runtime::now;
use tempfile::TempDir;

/// Longest wait for anything here.
const PATIENCE: Duration = Duration::from_secs(30);

fn talaria(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talaria"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// A running service that is killed with the test.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(home: &Path) -> Self {
        let config = json!({
            "talaria": { "listen": "127.0.0.1:0", "home": home.join("talaria") },
            "mcp_servers": {
                "demo": { "command": env!("CARGO_BIN_EXE_talaria"), "args": ["demo-server"] },
            },
        });
        let file = home.join("config.yaml");
        std::fs::write(&file, config.to_string()).unwrap();
        let serve = ["serve", "--json", "--config", file.to_str().unwrap()];
        let mut child = talaria(home, &serve).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        Self {
            child,
            url: ready.get("url").and_then(Value::as_str).unwrap().to_owned(),
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Starts a call that takes so long and waits until the server works on it.
    fn call_sleep(&self, home: &Path, ms: u64) -> Child {
        let arguments = json!({ "ms": ms }).to_string();
        let call = [
            "call",
            "mcp__demo__sleep",
            &arguments,
            "--url",
            &self.url,
            "--format",
            "text",
        ];
        wait_until(|| in_flight(home, &self.url) == Some(0));
        let call = talaria(home, &call).spawn().unwrap();
        wait_until(|| in_flight(home, &self.url) == Some(1));
        call
    }

    fn wait(&mut self) -> Option<i32> {
        wait_until(|| self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Requests the server works on, once it is ready.
fn in_flight(home: &Path, url: &str) -> Option<u64> {
    let output = talaria(home, &["servers", "--json", "--url", url])
        .output()
        .unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).ok()?;
    let server = list.pointer("/servers/0")?;
    let is_ready = server.get("state").is_some_and(|state| state == "ready");
    server
        .get("in_flight")
        .filter(|_| is_ready)
        .and_then(Value::as_u64)
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let began = now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it did not happen in time");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn the_first_signal_lets_running_calls_finish() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let home = TempDir::new().unwrap();
        let mut service = Service::start(home.path());
        let call = service.call_sleep(home.path(), 1000);
        service.signal(signal);
        let answered = call.wait_with_output().unwrap();
        assert_eq!(
            (text(&answered), answered.status.code()),
            ("Slept for 1000 ms.\n", Some(0))
        );
        assert_eq!(service.wait(), Some(0), "{signal}");
    }
}

#[test]
fn the_second_signal_stops_at_once() {
    let home = TempDir::new().unwrap();
    let mut service = Service::start(home.path());
    let call = service.call_sleep(home.path(), 3_600_000);
    service.signal(Signal::SIGTERM);
    // Only a service that already drains refuses a call.
    let echo = [
        "call",
        "mcp__demo__echo",
        r#"{"text": "x"}"#,
        "--url",
        &service.url,
    ];
    wait_until(|| talaria(home.path(), &echo).output().unwrap().status.code() == Some(4));
    service.signal(Signal::SIGTERM);
    assert_eq!(service.wait(), Some(0));
    let answered = call.wait_with_output().unwrap();
    assert_eq!(answered.status.code(), Some(3));
}
