//! What became of every call, and whether that agrees with what the servers ran.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;

/// The end of one call, as its caller was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The right answer.
    Answered,
    /// A failure that says that nothing was run.
    NotRun,
    /// A failure that leaves it open.
    Uncertain,
    /// The caller did not wait.
    Left,
}

/// Everything that was asked.
#[derive(Debug, Default)]
pub struct Ledger {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Calls whose runs servers note, by token.
    noted: HashMap<u64, Ending>,
    answered: u64,
    given_up: u64,
    failures: BTreeMap<String, u64>,
    wrong: u64,
    examples: Vec<String>,
}

/// The account.
#[derive(Debug)]
pub struct Tally {
    calls: u64,
    answered: u64,
    given_up: u64,
    failures: BTreeMap<String, u64>,
    wrong: u64,
    lost: u64,
    repeated: u64,
    dishonest: u64,
    examples: Vec<String>,
}

/// How many faults are shown in words.
const EXAMPLES: usize = 10;

impl Ledger {
    /// A token that no other call has.
    pub fn token(&self) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        state.next
    }

    /// The answer was the right one.
    pub fn answered(&self, token: u64, is_noted: bool) {
        let mut state = self.lock();
        state.answered += 1;
        if is_noted {
            state.noted.insert(token, Ending::Answered);
        }
    }

    /// The call failed, and the caller was told why.
    pub fn failed(&self, token: u64, is_noted: bool, code: &str, is_uncertain: bool) {
        let mut state = self.lock();
        let told = if is_uncertain {
            format!("{code} (uncertain)")
        } else {
            code.to_owned()
        };
        *state.failures.entry(told).or_default() += 1;
        if is_noted {
            let ending = if is_uncertain {
                Ending::Uncertain
            } else {
                Ending::NotRun
            };
            state.noted.insert(token, ending);
        }
    }

    /// The caller went away, or the limit it had set passed.
    pub fn given_up(&self, token: u64, is_noted: bool) {
        let mut state = self.lock();
        state.given_up += 1;
        if is_noted {
            state.noted.insert(token, Ending::Left);
        }
    }

    /// There was no answer, or not the right one.
    pub fn wrong(&self, what: String) {
        let mut state = self.lock();
        state.wrong += 1;
        if state.examples.len() < EXAMPLES {
            state.examples.push(what);
        }
    }

    /// One line on how it stands.
    pub fn line(&self) -> String {
        let state = self.lock();
        let failed: u64 = state.failures.values().sum();
        format!(
            "{} calls: {} answered, {} failed honestly, {} given up, {} wrong",
            state.next, state.answered, failed, state.given_up, state.wrong
        )
    }

    /// Compares what callers were told with what servers ran.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn close(&self, journal: &Path) -> anyhow::Result<Tally> {
        let mut runs: HashMap<u64, u32> = HashMap::new();
        for line in std::fs::read_to_string(journal)?.lines() {
            // Whoever is killed in the middle of a line leaves a piece of one.
            if let Some(token) = token_of(line) {
                *runs.entry(token).or_default() += 1;
            }
        }
        let state = self.lock();
        let mut tally = Tally {
            calls: state.next,
            answered: state.answered,
            given_up: state.given_up,
            failures: state.failures.clone(),
            wrong: state.wrong,
            lost: 0,
            repeated: 0,
            dishonest: 0,
            examples: state.examples.clone(),
        };
        for (token, ending) in &state.noted {
            let runs = runs.get(token).copied().unwrap_or(0);
            let fault = match (ending, runs) {
                (Ending::Answered, 1) | (Ending::NotRun, 0) => continue,
                (Ending::Uncertain | Ending::Left, 0 | 1) => continue,
                (Ending::Answered, 0) => &mut tally.lost,
                (Ending::NotRun, 1) => &mut tally.dishonest,
                (_, _) => &mut tally.repeated,
            };
            *fault += 1;
            if tally.examples.len() < EXAMPLES {
                let example = format!("call {token} ended as {ending:?} and ran {runs} times");
                tally.examples.push(example);
            }
        }
        Ok(tally)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The token that a text consists of, once or many times over.
fn token_of(text: &str) -> Option<u64> {
    let first = text.split(' ').next()?;
    first.parse().ok()
}

impl Tally {
    /// Whether every call had its one right end.
    pub const fn is_clean(&self) -> bool {
        self.wrong + self.lost + self.repeated + self.dishonest == 0 && self.answered > 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} calls: {} answered, {} given up by the caller",
            self.calls, self.answered, self.given_up
        )?;
        for (code, count) in &self.failures {
            writeln!(f, "  {count:>7} failed with {code}")?;
        }
        write!(
            f,
            "{} wrong or without an answer, {} answered without a run, {} run more than once, \
             {} run though told otherwise",
            self.wrong, self.lost, self.repeated, self.dishonest
        )?;
        for example in &self.examples {
            write!(f, "\n  {example}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(lines: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines).unwrap();
        file
    }

    #[test]
    fn calls_that_end_as_they_were_run_are_clean() {
        let ledger = Ledger::default();
        ledger.answered(1, true);
        ledger.failed(2, true, "connection_lost", true);
        ledger.failed(3, true, "server_unavailable", false);
        ledger.given_up(4, true);
        assert!(
            ledger
                .close(journal("1\n2\n4\n").path())
                .unwrap()
                .is_clean()
        );
    }

    #[test]
    fn every_disagreement_is_counted() {
        let ledger = Ledger::default();
        ledger.answered(1, true);
        ledger.answered(2, true);
        ledger.failed(3, true, "server_unavailable", false);
        ledger.failed(4, true, "connection_lost", true);
        let tally = ledger.close(journal("2\n2\n3\n4\n4\n").path()).unwrap();
        assert_eq!((tally.lost, tally.repeated, tally.dishonest), (1, 2, 1));
        assert!(!tally.is_clean());
    }
}
