//! Looking at and ending processes through `/proc` and signals.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One process as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessView {
    /// Process id.
    pub pid: u32,
    /// Parent.
    pub parent: u32,
    /// Process group.
    pub group: u32,
    /// State letter: `R`, `S`, `Z` …
    pub state: char,
    /// Command line, arguments joined by blanks.
    pub command: String,
}

/// Sends a signal.
///
/// # Errors
/// There is no such process, or it is not ours.
pub fn signal(pid: u32, signal: Signal) -> anyhow::Result<()> {
    kill(Pid::from_raw(i32::try_from(pid)?), signal)
        .with_context(|| format!("send {signal} to {pid}"))
}

/// Whether the process runs; a zombie does not.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    view(pid).is_some_and(|process| process.state != 'Z' && process.state != 'X')
}

/// One process, if it exists.
#[must_use]
pub fn view(pid: u32) -> Option<ProcessView> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold blanks and parentheses.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command)
        .replace('\0', " ")
        .trim()
        .to_owned();
    Some(ProcessView {
        pid,
        parent,
        group,
        state,
        command,
    })
}

/// The names of a process's threads.
#[must_use]
pub fn thread_names(pid: u32) -> Vec<String> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect()
}

/// Every process there is.
#[must_use]
pub fn all() -> Vec<ProcessView> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| view(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// The processes below one, at any depth, that still run.
#[must_use]
pub fn descendants(root: u32) -> Vec<ProcessView> {
    let all = all();
    let mut known = BTreeSet::from([root]);
    loop {
        let before = known.len();
        for process in &all {
            if known.contains(&process.parent) {
                known.insert(process.pid);
            }
        }
        if known.len() == before {
            break;
        }
    }
    all.into_iter()
        .filter(|process| process.pid != root && known.contains(&process.pid))
        .filter(|process| process.state != 'Z')
        .collect()
}

/// The running processes that name a text in their command line: the way to find orphans, whose
/// parent no longer tells where they come from.
#[must_use]
pub fn mentioning(text: &str) -> Vec<ProcessView> {
    let own = std::process::id();
    all()
        .into_iter()
        .filter(|process| process.pid != own && process.state != 'Z')
        .filter(|process| process.command.contains(text))
        .collect()
}

/// The running processes whose `HOME` is this folder: finds every descendant of a service, even
/// one that was handed to init, because `HOME` is on the allow-list of children's environments.
#[must_use]
pub fn belonging_to(home: &Path) -> Vec<ProcessView> {
    let wanted = format!("HOME={}", home.display());
    let own = std::process::id();
    all()
        .into_iter()
        .filter(|process| process.pid != own && process.state != 'Z')
        .filter(|process| {
            fs::read(format!("/proc/{}/environ", process.pid)).is_ok_and(|environment| {
                environment
                    .split(|byte| *byte == 0)
                    .any(|entry| entry == wanted.as_bytes())
            })
        })
        .collect()
}

/// Memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Resident bytes now (`VmRSS`).
    pub resident: u64,
    /// Most resident bytes so far (`VmHWM`).
    pub peak: u64,
}

/// Reads a process's memory.
///
/// # Errors
/// The process does not exist.
pub fn memory(pid: u32) -> anyhow::Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| -> anyhow::Result<u64> {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .with_context(|| format!("{name} in the status of {pid}"))?;
        let number = line.trim().trim_end_matches("kB").trim();
        Ok(number.parse::<u64>()? * 1024)
    };
    Ok(Memory {
        resident: field("VmRSS:")?,
        peak: field("VmHWM:")?,
    })
}

/// Sets the peak back to what is resident now, so that the next reading tells of one step only.
///
/// # Errors
/// The process does not exist or is not ours.
pub fn reset_peak(pid: u32) -> anyhow::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("reset the peak of resident memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_a_child_and_its_end() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        assert!(
            descendants(std::process::id())
                .iter()
                .any(|process| process.pid == child.id())
        );
        assert!(is_alive(child.id()));
        signal(child.id(), Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }

    #[test]
    fn reads_memory_and_resets_the_peak() {
        let pid = std::process::id();
        let block = vec![1_u8; 64 * 1024 * 1024];
        let before = memory(pid).unwrap();
        assert!(before.peak >= 64 * 1024 * 1024);
        drop(block);
        reset_peak(pid).unwrap();
        assert!(memory(pid).unwrap().peak < before.peak);
    }
}
