//! What a scripted server received: the bytes on the wire that tests assert on.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing received.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    /// Process that received it.
    pub pid: u32,
    /// What it is.
    pub kind: RecordKind,
    /// The JSON-RPC message, or null.
    pub message: Value,
    /// HTTP headers, names in lower case; `:target` is what the request line asked for.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// What a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// The server started.
    Started,
    /// A JSON-RPC message came in.
    Message,
    /// A line or body came in that is not JSON.
    Garbage,
    /// An HTTP GET came in.
    Get,
    /// An HTTP DELETE came in.
    Delete,
    /// The client closed the connection before its answer was complete.
    Disconnected,
}

impl Record {
    /// The method of the message.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        self.message.get("method")?.as_str()
    }

    /// Whether it concerns a call of this tool: the call itself, or the loss of its connection.
    #[must_use]
    pub fn calls(&self, tool: &str) -> bool {
        self.method() == Some("tools/call")
            && self.message.pointer("/params/name").and_then(Value::as_str) == Some(tool)
    }
}

/// The records of one server, in memory and, when wanted, in a file that outlives it.
#[derive(Clone, Debug, Default)]
pub struct Records {
    memory: Arc<Mutex<Vec<Record>>>,
    file: Option<PathBuf>,
}

impl Records {
    /// Records that go on where the file stands; without a file they live in memory only.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn open(file: Option<&Path>) -> anyhow::Result<Self> {
        let memory = match file {
            Some(path) if path.exists() => read(path)?,
            Some(_) | None => Vec::new(),
        };
        Ok(Self {
            memory: Arc::new(Mutex::new(memory)),
            file: file.map(Path::to_owned),
        })
    }

    /// Adds one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(
        &self,
        kind: RecordKind,
        message: Value,
        headers: BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let record = Record {
            at_ms: epoch_ms(),
            pid: std::process::id(),
            kind,
            message,
            headers,
        };
        if let Some(path) = &self.file {
            let mut line = serde_json::to_vec(&record)?;
            line.push(b'\n');
            let mut file = OpenOptions::new().create(true).append(true).open(path)?;
            file.write_all(&line)?;
        }
        self.memory.lock().push(record);
        Ok(())
    }

    /// All so far.
    #[must_use]
    pub fn all(&self) -> Vec<Record> {
        self.memory.lock().clone()
    }

    /// How many calls of a tool there were so far.
    #[must_use]
    pub fn calls_of(&self, tool: &str) -> usize {
        self.memory
            .lock()
            .iter()
            .filter(|record| record.kind == RecordKind::Message && record.calls(tool))
            .count()
    }

    /// How many messages with this method there were so far.
    #[must_use]
    pub fn count_of(&self, method: &str) -> usize {
        self.memory
            .lock()
            .iter()
            .filter(|record| record.kind == RecordKind::Message && record.method() == Some(method))
            .count()
    }
}

/// Reads the records another process wrote; none when the file is not there yet.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> anyhow::Result<Vec<Record>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
    };
    // The last line may still be being written.
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    complete
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("parse {line}")))
        .collect()
}

fn epoch_ms() -> u64 {
    let since = talaria_types::runtime::wall_clock().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or(Duration::ZERO).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_disconnection_is_not_counted_as_another_call() {
        let records = Records::open(None).unwrap();
        let call = json!({"method": "tools/call", "params": {"name": "t"}});
        for kind in [RecordKind::Message, RecordKind::Disconnected] {
            records.add(kind, call.clone(), BTreeMap::new()).unwrap();
        }
        assert_eq!(
            (records.calls_of("t"), records.count_of("tools/call")),
            (1, 1)
        );
        assert_eq!(records.all().len(), 2);
    }
}
