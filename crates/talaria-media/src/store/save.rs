//! Saving: room first, then the bytes, then a name, then the index.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use talaria_content::{Artifact, FileBody, FileRequest};
use talaria_types::{ArtifactId, StagedPayload, TokenName};

use super::Inner;
use crate::catalogue::{Entry, Record};
use crate::directory::Directory;
use crate::error::StoreError;
use crate::file_name::{Folder, Location, safe_name};
use crate::index::{self, IndexLine, SavedFile};
use crate::root::OpenRoot;
use crate::staging::{STAGING, is_staging_name};

/// Random names that may be taken already before the store gives up.
const NAME_TRIES: usize = 8;
/// Rounds of removals that may fail before a save gives up; the next one goes on from there.
const ROOM_TRIES: usize = 16;
/// A longer source address is not kept with the file.
const MAX_URI_BYTES: usize = 16 * 1024;
/// A longer media type is none.
const MAX_TYPE_BYTES: usize = 1024;

/// Room promised to a save; given back unless the file is entered.
struct Room<'a> {
    inner: &'a Inner,
    bytes: u64,
}

/// What became of a wish for room.
enum Reserved<'a> {
    Room(Room<'a>),
    /// A file that had to go cannot be removed.
    Stuck(io::Error),
    /// Nothing is left that may go.
    Full,
}

impl Inner {
    pub(super) fn save(
        &self,
        request: FileRequest,
        owner: Option<&TokenName>,
    ) -> Result<Artifact, StoreError> {
        let FileRequest {
            kind,
            name,
            named,
            media_type,
            declared_type,
            source_uri,
            body,
        } = request;
        let name = safe_name(&name);
        let created = self.clock.now();
        let bytes = match &body {
            FileBody::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            FileBody::Staged(payload) => payload.bytes,
        };
        let room = self.reserve(bytes, created)?;
        let payload = self.staged(body)?;
        let record = Record {
            id: ArtifactId::generate(),
            name,
            media_type,
            declared_type: declared_type.filter(|text| text.len() <= MAX_TYPE_BYTES),
            source_uri: source_uri.filter(|text| text.len() <= MAX_URI_BYTES),
            sha256: payload.sha256,
            owner: owner.cloned(),
        };
        let wish = Wish {
            folder: Folder::of(kind),
            name: record.name.clone(),
            named,
        };
        let entry = Entry::new(bytes, created, Some(Box::new(record))).verified();
        let location = self.publish(payload, &wish, &entry)?;
        room.fill(location.clone(), entry.clone());
        self.describe(&location, entry)
            .map(|record| record.artifact)
            .ok_or_else(StoreError::unknown)
    }

    fn reserve(&self, bytes: u64, now: SystemTime) -> Result<Room<'_>, StoreError> {
        let mut fault = None;
        for _ in 0..ROOM_TRIES {
            match self.reserve_once(bytes, now, false) {
                Reserved::Room(room) => return Ok(room),
                Reserved::Stuck(error) => fault = Some(error),
                Reserved::Full => break,
            }
        }
        // What could not be removed may go by now.
        match (self.reserve_once(bytes, now, true), fault) {
            (Reserved::Room(room), _) => Ok(room),
            (Reserved::Stuck(error), _) | (Reserved::Full, Some(error)) => {
                Err(StoreError::disk("stored", error))
            }
            (Reserved::Full, None) => Err(StoreError::over_quota(bytes, self.bounds.max_bytes)),
        }
    }

    /// Of what has to go, a file that cannot be removed keeps its room.
    fn reserve_once(&self, bytes: u64, now: SystemTime, retry: bool) -> Reserved<'_> {
        let reserved = self
            .catalogue
            .lock()
            .reserve(bytes, &self.bounds, now, retry);
        let Ok(victims) = reserved else {
            return Reserved::Full;
        };
        let room = Room { inner: self, bytes };
        match self.remove(victims, "quota") {
            (_, None) => Reserved::Room(room),
            (_, Some(error)) => {
                tracing::warn!(reason = "quota", %error, "a media file cannot be removed");
                Reserved::Stuck(error)
            }
        }
    }

    /// The bytes as a finished staging file.
    fn staged(&self, body: FileBody) -> Result<StagedPayload, StoreError> {
        let write = |bytes: Vec<u8>| {
            let mut file = self.stage()?;
            file.append(&bytes)?;
            file.complete()
        };
        match body {
            FileBody::Staged(payload) => Ok(payload),
            FileBody::Bytes(bytes) => {
                write(bytes).map_err(|error| StoreError::disk("stored", error))
            }
        }
    }

    /// Gives a staging file its name and its line in the index, or removes it.
    fn publish(
        &self,
        mut payload: StagedPayload,
        wish: &Wish,
        entry: &Entry,
    ) -> Result<Location, StoreError> {
        let stored = |error| StoreError::disk("stored", error);
        let root = self.root.make().map_err(stored)?;
        let staged = payload.path().and_then(|path| staging_name(&root, path));
        let Some(staged) = staged.map(str::to_owned) else {
            return Err(StoreError::foreign_payload());
        };
        let staging = root.directory.folder(STAGING).map_err(stored)?;
        let (file, facts) = staging.open(&staged).map_err(stored)?;
        if facts.bytes != entry.bytes {
            return Err(StoreError::changed());
        }
        // Age and use are read from the file after a restart; without it its own time counts.
        drop(file.set_modified(entry.created));
        let folder = root
            .directory
            .make_folder(wish.folder.name())
            .map_err(stored)?;
        let location = wish.claim(&folder).map_err(stored)?;
        let named = staging
            .rename(&staged, &folder, &location.file)
            .and_then(|()| if self.fsync { folder.sync() } else { Ok(()) })
            .and_then(|()| self.enter(&root, &location, entry));
        if let Err(error) = named {
            // What cannot be removed here has no line in the index and expires.
            drop(folder.remove(&location.file));
            return Err(stored(error));
        }
        drop(payload.take_path());
        Ok(location)
    }

    fn enter(&self, root: &OpenRoot<'_>, location: &Location, entry: &Entry) -> io::Result<()> {
        let line = SavedFile::of(location, entry).map(|saved| IndexLine::Saved(Box::new(saved)));
        index::append(&root.directory, line.as_slice(), self.fsync)
    }
}

/// What a file would like to be called.
struct Wish {
    folder: Folder,
    name: String,
    named: bool,
}

impl Wish {
    /// Takes a free name by making an empty file, which only the rename that follows replaces.
    fn claim(&self, folder: &Directory) -> io::Result<Location> {
        for _ in 0..NAME_TRIES {
            let location = Location::fresh(self.folder, &self.name, self.named);
            match folder.create(&location.file) {
                Ok(_) => return Ok(location),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Room<'_> {
    /// Turns the promise into the file.
    fn fill(self, location: Location, entry: Entry) {
        self.inner.catalogue.lock().insert(location, entry);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.inner.catalogue.lock().cancel(self.bytes);
    }
}

/// The name of a payload in the staging folder of this root.
fn staging_name<'a>(root: &OpenRoot<'_>, path: &'a Path) -> Option<&'a str> {
    let name = path.file_name()?.to_str()?;
    let ours = path.parent()? == root.path.join(STAGING) && is_staging_name(name);
    ours.then_some(name)
}
