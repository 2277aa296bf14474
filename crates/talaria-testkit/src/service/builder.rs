//! Describing a service before it starts.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Context;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{PATIENCE, Programs, Service, records_path, stderr_path, stdout_path};
use crate::script::Script;
use crate::server::HttpServer;
use crate::wait::wait_for;

/// A service that has not started yet.
#[derive(Clone, Debug)]
pub struct ServiceBuilder {
    programs: Programs,
    home: Arc<TempDir>,
    config: Value,
    environment: BTreeMap<String, String>,
    token: Option<String>,
    wrapper: Vec<String>,
}

impl ServiceBuilder {
    pub(crate) fn new(programs: Programs) -> anyhow::Result<Self> {
        let home = tempfile::Builder::new().prefix("talaria-test-").tempdir()?;
        let config = json!({
            "talaria": {
                "listen": "127.0.0.1:0",
                "home": home.path().join("talaria"),
            },
            "mcp_servers": {},
        });
        Ok(Self {
            programs,
            home: Arc::new(home),
            config,
            environment: BTreeMap::new(),
            token: None,
            wrapper: Vec::new(),
        })
    }

    /// The folder everything of this service will live in.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Adds a scripted server over stdio; its messages are recorded.
    ///
    /// # Errors
    /// The script cannot be written.
    pub fn stdio(self, name: &str, script: Script) -> anyhow::Result<Self> {
        let path = self.home.path().join(format!("{name}.script.json"));
        let records = records_path(self.home.path(), name);
        script.recorded_in(&records).write(&path)?;
        let program = self.programs.server;
        Ok(self.server(name, json!({"command": program, "args": [path]})))
    }

    /// Adds a scripted server over HTTP.
    #[must_use]
    pub fn http(self, name: &str, server: &HttpServer) -> Self {
        self.server(name, json!({"url": server.url()}))
    }

    /// Adds an entry of `mcp_servers` as it stands.
    #[must_use]
    pub fn server(self, name: &str, entry: Value) -> Self {
        self.set(&["mcp_servers", name], entry)
    }

    /// Sets a value of the configuration by its key path.
    #[must_use]
    pub fn set(mut self, path: &[&str], value: impl Into<Value>) -> Self {
        let mut place = &mut self.config;
        for key in path {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[*key];
        }
        *place = value.into();
        self
    }

    /// Sets a variable of the service's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The bearer token that [`Service`] sends with every request.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Shell commands that set the process up before it becomes the service.
    #[must_use]
    pub fn shell_setup(mut self, commands: &str) -> Self {
        let line = format!("{commands}; exec \"$0\" \"$@\"");
        self.wrapper = vec!["sh".to_owned(), "-c".to_owned(), line];
        self
    }

    /// Runs the service as a user whom the modes of files bind, which root is not.
    #[must_use]
    pub fn without_privileges(mut self) -> Self {
        if nix::unistd::geteuid().is_root() {
            let drop = [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
            ];
            self.wrapper = drop.map(str::to_owned).to_vec();
        }
        self
    }

    /// Takes an entry of `mcp_servers` away.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        let servers = self.config.get_mut("mcp_servers");
        if let Some(servers) = servers.and_then(Value::as_object_mut) {
            servers.remove(name);
        }
        self
    }

    /// Writes the configuration to its place, in one step, also where a service is running that
    /// was built like this one; answers the place.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_config(&self) -> anyhow::Result<PathBuf> {
        let config = self.home.path().join("config.yaml");
        let fresh = self.home.path().join("config.yaml.new");
        // JSON is YAML.
        std::fs::write(&fresh, serde_json::to_vec_pretty(&self.config)?)?;
        std::fs::rename(&fresh, &config)?;
        Ok(config)
    }

    /// The command that starts the service.
    ///
    /// # Errors
    /// The configuration cannot be written.
    pub fn command(&self) -> anyhow::Result<Command> {
        let config = self.write_config()?;
        let mut words = self
            .wrapper
            .iter()
            .map(String::as_str)
            .chain([self.programs.talaria]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .args(["serve", "--json", "--config"])
            .arg(&config);
        command.env_clear();
        for (name, value) in talaria_types::runtime::environment() {
            if matches!(
                name.as_str(),
                "PATH" | "LANG" | "TMPDIR" | "LLVM_PROFILE_FILE"
            ) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", self.home.path())
            .envs(&self.environment);
        command.stdin(Stdio::null()).kill_on_drop(true);
        Ok(command)
    }

    /// Starts the service and waits until every enabled server is ready.
    ///
    /// # Errors
    /// The service or a server does not get there in time.
    pub async fn start(self) -> anyhow::Result<Service> {
        let enabled: Vec<String> = self.enabled();
        let service = self.start_unsettled().await?;
        for name in enabled {
            service.wait_state(&name, "ready", PATIENCE).await?;
        }
        Ok(service)
    }

    /// Starts the service and waits only until it listens.
    ///
    /// # Errors
    /// The service ends, or does not listen in time.
    pub async fn start_unsettled(self) -> anyhow::Result<Service> {
        let mut command = self.command()?;
        let home = self.home.path();
        if self.wrapper.first().is_some_and(|first| first == "setpriv") {
            std::os::unix::fs::chown(home, Some(65534), Some(65534))?;
        }
        command
            .stdout(File::create(stdout_path(home))?)
            .stderr(File::create(stderr_path(home))?);
        let mut child = command.spawn().context("start the service")?;
        let pid = child.id().context("the service's process id")?;
        let base = wait_for("the service to listen", PATIENCE, || {
            std::future::ready(listening(&mut child, home))
        })
        .await??;
        let client = http_client()?;
        let token = self.token;
        Ok(Service {
            home: self.home,
            child: Mutex::new(child),
            pid,
            base,
            client,
            token,
        })
    }

    /// Starts the service once more in the same home, after the first has ended.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_again(self, ended: Service) -> anyhow::Result<Service> {
        drop(ended);
        self.start().await
    }

    fn enabled(&self) -> Vec<String> {
        let servers = self.config.get("mcp_servers").and_then(Value::as_object);
        servers
            .into_iter()
            .flatten()
            .filter(|(_, entry)| entry.get("enabled") != Some(&json!(false)))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// An HTTP client that keeps connections, follows nothing and uses no proxy.
///
/// # Errors
/// The client cannot be built.
pub fn http_client() -> anyhow::Result<reqwest::Client> {
    // Another test of the process may have installed it already.
    drop(rustls::crypto::ring::default_provider().install_default());
    Ok(reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE * 6)
        .build()?)
}

/// The base URL once the service has told it; an inner error when it has ended instead.
fn listening(
    child: &mut tokio::process::Child,
    home: &Path,
) -> Result<anyhow::Result<String>, String> {
    let said = std::fs::read_to_string(stdout_path(home)).unwrap_or_default();
    if let Some(base) = said.lines().find_map(ready_line) {
        return Ok(Ok(base));
    }
    match child.try_wait() {
        Ok(Some(status)) => {
            let log = std::fs::read_to_string(stderr_path(home)).unwrap_or_default();
            Ok(Err(anyhow::anyhow!(
                "the service ended ({status}) before it listened: {log}"
            )))
        }
        Ok(None) => Err(format!("it said {said:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads `{"event":"ready","url":"http://…"}`.
fn ready_line(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let event = line.get("event").and_then(Value::as_str);
    let url = line.get("url").and_then(Value::as_str);
    url.filter(|_| event == Some("ready")).map(str::to_owned)
}
