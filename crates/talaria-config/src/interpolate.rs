//! `${NAME}`, `${env:NAME}` and the context variables in texts.

use std::collections::BTreeMap;
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};

use crate::Source;

/// A text with its variables filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    /// The text; unset variables stay as they were written.
    pub(crate) text: String,
    /// Names of variables that are not set.
    pub(crate) unset: Vec<String>,
    /// Environment variables that were used.
    pub(crate) used: Vec<String>,
}

/// Where values of variables come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variables<'a> {
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) source: &'a Source,
}

/// What stands between `${` and `}`.
enum Reference<'t> {
    /// A variable of the environment.
    Environment(&'t str),
    /// One of the context variables.
    Context(&'t str),
    /// A variable of another program (`${input:…}`), which nobody can fill in here.
    Foreign(&'t str),
    /// No variable at all: shell code, a template.
    Plain,
}

impl<'a> Variables<'a> {
    /// Fills in every variable, once: values are not looked at again.
    pub(crate) fn fill(self, text: &str) -> Filled {
        let mut filled = Filled::default();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from_start) = rest.split_at(start);
            filled.text.push_str(before);
            let Some((inside, after)) = from_start
                .strip_prefix("${")
                .and_then(|inner| inner.split_once('}'))
            else {
                rest = from_start;
                break;
            };
            let value = match Reference::read(inside) {
                Reference::Environment(name) => {
                    let value = self.environment.get(name).cloned();
                    match &value {
                        Some(_) => filled.used.push(name.to_owned()),
                        None => filled.unset.push(name.to_owned()),
                    }
                    value
                }
                Reference::Context(name) => {
                    let value = self.context(name);
                    if value.is_none() {
                        filled.unset.push(name.to_owned());
                    }
                    value
                }
                Reference::Foreign(name) => {
                    filled.unset.push(name.to_owned());
                    None
                }
                Reference::Plain => None,
            };
            match value {
                Some(value) => {
                    filled.text.push_str(&value);
                    rest = after;
                }
                None => {
                    // Only the opening is passed over: the inside may hold a variable.
                    filled.text.push_str("${");
                    rest = from_start.strip_prefix("${").unwrap_or_default();
                }
            }
        }
        filled.text.push_str(rest);
        filled
    }

    /// The user's home directory.
    pub(crate) fn user_home(self) -> Option<&'a str> {
        let set = |name| self.environment.get(name).filter(|value| !value.is_empty());
        set("HOME")
            .or_else(|| set("USERPROFILE"))
            .map(String::as_str)
    }

    /// `~` and `~/…` with the home directory in place of the `~`; `None` if there is none, or
    /// if another user's home is asked for.
    pub(crate) fn expand_tilde(self, text: &str) -> Option<String> {
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Some(format!("{}{rest}", self.user_home()?))
            }
            Some(_) => None,
            None => Some(text.to_owned()),
        }
    }

    /// The path of a file: `~` is filled in, a relative path counts from the directory of the
    /// configuration file, else from the working directory.
    pub(crate) fn absolute(self, text: &str) -> Option<PathBuf> {
        let expanded = PathBuf::from(self.expand_tilde(text)?);
        if expanded.is_absolute() {
            return Some(expanded);
        }
        let beside_file = self.source.file.as_deref().and_then(Path::parent);
        let working = self.environment.get("PWD").map(Path::new);
        let base = [beside_file, self.source.workspace.as_deref(), working]
            .into_iter()
            .flatten()
            .find(|base| base.is_absolute())?;
        Some(base.join(expanded))
    }

    fn context(self, name: &str) -> Option<String> {
        let workspace = || {
            let chosen = self
                .source
                .workspace
                .as_deref()
                .map(|path| path.display().to_string());
            chosen.or_else(|| self.environment.get("PWD").cloned())
        };
        match name {
            "userHome" => self.user_home().map(ToOwned::to_owned),
            "workspaceFolder" => workspace(),
            "workspaceFolderBasename" => {
                workspace().and_then(|path| path.rsplit('/').next().map(ToOwned::to_owned))
            }
            "pathSeparator" | "/" => Some(MAIN_SEPARATOR_STR.to_owned()),
            _ => None,
        }
    }
}

impl<'t> Reference<'t> {
    fn read(inside: &'t str) -> Self {
        if let Some(name) = inside.strip_prefix("env:") {
            return if name.is_empty() || name.contains(['$', '{']) {
                Self::Plain
            } else {
                Self::Environment(name)
            };
        }
        if matches!(
            inside,
            "userHome" | "workspaceFolder" | "workspaceFolderBasename" | "pathSeparator" | "/"
        ) {
            return Self::Context(inside);
        }
        if inside.starts_with("input:") || inside.starts_with("command:") {
            return Self::Foreign(inside);
        }
        let mut characters = inside.chars();
        let starts = characters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if starts && characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            Self::Environment(inside)
        } else {
            Self::Plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Filled {
        let environment = BTreeMap::from(
            [
                ("HOME", "/home/me"),
                ("A", "1"),
                ("B", "${A}"),
                ("PWD", "/srv/work"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        Variables {
            environment: &environment,
            source: &Source::default(),
        }
        .fill(text)
    }

    #[test]
    fn k01_variables_and_context_variables_are_filled_in() {
        assert_eq!(fill("${HOME}").text, "/home/me");
        assert_eq!(fill("${env:HOME}").text, "/home/me");
        assert_eq!(fill("${userHome}/x").text, "/home/me/x");
        assert_eq!(
            fill("${workspaceFolder}|${workspaceFolderBasename}").text,
            "/srv/work|work"
        );
        assert_eq!(fill("a${/}b${pathSeparator}c").text, "a/b/c");
    }

    #[test]
    fn k01_unset_variables_stay_literal_and_are_named() {
        let filled = fill("x ${UNSET_X} ${env:UNSET_Y} ${input:key} ${A}");
        assert_eq!(filled.text, "x ${UNSET_X} ${env:UNSET_Y} ${input:key} 1");
        assert_eq!(filled.unset, ["UNSET_X", "UNSET_Y", "input:key"]);
    }

    #[test]
    fn values_are_not_filled_in_again() {
        assert_eq!(fill("${B}").text, "${A}");
    }

    #[test]
    fn shell_code_and_loose_marks_stay() {
        for text in [
            "${A:-x}",
            "${arr[@]}",
            "$A",
            "${",
            "${A",
            "$${}",
            "}",
            "${1}",
            "${env:}",
        ] {
            let filled = fill(text);
            assert_eq!(
                (filled.text.as_str(), filled.unset.len()),
                (text, 0),
                "{text}"
            );
        }
        assert_eq!(fill("${x ${A}").text, "${x 1");
    }
}
