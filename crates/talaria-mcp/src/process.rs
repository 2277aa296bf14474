//! A server's process group: watched until it ends, and always killed in the end.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use talaria_types::{Deadline, runtime};
use tokio::process::Child;
use tokio::sync::watch;

use crate::Guard;

/// Longest wait for a server that was asked politely, once per way of asking.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running server process. Dropping the last handle kills the group.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    stop: Arc<watch::Sender<Option<Deadline>>>,
    exit: watch::Receiver<Option<String>>,
}

impl Process {
    /// Watches over a child that leads its own process group.
    pub(crate) fn watch(child: Child, guard: Option<Guard>) -> std::io::Result<Self> {
        let pid = child.id().ok_or(std::io::ErrorKind::NotFound)?;
        let group = Group::new(pid, guard)?;
        let (stop, stop_rx) = watch::channel(None);
        let (exit_tx, exit) = watch::channel(None);
        drop(runtime::spawn("mcp_process", async move {
            let words = watch_over(child, &group, stop_rx).await;
            // Descendants of the server go with it, whatever they did to their signals.
            drop(group);
            exit_tx.send_replace(Some(words));
        }));
        Ok(Self {
            pid,
            stop: Arc::new(stop),
            exit,
        })
    }

    /// Resolves with the exit status in words once the process has been reaped and its group
    /// killed.
    pub(crate) fn exited(&self) -> impl Future<Output = String> + Send + 'static + use<> {
        let mut exit = self.exit.clone();
        async move {
            match exit.wait_for(Option::is_some).await {
                Ok(words) => words.clone().unwrap_or_default(),
                Err(_) => "was killed".to_owned(),
            }
        }
    }

    /// Ends the process: waits for it to leave by itself (its stdin is closed by then),
    /// terminates the group, kills it. Returns at the deadline at the latest, with the group
    /// killed.
    pub(crate) fn stop(&self, deadline: Deadline) {
        self.stop.send_if_modified(|current| {
            let is_earlier = current.is_none_or(|known| deadline < known);
            if is_earlier {
                *current = Some(deadline);
            }
            is_earlier
        });
    }

    /// The same, unless a deadline is set already.
    pub(crate) fn stop_unless_stopping(&self, deadline: Deadline) {
        self.stop.send_if_modified(|current| {
            let is_first = current.is_none();
            if is_first {
                *current = Some(deadline);
            }
            is_first
        });
    }

    /// Whether the process has been reaped.
    pub(crate) fn has_exited(&self) -> bool {
        self.exit.borrow().is_some()
    }
}

async fn watch_over(
    mut child: Child,
    group: &Group,
    mut stop: watch::Receiver<Option<Deadline>>,
) -> String {
    loop {
        let deadline = tokio::select! {
            status = child.wait() => return in_words(&status),
            changed = stop.changed() => match changed {
                Ok(()) => *stop.borrow_and_update(),
                // Nobody holds the process any more.
                Err(_) => Some(Deadline::after(Duration::ZERO)),
            },
        };
        if let Some(deadline) = deadline {
            return end(child, group, stop, deadline).await;
        }
    }
}

async fn end(
    mut child: Child,
    group: &Group,
    stop: watch::Receiver<Option<Deadline>>,
    deadline: Deadline,
) -> String {
    let impatient = impatience(stop, deadline);
    tokio::pin!(impatient);
    for signal in [None, Some(Signal::SIGTERM)] {
        if let Some(signal) = signal {
            group.signal(signal);
        }
        let patience = PATIENCE.min(deadline.remaining() / 2);
        tokio::select! {
            status = child.wait() => return in_words(&status),
            () = tokio::time::sleep(patience) => {}
            () = &mut impatient => break,
        }
    }
    group.signal(Signal::SIGKILL);
    in_words(&child.wait().await)
}

/// Resolves when an earlier deadline than the given one is set, or nobody waits any more.
async fn impatience(mut stop: watch::Receiver<Option<Deadline>>, deadline: Deadline) {
    let is_earlier = |current: &Option<Deadline>| current.is_some_and(|known| known < deadline);
    drop(stop.wait_for(is_earlier).await);
}

fn in_words(status: &std::io::Result<ExitStatus>) -> String {
    match status {
        // Its `Display` says both `exit status: 1` and `signal: 9 (SIGKILL)`.
        Ok(status) => status.to_string(),
        Err(error) => format!("unknown exit status ({error})"),
    }
}

/// A process group that does not outlive this value.
#[derive(Debug)]
struct Group {
    id: Pid,
    guard: Option<Guard>,
}

impl Group {
    fn new(leader: u32, guard: Option<Guard>) -> std::io::Result<Self> {
        let leader = i32::try_from(leader).map_err(std::io::Error::other)?;
        if let Some(guard) = &guard {
            guard.register(leader);
        }
        Ok(Self {
            id: Pid::from_raw(leader),
            guard,
        })
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone already is the normal case.
        if let Err(error) = killpg(self.id, signal) {
            tracing::trace!(group = self.id.as_raw(), %error, "no process took the signal");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Some(guard) = &self.guard {
            guard.unregister(self.id.as_raw());
        }
    }
}

#[cfg(test)]
mod tests;
