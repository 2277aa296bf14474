//! A small file of our own beside the store: readable by its owner only, replaced as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// One such file.
#[derive(Clone, Debug)]
pub struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    /// The file of that path, whether it is there or not.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Reads it whole; none where there is none.
    ///
    /// # Errors
    /// Those of the disk; a file of more than `limit` bytes is invalid.
    pub fn read(&self, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(read).unwrap_or(u64::MAX) > limit {
            let what = format!("{} has more than {limit} bytes", self.path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(Some(bytes))
    }

    /// Puts these bytes in its place; whoever reads it meanwhile sees all of the old ones or all
    /// of the new ones.
    ///
    /// # Errors
    /// Those of the disk; the old file stays then.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let unique = ulid::Ulid::generate();
        let next = self.path.with_extension(format!("{unique}.new"));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&next)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&next, &self.path));
        if written.is_err() {
            drop(fs::remove_file(&next));
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_replaced_whole_and_readable_by_its_owner_only() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache/notes.json");
        let file = PrivateFile::new(path.clone());
        assert_eq!(file.read(10).unwrap(), None);
        file.replace(b"first").unwrap();
        file.replace(b"second").unwrap();
        assert_eq!(
            file.read(10).unwrap().as_deref(),
            Some(b"second".as_slice())
        );
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert!(file.read(5).is_err(), "larger than is read");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing_behind() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("cache"), "a file where a folder should be").unwrap();
        let file = PrivateFile::new(home.path().join("cache/notes.json"));
        assert!(file.replace(b"x").is_err());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
