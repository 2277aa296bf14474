//! What a reload did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What reading the configuration again changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadReport {
    /// Servers that are new.
    pub added: Vec<String>,
    /// Servers that are configured no more. Their calls end, then they stop.
    pub removed: Vec<String>,
    /// Servers whose entry changed. Their calls end, then they start again.
    pub changed: Vec<String>,
    /// How many servers were left alone.
    pub unchanged: usize,
    /// Entries that cannot be used.
    pub broken: Vec<BrokenServer>,
    /// Keys outside `mcp_servers` that differ from what runs, and count after a restart only.
    pub restart_required: Vec<String>,
    /// What else is odd about the file.
    pub warnings: Vec<String>,
}

impl ReloadReport {
    /// Whether the servers are what they were.
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// An entry of `mcp_servers` that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrokenServer {
    /// Its name.
    pub server: String,
    /// What is wrong, with the key path.
    pub problem: String,
    /// Whether the server goes on as it was configured before.
    pub kept: bool,
}
