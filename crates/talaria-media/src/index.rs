//! The index file: what the store holds, as JSON lines that survive a restart.
//!
//! Lines are only appended, one write each, begun and ended by a line feed: a torn line, left by
//! a full disk or a crash, spoils nothing but itself. A compaction writes the living lines to a
//! new file and renames it over the old one. Appending takes no lock against that: whoever
//! appends looks afterwards whether the file still has its name and appends again if not, and
//! the compaction carries over what reached the old file last. A line may so appear twice, which
//! changes nothing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use talaria_content::ArtifactKind;
use talaria_types::{ArtifactId, TokenName};

use crate::catalogue::{Entry, Record};
use crate::directory::{Directory, FileIdentity};
use crate::file_name::{Folder, Location};

const INDEX: &str = "index.jsonl";
const COMPACTED: &str = "index.jsonl.new";
/// A longer line is none of ours.
const MAX_LINE_BYTES: usize = 256 * 1024;
/// Compactions that may fall between an append and its check before it gives up.
const APPEND_TRIES: usize = 8;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexLine {
    /// A file was stored.
    Saved(Box<SavedFile>),
    /// A file was removed.
    Removed(ArtifactId),
}

/// A stored file. Its path follows from kind and file name, so that a root may be moved.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedFile {
    id: ArtifactId,
    kind: ArtifactKind,
    file: String,
    name: String,
    media_type: String,
    declared_type: Option<String>,
    source_uri: Option<String>,
    bytes: u64,
    sha256: String,
    owner: Option<TokenName>,
    created_ms: u64,
}

/// How far the index has been read.
#[derive(Debug, Default)]
pub(crate) struct IndexCursor {
    identity: FileIdentity,
    offset: u64,
    lines: usize,
}

impl SavedFile {
    /// The line of a file, if it is one that has an id.
    pub(crate) fn of(location: &Location, entry: &Entry) -> Option<Self> {
        let record = *entry.record.clone()?;
        Some(Self {
            id: record.id,
            kind: location.folder.kind(),
            file: location.file.as_ref().to_owned(),
            name: record.name,
            media_type: record.media_type,
            declared_type: record.declared_type,
            source_uri: record.source_uri,
            bytes: entry.bytes,
            sha256: hex::encode(record.sha256),
            owner: record.owner,
            created_ms: milliseconds(entry.created),
        })
    }

    /// The file of a line; none when the line says what this store never writes.
    pub(crate) fn into_entry(self, now: SystemTime) -> Option<(Location, Entry)> {
        let location = Location::parse(Folder::of(self.kind), &self.file)?;
        let mut sha256 = [0; 32];
        hex::decode_to_slice(&self.sha256, &mut sha256).ok()?;
        // A clock that once ran ahead must not keep a file for ever.
        let created = from_milliseconds(self.created_ms).min(now);
        let record = Record {
            id: ArtifactId::parse(self.id.as_str())?,
            name: self.name,
            media_type: self.media_type,
            declared_type: self.declared_type,
            source_uri: self.source_uri,
            sha256,
            owner: self.owner,
        };
        Some((
            location,
            Entry::new(self.bytes, created, Some(Box::new(record))),
        ))
    }
}

impl IndexCursor {
    /// Lines of the file as far as it has been read, dead and unreadable ones included.
    pub(crate) const fn lines(&self) -> usize {
        self.lines
    }

    /// Reads what was appended since the last time, by this store or another one.
    pub(crate) fn read_new(&mut self, root: &Directory) -> io::Result<Vec<IndexLine>> {
        let (mut file, facts) = match root.open(INDEX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *self = Self::default();
                return Ok(Vec::new());
            }
            opened => opened?,
        };
        let identity = FileIdentity::of(&file)?;
        if identity != self.identity || facts.bytes < self.offset {
            *self = Self {
                identity,
                ..Self::default()
            };
        }
        if facts.bytes == self.offset {
            return Ok(Vec::new());
        }
        self.read_from(&mut file)
    }

    /// Writes the living lines to a new file in place of the old one.
    ///
    /// `living` is called until it is empty; the lines that were appended to the old file
    /// meanwhile are carried over and answered.
    pub(crate) fn compact(
        &mut self,
        root: &Directory,
        mut living: impl FnMut() -> Vec<SavedFile>,
    ) -> io::Result<Vec<IndexLine>> {
        let (mut old, _) = root.open(INDEX)?;
        if FileIdentity::of(&old)? != self.identity {
            return Err(io::Error::other(
                "the index was replaced by another process",
            ));
        }
        match root.remove(COMPACTED) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut fresh = Self::default();
        let mut writer = BufWriter::new(root.create(COMPACTED)?);
        loop {
            let batch = living();
            if batch.is_empty() {
                break;
            }
            fresh.lines = fresh.lines.saturating_add(batch.len());
            let lines: Vec<_> = batch
                .into_iter()
                .map(|saved| IndexLine::Saved(Box::new(saved)))
                .collect();
            let text = encode(&lines)?;
            fresh.offset = fresh
                .offset
                .saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
            writer.write_all(&text)?;
        }
        let file = writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fresh.identity = FileIdentity::of(&file)?;
        root.rename(COMPACTED, root, INDEX)?;
        // Whoever still holds the old file sees, from here on, that it lost its name.
        let late = self.read_from(&mut old)?;
        *self = fresh;
        append(root, &late, false)?;
        Ok(late)
    }

    fn read_from(&mut self, file: &mut File) -> io::Result<Vec<IndexLine>> {
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let mut found = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
            let read = reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
            let torn = line.last() != Some(&b'\n');
            if torn && read < MAX_LINE_BYTES {
                // The end, or a line whose writer is not done: read again next time.
                return Ok(found);
            }
            self.offset = self
                .offset
                .saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.lines = self.lines.saturating_add(1);
            if let Ok(parsed) = serde_json::from_slice(&line) {
                found.push(parsed);
            }
        }
    }
}

/// Appends lines in one write.
pub(crate) fn append(root: &Directory, lines: &[IndexLine], fsync: bool) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let text = encode(lines)?;
    for _ in 0..APPEND_TRIES {
        let mut file = root.append(INDEX)?;
        file.write_all(&text)?;
        if fsync {
            file.sync_data()?;
        }
        match root.open(INDEX) {
            Ok((named, _)) if FileIdentity::of(&named)? == FileIdentity::of(&file)? => {
                return Ok(());
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Err(io::Error::other("the index is replaced again and again"))
}

/// Milliseconds since the epoch, the precision of the index.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time of that many milliseconds since the epoch.
pub(crate) fn from_milliseconds(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(milliseconds))
        .unwrap_or(UNIX_EPOCH)
}

fn encode(lines: &[IndexLine]) -> io::Result<Vec<u8>> {
    let mut text = vec![b'\n'];
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    Ok(text)
}
