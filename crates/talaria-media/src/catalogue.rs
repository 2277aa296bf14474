//! What the store holds, in memory: every file, its age and use, and what must go first.
//!
//! No I/O and no clock; the store holds it under a lock for short sections.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use talaria_types::{ArtifactId, TokenName};

use crate::file_name::Location;

/// The bounds of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) max_bytes: u64,
    pub(crate) max_files: usize,
    pub(crate) ttl: Duration,
    pub(crate) grace: Duration,
    /// Dead index lines that are worth a compaction while the store runs.
    pub(crate) dead_lines: usize,
}

/// All files of the store.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    entries: HashMap<Location, Entry>,
    ids: HashMap<ArtifactId, Location>,
    /// Oldest use first.
    by_use: BTreeSet<(SystemTime, Location)>,
    bytes: u64,
    /// Room promised to saves that run.
    reserved_bytes: u64,
    reserved_files: usize,
    scan: u64,
}

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) bytes: u64,
    pub(crate) created: SystemTime,
    pub(crate) used: SystemTime,
    /// None for a file the index does not know: it counts and expires, and nobody can ask for it.
    pub(crate) record: Option<Box<Record>>,
    /// Whether the file itself was seen to be what the index says.
    pub(crate) verified: bool,
    /// Whether it could not be removed; then others go before it.
    stuck: bool,
    leases: usize,
    scan: u64,
}

/// What the index knows of a file besides its place, size and age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: ArtifactId,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) declared_type: Option<String>,
    pub(crate) source_uri: Option<String>,
    pub(crate) sha256: [u8; 32],
    pub(crate) owner: Option<TokenName>,
}

/// Not even removing everything that may be removed makes enough room.
#[derive(Debug)]
pub(crate) struct NoRoom;

/// Files taken out of the catalogue, to be removed from the disk.
pub(crate) type Victims = Vec<(Location, Entry)>;

impl Entry {
    pub(crate) const fn new(bytes: u64, created: SystemTime, record: Option<Box<Record>>) -> Self {
        Self {
            bytes,
            created,
            used: created,
            record,
            verified: false,
            stuck: false,
            leases: 0,
            scan: 0,
        }
    }

    pub(crate) const fn stuck(mut self) -> Self {
        self.stuck = true;
        self
    }

    pub(crate) const fn verified(mut self) -> Self {
        self.verified = true;
        self
    }

    /// A file in its grace time or open for reading stays.
    fn removable(&self, now: SystemTime, grace: Duration) -> bool {
        self.leases == 0 && age(self.created, now) >= grace
    }
}

impl Catalogue {
    pub(crate) fn files(&self) -> usize {
        self.entries.len()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Files that have an id.
    pub(crate) fn recorded(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn get(&self, location: &Location) -> Option<&Entry> {
        self.entries.get(location)
    }

    pub(crate) fn find(&self, id: &ArtifactId) -> Option<(&Location, &Entry)> {
        let location = self.ids.get(id)?;
        Some((location, self.entries.get(location)?))
    }

    pub(crate) fn locations(&self) -> Vec<Location> {
        self.entries.keys().cloned().collect()
    }

    /// Puts a file in; one that was there under the same name is forgotten.
    pub(crate) fn insert(&mut self, location: Location, mut entry: Entry) {
        drop(self.take(&location));
        entry.scan = self.scan;
        self.bytes = self.bytes.saturating_add(entry.bytes);
        self.by_use.insert((entry.used, location.clone()));
        if let Some(record) = &entry.record {
            self.ids.insert(record.id.clone(), location.clone());
        }
        self.entries.insert(location, entry);
    }

    /// Takes a file out.
    pub(crate) fn take(&mut self, location: &Location) -> Option<Entry> {
        let entry = self.entries.remove(location)?;
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        self.by_use.remove(&(entry.used, location.clone()));
        if let Some(record) = &entry.record {
            self.ids.remove(&record.id);
        }
        Some(entry)
    }

    /// Takes a file out by its id.
    pub(crate) fn take_id(&mut self, id: &ArtifactId) -> Option<(Location, Entry)> {
        let location = self.ids.get(id)?.clone();
        let entry = self.take(&location)?;
        Some((location, entry))
    }

    /// Counts a reader, which also counts as use.
    pub(crate) fn lease(&mut self, id: &ArtifactId, now: SystemTime) -> Option<(Location, Entry)> {
        let location = self.ids.get(id)?.clone();
        let entry = self.entries.get_mut(&location)?;
        entry.leases = entry.leases.saturating_add(1);
        self.by_use.remove(&(entry.used, location.clone()));
        entry.used = entry.used.max(now);
        self.by_use.insert((entry.used, location.clone()));
        Some((location, entry.clone()))
    }

    /// A reader is done.
    pub(crate) fn release(&mut self, location: &Location) {
        if let Some(entry) = self.entries.get_mut(location) {
            entry.leases = entry.leases.saturating_sub(1);
        }
    }

    /// Promises room for one file and takes out what must go for it. Files that could not be
    /// removed before are tried again only if `retry` says so.
    pub(crate) fn reserve(
        &mut self,
        bytes: u64,
        bounds: &Bounds,
        now: SystemTime,
        retry: bool,
    ) -> Result<Victims, NoRoom> {
        let (victims, enough) = self.pick((bytes, 1), bounds, now, retry);
        if !enough {
            return Err(NoRoom);
        }
        self.reserved_bytes = self.reserved_bytes.saturating_add(bytes);
        self.reserved_files = self.reserved_files.saturating_add(1);
        Ok(self.take_all(victims))
    }

    /// Gives a promise of room back.
    pub(crate) fn cancel(&mut self, bytes: u64) {
        self.reserved_bytes = self.reserved_bytes.saturating_sub(bytes);
        self.reserved_files = self.reserved_files.saturating_sub(1);
    }

    /// Takes out what is older than its time to live.
    pub(crate) fn take_expired(&mut self, bounds: &Bounds, now: SystemTime) -> Victims {
        let expired = self
            .entries
            .iter()
            .filter(|(_, entry)| age(entry.created, now) > bounds.ttl)
            .filter(|(_, entry)| entry.removable(now, bounds.grace))
            .map(|(location, _)| location.clone())
            .collect();
        self.take_all(expired)
    }

    /// Takes out what is over the quota, as far as it may be removed.
    pub(crate) fn take_excess(&mut self, bounds: &Bounds, now: SystemTime) -> Victims {
        let (victims, _) = self.pick((0, 0), bounds, now, true);
        self.take_all(victims)
    }

    /// Begins a comparison with the disk: what is inserted from now on counts as seen.
    pub(crate) fn begin_scan(&mut self) {
        self.scan = self.scan.wrapping_add(1);
    }

    /// Notes that a file is there. Answers whether its facts must still be read.
    pub(crate) fn seen(&mut self, location: &Location) -> bool {
        let scan = self.scan;
        match self.entries.get_mut(location) {
            Some(entry) => {
                entry.scan = scan;
                !entry.verified
            }
            None => true,
        }
    }

    /// Forgets files of a folder that were not seen in this scan; says how many.
    pub(crate) fn forget_unseen(&mut self, folder: crate::file_name::Folder) -> usize {
        let vanished: Vec<_> = self
            .entries
            .iter()
            .filter(|(location, entry)| location.folder == folder && entry.scan != self.scan)
            .map(|(location, _)| location.clone())
            .collect();
        self.take_all(vanished).len()
    }

    /// The least recently used removable files that make room, and whether they are enough.
    fn pick(
        &self,
        (bytes, files): (u64, usize),
        bounds: &Bounds,
        now: SystemTime,
        retry: bool,
    ) -> (Vec<Location>, bool) {
        let wanted = self
            .bytes
            .saturating_add(self.reserved_bytes)
            .saturating_add(bytes);
        let mut excess_bytes = wanted.saturating_sub(bounds.max_bytes);
        let wanted = self
            .entries
            .len()
            .saturating_add(self.reserved_files)
            .saturating_add(files);
        let mut excess_files = wanted.saturating_sub(bounds.max_files);
        let mut picked = Vec::new();
        let by_use = || {
            let locations = self.by_use.iter().map(|(_, location)| location);
            locations.filter_map(|location| Some((location, self.entries.get(location)?)))
        };
        let fresh = by_use().filter(|(_, entry)| !entry.stuck);
        let stuck = by_use().filter(|(_, entry)| entry.stuck && retry);
        for (location, entry) in fresh.chain(stuck) {
            if excess_bytes == 0 && excess_files == 0 {
                break;
            }
            if entry.removable(now, bounds.grace) {
                excess_bytes = excess_bytes.saturating_sub(entry.bytes);
                excess_files = excess_files.saturating_sub(1);
                picked.push(location.clone());
            }
        }
        (picked, excess_bytes == 0 && excess_files == 0)
    }

    fn take_all(&mut self, locations: Vec<Location>) -> Victims {
        locations
            .into_iter()
            .filter_map(|location| self.take(&location).map(|entry| (location, entry)))
            .collect()
    }
}

/// How long ago; nothing when the clock was set back.
pub(crate) fn age(then: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(then).unwrap_or_default()
}
