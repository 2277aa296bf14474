//! The root directory: made when missing, reported under its canonical path.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::directory::Directory;

/// Where the store lives.
#[derive(Debug)]
pub(crate) struct Root {
    configured: PathBuf,
    canonical: OnceLock<PathBuf>,
}

/// The root, open, with its canonical path.
#[derive(Debug)]
pub(crate) struct OpenRoot<'a> {
    pub(crate) directory: Directory,
    pub(crate) path: &'a Path,
}

impl Root {
    pub(crate) const fn new(configured: PathBuf) -> Self {
        Self {
            configured,
            canonical: OnceLock::new(),
        }
    }

    /// Opens the root as it is.
    pub(crate) fn open(&self) -> io::Result<OpenRoot<'_>> {
        let path = self.path()?;
        Ok(OpenRoot {
            directory: Directory::open_root(path)?,
            path,
        })
    }

    /// Opens the root and makes it when it is missing.
    pub(crate) fn make(&self) -> io::Result<OpenRoot<'_>> {
        match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = self.canonical.get().unwrap_or(&self.configured);
                Directory::make_root(path)?;
                self.open()
            }
            opened => opened,
        }
    }

    /// The canonical path, once the root has existed.
    ///
    /// It is fixed from then on: paths handed out stay true when a link above is changed.
    fn path(&self) -> io::Result<&Path> {
        if let Some(path) = self.canonical.get() {
            return Ok(path);
        }
        let canonical = self.configured.canonicalize()?;
        Ok(self.canonical.get_or_init(|| canonical))
    }

    /// The best known path, whether or not the root exists.
    pub(crate) fn known_path(&self) -> &Path {
        self.canonical.get().unwrap_or(&self.configured)
    }
}
