//! Reading the Prometheus text format: exact values by name and labels.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

/// The samples of one scrape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exposition {
    samples: Vec<Sample>,
    types: BTreeMap<String, String>,
}

/// One line of a scrape.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Series name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Value.
    pub value: f64,
}

impl Sample {
    fn has(&self, wanted: &[(&str, &str)]) -> bool {
        wanted
            .iter()
            .all(|(name, value)| self.labels.get(*name).is_some_and(|own| own == value))
    }
}

impl Exposition {
    /// Reads a scrape.
    ///
    /// # Errors
    /// A line is not in the format.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut exposition = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(comment) = line.strip_prefix("# ") {
                if let Some((name, kind)) = comment
                    .strip_prefix("TYPE ")
                    .and_then(|rest| rest.split_once(' '))
                {
                    exposition.types.insert(name.to_owned(), kind.to_owned());
                }
                continue;
            }
            exposition
                .samples
                .push(sample(line).with_context(|| format!("sample {line:?}"))?);
        }
        Ok(exposition)
    }

    /// Every sample.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Names of families and their types.
    #[must_use]
    pub const fn types(&self) -> &BTreeMap<String, String> {
        &self.types
    }

    /// The sum over the series of this name that have these labels; zero when there are none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).map(|sample| sample.value).sum()
    }

    /// The value of the one series of this name that has these labels.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> anyhow::Result<f64> {
        let found: Vec<&Sample> = self.matching(name, labels).collect();
        match found.as_slice() {
            [sample] => Ok(sample.value),
            [] => bail!(
                "no series {name} with {labels:?}; there are {:#?}",
                self.named(name)
            ),
            many => bail!("{} series {name} with {labels:?}: {many:#?}", many.len()),
        }
    }

    /// Whether a series of this name with these labels exists.
    #[must_use]
    pub fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.matching(name, labels).next().is_some()
    }

    /// Every series of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<&Sample> {
        self.samples
            .iter()
            .filter(|sample| sample.name == name)
            .collect()
    }

    fn matching<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.name == name && sample.has(labels))
    }
}

/// Reads `name{label="value",…} 1.5`.
fn sample(line: &str) -> anyhow::Result<Sample> {
    let Some((name, rest)) = line.split_once('{') else {
        let (name, value) = line.split_once(' ').context("a blank before the value")?;
        return Ok(Sample {
            name: name.to_owned(),
            labels: BTreeMap::new(),
            value: number(value)?,
        });
    };
    let mut labels = BTreeMap::new();
    let mut rest = rest;
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(value) = rest.strip_prefix('}') {
            return Ok(Sample {
                name: name.to_owned(),
                labels,
                value: number(value)?,
            });
        }
        let (label, after) = rest.split_once("=\"").context("a quoted label value")?;
        let (value, after) = quoted(after)?;
        labels.insert(label.to_owned(), value);
        rest = after;
    }
}

/// Reads up to the closing quote, undoing the escapes.
fn quoted(text: &str) -> anyhow::Result<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next().context("a closing quote")? {
            '"' => return Ok((value, characters.as_str())),
            '\\' => match characters.next().context("an escaped character")? {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}

fn number(text: &str) -> anyhow::Result<f64> {
    // A timestamp may follow the value.
    let value = text.split_whitespace().next().context("a value")?;
    Ok(match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        other => other.parse()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_labels_and_values() {
        let text = "# HELP a_total Help with \"quotes\".\n# TYPE a_total counter\n\
                    a_total{kind=\"x, \\\"y\\\"}\",code=\"\"} 3\na_total{kind=\"z\"} 4 1700000000\n\
                    b 1.5\nc_bucket{le=\"+Inf\"} 7\n";
        let scrape = Exposition::parse(text).unwrap();
        assert_eq!(
            scrape.value("a_total", &[("kind", "x, \"y\"}")]).unwrap(),
            3.0
        );
        assert_eq!(scrape.sum("a_total", &[]), 7.0);
        assert_eq!(scrape.value("b", &[]).unwrap(), 1.5);
        assert_eq!(scrape.value("c_bucket", &[("le", "+Inf")]).unwrap(), 7.0);
        assert_eq!(scrape.types()["a_total"], "counter");
        assert!(scrape.value("a_total", &[]).is_err());
        assert!(!scrape.has("a_total", &[("kind", "none")]));
    }

    #[test]
    fn refuses_what_is_not_the_format() {
        assert!(Exposition::parse("<html>").is_err());
        assert!(Exposition::parse("a{b=\"c 1").is_err());
    }
}
