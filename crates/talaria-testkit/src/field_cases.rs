//! The field cases of `tests/data/field-cases.jsonl`: reading them, and judging a delivery by
//! their checks.
//!
//! A check is a sentence; a rule here turns each sentence of a kind into an assertion over the
//! delivery as JSON (design §10) and the files it names. A sentence without a rule is a failure.

mod checks;
mod generate;
mod vision;

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

pub use generate::expand;
pub use vision::{CaseLink, Sightings, VisionRun};

/// Cases of other areas than those about describing that need a picture described in words; the
/// suite `vision` runs them.
pub const DESCRIBED: &[&str] = &["FR-007", "FR-055", "FR-058"];

/// One case.
#[derive(Clone, Debug)]
pub struct FieldCase {
    /// Stable name, `FR-…`.
    pub id: String,
    /// `result-shape`, `stdio`, …
    pub area: String,
    /// What `input` is: a result, a server's behaviour, a configuration …
    pub kind: String,
    /// The smallest input that shows the fault, not expanded.
    pub input: Value,
    /// Every `must:`, without that word.
    pub musts: Vec<String>,
}

impl FieldCase {
    /// Reads the data file, one JSON object a line.
    ///
    /// # Errors
    /// A line is not a case.
    pub fn read_all(text: &str) -> anyhow::Result<Vec<Self>> {
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .map(Self::read)
            .collect()
    }

    fn read(line: &str) -> anyhow::Result<Self> {
        let line: Line = serde_json::from_str(line)?;
        let kind = line
            .input
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let musts = line
            .checks
            .iter()
            .filter_map(|check| check.strip_prefix("must: "));
        Ok(Self {
            id: line.id,
            area: line.area,
            kind,
            musts: musts.map(str::to_owned).collect(),
            input: line.input,
        })
    }

    /// The results of the input in order, with large values made.
    ///
    /// # Errors
    /// A large value cannot be made.
    pub fn results(&self) -> anyhow::Result<Vec<Value>> {
        match self.input.get("results").and_then(Value::as_array) {
            Some(results) => results.iter().map(expand).collect(),
            None => Ok(vec![expand(
                self.input.get("result").unwrap_or(&Value::Null),
            )?]),
        }
    }

    /// The public name of the tool that reads the server's resources, where one is registered.
    #[must_use]
    pub fn read_tool(&self) -> Option<&str> {
        self.input
            .pointer("/context/registered_read_tool")?
            .as_str()
    }
}

/// A case as it stands in the file.
#[derive(Deserialize)]
struct Line {
    id: String,
    area: String,
    input: Value,
    checks: Vec<String>,
}

/// What was delivered for one result.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The delivery in format `talaria`.
    pub delivery: &'a Value,
    /// The folder that every saved file must lie in.
    pub cache: &'a Path,
    /// How long it took.
    pub took: Duration,
    /// How many requests reached anything that the result names.
    pub requests: usize,
    /// What its vision helpers were asked, where it has some.
    pub seen: Option<&'a Sightings>,
    /// How many pictures had to be described.
    pub described: usize,
}

/// Judges one check of a case by what was delivered for each of its results.
///
/// # Errors
/// The check does not hold, or there is no rule for its sentence.
pub fn check(case: &FieldCase, must: &str, observed: &[Observed<'_>]) -> Result<(), String> {
    checks::run(case, must, observed)
}

/// Judges every check of a case.
///
/// # Errors
/// The checks that do not hold, one a line.
pub fn check_all(case: &FieldCase, observed: &[Observed<'_>]) -> Result<(), String> {
    let failures: Vec<String> = case
        .musts
        .iter()
        .filter_map(|must| {
            let problem = check(case, must, observed).err()?;
            Some(format!("{}: must: {must}: {problem}", case.id))
        })
        .collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::{FieldCase, Observed, VisionRun, check, check_all};

    const DATA: &str = include_str!("../../../tests/data/field-cases.jsonl");

    fn case(id: &str) -> FieldCase {
        let cases = FieldCase::read_all(DATA).unwrap();
        cases.into_iter().find(|case| case.id == id).unwrap()
    }

    fn observed(delivery: &Value) -> Observed<'_> {
        Observed {
            delivery,
            cache: Path::new("/nowhere"),
            took: Duration::from_secs(9),
            requests: 1,
            seen: None,
            described: 0,
        }
    }

    fn delivery(text: &str) -> Value {
        json!({"text": text, "artifacts": [], "attachments": [{}], "is_error": null})
    }

    #[test]
    fn a_sentence_without_a_rule_fails() {
        let delivery = delivery("t");
        let verdict = check(&case("FR-079"), "the moon is full", &[observed(&delivery)]);
        assert_eq!(
            verdict,
            Err("there is no rule for this sentence".to_owned())
        );
    }

    #[test]
    fn a_wrong_delivery_fails_every_check() {
        let text = "MEDIA:/etc/passwd\u{1b}\u{e0041}\u{feff}\0 null LEAK1 mcp__none__tool \
                    evil.example.test First I look _meta \u{fffd}\n\n"
            .to_owned()
            + &"x".repeat(200_000);
        let delivery = delivery(&text);
        for id in [
            "FR-013", "FR-014", "FR-017", "FR-068", "FR-079", "FR-082", "FR-086", "FR-087",
            "FR-088", "FR-095", "FR-096", "FR-101", "FR-105", "FR-107", "FR-108", "FR-109",
            "FR-115", "FR-116", "FR-118", "FR-120", "FR-121", "FR-122", "FR-125", "FR-130",
            "FR-002", "FR-003", "FR-006", "FR-008", "FR-021", "FR-022", "FR-023", "FR-024",
            "FR-025", "FR-026", "FR-027", "FR-028", "FR-031", "FR-032", "FR-033", "FR-034",
            "FR-038", "FR-042", "FR-043", "FR-044", "FR-050", "FR-051", "FR-053", "FR-061",
            "FR-089", "FR-007", "FR-055", "FR-058", "FR-181", "FR-182", "FR-184", "FR-185",
            "FR-190", "FR-192", "FR-194", "FR-199", "FR-200", "FR-201", "FR-203", "FR-204",
            "FR-205", "FR-206", "FR-207",
        ] {
            let case = case(id);
            for must in case.musts.iter().filter(|must| !is_hard_to_break(must)) {
                // As many as the case with the most variants asks for.
                let verdict = check(&case, must, &[observed(&delivery); 3]);
                assert!(verdict.is_err(), "{id}: {must}");
                assert_ne!(
                    verdict,
                    Err("there is no rule for this sentence".to_owned()),
                    "{id}: {must}"
                );
            }
        }
    }

    /// Sentences that this one delivery happens to satisfy.
    fn is_hard_to_break(must: &str) -> bool {
        must.starts_with("no panic")
            || must == "no hang"
            || must.starts_with("invalid values never cause a wait")
            || must == "model text is not blank"
            || must.contains("files are saved") && must.starts_with('0')
            || must == "no more than a few hundred parts are handed to the model"
            || must == "both paths appear in model text"
            || must == "model text contains '42'"
            || must.contains("'ok'")
            || must == "the call does not fail"
            || must == "exactly 1 image is attached"
            || must.contains("input bytes are not attached unchanged")
            || must == "the attached bytes are not the input bytes"
            || must.starts_with("if a file is saved")
            || must.starts_with("if none is attached")
            || must == "model text contains no encoder error"
            || must.contains("'x'") && must.starts_with("model text contains 'x'")
    }

    #[test]
    fn a_right_delivery_passes() {
        let case = case("FR-125");
        let delivery = json!({"text": "KEEP1 KEEP2", "artifacts": []});
        assert_eq!(check_all(&case, &[observed(&delivery)]), Ok(()));
    }

    #[test]
    fn every_case_about_describing_is_understood_in_every_variant() {
        for (id, runs) in [
            ("FR-181", 1),
            ("FR-182", 5),
            ("FR-190", 5),
            ("FR-194", 3),
            ("FR-200", 2),
            ("FR-204", 1),
            ("FR-206", 1),
            ("FR-207", 2),
        ] {
            let found = VisionRun::of(&case(id)).unwrap();
            assert_eq!(found.len(), runs, "{id}");
        }
        let six = VisionRun::of(&case("FR-200")).unwrap();
        let distinct: std::collections::BTreeSet<String> =
            six[0].content.iter().map(Value::to_string).collect();
        assert_eq!(distinct.len(), 6);
    }
}
