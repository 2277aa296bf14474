//! Finds the configuration file and reads it.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use talaria_config::defaults::MAX_FILE_BYTES;
use talaria_config::{Config, ConfigErrors, Source};

use crate::arguments::ConfigArguments;
use crate::exit::CommandError;

/// Variable with the path of the configuration file.
pub const CONFIG_VARIABLE: &str = "TALARIA_CONFIG";
/// The file in the user's home that is read when nothing else is said.
const DEFAULT_FILE: &str = ".talaria/config.yaml";

/// Where the configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Named by the user; it has to be there.
    Named(PathBuf),
    /// Looked for; the defaults apply when it is not there.
    Looked(PathBuf),
    /// Nowhere to look.
    Nowhere,
}

/// A configuration and the name of where it comes from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Path of the file, or that there is none.
    pub source: String,
    /// Whether there is a file.
    pub from_file: bool,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// What is in it cannot be used.
    #[error(transparent)]
    Invalid(#[from] ConfigErrors),
    /// A relative path leads nowhere.
    #[error("find {}: {error}", path.display())]
    Lost {
        /// The path.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Unreadable { .. } => Self::configuration(vec![error.to_string()]),
            LoadError::Invalid(errors) => {
                let problems = errors.problems().iter().map(ToString::to_string);
                Self::configuration(problems.collect())
            }
            LoadError::Lost { .. } => anyhow::Error::new(error).into(),
        }
    }
}

/// Reads the configuration that the command line and the environment point to.
///
/// # Errors
/// The file cannot be read, or the configuration cannot be used.
pub fn load(
    arguments: &ConfigArguments,
    environment: &BTreeMap<String, String>,
) -> Result<Loaded, CommandError> {
    Ok(load_from(arguments, environment)?)
}

/// As [`load`], for those who tell the reasons apart.
///
/// # Errors
/// The same.
pub fn load_from(
    arguments: &ConfigArguments,
    environment: &BTreeMap<String, String>,
) -> Result<Loaded, LoadError> {
    let file = read(&find(arguments, environment))?;
    let from_file = file.is_some();
    let (text, source, name) = match file {
        Some((text, path)) => (
            text,
            Source::file(rooted(&path)?),
            path.display().to_string(),
        ),
        None => (
            String::new(),
            Source::default(),
            "defaults, no file".to_owned(),
        ),
    };
    let mut config = talaria_config::load(&text, environment, &source)?;
    if let Some(home) = &arguments.home {
        config.talaria.home = rooted(home)?;
    }
    Ok(Loaded {
        config,
        source: name,
        from_file,
    })
}

/// The file that is read, or would be if it were there.
#[must_use]
pub fn path(
    arguments: &ConfigArguments,
    environment: &BTreeMap<String, String>,
) -> Option<PathBuf> {
    match find(arguments, environment) {
        Place::Named(path) | Place::Looked(path) => Some(path),
        Place::Nowhere => None,
    }
}

/// A path from the root on.
///
/// # Errors
/// The current folder is gone.
pub fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    Ok(rooted(path)?)
}

fn rooted(path: &Path) -> Result<PathBuf, LoadError> {
    std::path::absolute(path).map_err(|error| LoadError::Lost {
        path: path.to_owned(),
        error,
    })
}

fn find(arguments: &ConfigArguments, environment: &BTreeMap<String, String>) -> Place {
    let variable = |name| environment.get(name).filter(|value| !value.is_empty());
    if let Some(path) = &arguments.config {
        return Place::Named(path.clone());
    }
    if let Some(path) = variable(CONFIG_VARIABLE) {
        return Place::Named(path.into());
    }
    match variable("HOME") {
        Some(home) => Place::Looked(Path::new(home).join(DEFAULT_FILE)),
        None => Place::Nowhere,
    }
}

/// Text and path of the file, or nothing where the defaults apply.
fn read(place: &Place) -> Result<Option<(String, PathBuf)>, LoadError> {
    let (path, required) = match place {
        Place::Named(path) => (path, true),
        Place::Looked(path) => (path, false),
        Place::Nowhere => return Ok(None),
    };
    match bounded(path) {
        Ok(text) => Ok(Some((text, path.clone()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !required => Ok(None),
        Err(error) => Err(LoadError::Unreadable {
            path: path.clone(),
            error,
        }),
    }
}

/// The text of a file, and no more of it than is needed to see that it is too large.
fn bounded(path: &Path) -> io::Result<String> {
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?.take(most.saturating_add(1));
    file.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::{Place, find, load};
    use crate::arguments::ConfigArguments;
    use crate::exit::Exit;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn option_beats_variable_beats_home() {
        let option = ConfigArguments {
            config: Some("a.yaml".into()),
            home: None,
        };
        let none = ConfigArguments::default();
        let both = environment(&[("TALARIA_CONFIG", "b.yaml"), ("HOME", "/h")]);
        assert_eq!(find(&option, &both), Place::Named("a.yaml".into()));
        assert_eq!(find(&none, &both), Place::Named("b.yaml".into()));
        let home = environment(&[("TALARIA_CONFIG", ""), ("HOME", "/h")]);
        assert_eq!(
            find(&none, &home),
            Place::Looked(PathBuf::from("/h/.talaria/config.yaml"))
        );
        assert_eq!(find(&none, &BTreeMap::new()), Place::Nowhere);
    }

    #[test]
    fn a_named_file_has_to_be_there_and_a_looked_for_one_not() {
        let folder = tempfile::TempDir::new().unwrap();
        let home = folder.path().to_str().unwrap();
        let environment = environment(&[("HOME", home)]);
        let loaded = load(&ConfigArguments::default(), &environment).unwrap();
        assert_eq!(loaded.source, "defaults, no file");
        let named = ConfigArguments {
            config: Some(folder.path().join("none")),
            home: None,
        };
        assert_eq!(load(&named, &environment).unwrap_err().exit(), Exit::Usage);
    }

    #[test]
    fn the_home_option_replaces_the_configured_home() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("c.yaml");
        std::fs::write(&file, "talaria: { home: /elsewhere }\n").unwrap();
        let arguments = ConfigArguments {
            config: Some(file),
            home: Some("here".into()),
        };
        let config = load(&arguments, &BTreeMap::new()).unwrap().config;
        assert!(config.talaria.home.is_absolute());
        assert!(config.talaria.home.ends_with("here"));
    }

    #[test]
    fn every_problem_is_a_line() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("c.yaml");
        std::fs::write(
            &file,
            "talaria: { listen: nowhere, media: { ttl: soon } }\n",
        )
        .unwrap();
        let arguments = ConfigArguments {
            config: Some(file),
            home: None,
        };
        let error = load(&arguments, &environment(&[("HOME", "/h")])).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        let lines = error.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("talaria.listen: ")),
            "{lines:?}"
        );
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("talaria.media.ttl: ")),
            "{lines:?}"
        );
    }
}
