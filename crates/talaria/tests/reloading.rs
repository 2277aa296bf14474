//! Reading the configuration again, from outside: over HTTP, by signal, when the file changes.

#![expect(clippy::unwrap_used, reason = "functions that only support tests")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};
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
    home: TempDir,
    child: Child,
    url: String,
}

impl Service {
    fn start(servers: &[&str], watch: bool) -> Self {
        let home = TempDir::new().unwrap();
        let file = file_of(home.path());
        std::fs::write(&file, text(home.path(), &entries(servers), watch)).unwrap();
        Self::start_in(home, &file)
    }

    fn start_in(home: TempDir, file: &Path) -> Self {
        let serve = ["serve", "--json", "--config", file.to_str().unwrap()];
        let mut child = talaria(home.path(), &serve).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let url = ready.get("url").and_then(Value::as_str).unwrap().to_owned();
        Self { home, child, url }
    }

    /// Writes the file anew.
    fn write(&self, entries: &Map<String, Value>, watch: bool) {
        std::fs::write(
            file_of(self.home.path()),
            text(self.home.path(), entries, watch),
        )
        .unwrap();
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let arguments = [arguments, &["--url", &self.url]].concat();
        talaria(self.home.path(), &arguments).output().unwrap()
    }

    /// Process ids of the servers that are ready, by name.
    fn ready(&self) -> BTreeMap<String, u64> {
        let output = self.ask(&["servers", "--json"]);
        let Ok(list) = serde_json::from_slice::<Value>(&output.stdout) else {
            return BTreeMap::new();
        };
        let servers = list.get("servers").and_then(Value::as_array).unwrap();
        let one = |server: &Value| {
            let name = server.get("name")?.as_str()?.to_owned();
            let pid = server.get("pid")?.as_u64()?;
            (server.get("state")? == "ready").then_some((name, pid))
        };
        servers.iter().filter_map(one).collect()
    }

    fn wait_for(&self, names: &[&str]) -> BTreeMap<String, u64> {
        wait_until(|| {
            self.ready()
                .keys()
                .map(String::as_str)
                .eq(names.iter().copied())
        });
        self.ready()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn file_of(home: &Path) -> PathBuf {
    home.join("config.yaml")
}

fn entries(servers: &[&str]) -> Map<String, Value> {
    let entry = json!({ "command": env!("CARGO_BIN_EXE_talaria"), "args": ["demo-server"] });
    servers
        .iter()
        .map(|name| ((*name).to_owned(), entry.clone()))
        .collect()
}

fn text(home: &Path, entries: &Map<String, Value>, watch: bool) -> String {
    json!({
        "talaria": {
            "listen": "127.0.0.1:0", "home": home.join("talaria"), "watch_config": watch,
        },
        "mcp_servers": entries,
    })
    .to_string()
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let began = now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it did not happen in time");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[test]
fn a_command_changes_what_differs_and_a_broken_file_nothing() {
    let service = Service::start(&["a", "b"], false);
    let before = service.wait_for(&["a", "b"]);
    let mut wanted = entries(&["a", "b", "c"]);
    if let Some(Value::Object(entry)) = wanted.get_mut("b") {
        entry.insert("timeout".to_owned(), json!(7));
    }
    service.write(&wanted, false);
    let output = service.ask(&["reload", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "added": ["c"], "removed": [], "changed": ["b"], "unchanged": 1,
        "broken": [], "restart_required": [], "warnings": [],
    });
    assert_eq!(report, expected);
    let after = service.wait_for(&["a", "b", "c"]);
    assert_eq!(after.get("a"), before.get("a"), "it was not touched");
    assert_ne!(after.get("b"), before.get("b"));

    std::fs::write(file_of(service.home.path()), "mcp_servers: [").unwrap();
    let output = service.ask(&["reload"]);
    assert_eq!(output.status.code(), Some(2));
    let said = talaria(service.home.path(), &["reload", "--url", &service.url])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(
        said.contains("config_invalid: nothing was changed"),
        "{said}"
    );
    let file = file_of(service.home.path());
    // As a full disk or an editor that was stopped leaves it.
    for rest in [
        "",
        " \n\n",
        "# Servers of\r\n# ours\n",
        "---\n",
        "\u{feff}# a",
    ] {
        std::fs::write(&file, rest).unwrap();
        assert_eq!(service.ask(&["reload"]).status.code(), Some(2), "{rest:?}");
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(service.ask(&["reload"]).status.code(), Some(2));
    // Nobody writes into it, so whoever read it would wait for ever.
    let made = Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    assert_eq!(service.ask(&["reload"]).status.code(), Some(2));
    assert_eq!(service.ready(), after);
}

#[test]
fn k09_a_signal_retires_a_server_that_is_gone_from_the_file() {
    let service = Service::start(&["a", "b"], false);
    let before = service.wait_for(&["a", "b"]);
    service.write(&entries(&["b"]), false);
    let pid = Pid::from_raw(service.child.id().try_into().unwrap());
    kill(pid, Signal::SIGHUP).unwrap();
    let after = service.wait_for(&["b"]);
    assert_eq!(after.get("b"), before.get("b"));
    let gone = before.get("a").unwrap();
    wait_until(|| !Path::new(&format!("/proc/{gone}")).exists());
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn the_allocator_keeps_one_arena_per_processor() {
    let service = Service::start(&["a"], false);
    let environment = std::fs::read(format!("/proc/{}/environ", service.child.id())).unwrap();
    let arenas = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"MALLOC_ARENA_MAX="))
        .unwrap();
    let processors = std::thread::available_parallelism().unwrap();
    assert_eq!(arenas, processors.to_string().as_bytes());
    // Its servers are told nothing of it.
    let server = service.wait_for(&["a"])["a"];
    let theirs = std::fs::read(format!("/proc/{server}/environ")).unwrap();
    assert!(!theirs.windows(12).any(|part| part == b"MALLOC_ARENA"));
}

#[test]
fn a_file_that_changes_is_read_without_being_asked() {
    let service = Service::start(&["a"], true);
    let before = service.wait_for(&["a"]);
    service.write(&entries(&["a", "b"]), true);
    let after = service.wait_for(&["a", "b"]);
    assert_eq!(after.get("a"), before.get("a"));
}

#[test]
fn a_link_that_is_swapped_as_in_kubernetes_is_a_change() {
    let home = TempDir::new().unwrap();
    let at = |name: &str| home.path().join(name);
    for (version, servers) in [("one", ["a"].as_slice()), ("two", &["a", "b"])] {
        std::fs::create_dir(at(version)).unwrap();
        let text = text(home.path(), &entries(servers), true);
        std::fs::write(at(version).join("config.yaml"), text).unwrap();
    }
    std::os::unix::fs::symlink("one", at("..data")).unwrap();
    std::os::unix::fs::symlink("..data/config.yaml", file_of(home.path())).unwrap();
    let file = file_of(home.path());
    let service = Service::start_in(home, &file);
    service.wait_for(&["a"]);
    let at = |name: &str| service.home.path().join(name);
    std::os::unix::fs::symlink("two", at("..next")).unwrap();
    std::fs::rename(at("..next"), at("..data")).unwrap();
    service.wait_for(&["a", "b"]);
}
