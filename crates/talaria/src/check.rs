//! Checks and the report they add up to.

use serde::Serialize;

use crate::table::Table;

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at: a tool, a file, a link.
    pub subject: String,
    /// Whether it is as it should be.
    pub passed: bool,
    /// What was found.
    pub detail: String,
}

/// Checks in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Checks(Vec<Check>);

impl Checks {
    /// Notes a check that passed.
    pub fn pass(&mut self, subject: impl Into<String>, detail: impl Into<String>) {
        self.0.push(Check {
            subject: subject.into(),
            passed: true,
            detail: detail.into(),
        });
    }

    /// Notes a check that failed.
    pub fn fail(&mut self, subject: impl Into<String>, detail: impl Into<String>) {
        self.0.push(Check {
            subject: subject.into(),
            passed: false,
            detail: detail.into(),
        });
    }

    /// Notes a check by what it found: good news or bad.
    pub fn note(&mut self, subject: impl Into<String>, found: Result<String, String>) {
        match found {
            Ok(detail) => self.pass(subject, detail),
            Err(detail) => self.fail(subject, detail),
        }
    }

    /// Adds the checks of another look.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// The checks.
    #[must_use]
    pub fn all(&self) -> &[Check] {
        &self.0
    }

    /// How many failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.0.iter().filter(|check| !check.passed).count()
    }

    /// A line for each check.
    #[must_use]
    pub fn render(&self) -> String {
        let mut table = Table::new(&["", "CHECK", "FOUND"]);
        for check in &self.0 {
            let mark = if check.passed { "ok" } else { "FAILED" };
            table.row(&[mark.to_owned(), check.subject.clone(), check.detail.clone()]);
        }
        table.render()
    }

    /// The last line of a report.
    #[must_use]
    pub fn verdict(&self) -> String {
        match (self.failed(), self.0.len()) {
            (0, all) => format!("All {all} checks passed."),
            (failed, all) => format!("{failed} of {all} checks FAILED."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Checks;

    #[test]
    fn one_failure_is_counted_and_shown() {
        let mut checks = Checks::default();
        checks.pass("pdf", "3 pages");
        checks.note("zip", Err("not there".to_owned()));
        checks.note("png", Ok("1 × 1 px".to_owned()));
        assert_eq!((checks.failed(), checks.all().len()), (1, 3));
        assert_eq!(
            checks.render(),
            "        CHECK  FOUND\nok      pdf    3 pages\nFAILED  zip    not there\nok      png    1 × 1 px\n"
        );
        assert_eq!(checks.verdict(), "1 of 3 checks FAILED.");
    }
}
