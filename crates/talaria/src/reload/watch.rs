//! When a file has changed and come to rest. Pure but for [`Stamp::of`].
//!
//! A file is read once it looks the same in two looks a second apart, so that half-written ones
//! are not read. Links are followed: Kubernetes swaps a link where others write a file.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks at a file that does not change.
pub(super) const PAUSE: Duration = Duration::from_secs(2);
/// How long a file that changed has to stay as it is.
const QUIET: Duration = Duration::from_secs(1);

/// How a file looks from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// It is not there, or cannot be looked at.
    Absent,
    /// Which file it is, how long, and when it was changed.
    Present {
        device: u64,
        inode: u64,
        length: u64,
        modified: (i64, i64),
        changed: (i64, i64),
    },
}

impl Stamp {
    /// Looks at a file, through links.
    pub(super) fn of(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(found) => Self::Present {
                device: found.dev(),
                inode: found.ino(),
                length: found.len(),
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            },
            Err(_) => Self::Absent,
        }
    }
}

/// What a look says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to do yet.
    Wait,
    /// Read the file.
    Read,
}

/// One file that is watched.
#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    /// How it looked when it was read last.
    read: Stamp,
    /// How it looked when it was first seen to differ.
    differs: Option<Stamp>,
}

impl Watch {
    /// A file that was read while it looked like this.
    pub(super) const fn new(path: PathBuf, read: Stamp) -> Self {
        Self {
            path,
            read,
            differs: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How long until the next look.
    pub(super) const fn pause(&self) -> Duration {
        if self.differs.is_some() { QUIET } else { PAUSE }
    }

    /// The file was read while it looked like this.
    pub(super) const fn read(&mut self, stamp: Stamp) {
        self.read = stamp;
        self.differs = None;
    }

    /// Takes a look.
    pub(super) fn step(&mut self, stamp: Stamp) -> Step {
        // A file that is not there is on its way: editors remove before they rename.
        if stamp == Stamp::Absent || self.read == stamp {
            self.differs = None;
            return Step::Wait;
        }
        if self.differs == Some(stamp) {
            return Step::Read;
        }
        self.differs = Some(stamp);
        Step::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(length: u64) -> Stamp {
        Stamp::Present {
            device: 1,
            inode: 1,
            length,
            modified: (1, 0),
            changed: (1, 0),
        }
    }

    fn watched() -> Watch {
        Watch::new(PathBuf::from("c.yaml"), stamp(1))
    }

    #[test]
    fn a_file_is_read_once_it_has_been_quiet_for_a_second() {
        let mut watch = watched();
        assert_eq!((watch.step(stamp(1)), watch.pause()), (Step::Wait, PAUSE));
        assert_eq!((watch.step(stamp(2)), watch.pause()), (Step::Wait, QUIET));
        assert_eq!(
            watch.step(stamp(3)),
            Step::Wait,
            "it is still being written"
        );
        assert_eq!(watch.step(stamp(3)), Step::Read);
        watch.read(stamp(3));
        assert_eq!((watch.step(stamp(3)), watch.pause()), (Step::Wait, PAUSE));
    }

    #[test]
    fn a_file_that_is_gone_is_waited_for() {
        let mut watch = watched();
        assert_eq!(watch.step(Stamp::Absent), Step::Wait);
        assert_eq!(watch.step(Stamp::Absent), Step::Wait);
        assert_eq!(watch.step(stamp(2)), Step::Wait);
        assert_eq!(watch.step(stamp(2)), Step::Read);
    }

    #[test]
    fn a_change_that_is_undone_is_none() {
        let mut watch = watched();
        assert_eq!(watch.step(stamp(2)), Step::Wait);
        assert_eq!(watch.step(stamp(1)), Step::Wait);
        assert_eq!(watch.step(stamp(2)), Step::Wait);
    }

    #[test]
    fn a_swapped_link_is_a_change() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        for version in ["one", "two"] {
            std::fs::create_dir(at(version)).unwrap();
            std::fs::write(at(version).join("c.yaml"), "{}").unwrap();
        }
        std::os::unix::fs::symlink(at("one"), at("data")).unwrap();
        std::os::unix::fs::symlink(at("data").join("c.yaml"), at("c.yaml")).unwrap();
        let before = Stamp::of(&at("c.yaml"));
        assert_eq!(before, Stamp::of(&at("c.yaml")));
        std::os::unix::fs::symlink(at("two"), at("next")).unwrap();
        std::fs::rename(at("next"), at("data")).unwrap();
        assert_ne!(before, Stamp::of(&at("c.yaml")));
    }
}
