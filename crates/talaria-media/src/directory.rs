//! Directory handles: every path below the root is one name relative to an open directory.
//!
//! No symbolic link is ever followed below the root, so whatever is planted there, nothing
//! outside is read, written or removed.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// An open directory of the store.
#[derive(Debug)]
pub(crate) struct Directory {
    handle: File,
}

/// What the file system says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileFacts {
    pub(crate) regular: bool,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
}

/// Tells two files apart, whatever their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl Directory {
    /// Makes the root with everything above it and opens it.
    pub(crate) fn make_root(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Self::open_root(path)
    }

    /// Opens the root. What lies above it is the operator's.
    pub(crate) fn open_root(path: &Path) -> io::Result<Self> {
        let handle = File::open(path)?;
        if !handle.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { handle })
    }

    /// Opens a folder of this directory.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
        Ok(Self {
            handle: self.open_with(name, flags)?.into(),
        })
    }

    /// Opens a folder of this directory and makes it when it is missing.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<Self> {
        match self.folder(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match mkdirat(&self.handle, name, Mode::S_IRWXU) {
                    // Somebody else made it in between.
                    Ok(()) | Err(nix::Error::EEXIST) => self.folder(name),
                    Err(error) => Err(error.into()),
                }
            }
            opened => opened,
        }
    }

    /// Makes a new file; fails when anything has that name.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        Ok(self.open_with(name, flags)?.into())
    }

    /// Opens a regular file for reading.
    pub(crate) fn open(&self, name: &str) -> io::Result<(File, FileFacts)> {
        // Opening a planted FIFO must not wait for a writer.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        regular(self.open_with(name, flags)?.into())
    }

    /// Opens a regular file for appending and makes it when it is missing.
    pub(crate) fn append(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_WRONLY
            | OFlag::O_APPEND
            | OFlag::O_CREAT
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK;
        Ok(regular(self.open_with(name, flags)?.into())?.0)
    }

    /// Opens a regular file that is only there to be locked and makes it when it is missing.
    ///
    /// It is open for reading only, so that the disk can still be made read-only.
    pub(crate) fn lock_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        Ok(regular(self.open_with(name, flags)?.into())?.0)
    }

    /// Gives a file another name, replacing what has that name already.
    pub(crate) fn rename(&self, from: &str, to: &Self, name: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &to.handle, name)?)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// What has that name; a symbolic link is not followed.
    pub(crate) fn facts(&self, name: &str) -> io::Result<FileFacts> {
        Ok(FileFacts::from(&fstatat(
            &self.handle,
            name,
            AtFlags::AT_SYMLINK_NOFOLLOW,
        )?))
    }

    /// The names in this directory, as far as they are UTF-8.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut listing = Dir::openat(&self.handle, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in listing.iter() {
            let entry = entry?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    /// Makes renames and new names survive a power failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn open_with(&self, name: &str, flags: OFlag) -> io::Result<OwnedFd> {
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        openat(&self.handle, name, flags | OFlag::O_CLOEXEC, mode).map_err(|error| {
            // A link where none may be is a thing of the wrong kind, nothing else.
            if error == nix::Error::ELOOP {
                io::ErrorKind::NotADirectory.into()
            } else {
                error.into()
            }
        })
    }
}

impl FileIdentity {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

impl From<&FileStat> for FileFacts {
    fn from(stat: &FileStat) -> Self {
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        let seconds = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
        let nanos = Duration::from_nanos(u64::try_from(stat.st_mtime_nsec).unwrap_or(0));
        Self {
            regular: kind == SFlag::S_IFREG,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: UNIX_EPOCH + seconds + nanos,
        }
    }
}

/// The file with its facts, or an error when it is something else than a regular file.
fn regular(file: File) -> io::Result<(File, FileFacts)> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let facts = FileFacts {
        regular: true,
        bytes: metadata.len(),
        modified: metadata.modified()?,
    };
    Ok((file, facts))
}
