//! The service under test: the real program as a real process, with a home of its own and a
//! port the system chose.

mod answer;
mod builder;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;

pub use answer::Answer;
pub use builder::{ServiceBuilder, http_client};

use crate::exposition::Exposition;
use crate::holdings::{Holdings, Slack};
use crate::process::{self, Memory};
use crate::records::{self, Record};
use crate::wait::wait_for;

/// Longest wait for anything the service does of its own.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The programs of the test package, as cargo names them for integration tests.
#[derive(Clone, Copy, Debug)]
pub struct Programs {
    /// The service.
    pub talaria: &'static str,
    /// The scripted server over stdio.
    pub server: &'static str,
}

/// The programs of the package whose test this is.
#[macro_export]
macro_rules! programs {
    () => {
        $crate::Programs {
            talaria: env!("CARGO_BIN_EXE_talaria-under-test"),
            server: env!("CARGO_BIN_EXE_scripted-server"),
        }
    };
}

/// A running service. Dropping it kills it and everything it started, and fails the test when
/// the service logged an error or a panic: those are for people to act on.
#[derive(Debug)]
pub struct Service {
    home: Arc<TempDir>,
    child: Mutex<Child>,
    pid: u32,
    base: String,
    client: reqwest::Client,
    token: Option<String>,
}

impl Service {
    /// A service to be described.
    ///
    /// # Errors
    /// There is no place for its home.
    pub fn builder(programs: Programs) -> anyhow::Result<ServiceBuilder> {
        ServiceBuilder::new(programs)
    }

    /// The folder everything of this service lives in; also its `HOME`.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The folder of delivered files.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.home.path().join("talaria/cache")
    }

    /// Process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The HTTP client, for requests that no method here makes.
    #[must_use]
    pub const fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Calls a tool of a server by raw names and waits for the answer.
    ///
    /// # Errors
    /// There is no HTTP answer.
    pub async fn call(&self, server: &str, tool: &str, arguments: Value) -> anyhow::Result<Answer> {
        let body = json!({"server": server, "name": tool, "arguments": arguments});
        self.post("/v1/tools/call", &body).await
    }

    /// Delivers a raw result in a format.
    ///
    /// # Errors
    /// There is no HTTP answer.
    pub async fn deliver(&self, result: Value, format: &str) -> anyhow::Result<Answer> {
        self.post(
            "/v1/results/deliver",
            &json!({"result": result, "format": format}),
        )
        .await
    }

    /// Posts a JSON body.
    ///
    /// # Errors
    /// There is no HTTP answer.
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send(self.client.post(self.url(path)).json(body)).await
    }

    /// Gets a path.
    ///
    /// # Errors
    /// There is no HTTP answer.
    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(self.client.get(self.url(path))).await
    }

    /// Sends a request with the service's token, when it has one.
    ///
    /// # Errors
    /// There is no HTTP answer.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        Answer::read(request.send().await?).await
    }

    /// The status of a server.
    ///
    /// # Errors
    /// There is no such server, or no answer.
    pub async fn server(&self, name: &str) -> anyhow::Result<Value> {
        self.get(&format!("/v1/servers/{name}")).await?.ok()
    }

    /// Waits until a server is in a state, and answers its status.
    ///
    /// # Errors
    /// It does not get there in time.
    pub async fn wait_state(
        &self,
        name: &str,
        state: &str,
        within: Duration,
    ) -> anyhow::Result<Value> {
        wait_for(&format!("server {name} to be {state}"), within, || async {
            let status = self.server(name).await.map_err(|error| error.to_string())?;
            let now = status.get("state").and_then(Value::as_str);
            if now == Some(state) {
                Ok(status)
            } else {
                Err(status.to_string())
            }
        })
        .await
    }

    /// Scrapes `/metrics`.
    ///
    /// # Errors
    /// There is no answer, or it is not the text format.
    pub async fn metrics(&self) -> anyhow::Result<Exposition> {
        let answer = self.get("/metrics").await?;
        anyhow::ensure!(answer.status == 200, "GET /metrics: {answer:?}");
        Exposition::parse(&answer.text()?)
    }

    /// What a scripted stdio server of this service received.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn records(&self, server: &str) -> anyhow::Result<Vec<Record>> {
        records::read(&records_path(self.home.path(), server))
    }

    /// Waits until a scripted stdio server has received what the test looks for.
    ///
    /// # Errors
    /// It does not come in time.
    pub async fn wait_record(
        &self,
        server: &str,
        what: &str,
        within: Duration,
        wanted: impl Fn(&Record) -> bool,
    ) -> anyhow::Result<Record> {
        wait_for(&format!("{what} at {server}"), within, || async {
            let records = self.records(server).map_err(|error| error.to_string())?;
            let found = records.iter().find(|record| wanted(record)).cloned();
            found.ok_or_else(|| format!("{} records: {records:?}", records.len()))
        })
        .await
    }

    /// Memory of the service alone.
    ///
    /// # Errors
    /// It is gone.
    pub fn memory(&self) -> anyhow::Result<Memory> {
        process::memory(self.pid)
    }

    /// What the service holds now.
    ///
    /// # Errors
    /// It is gone.
    pub async fn holdings(&self) -> anyhow::Result<Holdings> {
        let tasks = self.metrics().await?.value("talaria_tasks", &[])?;
        let tasks = (0..).take_while(|count| f64::from(*count) < tasks).count();
        Holdings::of(self.pid, tasks)
    }

    /// Waits until the service holds no more than before.
    ///
    /// Looks from outside until only its tasks are left to ask for: every question wakes the
    /// idle thread of its blocking pool that slept longest, so asking again and again keeps all
    /// of them alive for ever.
    ///
    /// # Errors
    /// It still does when the time is up.
    pub async fn wait_given_back(&self, before: Holdings, slack: Slack) -> anyhow::Result<()> {
        let verdict = |now: Holdings| {
            if now.within(&before, slack) {
                Ok(())
            } else {
                let threads = process::thread_names(self.pid).join(", ");
                Err(format!("before {before:?}, now {now:?}: {threads}"))
            }
        };
        wait_for("everything to be given back", PATIENCE, || async {
            verdict(Holdings::of(self.pid, before.tasks).map_err(|error| error.to_string())?)
        })
        .await?;
        wait_for("every task to end", PATIENCE, || async {
            verdict(self.holdings().await.map_err(|error| error.to_string())?)
        })
        .await
    }

    /// Asks the service to end.
    ///
    /// # Errors
    /// It is gone.
    pub fn terminate(&self) -> anyhow::Result<()> {
        process::signal(self.pid, Signal::SIGTERM)
    }

    /// Kills the service as a crash would.
    ///
    /// # Errors
    /// It is gone.
    pub fn kill(&self) -> anyhow::Result<()> {
        process::signal(self.pid, Signal::SIGKILL)
    }

    /// Waits until the service has ended.
    ///
    /// # Errors
    /// It does not end in time.
    pub async fn wait_exit(&self, within: Duration) -> anyhow::Result<ExitStatus> {
        wait_for("the service to end", within, || async {
            match self.child.lock().try_wait() {
                Ok(Some(status)) => Ok(status),
                Ok(None) => Err("still running".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await
    }

    /// Waits until nothing that the service started runs any more.
    ///
    /// # Errors
    /// Something still does when the time is up.
    pub async fn wait_no_processes(&self, within: Duration) -> anyhow::Result<()> {
        wait_for(
            "every process of the service to be gone",
            within,
            || async {
                let left = process::belonging_to(self.home.path());
                if left.is_empty() { Ok(()) } else { Err(left) }
            },
        )
        .await
    }

    /// What the service wrote to stderr: its log.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn log(&self) -> anyhow::Result<String> {
        std::fs::read_to_string(stderr_path(self.home.path())).context("read the service's log")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        if failed {
            report(self.home.path());
        }
        // What is already gone needs no signal.
        drop(process::signal(self.pid, Signal::SIGKILL));
        for left in process::belonging_to(self.home.path()) {
            drop(process::signal(left.pid, Signal::SIGKILL));
        }
        let complaints = complaints(self.home.path());
        assert!(
            failed || complaints.is_empty(),
            "the service logged what somebody must act on: {complaints:#?}"
        );
    }
}

/// Lines of the log that tell of a defect: errors and panics.
fn complaints(home: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(stderr_path(home)).unwrap_or_default();
    let marks = ["\"level\":\"ERROR\"", "panicked at"];
    let lines = log
        .lines()
        .filter(|line| marks.iter().any(|mark| line.contains(mark)));
    lines.map(str::to_owned).collect()
}

/// Shows the end of the log of a service whose test failed.
#[expect(
    clippy::print_stderr,
    reason = "the test runner shows it beside the failure"
)]
fn report(home: &Path) {
    let log = std::fs::read_to_string(stderr_path(home)).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let tail = lines.len().saturating_sub(40);
    eprintln!(
        "the service's log ends with:\n{}",
        lines.get(tail..).unwrap_or_default().join("\n")
    );
}

fn stderr_path(home: &Path) -> PathBuf {
    home.join("service.stderr")
}

fn stdout_path(home: &Path) -> PathBuf {
    home.join("service.stdout")
}

fn records_path(home: &Path, server: &str) -> PathBuf {
    home.join(format!("{server}.records.jsonl"))
}
