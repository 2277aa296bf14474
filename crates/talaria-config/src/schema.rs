//! The table of keys: what may be set, of which kind, with which default.
//!
//! Unknown keys are found with it, values that no part uses yet are checked with it, and the
//! tables of `docs/config.md` are made from it.

mod keys;

pub use keys::KEYS;

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`; the words yes, no, on, off count too.
    Bool,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A duration: with a unit; in Hermes' sections a bare number means seconds.
    Duration,
    /// A size: with a unit; in Hermes' sections a bare number means bytes.
    Size,
    /// A whole number that is not negative.
    Count,
    /// A number.
    Number,
    /// Text.
    Text,
    /// Text that is never shown; an unset variable in it is an error.
    Secret,
    /// An address; an unset variable in it is an error.
    Url,
    /// A program; an unset variable in it is an error.
    Command,
    /// Arguments: a list, a JSON list in a string, or a line as for a shell; an unset variable
    /// in it is an error.
    Args,
    /// A list of texts; a single text is a list of one.
    TextList,
    /// A map of texts that are never shown; an unset variable in it is an error.
    SecretMap,
    /// Anything; wrong values mean the default, as Hermes has it.
    Any,
}

impl Kind {
    /// The kind in words, for messages and the documentation.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "boolean".to_owned(),
            Self::Word(words) => words
                .iter()
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(" or "),
            Self::Duration => "duration".to_owned(),
            Self::Size => "size".to_owned(),
            Self::Count => "whole number".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Secret => "secret text".to_owned(),
            Self::Url => "address".to_owned(),
            Self::Command => "program".to_owned(),
            Self::Args => "list of texts, or a line".to_owned(),
            Self::TextList => "list of texts".to_owned(),
            Self::SecretMap => "map of secret texts".to_owned(),
            Self::Any => "see text".to_owned(),
        }
    }
}

/// Whether a part that stands uses the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It does.
    Used,
    /// Accepted and checked; a value other than the default leaves a warning.
    Later,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Path; `*` stands for a name the operator chooses, `[]` for each entry of a list.
    pub path: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// Default as YAML; empty where there is none.
    pub default: &'static str,
    /// Whether it is used.
    pub stage: Stage,
    /// What it does.
    pub help: &'static str,
}

/// What stands at a path of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A key with a value.
    Leaf(&'static Key),
    /// A map of further keys.
    Section,
    /// A map whose keys the operator names.
    NamedSections,
    /// A list of maps.
    ListOfSections,
    /// Nothing.
    Unknown,
}

/// What stands at this path.
pub(crate) fn place(path: &str) -> Place {
    for key in KEYS {
        let Some(rest) = key.path.strip_prefix(path) else {
            continue;
        };
        if rest.is_empty() {
            return Place::Leaf(key);
        }
        if rest.starts_with("[]") {
            return Place::ListOfSections;
        }
        if rest.starts_with(".*") {
            return Place::NamedSections;
        }
        if rest.starts_with('.') {
            return Place::Section;
        }
    }
    Place::Unknown
}

/// Names of the keys directly below a path; the top-level sections for the empty path.
pub(crate) fn children(path: &str) -> impl Iterator<Item = &'static str> {
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("{path}.")
    };
    let mut last = "";
    KEYS.iter().filter_map(move |key| {
        let rest = key.path.strip_prefix(prefix.as_str())?;
        let name = rest.split(['.', '[']).next()?;
        if name == last {
            return None;
        }
        last = name;
        Some(name)
    })
}

/// The known name that a misspelt one is closest to, if it is close.
pub(crate) fn near_miss(
    name: &str,
    known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let folded = fold(name);
    let reach = match folded.chars().count() {
        0..=5 => 1,
        6..=11 => 2,
        _ => 3,
    };
    known
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&folded, &fold(candidate)),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= reach)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Spelling without case, `-` and `_`.
fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .take(64)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_is_listed_once_and_found() {
        let paths: BTreeSet<_> = KEYS.iter().map(|key| key.path).collect();
        assert_eq!(paths.len(), KEYS.len());
        for key in KEYS {
            assert!(matches!(place(key.path), Place::Leaf(found) if found.path == key.path));
            assert!(key.help.ends_with('.'), "{}", key.path);
        }
    }

    #[test]
    fn places_are_told_apart() {
        assert!(matches!(place("talaria"), Place::Section));
        assert!(matches!(
            place("talaria.auth.tokens"),
            Place::ListOfSections
        ));
        assert!(matches!(place("mcp_servers"), Place::NamedSections));
        assert!(matches!(place("mcp_servers.*.tools"), Place::Section));
        assert!(matches!(place("mcp"), Place::Section));
        assert!(matches!(place("mcp_serv"), Place::Unknown));
        assert!(matches!(place("talaria.med"), Place::Unknown));
    }

    #[test]
    fn near_misses_are_found() {
        let near = |name| near_miss(name, children("mcp_servers.*"));
        assert_eq!(near("comand"), Some("command"));
        assert_eq!(near("connectTimeout"), Some("connect_timeout"));
        assert_eq!(near("rpc-concurrency"), Some("rpc_concurrency"));
        assert_eq!(near("uri"), Some("url"));
        assert_eq!(near("description"), None);
        assert_eq!(near("type"), None);
    }
}
