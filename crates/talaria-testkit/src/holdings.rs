//! What a process holds, counted before and after, so that a leak shows.

use std::fs;

use anyhow::Context;

use crate::process;

/// Counts of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Background tasks of the service.
    pub tasks: usize,
    /// Open file descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Processes below it, at any depth.
    pub processes: usize,
}

/// How much more may be held than before: what pools keep for a while, never what grows.
#[derive(Clone, Copy, Debug)]
pub struct Slack {
    /// Tasks, for requests that are just ending.
    pub tasks: usize,
    /// Descriptors, for connections that are kept.
    pub descriptors: usize,
    /// Threads, for the blocking pool.
    pub threads: usize,
}

impl Slack {
    /// What a quiet service may hold more.
    pub const QUIET: Self = Self {
        tasks: 1,
        descriptors: 2,
        threads: 2,
    };
}

impl Holdings {
    /// Counts what a process holds; it tells of its tasks itself.
    ///
    /// # Errors
    /// The process is gone.
    pub fn of(pid: u32, tasks: usize) -> anyhow::Result<Self> {
        let count = |what: &str| -> anyhow::Result<usize> {
            let folder = format!("/proc/{pid}/{what}");
            let entries = fs::read_dir(&folder).with_context(|| format!("read {folder}"))?;
            Ok(entries.count())
        };
        Ok(Self {
            tasks,
            descriptors: count("fd")?,
            threads: count("task")?,
            processes: process::descendants(pid).len(),
        })
    }

    /// Whether nothing but the slack is held beyond what was held before.
    #[must_use]
    pub const fn within(&self, before: &Self, slack: Slack) -> bool {
        self.tasks <= before.tasks + slack.tasks
            && self.descriptors <= before.descriptors + slack.descriptors
            && self.threads <= before.threads + slack.threads
            && self.processes <= before.processes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_this_process_holds() {
        let pid = std::process::id();
        let before = Holdings::of(pid, 0).unwrap();
        let files: Vec<fs::File> = (0..20)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        let more = Holdings::of(pid, 0).unwrap();
        assert!(more.descriptors >= before.descriptors + 15, "{more:?}");
        assert!(!more.within(&before, Slack::QUIET));
        drop(files);
    }

    #[test]
    fn a_process_more_is_no_slack() {
        let before = Holdings {
            tasks: 3,
            descriptors: 10,
            threads: 5,
            processes: 2,
        };
        assert!(before.within(&before, Slack::QUIET));
        let orphan = Holdings {
            processes: 3,
            ..before
        };
        assert!(!orphan.within(&before, Slack::QUIET));
        let task = Holdings { tasks: 5, ..before };
        assert!(!task.within(&before, Slack::QUIET));
    }
}
