//! A scripted server as a child process that speaks over its stdin and stdout.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use talaria_types::runtime::spawn;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Stdout};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

use crate::records::RecordKind;
use crate::script::{HttpAction, Pace, Part, ProcessAction, Script};
use crate::server::engine::{Engine, Flow, Outlet, chunks};

/// A shell line whose process outlives every polite request to end.
const STUBBORN: &str = "trap '' TERM HUP INT; while :; do sleep 600; done";

/// Serves a script over stdin and stdout until stdin ends.
///
/// # Errors
/// Stdin or stdout fails, or the script asks for what cannot be done.
pub async fn serve_stdio(script: Script) -> anyhow::Result<()> {
    // A handler that does nothing is what makes a process survive the signal.
    let _terminate = script
        .ignore_sigterm
        .then(|| signal(SignalKind::terminate()))
        .transpose()?;
    let engine = Engine::new(script)?;
    let stdout = Arc::new(Mutex::new(tokio::io::stdout()));
    engine
        .start(&mut Pipe {
            stdout: Arc::clone(&stdout),
        })
        .await?;

    let mut stdin = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        if stdin.read_until(b'\n', &mut line).await? == 0 {
            break;
        }
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            let text = String::from_utf8_lossy(&line).into_owned();
            engine
                .records
                .add(RecordKind::Garbage, json!(text), BTreeMap::new())?;
            continue;
        };
        engine.receive(&message, BTreeMap::new())?;
        if message.get("method").is_none() || message.get("id").is_none() {
            continue;
        }
        let engine = Arc::clone(&engine);
        let mut pipe = Pipe {
            stdout: Arc::clone(&stdout),
        };
        // Requests are served side by side; the task ends with the process.
        drop(spawn("scripted_request", async move {
            if let Err(error) = engine.serve(&message, &mut pipe).await {
                complain(&error).await;
            }
        }));
    }
    if engine.script.ignore_end_of_input {
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// Tells stderr what went wrong with a script; a closed pipe is the test's own doing.
async fn complain(error: &anyhow::Error) {
    let mut stderr = tokio::io::stderr();
    let line = format!("scripted server: {error:#}\n");
    drop(stderr.write_all(line.as_bytes()).await);
    drop(stderr.flush().await);
}

/// The one stdout, written a whole message at a time.
struct Pipe {
    stdout: Arc<Mutex<Stdout>>,
}

impl Pipe {
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "messages of concurrent requests must not mix, and the writer is this one pipe"
    )]
    async fn write(
        &self,
        parts: &[Part],
        id: &Value,
        pace: Pace,
        end: &'static [u8],
    ) -> anyhow::Result<()> {
        let mut stdout = self.stdout.lock().await;
        for chunk in chunks(parts, id).chain(std::iter::once(Ok(end.to_vec()))) {
            let chunk = chunk?;
            match pace {
                Pace::Fast => stdout.write_all(&chunk).await?,
                Pace::Drip => {
                    for byte in chunk {
                        stdout.write_all(&[byte]).await?;
                        stdout.flush().await?;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
        }
        stdout.flush().await?;
        Ok(())
    }
}

impl Outlet for Pipe {
    async fn message(&mut self, parts: &[Part], id: &Value, pace: Pace) -> anyhow::Result<()> {
        self.write(parts, id, pace, b"\n").await
    }

    async fn process(&mut self, action: &ProcessAction, id: &Value) -> anyhow::Result<Flow> {
        match action {
            ProcessAction::Write { parts } => self.write(parts, id, Pace::Fast, b"").await?,
            ProcessAction::Stderr { bytes } => flood(*bytes).await?,
            ProcessAction::Exit { code } => end_process(*code),
            ProcessAction::Grandchild => {
                // The handle is given up on purpose: the grandchild must outlive us.
                drop(
                    Command::new("sh")
                        .args(["-c", STUBBORN])
                        .stdin(Stdio::null())
                        .stdout(Stdio::null())
                        .stderr(Stdio::null())
                        .spawn()
                        .context("start a grandchild")?,
                );
            }
            ProcessAction::CloseStdout => nix::unistd::close(1).context("close stdout")?,
        }
        Ok(Flow::On)
    }

    async fn http(&mut self, action: &HttpAction, _id: &Value) -> anyhow::Result<Flow> {
        anyhow::bail!("{action:?} is not for stdio")
    }
}

#[expect(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "the script asks for a sudden end"
)]
fn end_process(code: u8) -> ! {
    std::process::exit(i32::from(code))
}

/// Writes lines to stderr until there are enough bytes.
async fn flood(bytes: usize) -> anyhow::Result<()> {
    let mut stderr = tokio::io::stderr();
    let line = format!("{}\n", "scripted noise ".repeat(68));
    let block = line.repeat(64);
    let mut written = 0;
    while written < bytes {
        stderr.write_all(block.as_bytes()).await?;
        written += block.len();
    }
    stderr.flush().await?;
    Ok(())
}
