//! Public tool names: pure, deterministic, at most 64 characters (design decision 22).
//!
//! A name that sanitising did not change keeps its form. On a collision every other one gets
//! `_` and 8 hex digits of SHA-256 over raw server, NUL, raw tool. Which of two configured
//! servers owns a prefix is settled by the configuration alone, so the order in which servers
//! answer changes nothing. Once given out, a name is not lost to a server that comes later, by a
//! reload.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use talaria_config::NamePrefix;
use talaria_types::ServerName;

use crate::directory::{ToolDraft, ToolTarget};

/// Longest public name.
const MAX_NAME: usize = 64;
/// What is kept of a name that gets a suffix of `_` and 8 hex digits.
const KEPT: usize = 55;

/// The prefixes of the configured servers.
#[derive(Debug, Default)]
pub(crate) struct Namespace {
    /// Full prefix (`mcp__server__`) to the servers that have it.
    prefixes: BTreeMap<String, Vec<ServerName>>,
}

impl Namespace {
    /// The prefixes of `servers`.
    pub(crate) fn of<'a>(servers: impl Iterator<Item = (&'a ServerName, NamePrefix)>) -> Self {
        let mut prefixes: BTreeMap<String, Vec<ServerName>> = BTreeMap::new();
        for (server, prefix) in servers {
            if prefix == NamePrefix::Default {
                prefixes
                    .entry(prefix_of(server))
                    .or_default()
                    .push(server.clone());
            }
        }
        Self { prefixes }
    }

    /// The server whose prefix fits a public name best, if exactly one has that prefix or one of
    /// several has it unchanged.
    pub(crate) fn owner(&self, public_name: &str) -> Option<&ServerName> {
        let (_, servers) = self
            .prefixes
            .iter()
            .filter(|(prefix, _)| public_name.starts_with(prefix.as_str()))
            .max_by_key(|(prefix, _)| prefix.len())?;
        match servers.as_slice() {
            [only] => Some(only),
            several => several
                .iter()
                .find(|server| sanitise(server.as_str()) == server.as_str()),
        }
    }

    /// Whether another server has the better claim to a name with this server's prefix.
    fn contested(&self, full: &str, server: &ServerName) -> bool {
        let known = self
            .prefixes
            .get(&prefix_of(server))
            .is_some_and(|s| s.contains(server));
        known && self.owner(full) != Some(server)
    }
}

/// What decides the names of one server's tools.
#[derive(Debug)]
pub(crate) struct Naming<'a> {
    /// The prefixes of all servers.
    pub(crate) namespace: &'a Namespace,
    /// Whose tools.
    pub(crate) server: &'a ServerName,
    /// How they are named.
    pub(crate) prefix: NamePrefix,
    /// The names its tools have now, by raw name.
    pub(crate) held: &'a BTreeMap<String, String>,
}

impl Naming<'_> {
    /// Gives every draft its public name. Exact duplicates are dropped, and a utility gives way to
    /// a tool of the same name.
    pub(crate) fn assign(
        &self,
        drafts: Vec<ToolDraft>,
        taken: impl Fn(&str) -> bool,
    ) -> Vec<(String, ToolDraft)> {
        let server = self.server;
        let candidates = candidates(server, self.prefix, drafts);
        let owners = owners(&candidates);
        let mut used = BTreeSet::new();
        let mut named = Vec::with_capacity(candidates.len());
        for (index, candidate) in candidates.into_iter().enumerate() {
            let owns = owners.get(&candidate.name) == Some(&Some(index));
            let suffixed = suffixed(&candidate, server);
            let name = if owns && self.may_have(&candidate, &suffixed) && !taken(&candidate.name) {
                candidate.name
            } else {
                suffixed
            };
            if taken(&name) || !used.insert(name.clone()) {
                // Eight equal hex digits as well: the name cannot be told apart, so it is not
                // offered.
                tracing::warn!(%server, tool = candidate.draft.target.raw_name(), name, "public tool name is taken");
                continue;
            }
            named.push((name, candidate.draft));
        }
        named
    }

    /// Whether other servers leave a tool its plain name. A tool keeps what it has: neither a
    /// server that comes nor one that goes renames it.
    fn may_have(&self, candidate: &Candidate, suffixed: &str) -> bool {
        match self.held.get(candidate.draft.target.raw_name()) {
            Some(held) if *held == candidate.name => true,
            Some(held) if held == suffixed => false,
            Some(_) | None => {
                self.prefix != NamePrefix::Default
                    || !self.namespace.contested(&candidate.full, self.server)
            }
        }
    }
}

#[derive(Debug)]
struct Candidate {
    /// The sanitised name before it is shortened.
    full: String,
    name: String,
    unchanged: bool,
    draft: ToolDraft,
}

fn candidates(server: &ServerName, prefix: NamePrefix, drafts: Vec<ToolDraft>) -> Vec<Candidate> {
    let (tools, utilities): (Vec<_>, Vec<_>) = drafts
        .into_iter()
        .partition(|draft| matches!(draft.target, ToolTarget::Tool(_)));
    let mut seen = BTreeSet::new();
    let mut candidates: Vec<_> = tools
        .into_iter()
        .filter(|draft| seen.insert(draft.target.raw_name().to_owned()))
        .map(|draft| candidate(server, prefix, draft))
        .filter(|candidate| !candidate.name.is_empty())
        .collect();
    let native: BTreeSet<_> = candidates
        .iter()
        .map(|native| native.name.clone())
        .collect();
    candidates.extend(
        utilities
            .into_iter()
            .map(|draft| candidate(server, prefix, draft))
            .filter(|utility| !native.contains(&utility.name)),
    );
    candidates
}

fn candidate(server: &ServerName, prefix: NamePrefix, draft: ToolDraft) -> Candidate {
    let raw = draft.target.raw_name();
    let tool = sanitise(raw);
    let (full, same_server) = match prefix {
        NamePrefix::Default => (
            format!("{}{tool}", prefix_of(server)),
            sanitise(server.as_str()) == server.as_str(),
        ),
        NamePrefix::None => (tool.clone(), true),
    };
    let unchanged = same_server && tool == raw && full.len() <= MAX_NAME;
    let name = if full.len() <= MAX_NAME {
        full.clone()
    } else {
        with_hash(&full, &[full.as_bytes()])
    };
    Candidate {
        full,
        name,
        unchanged,
        draft,
    }
}

/// Which candidate keeps a name that several have: the only one, or the unchanged one.
fn owners(candidates: &[Candidate]) -> BTreeMap<String, Option<usize>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        groups.entry(&candidate.name).or_default().push(index);
    }
    groups
        .into_iter()
        .map(|(name, group)| {
            let unchanged = |index: &&usize| {
                candidates
                    .get(**index)
                    .is_some_and(|candidate| candidate.unchanged)
            };
            let owner = match group.as_slice() {
                [only] => Some(*only),
                several => several.iter().find(unchanged).copied(),
            };
            (name.to_owned(), owner)
        })
        .collect()
}

fn suffixed(candidate: &Candidate, server: &ServerName) -> String {
    let raw = candidate.draft.target.raw_name();
    with_hash(
        &candidate.full,
        &[server.as_str().as_bytes(), b"\0", raw.as_bytes()],
    )
}

/// Cuts to 55 characters where needed and adds `_` and 8 hex digits.
fn with_hash(full: &str, hashed: &[&[u8]]) -> String {
    let kept: String = full.chars().take(KEPT).collect();
    format!("{kept}_{}", short_hash(hashed))
}

fn short_hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    let mut digits = hex::encode(hasher.finalize());
    digits.truncate(8);
    digits
}

fn prefix_of(server: &ServerName) -> String {
    format!("mcp__{}__", sanitise(server.as_str()))
}

/// Every character outside `[A-Za-z0-9_]` becomes `_`.
fn sanitise(raw: &str) -> String {
    raw.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// A file name for a server that no other server has.
pub(crate) fn file_stem(server: &ServerName) -> String {
    let raw = server.as_str();
    let plain = sanitise(raw);
    if plain == raw && plain.len() <= MAX_NAME {
        return plain;
    }
    with_hash(&plain, &[raw.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Utility;

    fn tool(raw: &str) -> ToolDraft {
        ToolDraft {
            target: ToolTarget::Tool(raw.to_owned()),
            read_only: false,
            definition: serde_json::Map::new(),
            mended: Vec::new(),
            findings: Vec::new(),
        }
    }

    fn utility(utility: Utility) -> ToolDraft {
        ToolDraft {
            target: ToolTarget::Utility(utility),
            ..tool("")
        }
    }

    fn namespace(servers: &[&str]) -> Namespace {
        let names: Vec<_> = servers.iter().map(|name| ServerName::from(*name)).collect();
        Namespace::of(names.iter().map(|name| (name, NamePrefix::Default)))
    }

    fn assigned(servers: &[&str], server: &str, drafts: Vec<ToolDraft>) -> Vec<(String, String)> {
        named(servers, server, NamePrefix::Default, drafts, |_| false)
    }

    fn named(
        servers: &[&str],
        server: &str,
        prefix: NamePrefix,
        drafts: Vec<ToolDraft>,
        taken: impl Fn(&str) -> bool,
    ) -> Vec<(String, String)> {
        renamed(servers, server, prefix, drafts, taken, &BTreeMap::new())
    }

    fn renamed(
        servers: &[&str],
        server: &str,
        prefix: NamePrefix,
        drafts: Vec<ToolDraft>,
        taken: impl Fn(&str) -> bool,
        held: &BTreeMap<String, String>,
    ) -> Vec<(String, String)> {
        let naming = Naming {
            namespace: &namespace(servers),
            server: &ServerName::from(server),
            prefix,
            held,
        };
        naming
            .assign(drafts, taken)
            .into_iter()
            .map(|(name, draft)| (draft.target.raw_name().to_owned(), name))
            .collect()
    }

    /// The names a server has after its next list, from those it has now.
    fn next(servers: &[&str], server: &str, raw: &str, held: &str) -> String {
        let held = BTreeMap::from([pair(raw, held)]);
        let mut names = renamed(
            servers,
            server,
            NamePrefix::Default,
            vec![tool(raw)],
            |_| false,
            &held,
        );
        assert_eq!(names.len(), 1);
        names.remove(0).1
    }

    fn pair(raw: &str, public: &str) -> (String, String) {
        (raw.to_owned(), public.to_owned())
    }

    /// The suffix of decision 22, made the long way.
    fn suffix(server: &str, raw: &str) -> String {
        let digest = Sha256::digest([server, "\0", raw].concat().as_bytes());
        hex::encode(digest).chars().take(8).collect()
    }

    #[test]
    fn n01_server_and_tool_are_sanitised() {
        let names = assigned(&["my.srv"], "my.srv", vec![tool("do-it")]);
        assert_eq!(names, [pair("do-it", "mcp__my_srv__do_it")]);
    }

    #[test]
    fn n03_of_two_colliding_tools_the_unchanged_one_keeps_its_name() {
        let suffixed = format!("mcp__s__a_b_{}", suffix("s", "a-b"));
        let names = assigned(&["s"], "s", vec![tool("a-b"), tool("a_b")]);
        assert_eq!(names, [pair("a-b", &suffixed), pair("a_b", "mcp__s__a_b")]);
        let other_order = assigned(&["s"], "s", vec![tool("a_b"), tool("a-b")]);
        assert_eq!(
            other_order,
            [pair("a_b", "mcp__s__a_b"), pair("a-b", &suffixed)]
        );
    }

    #[test]
    fn two_changed_tools_that_collide_both_get_a_suffix() {
        let names = assigned(&["s"], "s", vec![tool("a-b"), tool("a.b")]);
        let expected =
            ["a-b", "a.b"].map(|raw| pair(raw, &format!("mcp__s__a_b_{}", suffix("s", raw))));
        assert_eq!(names, expected);
    }

    #[test]
    fn n05_of_two_colliding_servers_the_unchanged_one_keeps_its_prefix() {
        let both = ["a.b", "a_b"];
        assert_eq!(
            assigned(&both, "a_b", vec![tool("t")]),
            [pair("t", "mcp__a_b__t")]
        );
        let changed = format!("mcp__a_b__t_{}", suffix("a.b", "t"));
        assert_eq!(
            assigned(&both, "a.b", vec![tool("t")]),
            [pair("t", &changed)]
        );
    }

    #[test]
    fn a_server_whose_name_splits_differently_does_not_take_a_longer_prefix() {
        let both = ["a", "a__b"];
        assert_eq!(
            assigned(&both, "a__b", vec![tool("c")]),
            [pair("c", "mcp__a__b__c")]
        );
        let other = format!("mcp__a__b__c_{}", suffix("a", "b__c"));
        assert_eq!(
            assigned(&both, "a", vec![tool("b__c")]),
            [pair("b__c", &other)]
        );
    }

    #[test]
    fn over_long_names_keep_55_characters_and_a_hash_of_the_whole() {
        let raw = "t".repeat(80);
        let full = format!("mcp__s__{raw}");
        let digest = hex::encode(Sha256::digest(full.as_bytes()));
        let cut = |text: &str, length| text.chars().take(length).collect::<String>();
        let expected = format!("{}_{}", cut(&full, 55), cut(&digest, 8));
        assert_eq!(expected.len(), 64);
        assert_eq!(
            assigned(&["s"], "s", vec![tool(&raw)]),
            [pair(&raw, &expected)]
        );
    }

    #[test]
    fn a_name_of_exactly_64_characters_stays() {
        let raw = "t".repeat(64 - "mcp__s__".len());
        let expected = format!("mcp__s__{raw}");
        assert_eq!(
            assigned(&["s"], "s", vec![tool(&raw)]),
            [pair(&raw, &expected)]
        );
    }

    #[test]
    fn collisions_of_long_names_stay_within_64_characters() {
        let raw = format!("{}-x", "t".repeat(54));
        let twin = raw.replace('-', "_");
        let names = assigned(&["s"], "s", vec![tool(&raw), tool(&twin)]);
        assert_eq!(names.len(), 2);
        for (_, public) in &names {
            assert!(public.len() <= 64, "{public}");
        }
    }

    #[test]
    fn exact_duplicates_are_kept_once_and_native_tools_beat_utilities() {
        let drafts = vec![
            tool("x"),
            tool("x"),
            tool("read_resource"),
            utility(Utility::ReadResource),
            utility(Utility::ListResources),
        ];
        let names = assigned(&["s"], "s", drafts);
        let expected = [
            pair("x", "mcp__s__x"),
            pair("read_resource", "mcp__s__read_resource"),
            pair("list_resources", "mcp__s__list_resources"),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_name_that_another_server_holds_is_never_taken_from_it() {
        let names = named(
            &["s"],
            "s",
            NamePrefix::None,
            vec![tool("search")],
            |name| name == "search",
        );
        assert_eq!(
            names,
            [pair("search", &format!("search_{}", suffix("s", "search")))]
        );
    }

    #[test]
    fn without_prefix_the_own_name_is_used() {
        let names = named(
            &[],
            "s",
            NamePrefix::None,
            vec![tool("do-it"), tool("")],
            |_| false,
        );
        assert_eq!(names, [pair("do-it", "do_it")]);
    }

    #[test]
    fn fr_173_a_server_that_comes_or_goes_renames_no_tool() {
        let plain = "mcp__a_b__t";
        assert_eq!(next(&["a.b", "a_b"], "a.b", "t", plain), plain);
        let suffixed = format!("mcp__a_b__t_{}", suffix("a_b", "t"));
        assert_eq!(next(&["a_b"], "a_b", "t", &suffixed), suffixed);
        let split = "mcp__a__b__c";
        assert_eq!(next(&["a", "a__b"], "a", "b__c", split), split);
    }

    #[test]
    fn a_name_of_another_form_is_not_kept() {
        assert_eq!(next(&["s"], "s", "t", "t"), "mcp__s__t");
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_the_list() {
        let raws = ["a-b", "a_b", "a.b", "c", "read_resource"];
        let forward = assigned(&["s"], "s", raws.iter().map(|raw| tool(raw)).collect());
        let backward = assigned(
            &["s"],
            "s",
            raws.iter().rev().map(|raw| tool(raw)).collect(),
        );
        let sorted = |mut names: Vec<(String, String)>| {
            names.sort();
            names
        };
        assert_eq!(sorted(forward), sorted(backward));
    }

    #[test]
    fn owner_is_the_longest_fitting_prefix() {
        let namespace = namespace(&["a", "a__b", "x.y"]);
        let owner = |name: &str| {
            namespace
                .owner(name)
                .map(|server| server.as_str().to_owned())
        };
        assert_eq!(owner("mcp__a__b__c"), Some("a__b".to_owned()));
        assert_eq!(owner("mcp__a__q"), Some("a".to_owned()));
        assert_eq!(owner("mcp__x_y__q"), Some("x.y".to_owned()));
        assert_eq!(owner("search"), None);
    }

    #[test]
    fn log_files_of_similar_servers_differ() {
        let stems = ["a.b", "a_b", "a-b"].map(|name| file_stem(&ServerName::from(name)));
        assert_eq!(stems.iter().collect::<BTreeSet<_>>().len(), 3);
        assert!(stems.iter().all(|stem| stem.starts_with("a_b")));
    }
}
