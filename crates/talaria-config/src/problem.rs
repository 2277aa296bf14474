//! What is wrong with a configuration, each with the path of its key.

use std::collections::BTreeSet;
use std::fmt;

use crate::secrets::SecretValues;

/// One thing that is wrong. Never holds a secret value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the key, for example `talaria.media.ttl`; empty for the file as a whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// Everything that keeps a configuration from being used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    source_name: String,
    problems: Vec<Problem>,
}

impl ConfigErrors {
    pub(crate) const fn new(source_name: String, problems: Vec<Problem>) -> Self {
        Self {
            source_name,
            problems,
        }
    }

    /// The problems, in the order of the file as far as possible.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "configuration {} is not usable", self.source_name)?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

/// Collects problems and warnings while a section is read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    problems: Vec<Problem>,
    warnings: BTreeSet<String>,
    /// Values out of the environment that must not be shown.
    pub(crate) secrets: SecretValues,
    /// Those of variables whose names say that they are secret.
    pub(crate) named_secrets: SecretValues,
}

impl Findings {
    pub(crate) fn error(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem {
            path: one_line(path),
            message: one_line(&message.into()),
        });
    }

    /// Says the same thing once, however often it is found.
    pub(crate) fn warn(&mut self, path: &str, message: impl AsRef<str>) {
        let separator = if path.is_empty() { "" } else { ": " };
        self.warnings
            .insert(one_line(&format!("{path}{separator}{}", message.as_ref())));
    }

    pub(crate) fn take_problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.problems)
    }

    pub(crate) const fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Takes over what another collector found, its problems excepted.
    pub(crate) fn absorb_warnings(&mut self, other: Self) {
        self.warnings.extend(other.warnings);
        self.secrets.extend(other.secrets);
        self.named_secrets.extend(other.named_secrets);
    }

    /// The warnings, sorted by path.
    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings.into_iter().collect()
    }
}

/// Names come from the file; one with a line break must not make a line of its own in a log.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}
