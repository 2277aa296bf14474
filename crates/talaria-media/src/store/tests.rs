//! The store on a real directory with a clock that is set by hand.

mod attacks;
mod layout;
mod model;
mod removal;
mod restart;
mod sharing;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use talaria_content::{Artifact, ArtifactKind, FileBody, FileRequest};
use talaria_types::{ArtifactId, ErrorCode, PayloadSink};
use tempfile::TempDir;

use super::{Clock, MediaOptions, MediaStore, StoreError};
use crate::catalogue::Bounds;
use crate::index::{from_milliseconds, milliseconds};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A home directory, a clock and the bounds of stores opened there.
struct Bench {
    home: TempDir,
    clock: Arc<AtomicU64>,
    bounds: Bounds,
    fsync: bool,
}

impl Bench {
    fn new() -> Self {
        let now = milliseconds(talaria_types::runtime::wall_clock());
        Self {
            home: TempDir::new().unwrap(),
            clock: Arc::new(AtomicU64::new(now)),
            bounds: Bounds {
                max_bytes: 1_000_000,
                max_files: 100,
                ttl: 24 * HOUR,
                grace: 10 * MINUTE,
                dead_lines: 8,
            },
            fsync: false,
        }
    }

    fn root(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("cache")
    }

    fn open(&self) -> MediaStore {
        let options = MediaOptions {
            root: self.home.path().join("cache"),
            max_bytes: self.bounds.max_bytes,
            ttl: self.bounds.ttl,
            grace: self.bounds.grace,
            fsync: self.fsync,
            base_url: Some("http://127.0.0.1:8700/".to_owned()),
        };
        MediaStore::open_with(options, self.bounds, Clock::Set(Arc::clone(&self.clock)))
    }

    fn now(&self) -> SystemTime {
        from_milliseconds(self.clock.load(Ordering::SeqCst))
    }

    fn pass(&self, time: Duration) {
        self.clock
            .fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    fn index(&self) -> String {
        fs::read_to_string(self.root().join("index.jsonl")).unwrap()
    }

    /// Names in a folder, hidden ones and all.
    fn listing(&self, folder: &str) -> Vec<String> {
        names(&self.root().join(folder))
    }
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn request(kind: ArtifactKind, name: &str, bytes: &[u8]) -> FileRequest {
    FileRequest {
        kind,
        name: name.to_owned(),
        named: true,
        media_type: "application/pdf".to_owned(),
        declared_type: Some("application/x-pdf".to_owned()),
        source_uri: Some("x://h/a.pdf".to_owned()),
        body: FileBody::Bytes(bytes.to_vec()),
    }
}

fn document(name: &str, bytes: &[u8]) -> FileRequest {
    request(ArtifactKind::Document, name, bytes)
}

fn staged(store: &MediaStore, bytes: &[u8]) -> talaria_types::StagedPayload {
    let mut writer = store.begin().unwrap();
    for piece in bytes.chunks(1000) {
        writer.write(piece).unwrap();
    }
    writer.finish().unwrap()
}

fn save(store: &MediaStore, bytes: &[u8]) -> Artifact {
    store.save(document("a.pdf", bytes), None).unwrap()
}

fn content(store: &MediaStore, id: &ArtifactId) -> Vec<u8> {
    let mut bytes = Vec::new();
    store
        .read(id)
        .unwrap()
        .file
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn code<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> ErrorCode {
    outcome.unwrap_err().code
}
