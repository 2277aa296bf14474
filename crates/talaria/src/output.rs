//! What the program writes: data on stdout, progress and errors on stderr.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;
use talaria_types::runtime::now;

use crate::exit::CommandError;

/// A command that takes longer than this says what it waits for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whom the output is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// People: tables and sentences.
    Human,
    /// Programs: one JSON document.
    Json,
}

impl Output {
    /// Prints a value: as JSON for programs, as the text that `human` makes for people.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub fn print<T: Serialize>(
        self,
        value: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<(), CommandError> {
        match self {
            Self::Human => print_text(&human(value)),
            Self::Json => {
                let mut text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
                text.push('\n');
                print_text(&text)
            }
        }
    }
}

/// Writes text to stdout. A reader that has gone away (`talaria servers | head -1`) is no error.
///
/// # Errors
/// Stdout cannot be written.
pub fn print_text(text: &str) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("write to stdout").into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes one line to stderr; where nobody can read it, nothing is lost.
pub fn print_error_line(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Waits for a future and, when that takes over a second and stderr is a terminal, shows what is
/// waited for and for how long.
pub async fn with_progress<F: Future>(what: &str, future: F) -> F::Output {
    let terminal = io::stderr().is_terminal();
    let began = now();
    let mut future = std::pin::pin!(future);
    let mut shown = false;
    loop {
        match tokio::time::timeout(PATIENCE, future.as_mut()).await {
            Ok(output) => {
                if shown {
                    write_over("");
                }
                return output;
            }
            Err(_) if terminal => {
                shown = true;
                write_over(&format!("{what} … {} s", began.elapsed().as_secs()));
            }
            Err(_) => {}
        }
    }
}

/// Replaces the current line of the terminal.
fn write_over(line: &str) {
    let mut stderr = io::stderr().lock();
    drop(write!(stderr, "\r\x1b[2K{line}"));
    drop(stderr.flush());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::with_progress;

    #[tokio::test(start_paused = true)]
    async fn progress_hands_back_what_the_future_gives() {
        let slow = async {
            tokio::time::sleep(Duration::from_millis(3500)).await;
            7
        };
        assert_eq!(with_progress("waiting", slow).await, 7);
    }
}
