//! The guard process: kills every registered process group when Talaria itself is gone
//! (design decision 23).
//!
//! It holds the read end of a pipe whose write end only Talaria has. However Talaria ends, the
//! kernel closes that pipe, and the guard does what is left to do.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use talaria_types::runtime;
use tokio::time::Instant;

/// Hidden subcommand of the binary that runs [`run`].
pub const GUARD_SUBCOMMAND: &str = "__guard";

/// Registrations that wait for the keeper.
const ORDERS: usize = 1024;

/// How often the keeper looks whether the guard is alive.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A guard that dies at once is not started more often than this.
const RESTART_INTERVAL: Duration = Duration::from_secs(1);

/// How long the groups have between SIGTERM and SIGKILL: together 300 ms.
const GRACE_STEPS: u32 = 15;
const GRACE_STEP: Duration = Duration::from_millis(20);

/// Handle to the running guard. Cheap to clone; registering never blocks a loop.
#[derive(Clone, Debug)]
pub struct Guard {
    orders: SyncSender<Order>,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Register(i32),
    Unregister(i32),
}

impl Guard {
    /// Starts `program GUARD_SUBCOMMAND` as the guard, in its own process group.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(program: &Path) -> std::io::Result<Self> {
        let (orders, orders_rx) = sync_channel(ORDERS);
        let running = Running::start(program)?;
        let mut keeper = Keeper {
            program: program.to_path_buf(),
            groups: BTreeSet::new(),
            running,
        };
        std::thread::Builder::new()
            .name("talaria-guard".to_owned())
            .spawn(move || keeper.keep(&orders_rx))?;
        Ok(Self { orders })
    }

    /// From now on the group is killed should Talaria end.
    pub(crate) fn register(&self, group: i32) {
        self.order(Order::Register(group));
    }

    /// The group has ended; its number may be given to somebody else.
    pub(crate) fn unregister(&self, group: i32) {
        self.order(Order::Unregister(group));
    }

    fn order(&self, order: Order) {
        if self.orders.try_send(order).is_err() {
            tracing::warn!(?order, "the guard process does not keep up");
        }
    }
}

/// The thread that feeds the guard and starts it again should it die.
struct Keeper {
    program: PathBuf,
    groups: BTreeSet<i32>,
    running: Running,
}

struct Running {
    child: Child,
    stdin: ChildStdin,
    since: Instant,
}

impl Running {
    fn start(program: &Path) -> std::io::Result<Self> {
        let mut child = Command::new(program)
            .arg(GUARD_SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let stdin = child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            stdin,
            since: runtime::now(),
        })
    }
}

impl Keeper {
    fn keep(&mut self, orders: &Receiver<Order>) {
        loop {
            let line = match orders.recv_timeout(CHECK_INTERVAL) {
                Ok(Order::Register(group)) => {
                    self.groups.insert(group);
                    format!("+{group}\n")
                }
                Ok(Order::Unregister(group)) => {
                    self.groups.remove(&group);
                    format!("-{group}\n")
                }
                Err(RecvTimeoutError::Timeout) => String::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let is_young = runtime::now().duration_since(self.running.since) < RESTART_INTERVAL;
            let is_alive = matches!(self.running.child.try_wait(), Ok(None));
            if is_alive && self.running.stdin.write_all(line.as_bytes()).is_ok() || is_young {
                continue;
            }
            self.restart();
        }
    }

    fn restart(&mut self) {
        match Running::start(&self.program) {
            Ok(running) => self.running = running,
            Err(error) => {
                tracing::error!(%error, "the guard process cannot be started again");
                return;
            }
        }
        tracing::warn!("the guard process had ended and was started again");
        let lines: String = self
            .groups
            .iter()
            .map(|group| format!("+{group}\n"))
            .collect();
        if let Err(error) = self.running.stdin.write_all(lines.as_bytes()) {
            tracing::error!(%error, "the guard process takes no registrations");
        }
    }
}

/// The guard's main loop: reads `+PGID` and `-PGID` lines from stdin until end of file, then
/// kills what is still registered.
///
/// # Errors
/// Stdin cannot be read.
pub fn run() -> std::io::Result<()> {
    // What asks Talaria to end is not meant for the guard: it has to be the last to go.
    let signals: SigSet = [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ]
    .into_iter()
    .collect();
    signals.thread_block()?;
    serve(std::io::stdin().lock())
}

fn serve(lines: impl BufRead) -> std::io::Result<()> {
    let mut groups = BTreeSet::new();
    let outcome = register_all(lines, &mut groups);
    kill_all(groups);
    outcome
}

fn register_all(lines: impl BufRead, groups: &mut BTreeSet<i32>) -> std::io::Result<()> {
    for line in lines.lines() {
        let line = line?;
        let (action, number) = line.split_at_checked(1).unwrap_or_default();
        // Group 0 and 1 would be the guard itself and everybody.
        let Some(group) = number.parse::<i32>().ok().filter(|group| *group > 1) else {
            continue;
        };
        match action {
            "+" => {
                groups.insert(group);
            }
            "-" => {
                groups.remove(&group);
            }
            _ => {}
        }
    }
    Ok(())
}

fn kill_all(groups: BTreeSet<i32>) {
    let mut groups: Vec<Pid> = groups.into_iter().map(Pid::from_raw).collect();
    groups.retain(|group| killpg(*group, Signal::SIGTERM).is_ok());
    for _ in 0..GRACE_STEPS {
        if groups.is_empty() {
            return;
        }
        std::thread::park_timeout(GRACE_STEP);
        groups.retain(|group| killpg(*group, None).is_ok());
    }
    // There is nobody left to tell of a group that went meanwhile.
    groups.retain(|group| killpg(*group, Signal::SIGKILL).is_err());
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    use talaria_testkit::wait_for;

    use super::*;

    #[test]
    fn keeps_what_is_registered_and_ignores_nonsense() {
        let mut groups = BTreeSet::new();
        let lines = b"+100\n+200\n-100\nnonsense\n+0\n+1\n+-7\n\n+300\n".as_slice();
        register_all(lines, &mut groups).unwrap();
        assert_eq!(groups, BTreeSet::from([200, 300]));
    }

    fn sleeper(program: &str) -> Child {
        Command::new("sh")
            .args(["-c", program])
            .process_group(0)
            .spawn()
            .unwrap()
    }

    #[test]
    fn kills_what_is_left_at_the_end_of_the_input() {
        let mut spared = sleeper("exec sleep 1000");
        let mut obedient = sleeper("exec sleep 1000");
        let mut stubborn = sleeper("trap '' TERM; echo; while :; do sleep 1000; done");
        let lines = format!("+{}\n+{}\n", obedient.id(), stubborn.id());
        serve(lines.as_bytes()).unwrap();
        assert!(obedient.wait().unwrap().signal().is_some());
        assert!(stubborn.wait().unwrap().signal().is_some());
        assert!(spared.try_wait().unwrap().is_none());
        spared.kill().unwrap();
        spared.wait().unwrap();
    }

    async fn lines_of(path: &Path, wanted: &str) {
        let read = wait_for("the guard's input", Duration::from_secs(10), || {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            std::future::ready(if text.ends_with(wanted) {
                Ok(())
            } else {
                Err(text)
            })
        });
        read.await.unwrap();
    }

    #[tokio::test]
    async fn a_guard_that_dies_is_started_again_and_told_everything() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("guard");
        let seen = folder.path().join("seen");
        let script = format!(
            "#!/bin/sh\necho \"$1 $$\" >> {seen}\nexec cat >> {seen}\n",
            seen = seen.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let guard = Guard::start(&program).unwrap();
        guard.register(1001);
        guard.register(1002);
        guard.clone().unregister(1001);
        lines_of(&seen, "+1001\n+1002\n-1001\n").await;
        let text = std::fs::read_to_string(&seen).unwrap();
        let first = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("__guard "))
            .unwrap();
        let pid = Pid::from_raw(first.parse().unwrap());
        nix::sys::signal::kill(pid, Signal::SIGKILL).unwrap();
        lines_of(&seen, "\n+1002\n").await;
        guard.register(1003);
        lines_of(&seen, "+1002\n+1003\n").await;
    }
}
