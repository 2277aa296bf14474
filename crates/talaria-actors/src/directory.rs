//! The published table of tools: public name to server and raw name.
//!
//! Read by every call without a lock of ours; written when a server's list arrives. Routing goes
//! by this table, never by splitting a name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use talaria_config::NamePrefix;
use talaria_content::ReaderTool;
use talaria_types::{ErrorCode, Failure, ServerName};

use crate::server::ServerHandle;

pub(crate) mod definition;
pub(crate) mod filter;
pub(crate) mod naming;

use naming::Namespace;

/// A tool as callers see it.
#[derive(Clone, Debug)]
pub struct PublicTool {
    /// Public name, at most 64 characters.
    pub name: String,
    /// Server that has it.
    pub server: ServerName,
    /// Raw name on that server, or the utility.
    pub target: ToolTarget,
    /// The definition in the MCP shape (`name`, `description`, `inputSchema`, …), sanitised.
    pub definition: Value,
}

/// What a public name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolTarget {
    /// A tool of the server, by its raw name.
    Tool(String),
    /// One of our utilities over the server's resources and prompts.
    Utility(Utility),
}

impl ToolTarget {
    /// The raw tool name, or the utility's own.
    #[must_use]
    pub fn raw_name(&self) -> &str {
        match self {
            Self::Tool(name) => name,
            Self::Utility(utility) => utility.as_str(),
        }
    }
}

/// The utility tools (specification 1.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Utility {
    /// `…__list_resources`.
    ListResources,
    /// `…__read_resource`.
    ReadResource,
    /// `…__list_prompts`.
    ListPrompts,
    /// `…__get_prompt`.
    GetPrompt,
}

impl Utility {
    /// The last part of the public name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }
}

/// A tool before it has a public name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolDraft {
    /// What it stands for.
    pub(crate) target: ToolTarget,
    /// Whether it declares `readOnlyHint` exactly `true`.
    pub(crate) read_only: bool,
    /// The sanitised definition without its name.
    pub(crate) definition: Map<String, Value>,
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What callers see.
    pub(crate) tool: PublicTool,
    /// Whether it may run twice.
    pub(crate) read_only: bool,
    /// Where calls go.
    pub(crate) server: ServerHandle,
}

/// What a new list changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Public names that are new.
    pub(crate) added: Vec<String>,
    /// Public names that are gone.
    pub(crate) removed: Vec<String>,
}

/// The table itself.
pub(crate) struct Directory {
    entries: DashMap<String, Arc<Entry>>,
    servers: DashMap<ServerName, ServerHandle>,
    listings: DashMap<ServerName, Listing>,
    namespace: Namespace,
    /// Names are given out one server at a time; held for the table update only.
    writing: Mutex<()>,
    draining: AtomicBool,
}

/// What one server offers.
#[derive(Debug)]
struct Listing {
    /// Raw name to public name.
    public: BTreeMap<String, String>,
    reader: ReaderTool,
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory")
            .field("tools", &self.entries.len())
            .field("servers", &self.servers.len())
            .finish_non_exhaustive()
    }
}

impl Directory {
    /// An empty table for the configured servers.
    pub(crate) fn new(namespace: Namespace) -> Self {
        Self {
            entries: DashMap::new(),
            servers: DashMap::new(),
            listings: DashMap::new(),
            namespace,
            writing: Mutex::new(()),
            draining: AtomicBool::new(false),
        }
    }

    /// Makes a server known.
    pub(crate) fn add_server(&self, server: ServerHandle) {
        self.servers.insert(server.name().clone(), server);
    }

    /// Finds a server.
    pub(crate) fn server(&self, name: &str) -> Option<ServerHandle> {
        self.servers
            .get(&ServerName::from(name))
            .map(|server| server.value().clone())
    }

    /// Every server, by name.
    pub(crate) fn servers(&self) -> Vec<ServerHandle> {
        let mut servers: Vec<_> = self
            .servers
            .iter()
            .map(|server| server.value().clone())
            .collect();
        servers.sort_by(|a, b| a.name().cmp(b.name()));
        servers
    }

    /// Finds a tool by its public name.
    pub(crate) fn find(&self, public_name: &str) -> Option<Arc<Entry>> {
        self.entries
            .get(public_name)
            .map(|entry| Arc::clone(entry.value()))
    }

    /// Finds a tool by server and raw name.
    pub(crate) fn find_raw(&self, server: &ServerName, raw: &str) -> Option<Arc<Entry>> {
        let public = self.listings.get(server)?.public.get(raw)?.clone();
        self.find(&public)
    }

    /// Every tool, by public name.
    pub(crate) fn tools(&self) -> Vec<Arc<Entry>> {
        let mut entries: Vec<_> = self
            .entries
            .iter()
            .map(|entry| Arc::clone(entry.value()))
            .collect();
        entries.sort_by(|a, b| a.tool.name.cmp(&b.tool.name));
        entries
    }

    /// The tool that reads a server's resources.
    pub(crate) fn reader(&self, server: &ServerName) -> ReaderTool {
        self.listings
            .get(server)
            .map_or(ReaderTool::Missing, |listing| listing.reader.clone())
    }

    /// The servers that may bring a public name that is not in the table.
    pub(crate) fn likely_servers(&self, public_name: &str) -> Vec<ServerHandle> {
        let owner = self.namespace.owner(public_name);
        let mut likely: Vec<_> = owner
            .and_then(|owner| self.server(owner.as_str()))
            .into_iter()
            .collect();
        likely.extend(
            self.servers()
                .into_iter()
                .filter(|server| server.prefix() == NamePrefix::None),
        );
        likely
    }

    /// Refuses new calls from now on.
    pub(crate) fn begin_drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// `shutting_down` once draining has begun.
    ///
    /// # Errors
    /// That one.
    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.draining.load(Ordering::Acquire) {
            return Err(Failure::new(
                ErrorCode::ShuttingDown,
                "Talaria is shutting down and takes no new calls; try again in a moment",
            ));
        }
        Ok(())
    }

    /// Puts a server's list in place of its old one. Tools that stay are never missing meanwhile.
    ///
    /// A tool of the server's own that is called `read_resource` reads its resources only where
    /// the server advertises some.
    pub(crate) fn publish(
        &self,
        server: &ServerHandle,
        drafts: Vec<ToolDraft>,
        resources: bool,
    ) -> Change {
        let _writing = self.writing.lock();
        let name = server.name();
        let taken_by_others = |candidate: &str| {
            self.entries
                .get(candidate)
                .is_some_and(|entry| entry.tool.server != *name)
        };
        let named = naming::assign(
            &self.namespace,
            name,
            server.prefix(),
            drafts,
            taken_by_others,
        );

        let before = self.public_names(name);
        let mut after = BTreeSet::new();
        let mut public = BTreeMap::new();
        let mut reader = ReaderTool::Missing;
        for (public_name, draft) in named {
            let raw = draft.target.raw_name().to_owned();
            if resources && raw == Utility::ReadResource.as_str() {
                reader = ReaderTool::Registered(public_name.clone());
            }
            public.insert(raw, public_name.clone());
            after.insert(public_name.clone());
            let entry = entry(server, public_name.clone(), draft);
            self.entries.insert(public_name, Arc::new(entry));
        }
        for gone in before.difference(&after) {
            self.entries.remove(gone);
        }
        self.listings
            .insert(name.clone(), Listing { public, reader });
        Change {
            added: after.difference(&before).cloned().collect(),
            removed: before.difference(&after).cloned().collect(),
        }
    }

    /// Takes a server's tools out of the table.
    pub(crate) fn withdraw(&self, server: &ServerName) -> Change {
        let _writing = self.writing.lock();
        let before = self.public_names(server);
        for gone in &before {
            self.entries.remove(gone);
        }
        self.listings.remove(server);
        Change {
            added: Vec::new(),
            removed: before.into_iter().collect(),
        }
    }

    fn public_names(&self, server: &ServerName) -> BTreeSet<String> {
        self.listings
            .get(server)
            .map(|listing| listing.public.values().cloned().collect())
            .unwrap_or_default()
    }
}

fn entry(server: &ServerHandle, name: String, draft: ToolDraft) -> Entry {
    let mut definition = Map::new();
    definition.insert("name".to_owned(), Value::String(name.clone()));
    definition.extend(draft.definition);
    Entry {
        tool: PublicTool {
            name,
            server: server.name().clone(),
            target: draft.target,
            definition: Value::Object(definition),
        },
        read_only: draft.read_only,
        server: server.clone(),
    }
}
