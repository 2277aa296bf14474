//! One worker process: a request a line, an answer a line.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tokio::time::Instant;

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use talaria_image::{Target, Watch, prepare};

use super::{BUDGET, MAX_SIDE};

/// What a worker does with a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Talaria's own.
    Ours,
    /// The reference agent's ladder in Pillow.
    Ladder,
    /// Pillow used well.
    Well,
    /// sharp.
    Sharp,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Milliseconds by the clock.
    pub wall_ms: f64,
    /// Milliseconds of processor time.
    pub cpu_ms: f64,
    /// Characters of the data URL.
    pub bytes: usize,
    /// Format and size.
    pub what: String,
    /// Full encodes, where they are known.
    #[serde(default)]
    pub encodes: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Request {
    Load { load: PathBuf },
    Run { run: Way, path: PathBuf },
}

/// A worker process; killed when dropped.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let stdin = child.stdin.take().context("a pipe to the worker")?;
        let stdout = child.stdout.take().context("a pipe from the worker")?;
        Ok(Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
        })
    }

    /// Has the worker keep the bytes of a file.
    ///
    /// # Errors
    /// The worker does not answer.
    pub fn load(&mut self, path: &Path) -> anyhow::Result<()> {
        self.ask(&Request::Load { load: path.into() }).map(drop)
    }

    /// Has the worker make a loaded picture ready.
    ///
    /// # Errors
    /// The worker does not answer, or not with a measurement.
    pub fn run(&mut self, way: Way, path: &Path) -> anyhow::Result<Measured> {
        let answer = self.ask(&Request::Run {
            run: way,
            path: path.into(),
        })?;
        serde_json::from_str(&answer)
            .with_context(|| format!("{way:?}, {}: {answer}", path.display()))
    }

    /// Resident memory now, and starts the high-water mark anew. In bytes.
    ///
    /// # Errors
    /// The process is gone.
    pub fn forget_peak(&self) -> anyhow::Result<u64> {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?;
        self.status("VmRSS:")
    }

    /// The high-water mark of resident memory, in bytes.
    ///
    /// # Errors
    /// The process is gone.
    pub fn peak(&self) -> anyhow::Result<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB"))
            .with_context(|| format!("{field} of the worker"))?;
        Ok(value.parse::<u64>()? * 1024)
    }

    fn ask(&mut self, request: &Request) -> anyhow::Result<String> {
        writeln!(self.stdin, "{}", serde_json::to_string(request)?)?;
        let mut answer = String::new();
        self.stdout.read_line(&mut answer)?;
        ensure!(!answer.is_empty(), "the worker ended at {request:?}");
        Ok(answer)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Talaria's own worker: answers on this process's stdin and stdout until stdin ends.
///
/// # Errors
/// A request is none, a file cannot be read, or a picture is refused.
pub fn serve() -> anyhow::Result<()> {
    let mut loaded: HashMap<PathBuf, Vec<u8>> = HashMap::new();
    let target = Target {
        budget: BUDGET,
        max_side: MAX_SIDE,
        ..Target::default()
    };
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?)? {
            Request::Load { load } => {
                let bytes = std::fs::read(&load)?;
                loaded.insert(load, bytes);
                "{}".to_owned()
            }
            Request::Run { path, .. } => {
                let bytes = loaded.get(&path).context("a picture that was loaded")?;
                serde_json::to_string(&measure(bytes, &target)?)?
            }
        };
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{answer}")?;
        stdout.flush()?;
    }
    Ok(())
}

fn measure(bytes: &[u8], target: &Target) -> anyhow::Result<Measured> {
    let cpu = processor_ms()?;
    let started = Instant::now();
    let prepared = prepare(bytes, target, &Watch::never())?;
    let picture = prepared.pictures.first().context("a picture")?;
    let url = black_box(format!(
        "data:{};base64,{}",
        picture.format.media_type(),
        STANDARD.encode(&picture.bytes)
    ));
    let wall_ms = started.elapsed().as_secs_f64() * 1000.0;
    Ok(Measured {
        wall_ms,
        cpu_ms: processor_ms()? - cpu,
        bytes: url.len(),
        what: format!(
            "{} {}x{}",
            picture.format.media_type().trim_start_matches("image/"),
            picture.width,
            picture.height
        ),
        encodes: Some(prepared.encodes),
    })
}

/// Processor time of this thread, the only one that works.
fn processor_ms() -> anyhow::Result<f64> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let spent = times.split_whitespace().next().context("time spent")?;
    Ok(spent.parse::<u64>()? as f64 / 1e6)
}
