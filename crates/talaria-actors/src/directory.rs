//! The published table of tools: public name to server and raw name.
//!
//! Read by every call without a lock of ours; written when a server's list arrives. Routing goes
//! by this table, never by splitting a name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use talaria_config::{NamePrefix, ToolFilter};
use talaria_content::ReaderTool;
use talaria_content::injection::Finding;
use talaria_content::tools::{ToolFormat, render_tools};
use talaria_telemetry::events::{self, ArgumentOutcome};
use talaria_types::{ErrorCode, Failure, ServerName};

use crate::feed::{Feed, ToolsChangedEvent};
use crate::server::ServerHandle;

pub(crate) mod arguments;
pub(crate) mod definition;
pub(crate) mod filter;
pub(crate) mod naming;

use arguments::{ArgumentCheck, Verdict};
use naming::{Namespace, Naming};

/// Lines in the log about the oddities of one list.
const TOLD_LINES: usize = 20;

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
    /// What was taken out of its input schema, because it cannot be meant.
    pub(crate) mended: Vec<String>,
    /// Words in it that are meant to steer a model.
    pub(crate) findings: Vec<Finding>,
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
    /// Words in the definition that are meant to steer a model.
    findings: Vec<Finding>,
    /// What is known of its input schema, once it is called; none where it cannot be enforced.
    check: OnceLock<Option<ArgumentCheck>>,
    /// The definition in the shapes of providers, once it is asked for.
    renderings: [OnceLock<Arc<Value>>; ToolFormat::ALL.len()],
}

impl Entry {
    /// The definition in the shape of a provider: a list with this tool alone.
    pub(crate) fn rendered(&self, format: ToolFormat) -> Arc<Value> {
        let render = || Arc::new(render_tools([&self.tool.definition], format));
        let known = ToolFormat::ALL.iter().position(|known| *known == format);
        match known.and_then(|index| self.renderings.get(index)) {
            Some(kept) => Arc::clone(kept.get_or_init(render)),
            None => render(),
        }
    }

    /// Whether arguments fit the tool's input schema. One that cannot be enforced refuses nothing.
    ///
    /// # Errors
    /// `invalid_arguments`, with where and what is expected.
    pub(crate) fn check_arguments(&self, arguments: &Map<String, Value>) -> Result<(), Failure> {
        let server = self.server.name();
        let Some(schema) = self.tool.definition.get("inputSchema") else {
            return Ok(());
        };
        let Some(check) = self.check.get_or_init(|| self.read_schema(schema)) else {
            return Ok(());
        };
        match check.check(schema, arguments) {
            Verdict::Fits => Ok(()),
            Verdict::TooCostly => {
                events::arguments_checked(server, ArgumentOutcome::TooCostly);
                Ok(())
            }
            Verdict::Refused(words) => {
                events::arguments_checked(server, ArgumentOutcome::Refused);
                let detail = format!(
                    "the arguments do not fit what '{}' takes, so nothing was sent: {words}",
                    self.tool.name
                );
                Err(Failure::new(ErrorCode::InvalidArguments, detail).on_server(server))
            }
        }
    }

    fn read_schema(&self, schema: &Value) -> Option<ArgumentCheck> {
        match ArgumentCheck::of(schema) {
            Ok(check) => Some(check),
            Err(unusable) => {
                let (server, tool) = (self.server.name(), self.tool.name.as_str());
                events::arguments_checked(server, ArgumentOutcome::UnusableSchema);
                tracing::warn!(
                    %server,
                    tool,
                    reason = unusable.as_str(),
                    "arguments are not checked against the input schema"
                );
                None
            }
        }
    }

    /// Says once what is odd about a tool that is new or another, in at most so many lines; counts
    /// all of it.
    fn tell(&self, mended: &str, lines: &mut usize) {
        let (server, tool) = (self.server.name(), self.tool.name.as_str());
        if !mended.is_empty() && *lines > 0 {
            *lines -= 1;
            tracing::warn!(%server, tool, mended, "an input schema was mended");
        }
        for Finding {
            pattern, excerpt, ..
        } in &self.findings
        {
            events::steering_counted(server, pattern);
            if *lines > 0 {
                *lines -= 1;
                events::steering_told(server, Some(tool), pattern, excerpt);
            }
        }
    }

    /// Whether another row says the same of the same server.
    fn is_same(&self, other: &Self) -> bool {
        self.server.is(&other.server)
            && self.read_only == other.read_only
            && self.tool.target == other.tool.target
            && self.tool.definition == other.tool.definition
    }
}

/// What a new list changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Public names that are new.
    pub(crate) added: Vec<String>,
    /// Public names that are gone.
    pub(crate) removed: Vec<String>,
    /// Public names whose definition is another.
    pub(crate) changed: Vec<String>,
}

impl Change {
    /// Whether nothing changed.
    pub(crate) const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// The table itself.
pub(crate) struct Directory {
    entries: DashMap<String, Arc<Entry>>,
    servers: DashMap<ServerName, ServerHandle>,
    listings: DashMap<ServerName, Listing>,
    /// Changes only when the configuration is read again.
    namespace: RwLock<Namespace>,
    /// Names are given out one server at a time; held for the table update only.
    writing: Mutex<()>,
    draining: AtomicBool,
    /// Rises with every change of the table.
    version: AtomicU64,
    feed: Feed,
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
            namespace: RwLock::new(namespace),
            writing: Mutex::new(()),
            draining: AtomicBool::new(false),
            version: AtomicU64::new(first_version()),
            feed: Feed::new(),
        }
    }

    /// The version of the table: it rises with every change, over restarts too.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Where changes are told.
    pub(crate) const fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Makes a server known.
    pub(crate) fn add_server(&self, server: ServerHandle) {
        server.tell(&self.feed);
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

    /// Whether this is the handle that everybody finds.
    fn is_current(&self, server: &ServerHandle) -> bool {
        let known = self.servers.get(server.name());
        known.is_some_and(|known| known.is(server))
    }

    /// Words of a server's tools that are meant to steer a model, as many as that.
    pub(crate) fn findings(&self, server: &ServerName, most: usize) -> Vec<Finding> {
        let names = self.public_names(server);
        let mut findings = Vec::new();
        for entry in names.iter().filter_map(|name| self.find(name)) {
            let room = most.saturating_sub(findings.len());
            findings.extend(entry.findings.iter().take(room).cloned());
        }
        findings
    }

    /// The tool that reads a server's resources.
    pub(crate) fn reader(&self, server: &ServerName) -> ReaderTool {
        self.listings
            .get(server)
            .map_or(ReaderTool::Missing, |listing| listing.reader.clone())
    }

    /// The servers that may bring a public name that is not in the table.
    pub(crate) fn likely_servers(&self, public_name: &str) -> Vec<ServerHandle> {
        let owner = self.namespace.read().owner(public_name).cloned();
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
        self.feed.close();
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
        if !self.is_current(server) {
            // A reload replaced or removed it while it read its list.
            return Change::default();
        }
        let taken_by_others = |candidate: &str| {
            self.entries
                .get(candidate)
                .is_some_and(|entry| entry.tool.server != *name)
        };
        let held = self.held(name);
        let naming = Naming {
            namespace: &self.namespace.read(),
            server: name,
            prefix: server.prefix(),
            held: &held,
        };
        let named = naming.assign(drafts, taken_by_others);

        let before = self.public_names(name);
        let mut after = BTreeSet::new();
        let mut changed = Vec::new();
        let mut lines = TOLD_LINES;
        let mut public = BTreeMap::new();
        let mut reader = ReaderTool::Missing;
        for (public_name, draft) in named {
            let raw = draft.target.raw_name().to_owned();
            if resources && raw == Utility::ReadResource.as_str() {
                reader = ReaderTool::Registered(public_name.clone());
            }
            public.insert(raw, public_name.clone());
            after.insert(public_name.clone());
            let mended = draft.mended.join("; ");
            let entry = entry(server, public_name.clone(), draft);
            let old = self.find(&public_name);
            if old.as_ref().is_some_and(|old| old.is_same(&entry)) {
                continue;
            }
            let is_other = old.is_some_and(|old| old.tool.definition != entry.tool.definition);
            if is_other && before.contains(&public_name) {
                changed.push(public_name.clone());
            }
            entry.tell(&mended, &mut lines);
            self.entries.insert(public_name, Arc::new(entry));
        }
        for gone in before.difference(&after) {
            self.entries.remove(gone);
        }
        self.listings
            .insert(name.clone(), Listing { public, reader });
        let change = Change {
            added: after.difference(&before).cloned().collect(),
            removed: before.difference(&after).cloned().collect(),
            changed,
        };
        self.changed(name, &change);
        change
    }

    /// Counts a change of the table, and tells it.
    fn changed(&self, server: &ServerName, change: &Change) {
        if change.is_empty() {
            return;
        }
        let version = self.version.fetch_add(1, Ordering::AcqRel) + 1;
        self.feed.tools_changed(ToolsChangedEvent {
            server: server.as_str().to_owned(),
            added: change.added.clone(),
            removed: change.removed.clone(),
            changed: change.changed.clone(),
            truncated: false,
            version,
        });
    }

    /// The servers that are configured now. Names that were given out stay as they are.
    pub(crate) fn rename(&self, namespace: Namespace) {
        *self.namespace.write() = namespace;
    }

    /// Lets a server's tools lead to the handle that takes its place, as far as that one offers
    /// them. They stay until its own list is there; answers with how many do.
    pub(crate) fn rebind(&self, server: &ServerHandle, offered: &ToolFilter) -> usize {
        let _writing = self.writing.lock();
        let name = server.name();
        server.tell(&self.feed);
        self.servers.insert(name.clone(), server.clone());
        let mut kept = BTreeSet::new();
        let mut change = Change::default();
        for public_name in self.public_names(name) {
            let Some(old) = self.find(&public_name) else {
                continue;
            };
            let is_offered = filter::offers_target(offered, &old.tool.target);
            if !is_offered || old.server.prefix() != server.prefix() {
                self.entries.remove(&public_name);
                change.removed.push(public_name);
                continue;
            }
            let entry = Entry {
                tool: old.tool.clone(),
                read_only: old.read_only,
                server: server.clone(),
                findings: old.findings.clone(),
                check: OnceLock::new(),
                renderings: Default::default(),
            };
            self.entries.insert(public_name.clone(), Arc::new(entry));
            kept.insert(public_name);
        }
        if let Some(mut listing) = self.listings.get_mut(name) {
            listing.public.retain(|_, public| kept.contains(public));
            if let ReaderTool::Registered(reader) = &listing.reader
                && !kept.contains(reader)
            {
                listing.reader = ReaderTool::Missing;
            }
        }
        self.changed(name, &change);
        kept.len()
    }

    /// Forgets a server and its tools.
    pub(crate) fn remove_server(&self, server: &ServerName) -> Change {
        self.servers.remove(server);
        self.withdraw(server)
    }

    /// Takes a server's tools out of the table.
    pub(crate) fn withdraw(&self, server: &ServerName) -> Change {
        let _writing = self.writing.lock();
        let before = self.public_names(server);
        for gone in &before {
            self.entries.remove(gone);
        }
        self.listings.remove(server);
        let change = Change {
            removed: before.into_iter().collect(),
            ..Change::default()
        };
        self.changed(server, &change);
        change
    }

    /// The public names of a server's tools, by raw name.
    fn held(&self, server: &ServerName) -> BTreeMap<String, String> {
        self.listings
            .get(server)
            .map(|listing| listing.public.clone())
            .unwrap_or_default()
    }

    fn public_names(&self, server: &ServerName) -> BTreeSet<String> {
        self.listings
            .get(server)
            .map(|listing| listing.public.values().cloned().collect())
            .unwrap_or_default()
    }
}

/// Milliseconds since 1970: more than any version of an earlier run.
fn first_version() -> u64 {
    let since = talaria_types::runtime::wall_clock().duration_since(std::time::UNIX_EPOCH);
    let millis = since.map(|since| since.as_millis()).unwrap_or_default();
    u64::try_from(millis).unwrap_or_default()
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
        findings: draft.findings,
        check: OnceLock::new(),
        renderings: Default::default(),
    }
}
