//! The store itself: its handle, and looking up, reading and deleting.

mod save;
#[cfg(test)]
mod tests;
mod upkeep;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use talaria_content::{Artifact, FileRequest};
use talaria_telemetry::events;
use talaria_types::{ArtifactId, PayloadError, PayloadSink, PayloadWriter, TokenName};

use crate::catalogue::{Bounds, Catalogue, Entry, Record};
use crate::error::StoreError;
use crate::file_name::Location;
use crate::index::{IndexCursor, IndexLine, from_milliseconds, milliseconds};
use crate::local::check_shape;
use crate::root::Root;
use crate::staging::{StagingFile, staging_failed};

/// Files the store keeps at most, so that its memory is bounded too.
const MAX_FILES: usize = 250_000;
/// Dead index lines that are worth a compaction while the store runs.
const DEAD_LINES: usize = 1024;

/// How a store is set up.
#[derive(Clone, Debug)]
pub struct MediaOptions {
    /// `<home>/cache`; made when missing.
    pub root: PathBuf,
    /// Quota.
    pub max_bytes: u64,
    /// Age at which a file expires.
    pub ttl: Duration,
    /// A file younger than this is never removed.
    pub grace: Duration,
    /// Whether files are flushed before they are named.
    pub fsync: bool,
    /// Base of artifact URLs, for example `http://127.0.0.1:8700`.
    pub base_url: Option<String>,
}

/// A handle to the store; cheap to clone.
#[derive(Clone, Debug)]
pub struct MediaStore {
    inner: Arc<Inner>,
}

/// An artifact and what only the store knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRecord {
    /// What the agent was told.
    pub artifact: Artifact,
    /// Whose call made it.
    pub owner: Option<TokenName>,
    /// When.
    pub created: SystemTime,
}

/// An artifact open for reading; the file is not removed while this lives.
#[derive(Debug)]
pub struct OpenArtifact {
    /// The file.
    pub file: File,
    /// What it is.
    pub record: ArtifactRecord,
    _lease: Lease,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Files removed because of age.
    pub expired: usize,
    /// Files removed to keep the quota.
    pub evicted: usize,
    /// Bytes freed.
    pub bytes: u64,
}

impl MediaStore {
    /// Opens the store and reads its index. A root that cannot be made or written is not fatal:
    /// each save then fails with a clear error.
    #[must_use]
    pub fn open(options: MediaOptions) -> Self {
        let bounds = Bounds {
            max_bytes: options.max_bytes,
            max_files: MAX_FILES,
            ttl: options.ttl,
            grace: options.grace,
            dead_lines: DEAD_LINES,
        };
        Self::open_with(options, bounds, Clock::Wall)
    }

    fn open_with(options: MediaOptions, bounds: Bounds, clock: Clock) -> Self {
        let inner = Arc::new(Inner {
            root: Root::new(options.root),
            bounds,
            fsync: options.fsync,
            base_url: options.base_url,
            clock,
            catalogue: Mutex::default(),
            cursor: Mutex::default(),
            upkeep: Mutex::default(),
        });
        inner.start();
        Self { inner }
    }

    /// Stores a file: never outside the root, complete before it is named.
    ///
    /// # Errors
    /// The disk refuses or the quota is used up; nothing remains.
    pub fn save(
        &self,
        request: FileRequest,
        owner: Option<&TokenName>,
    ) -> Result<Artifact, StoreError> {
        let kind = request.kind.as_str();
        let saved = self.inner.save(request, owner);
        match &saved {
            Ok(artifact) => events::media_saved(kind, artifact.bytes),
            Err(error) => error.report(),
        }
        self.inner.report_usage();
        saved
    }

    /// Looks an artifact up.
    ///
    /// # Errors
    /// `unknown_artifact`.
    pub fn find(&self, id: &ArtifactId) -> Result<ArtifactRecord, StoreError> {
        let (location, entry) = self.inner.look_up(|catalogue| {
            catalogue
                .find(id)
                .map(|(location, entry)| (location.clone(), entry.clone()))
        })?;
        self.inner
            .describe(&location, entry)
            .ok_or_else(StoreError::unknown)
    }

    /// Looks an artifact up by its path; `None` for a path this store handed out for none.
    #[must_use]
    pub fn find_path(&self, path: &Path) -> Option<ArtifactRecord> {
        check_shape(path).ok()?;
        let root = self.inner.root.known_path();
        let real;
        let below = match path.strip_prefix(root) {
            Ok(below) => below,
            // The caller may know the root by another name. What cannot be a file of ours by its
            // last two parts is not looked for on the disk.
            Err(_) => {
                Location::of_path(&last_two(path)?)?;
                real = path.canonicalize().ok()?;
                real.strip_prefix(root).ok()?
            }
        };
        let location = Location::of_path(below)?;
        let entry = self
            .inner
            .look_up(|catalogue| catalogue.get(&location).cloned())
            .ok()?;
        self.inner.describe(&location, entry)
    }

    /// Opens an artifact for reading and keeps it from being removed meanwhile.
    ///
    /// # Errors
    /// `unknown_artifact`, or the file cannot be read.
    pub fn read(&self, id: &ArtifactId) -> Result<OpenArtifact, StoreError> {
        let now = self.inner.clock.now();
        let (location, entry) = self.inner.look_up(|catalogue| catalogue.lease(id, now))?;
        let lease = Lease {
            inner: Arc::clone(&self.inner),
            location,
        };
        let file = self.inner.open_file(&lease.location, &entry)?;
        // The time of last use outlives a restart; without it the age of the file counts.
        drop(file.set_modified(now));
        let record = self
            .inner
            .describe(&lease.location, entry)
            .ok_or_else(StoreError::unknown)?;
        Ok(OpenArtifact {
            file,
            record,
            _lease: lease,
        })
    }

    /// Removes an artifact at the caller's wish, even one that is being read.
    ///
    /// # Errors
    /// `unknown_artifact`, or the file cannot be removed.
    pub fn delete(&self, id: &ArtifactId) -> Result<(), StoreError> {
        let victim = self.inner.look_up(|catalogue| catalogue.take_id(id))?;
        let outcome = self.inner.discard(vec![victim], "deleted").map(drop);
        self.inner.report_usage();
        outcome
    }

    /// Removes what is expired or over the quota, oldest first.
    pub fn sweep(&self, now: SystemTime) -> SweepReport {
        self.inner.sweep(now)
    }
}

impl PayloadSink for MediaStore {
    fn begin(&self) -> Result<Box<dyn PayloadWriter>, PayloadError> {
        let file = self.inner.stage().map_err(staging_failed)?;
        Ok(Box::new(file))
    }
}

/// What all handles of a store share.
#[derive(Debug)]
struct Inner {
    root: Root,
    bounds: Bounds,
    fsync: bool,
    base_url: Option<String>,
    clock: Clock,
    /// Held for short sections only, never during I/O.
    catalogue: Mutex<Catalogue>,
    /// Held while the index is read or compacted; saves do not take it.
    cursor: Mutex<IndexCursor>,
    /// The index lock file, while this store is the one that compacts; held during upkeep.
    upkeep: Mutex<Option<File>>,
}

/// Where the store reads the time.
#[derive(Clone, Debug)]
enum Clock {
    Wall,
    #[cfg(test)]
    Set(Arc<std::sync::atomic::AtomicU64>),
}

/// Keeps a file from being removed.
#[derive(Debug)]
struct Lease {
    inner: Arc<Inner>,
    location: Location,
}

impl Inner {
    /// Makes a staging file, and the folders it needs.
    fn stage(&self) -> io::Result<StagingFile> {
        StagingFile::create(&self.root.make()?, self.fsync)
    }

    /// Asks the catalogue, and once more after reading what others added to the index.
    fn look_up<T>(
        &self,
        mut ask: impl FnMut(&mut Catalogue) -> Option<T>,
    ) -> Result<T, StoreError> {
        if let Some(found) = ask(&mut self.catalogue.lock()) {
            return Ok(found);
        }
        if let Err(error) = self.refresh() {
            tracing::debug!(%error, "media index could not be read");
        }
        ask(&mut self.catalogue.lock()).ok_or_else(StoreError::unknown)
    }

    /// Takes in what was appended to the index since the last look.
    fn refresh(&self) -> io::Result<()> {
        let root = self.root.open()?;
        let mut cursor = self.cursor.lock();
        let lines = cursor.read_new(&root.directory)?;
        self.apply(lines);
        Ok(())
    }

    /// Brings lines of the index into the catalogue, in their order.
    fn apply(&self, lines: Vec<IndexLine>) {
        let now = self.clock.now();
        let mut catalogue = self.catalogue.lock();
        for line in lines {
            match line {
                IndexLine::Saved(saved) => {
                    let Some((location, entry)) = saved.into_entry(now) else {
                        continue;
                    };
                    let known = catalogue
                        .get(&location)
                        .is_some_and(|known| known.record.is_some());
                    if !known {
                        catalogue.insert(location, entry);
                    }
                }
                IndexLine::Removed(id) => drop(catalogue.take_id(&id)),
            }
        }
    }

    fn open_file(&self, location: &Location, entry: &Entry) -> Result<File, StoreError> {
        let opened = self
            .root
            .open()
            .and_then(|root| root.directory.folder(location.folder.name()))
            .map_err(|error| StoreError::disk("read", error))?
            .open(&location.file);
        match opened {
            Ok((file, facts)) if facts.bytes == entry.bytes => Ok(file),
            Ok(_) => Err(StoreError::changed()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                drop(self.catalogue.lock().take(location));
                Err(StoreError::unknown())
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput
                ) =>
            {
                Err(StoreError::changed())
            }
            Err(error) => Err(StoreError::disk("read", error)),
        }
    }

    /// What callers are told of a file that has an id.
    fn describe(&self, location: &Location, entry: Entry) -> Option<ArtifactRecord> {
        let Record {
            id,
            name,
            media_type,
            declared_type,
            source_uri,
            sha256,
            owner,
        } = *entry.record?;
        let url = self
            .base_url
            .as_ref()
            .map(|base| format!("{}/v1/artifacts/{id}", base.trim_end_matches('/')));
        let path = self
            .root
            .known_path()
            .join(location.folder.name())
            .join(&*location.file);
        let artifact = Artifact {
            id,
            kind: location.folder.kind(),
            name,
            path,
            url,
            media_type,
            declared_type,
            bytes: entry.bytes,
            sha256: hex::encode(sha256),
            source_uri,
        };
        Some(ArtifactRecord {
            artifact,
            owner,
            created: entry.created,
        })
    }

    fn report_usage(&self) {
        let (files, bytes) = {
            let catalogue = self.catalogue.lock();
            (catalogue.files(), catalogue.bytes())
        };
        events::media_usage(files, bytes);
    }
}

impl Clock {
    /// Now, in the precision of the index.
    fn now(&self) -> SystemTime {
        match self {
            Self::Wall => from_milliseconds(milliseconds(talaria_types::runtime::wall_clock())),
            #[cfg(test)]
            Self::Set(time) => from_milliseconds(time.load(std::sync::atomic::Ordering::SeqCst)),
        }
    }
}

/// The folder and the file that a path ends in.
fn last_two(path: &Path) -> Option<PathBuf> {
    Some(Path::new(path.parent()?.file_name()?).join(path.file_name()?))
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.inner.catalogue.lock().release(&self.location);
    }
}
