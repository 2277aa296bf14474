//! Upkeep: comparing with the disk, expiry, quota, stale staging files, compaction.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::time::SystemTime;

use talaria_telemetry::events;

use super::{Inner, SweepReport};
use crate::catalogue::{Entry, Victims, age};
use crate::directory::{Directory, FileFacts, FileIdentity};
use crate::error::StoreError;
use crate::file_name::{Folder, Location};
use crate::index::{self, IndexLine, SavedFile};
use crate::root::OpenRoot;
use crate::staging::{STAGING, is_staging_name};

const LOCK: &str = "index.lock";
/// Files handled in one go under the lock.
const BATCH: usize = 1024;

/// What was really removed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Discarded {
    files: usize,
    bytes: u64,
}

impl Inner {
    /// Reads what an earlier run left. A root that cannot be used is reported and tried again.
    pub(super) fn start(&self) {
        let now = self.clock.now();
        let started = self.root.make().and_then(|root| {
            let mut lock = self.upkeep.lock();
            self.compare(&root, now)?;
            self.compact_if(&root, &mut lock, |lines, living| lines > living)
        });
        if let Err(error) = started {
            StoreError::disk("stored", error).report();
        }
        self.report_usage();
    }

    pub(super) fn sweep(&self, now: SystemTime) -> SweepReport {
        let mut lock = self.upkeep.lock();
        let root = self.root.open();
        match &root {
            Ok(root) => note(self.compare(root, now), "compare"),
            Err(error) => tracing::debug!(%error, "media root cannot be opened"),
        }
        let victims = self.catalogue.lock().take_expired(&self.bounds, now);
        let expired = self.remove_quietly(victims, "expired");
        let victims = self.catalogue.lock().take_excess(&self.bounds, now);
        let evicted = self.remove_quietly(victims, "quota");
        if let Ok(root) = &root {
            let slack = self.bounds.dead_lines;
            let mostly_dead = |lines: usize, living: usize| {
                lines > living.saturating_mul(2).saturating_add(slack)
            };
            note(self.compact_if(root, &mut lock, mostly_dead), "compact");
        }
        self.report_usage();
        SweepReport {
            expired: expired.files,
            evicted: evicted.files,
            bytes: expired.bytes.saturating_add(evicted.bytes),
        }
    }

    /// Removes files that were taken out of the catalogue; what cannot be removed goes back.
    pub(super) fn discard(
        &self,
        victims: Victims,
        reason: &'static str,
    ) -> Result<Discarded, StoreError> {
        let (discarded, fault) = self.remove(victims, reason);
        match fault {
            None => Ok(discarded),
            Some(error) => Err(StoreError::disk("removed", error)),
        }
    }

    fn remove_quietly(&self, victims: Victims, reason: &'static str) -> Discarded {
        let (discarded, fault) = self.remove(victims, reason);
        if let Some(error) = fault {
            tracing::warn!(reason, %error, "a media file cannot be removed");
        }
        discarded
    }

    pub(super) fn remove(
        &self,
        victims: Victims,
        reason: &'static str,
    ) -> (Discarded, Option<io::Error>) {
        let mut discarded = Discarded::default();
        if victims.is_empty() {
            return (discarded, None);
        }
        let root = match self.root.open() {
            Ok(root) => root,
            Err(error) => {
                self.put_back(victims);
                return (discarded, Some(error));
            }
        };
        let mut fault = None;
        let mut kept = Vec::new();
        let mut lines = Vec::new();
        let mut folders = BTreeMap::new();
        for (location, entry) in victims {
            match remove_file(&root.directory, &mut folders, &location) {
                Ok(()) => {
                    discarded.files = discarded.files.saturating_add(1);
                    discarded.bytes = discarded.bytes.saturating_add(entry.bytes);
                    lines.extend(entry.record.map(|record| IndexLine::Removed(record.id)));
                }
                Err(error) => {
                    fault = Some(error);
                    kept.push((location, entry));
                }
            }
        }
        self.put_back(kept);
        // Without these lines the files are missed at the next comparison with the disk.
        note(index::append(&root.directory, &lines, false), "append");
        if discarded.files > 0 {
            events::media_removed(reason, discarded.files, discarded.bytes);
        }
        (discarded, fault)
    }

    fn put_back(&self, entries: Victims) {
        let mut catalogue = self.catalogue.lock();
        for (location, entry) in entries {
            catalogue.insert(location, entry.stuck());
        }
    }

    /// Brings the catalogue in line with the index and the disk.
    fn compare(&self, root: &OpenRoot<'_>, now: SystemTime) -> io::Result<()> {
        self.refresh()?;
        self.catalogue.lock().begin_scan();
        for folder in Folder::ALL {
            match root.directory.folder(folder.name()) {
                Ok(directory) => self.compare_folder(folder, &directory, now)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.catalogue.lock().forget_unseen(folder);
                }
                // Unreadable is not gone: the files may come back with the folder.
                Err(error) => note(Err(error), folder.name()),
            }
        }
        self.clear_staging(root, now)
    }

    fn compare_folder(
        &self,
        folder: Folder,
        directory: &Directory,
        now: SystemTime,
    ) -> io::Result<()> {
        let names = directory.names()?;
        for batch in names.chunks(BATCH) {
            let unread: Vec<_> = {
                let mut catalogue = self.catalogue.lock();
                batch
                    .iter()
                    .filter_map(|name| Location::parse(folder, name))
                    .filter(|location| catalogue.seen(location))
                    .collect()
            };
            let read: Vec<_> = unread
                .into_iter()
                .filter_map(|location| Some((directory.facts(&location.file).ok()?, location)))
                .collect();
            let mut catalogue = self.catalogue.lock();
            for (facts, location) in read {
                let known = catalogue.take(&location);
                if let Some(entry) = confirmed(known, facts, now) {
                    catalogue.insert(location, entry);
                }
            }
        }
        let vanished = self.catalogue.lock().forget_unseen(folder);
        if vanished > 0 {
            tracing::info!(folder = folder.name(), vanished, "media files vanished");
        }
        Ok(())
    }

    /// Removes what crashes left in the staging folder.
    fn clear_staging(&self, root: &OpenRoot<'_>, now: SystemTime) -> io::Result<()> {
        let staging = match root.directory.folder(STAGING) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        for name in staging.names()?.iter().filter(|name| is_staging_name(name)) {
            let stale = staging
                .facts(name)
                .is_ok_and(|facts| age(facts.modified, now) > self.bounds.grace);
            if stale {
                note(staging.remove(name), "clear staging");
            }
        }
        Ok(())
    }

    /// Compacts the index when `worth` says so of its lines and the files that live.
    fn compact_if(
        &self,
        root: &OpenRoot<'_>,
        lock: &mut Option<File>,
        worth: impl Fn(usize, usize) -> bool,
    ) -> io::Result<()> {
        let mut cursor = self.cursor.lock();
        self.apply(cursor.read_new(&root.directory)?);
        let living = self.catalogue.lock().recorded();
        if !holds_lock(&root.directory, lock)? || !worth(cursor.lines(), living) {
            return Ok(());
        }
        let mut locations = self.catalogue.lock().locations();
        let late = cursor.compact(&root.directory, || self.next_batch(&mut locations))?;
        self.apply(late);
        Ok(())
    }

    /// The next lines to write; empty only when there are no more.
    fn next_batch(&self, locations: &mut Vec<Location>) -> Vec<SavedFile> {
        while !locations.is_empty() {
            let batch = locations.split_off(locations.len().saturating_sub(BATCH));
            let catalogue = self.catalogue.lock();
            let lines: Vec<_> = batch
                .iter()
                .filter_map(|location| SavedFile::of(location, catalogue.get(location)?))
                .collect();
            if !lines.is_empty() {
                return lines;
            }
        }
        Vec::new()
    }
}

/// The entry of a file that is there, by what the index says and what the disk says.
fn confirmed(known: Option<Entry>, facts: FileFacts, now: SystemTime) -> Option<Entry> {
    let modified = facts.modified.min(now);
    match known {
        Some(entry) if entry.verified => Some(entry),
        Some(mut entry) if facts.regular && facts.bytes == entry.bytes => {
            entry.used = entry.created.max(modified);
            Some(entry.verified())
        }
        // Without a line, or cut short by a power failure: it counts until it expires.
        Some(_) | None => facts
            .regular
            .then(|| Entry::new(facts.bytes, modified, None).verified()),
    }
}

fn remove_file(
    root: &Directory,
    folders: &mut BTreeMap<Folder, Directory>,
    location: &Location,
) -> io::Result<()> {
    let folder = match folders.entry(location.folder) {
        std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
        std::collections::btree_map::Entry::Vacant(entry) => {
            entry.insert(root.folder(location.folder.name())?)
        }
    };
    match folder.remove(&location.file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Whether this store is the one that compacts; takes the lock when it is free.
fn holds_lock(root: &Directory, lock: &mut Option<File>) -> io::Result<bool> {
    let named = root.lock_file(LOCK)?;
    if let Some(held) = lock
        && FileIdentity::of(held)? == FileIdentity::of(&named)?
    {
        return Ok(true);
    }
    // A lock file that lost its name, with the root perhaps, locks nothing any more.
    *lock = None;
    match named.try_lock() {
        Ok(()) => {
            *lock = Some(named);
            Ok(true)
        }
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn note(outcome: io::Result<()>, step: &'static str) {
    if let Err(error) = outcome {
        tracing::warn!(step, %error, "media upkeep step failed");
    }
}
