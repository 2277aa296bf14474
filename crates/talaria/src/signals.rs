//! SIGTERM and SIGINT, which end the program, and SIGHUP, which has the configuration read again.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals that ask the program to end.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Takes the signals over from now on. Needs a running tokio runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen() -> anyhow::Result<Self> {
        let terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
        let interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
        Ok(Self {
            terminate,
            interrupt,
        })
    }

    /// Waits for the next one and names it.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The signal that asks for the configuration to be read again.
#[derive(Debug)]
pub struct HangUps(Signal);

impl HangUps {
    /// Takes the signal over from now on. Needs a running tokio runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen() -> anyhow::Result<Self> {
        let signal = signal(SignalKind::hangup()).context("listen for SIGHUP")?;
        Ok(Self(signal))
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}
