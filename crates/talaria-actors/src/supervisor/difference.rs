//! From the servers that are configured to those that shall be: what has to be done. Pure.

use std::collections::BTreeMap;

use talaria_config::ServerEntry;
use talaria_types::ServerName;

use crate::supervisor::report::BrokenServer;

/// The entries of `mcp_servers`.
pub(crate) type Entries = BTreeMap<ServerName, ServerEntry>;

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Difference {
    /// Servers to begin with.
    pub(crate) added: Vec<ServerName>,
    /// Servers to end.
    pub(crate) removed: Vec<ServerName>,
    /// Servers to replace.
    pub(crate) changed: Vec<ServerName>,
    /// Servers to leave alone.
    pub(crate) unchanged: usize,
    /// Entries that cannot be used.
    pub(crate) broken: Vec<BrokenServer>,
    /// What is in force afterwards.
    pub(crate) entries: Entries,
}

impl Difference {
    /// Compares. A server that works is not given up for an entry that cannot be used: a slip of
    /// the pen costs nobody a tool.
    pub(crate) fn between(current: &Entries, wanted: &Entries) -> Self {
        let mut difference = Self::default();
        for (name, entry) in wanted {
            let before = current.get(name);
            let kept = match (before, entry) {
                (Some(before @ ServerEntry::Usable(_)), ServerEntry::Broken { .. }) => Some(before),
                (Some(_) | None, ServerEntry::Usable(_) | ServerEntry::Broken { .. }) => None,
            };
            if let ServerEntry::Broken { problem } = entry {
                difference.broken.push(BrokenServer {
                    server: name.as_str().to_owned(),
                    problem: problem.clone(),
                    kept: kept.is_some(),
                });
            }
            let entry = kept.unwrap_or(entry);
            match before {
                None => difference.added.push(name.clone()),
                Some(before) if before == entry => difference.unchanged += 1,
                Some(_) => difference.changed.push(name.clone()),
            }
            difference.entries.insert(name.clone(), entry.clone());
        }
        let gone = current.keys().filter(|name| !wanted.contains_key(name));
        difference.removed = gone.cloned().collect();
        difference
    }
}

#[cfg(test)]
mod tests {
    use talaria_config::ServerConfig;

    use super::*;

    fn usable(name: &str, command: &str) -> ServerEntry {
        let no_arguments: [&str; 0] = [];
        ServerEntry::Usable(Box::new(ServerConfig::stdio(name, command, no_arguments)))
    }

    fn broken(problem: &str) -> ServerEntry {
        ServerEntry::Broken {
            problem: problem.to_owned(),
        }
    }

    fn entries(list: &[(&str, ServerEntry)]) -> Entries {
        list.iter()
            .map(|(name, entry)| (ServerName::from(*name), entry.clone()))
            .collect()
    }

    fn names(names: &[&str]) -> Vec<ServerName> {
        names.iter().map(|name| ServerName::from(*name)).collect()
    }

    #[test]
    fn what_is_the_same_is_left_alone() {
        let current = entries(&[("a", usable("a", "x")), ("b", broken("why"))]);
        let difference = Difference::between(&current, &current);
        assert_eq!(difference.unchanged, 2);
        assert_eq!((difference.added, difference.changed), (vec![], vec![]));
        assert_eq!((difference.removed, difference.entries), (vec![], current));
    }

    #[test]
    fn each_kind_of_change_is_told_apart() {
        let current = entries(&[
            ("gone", usable("gone", "x")),
            ("mended", broken("why")),
            ("other", usable("other", "x")),
            ("same", usable("same", "x")),
        ]);
        let wanted = entries(&[
            ("mended", usable("mended", "x")),
            ("new", usable("new", "x")),
            ("other", usable("other", "y")),
            ("same", usable("same", "x")),
            ("useless", broken("why")),
        ]);
        let difference = Difference::between(&current, &wanted);
        assert_eq!(difference.added, names(&["new", "useless"]));
        assert_eq!(difference.removed, names(&["gone"]));
        assert_eq!(difference.changed, names(&["mended", "other"]));
        assert_eq!(difference.unchanged, 1);
        assert_eq!(difference.entries, wanted);
        let useless = BrokenServer {
            server: "useless".to_owned(),
            problem: "why".to_owned(),
            kept: false,
        };
        assert_eq!(difference.broken, [useless]);
    }

    #[test]
    fn an_entry_that_breaks_leaves_its_server_as_it_was() {
        let current = entries(&[("a", usable("a", "x"))]);
        let difference = Difference::between(&current, &entries(&[("a", broken("why"))]));
        assert_eq!(
            (difference.unchanged, difference.entries),
            (1, current.clone())
        );
        assert!(difference.broken.iter().all(|broken| broken.kept));
        let mended = Difference::between(&current, &current);
        assert_eq!((mended.unchanged, mended.broken), (1, vec![]));
    }
}
