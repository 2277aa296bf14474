//! Reads the configuration again: when it is asked for, on SIGHUP, and when the file changes.
//!
//! One task does it, so that the file that was read last is the one that is in force.

mod watch;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use talaria_actors::{ReloadReport, SharedMasker, SupervisorHandle};
use talaria_config::Problem;
use talaria_config::defaults::MAX_FILE_BYTES;
use talaria_http::{ConfigProblem, Reload, ReloadRefusal, Reloading};
use talaria_telemetry::events::{self, ReloadOutcome};
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, ErrorCode, Failure, runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::arguments::ConfigArguments;
use crate::configuration::{self, LoadError, Loaded};
use crate::engine::Engine;
use watch::{Stamp, Step, Watch};

/// Reloads that may wait.
const REQUESTS: usize = 16;
/// How long reading the file may take.
const READ_WITHIN: Duration = Duration::from_secs(20);
/// How many problems the sentence of a refusal names; the list has all of them.
const NAMED_PROBLEMS: usize = 5;

/// What the configuration is read from, each time.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    arguments: ConfigArguments,
    environment: BTreeMap<String, String>,
    listen: Option<SocketAddr>,
}

impl ConfigSource {
    /// A source as the command line and the environment say; `listen` beats the file.
    #[must_use]
    pub const fn new(
        arguments: ConfigArguments,
        environment: BTreeMap<String, String>,
        listen: Option<SocketAddr>,
    ) -> Self {
        Self {
            arguments,
            environment,
            listen,
        }
    }

    /// Reads the configuration for the first time; says where to read it again.
    ///
    /// # Errors
    /// The file cannot be read, or the configuration cannot be used.
    pub fn open(self) -> Result<(Loaded, Origin), LoadError> {
        let path = configuration::path(&self.arguments, &self.environment);
        // Looked at before it is read, so that a later change is seen as one.
        let watch = path.map(|path| {
            let stamp = Stamp::of(&path);
            Watch::new(path, stamp)
        });
        let loaded = self.load()?;
        let origin = Origin {
            source: self,
            from_file: loaded.from_file,
            watch,
        };
        Ok((loaded, origin))
    }

    fn load(&self) -> Result<Loaded, LoadError> {
        let mut loaded = configuration::load_from(&self.arguments, &self.environment)?;
        if let Some(listen) = self.listen {
            loaded.config.talaria.listen = listen;
        }
        Ok(loaded)
    }
}

/// Where the configuration in force comes from.
#[derive(Debug)]
pub struct Origin {
    source: ConfigSource,
    /// Whether a file says it.
    from_file: bool,
    watch: Option<Watch>,
}

/// Why the configuration is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// `POST /v1/reload`.
    Http,
    /// SIGHUP.
    Signal,
    /// The file changed.
    Watch,
}

impl Trigger {
    /// The label.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Signal => "signal",
            Self::Watch => "watch",
        }
    }
}

/// What becomes of a request.
type Outcome = Result<ReloadReport, ReloadRefusal>;

#[derive(Debug)]
struct Request {
    trigger: Trigger,
    answer: oneshot::Sender<Outcome>,
}

/// Asks for reloads; cheap to clone.
#[derive(Clone, Debug)]
pub struct Reloader {
    requests: mpsc::Sender<Request>,
}

impl Reloader {
    /// Starts the task that changes `engine` and its servers. Needs a running actix system.
    #[must_use]
    pub fn start(
        origin: Origin,
        engine: &Engine,
        supervisor: SupervisorHandle,
    ) -> (Self, JoinHandle<()>) {
        events::config_read();
        let (requests, asked) = mpsc::channel(REQUESTS);
        let work = Work {
            watching: engine.config.talaria.watch_config,
            blocking: engine.blocking.clone(),
            masker: engine.delivery.masker().clone(),
            supervisor,
            origin,
        };
        let task = runtime::spawn_local("reloads", work.run(asked));
        (Self { requests }, task)
    }

    /// Asks for a reload and does not wait for it.
    pub fn request(&self, trigger: Trigger) {
        let (answer, _nobody_waits) = oneshot::channel();
        if self.requests.try_send(Request { trigger, answer }).is_err() {
            events::queue_refused("reloads");
            tracing::warn!(trigger = trigger.as_str(), "reload not done: too many wait");
        }
    }

    fn ask(&self) -> Result<oneshot::Receiver<Outcome>, Failure> {
        let (answer, outcome) = oneshot::channel();
        let trigger = Trigger::Http;
        match self.requests.try_send(Request { trigger, answer }) {
            Ok(()) => Ok(outcome),
            Err(mpsc::error::TrySendError::Full(_)) => {
                events::queue_refused("reloads");
                let detail = "too many reloads wait already; try again later";
                Err(Failure::new(ErrorCode::Busy, detail).retry_after(Duration::from_secs(1)))
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(ended()),
        }
    }
}

impl Reload for Reloader {
    fn reload(&self) -> Reloading {
        let asked = self.ask();
        Box::pin(async move { asked?.await.unwrap_or_else(|_| Err(ended().into())) })
    }
}

fn ended() -> Failure {
    Failure::new(ErrorCode::ShuttingDown, "Talaria is shutting down")
}

/// The task.
#[derive(Debug)]
struct Work {
    origin: Origin,
    supervisor: SupervisorHandle,
    blocking: BlockingPool,
    /// Hides what the configuration keeps secret.
    masker: SharedMasker,
    /// `talaria.watch_config`, as the file in force says.
    watching: bool,
}

impl Work {
    async fn run(mut self, mut asked: mpsc::Receiver<Request>) {
        loop {
            let watch = self.origin.watch.as_ref();
            let pause = watch.map_or(watch::PAUSE, Watch::pause);
            tokio::select! {
                request = asked.recv() => {
                    let Some(Request { trigger, answer }) = request else { return };
                    let outcome = self.reload(trigger).await;
                    // A caller that has gone does not undo it.
                    drop(answer.send(outcome));
                }
                () = tokio::time::sleep(pause), if self.watching => self.look().await,
            }
        }
    }

    /// Looks at the file, and reads it when it has changed and come to rest.
    async fn look(&mut self) {
        let Some(watch) = &mut self.origin.watch else {
            return;
        };
        let path = watch.path().to_owned();
        let looking = move || Stamp::of(&path);
        let deadline = Deadline::after(READ_WITHIN);
        let Ok(stamp) = self.blocking.run(deadline, looking).await else {
            // The next look tries again.
            return;
        };
        if watch.step(stamp) == Step::Read {
            // The refusal is in the log.
            drop(self.reload(Trigger::Watch).await);
        }
    }

    async fn reload(&mut self, trigger: Trigger) -> Outcome {
        let outcome = self.try_reload().await;
        let word = match &outcome {
            Ok(report) if report.is_quiet() => ReloadOutcome::Unchanged,
            Ok(_) => ReloadOutcome::Applied,
            Err(_) => ReloadOutcome::Refused,
        };
        match &outcome {
            Ok(report) => log(report),
            Err(refusal) => tracing::warn!(
                code = refusal.failure.code().as_str(),
                "configuration not applied: {}",
                refusal.failure
            ),
        }
        events::config_reloaded(trigger.as_str(), word);
        outcome
    }

    async fn try_reload(&mut self) -> Outcome {
        let source = self.origin.source.clone();
        let watch = self.origin.watch.as_ref();
        let path = watch.map(|watch| watch.path().to_owned());
        let was_file = self.origin.from_file;
        // Looked at before it is read, as the first time.
        let reading = move || {
            let stamp = path.as_deref().map(Stamp::of);
            let unfit = path.as_deref().filter(|_| was_file).and_then(unfit);
            (stamp, unfit.map_or_else(|| source.load(), Err))
        };
        let deadline = Deadline::after(READ_WITHIN);
        let (stamp, loaded) = self.blocking.run(deadline, reading).await?;
        if let (Some(watch), Some(stamp)) = (&mut self.origin.watch, stamp) {
            watch.read(stamp);
        }
        let loaded = loaded.map_err(|error| refusal(&error))?;
        if self.origin.from_file && !loaded.from_file {
            let detail = "the configuration file is gone; what it said stays in force";
            return Err(Failure::new(ErrorCode::ConfigInvalid, detail).into());
        }
        let watching = loaded.config.talaria.watch_config;
        // Before anything that knows a new secret can say it.
        self.masker.learn(loaded.config.secrets());
        let report = self.supervisor.reload(Arc::new(loaded.config)).await?;
        self.origin.from_file = loaded.from_file;
        self.watching = watching;
        Ok(report)
    }
}

/// Why a file is not even read while another one is in force: what is no regular file may keep
/// its reader waiting for ever, and one that says nothing is being written or was cut off.
fn unfit(path: &Path) -> Option<LoadError> {
    let found = std::fs::metadata(path).ok()?;
    let why = if !found.is_file() {
        "it is not a regular file"
    } else if says_nothing(path) {
        "it says nothing (`mcp_servers: {}` says that there are no servers)"
    } else {
        return None;
    };
    Some(LoadError::Unreadable {
        path: path.to_owned(),
        error: std::io::Error::other(why),
    })
}

/// Whether a file has nothing but blanks, comments and marks between documents. What cannot be
/// read is left to its reader, who says why.
fn says_nothing(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    BufReader::new(file.take(most)).split(b'\n').all(|line| {
        line.is_ok_and(|line| {
            let line = line.trim_ascii();
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            line.is_empty() || line.starts_with(b"#") || matches!(line, b"---" | b"...")
        })
    })
}

fn log(report: &ReloadReport) {
    for broken in &report.broken {
        let (server, kept) = (broken.server.as_str(), broken.kept);
        tracing::warn!(server, kept, problem = broken.problem, "server not usable");
    }
    for warning in &report.warnings {
        tracing::warn!(warning, "configuration");
    }
    if !report.restart_required.is_empty() {
        let keys = report.restart_required.join(" ");
        tracing::warn!(keys, "changes that count after a restart");
    }
    if !report.is_quiet() {
        tracing::info!(
            added = report.added.join(" "),
            removed = report.removed.join(" "),
            changed = report.changed.join(" "),
            unchanged = report.unchanged,
            "servers changed"
        );
    }
}

fn refusal(error: &LoadError) -> ReloadRefusal {
    let problems: Vec<Problem> = match error {
        LoadError::Invalid(errors) => errors.problems().to_vec(),
        LoadError::Unreadable { .. } | LoadError::Lost { .. } => Vec::new(),
    };
    let what = if problems.is_empty() {
        error.to_string()
    } else {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let named: Vec<_> = lines.iter().take(NAMED_PROBLEMS).cloned().collect();
        let more = lines.len().saturating_sub(named.len());
        let rest = if more == 0 {
            String::new()
        } else {
            format!("; and {more} more")
        };
        format!("{}{rest}", named.join("; "))
    };
    let detail = format!("nothing was changed, because the configuration cannot be used: {what}");
    ReloadRefusal {
        failure: Box::new(Failure::new(ErrorCode::ConfigInvalid, detail)),
        problems: problems
            .into_iter()
            .map(|Problem { path, message }| ConfigProblem { path, message })
            .collect(),
    }
}
