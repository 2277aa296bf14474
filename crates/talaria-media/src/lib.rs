//! The media store: names, atomic writes, quota, expiry, an index that survives restart.
//!
//! Every method may block on the disk; callers run them on a blocking pool.
//! Nothing here knows HTTP or MCP; the wire layer writes through [`talaria_types::PayloadSink`],
//! deliveries are saved with [`MediaStore::save`], and `GET /v1/artifacts/{id}` reads with
//! [`MediaStore::read`].
//!
//! # Layout
//!
//! The root is `<home>/cache`; it is made when missing, and made again when it was removed.
//!
//! | Path below the root | What it is |
//! |---|---|
//! | `images/img_<12 hex>.png` | pictures |
//! | `audio/audio_<12 hex>.wav` | sound |
//! | `documents/doc_<12 hex>_<name>` | everything else |
//! | `spillover/text_<12 hex>.txt` | long text moved out of a result |
//! | `staging/stage_<ULID>` | files being written |
//! | `index.jsonl` | what is stored: one JSON object per line |
//! | `index.lock` | held (`flock`) by the store that compacts the index |
//!
//! [`PrivateFile`]s of others may stand beside these.
//!
//! Any kind carries `_<name>` when the server named the file, and only the extension when not.
//! A name is at most 200 bytes; with its prefix it stays under 255.
//! Two files never share a name, and equal contents are stored twice.
//! Other files in these folders are not counted, not removed and not served.
//!
//! # Permissions
//!
//! Files are made with mode 0600 and folders with mode 0700, so an agent on the same machine
//! that opens a path must run as the same user, or fetch the artifact's URL instead.
//! All folders must be on one file system.
//! Every access below the root is relative to an open directory and follows no symbolic link:
//! a folder, a file or the index replaced by a link is refused, whatever it points to.
//! The root itself and what lies above it may be links; paths are reported canonical.
//!
//! # Writing
//!
//! A file is written whole in `staging` (flushed to the disk when `media.fsync` is set), gets
//! its name by a rename, and then its line in the index; only then is it reported.
//! A disk that is full, read-only or missing costs that file, with code `media_unavailable` and
//! the reason in words; nothing is left behind and the next save tries afresh.
//!
//! # Quota and expiry
//!
//! * A file older than `media.ttl` is removed by the next sweep, however often it is read.
//! * Over `media.max_bytes`, or over 250,000 files (each costs about a kilobyte of memory), the
//!   least recently used go first. Reading an artifact counts as use, and the time of use is
//!   kept as the file's modification time.
//! * A save that finds no room makes some the same way. When it cannot, it removes nothing and
//!   fails with `media_unavailable`, the quota named in the detail.
//! * A file younger than `media.grace`, or open for reading, is never removed, except by
//!   `DELETE /v1/artifacts/{id}`, which removes at once; whoever reads it then reads on.
//! * Hence the quota must hold what is stored within one grace time.
//!
//! # Recovery
//!
//! The index is read at start and compared with the folders there and at each sweep.
//! A torn or foreign line is skipped, and a line whose file is gone is dropped.
//! A file without a line (a crash between its name and its line), or one of another size than
//! its line says (a power failure without `fsync`), is not served; it counts against the quota
//! and expires by its modification time.
//! Staging files older than the grace time are removed.
//! The index is compacted at start, and later when most of it is dead.
//! Losing `index.jsonl` loses the ids of what is stored, not the files before they expire.
//! A root may be moved or restored elsewhere while nothing runs on it.
//!
//! # Several processes on one root
//!
//! A second process (a `talaria` command beside the service) may open the same root: it reads
//! and saves like the first, and each sees what the other stored.
//! Only the process that holds `index.lock` compacts the index.
//! Both keep the quota; a file that one of them reads may be removed by the other, and the
//! reader reads on.

mod catalogue;
mod directory;
mod error;
mod file_name;
mod index;
mod local;
mod private_file;
mod root;
mod staging;
mod store;

pub use error::StoreError;
pub use local::{AllowedRoots, LocalFile};
pub use private_file::PrivateFile;
pub use store::{ArtifactRecord, MediaOptions, MediaStore, OpenArtifact, SweepReport};
