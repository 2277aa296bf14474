//! How often one prepared picture was handed to one session (specification 2.7, rule 8).
//!
//! Counting happens when a picture is reserved, so that parallel calls of a session cannot pass
//! the limit together; a reservation that is dropped before it is kept gives its count back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use talaria_types::SessionKey;

/// Pictures that are remembered; the one used longest ago is forgotten first.
const MAX_KEYS: usize = 4_096;

/// Counts pictures by session; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct RepeatGuard {
    /// Times one picture may be handed to one session; 0 is as often as it likes.
    limit: u32,
    table: Arc<Mutex<Table>>,
}

/// A picture that was counted. Dropped before [`Self::keep`], the count goes back.
#[derive(Debug)]
#[must_use = "a reservation that is dropped is released"]
pub(super) struct Reservation {
    counted: Option<(Arc<Mutex<Table>>, Key)>,
}

/// The session has had the picture as often as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenEnough {
    pub(super) limit: u32,
}

/// A session and the SHA-256 of a prepared data URL.
type Key = (SessionKey, Arc<str>);

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<Key, Entry>,
    /// Oldest use first.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    count: u32,
    used: u64,
}

impl RepeatGuard {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            limit,
            table: Arc::default(),
        }
    }

    /// Whether pictures of this conversation are counted at all.
    pub(super) fn counts(&self, session: Option<&SessionKey>) -> bool {
        self.limit > 0 && session.is_some()
    }

    /// Counts a picture for a session. Without a session nobody can tell who has seen it, and
    /// nothing is counted.
    pub(super) fn reserve(
        &self,
        session: Option<&SessionKey>,
        sha256: &str,
    ) -> Result<Reservation, SeenEnough> {
        let Some(session) = session.filter(|session| self.counts(Some(session))) else {
            return Ok(Reservation { counted: None });
        };
        let key: Key = (session.clone(), sha256.into());
        if !self.table.lock().count(&key, self.limit) {
            return Err(SeenEnough { limit: self.limit });
        }
        Ok(Reservation {
            counted: Some((Arc::clone(&self.table), key)),
        })
    }
}

impl Reservation {
    /// The picture has left: the count stays.
    pub(super) fn keep(mut self) {
        self.counted = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some((table, key)) = self.counted.take() {
            table.lock().release(&key);
        }
    }
}

impl Table {
    /// Whether one more is within the limit; then it is counted.
    fn count(&mut self, key: &Key, limit: u32) -> bool {
        let (count, last_use) = self
            .entries
            .get(key)
            .map_or((0, None), |entry| (entry.count, Some(entry.used)));
        if let Some(used) = last_use {
            self.by_use.remove(&used);
        } else if self.entries.len() >= MAX_KEYS {
            self.forget_oldest();
        }
        let is_within = count < limit;
        self.uses += 1;
        let used = self.uses;
        self.by_use.insert(used, key.clone());
        let count = count + u32::from(is_within);
        self.entries.insert(key.clone(), Entry { count, used });
        is_within
    }

    fn release(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.count = entry.count.saturating_sub(1);
        if entry.count == 0 {
            let used = entry.used;
            self.entries.remove(key);
            self.by_use.remove(&used);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.by_use.pop_first() {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionKey {
        SessionKey::from(name.to_owned())
    }

    #[test]
    fn a_session_gets_a_picture_so_often_and_another_session_too() {
        let guard = RepeatGuard::new(2);
        for name in ["a", "b"] {
            let session = session(name);
            for _ in 0..2 {
                guard.reserve(Some(&session), "p").unwrap().keep();
            }
            let refused = guard.reserve(Some(&session), "p").unwrap_err();
            assert_eq!(refused, SeenEnough { limit: 2 });
            assert!(guard.reserve(Some(&session), "q").is_ok());
        }
    }

    #[test]
    fn a_picture_that_did_not_leave_is_not_counted() {
        let guard = RepeatGuard::new(1);
        let one = session("a");
        let reserved = guard.reserve(Some(&one), "p").unwrap();
        assert!(guard.reserve(Some(&one), "p").is_err(), "counted at once");
        drop(reserved);
        guard.reserve(Some(&one), "p").unwrap().keep();
        assert!(guard.reserve(Some(&one), "p").is_err());
    }

    #[test]
    fn nothing_is_counted_without_a_session_or_a_limit() {
        let one = session("a");
        for (guard, session) in [
            (RepeatGuard::new(1), None),
            (RepeatGuard::new(0), Some(&one)),
        ] {
            for _ in 0..5 {
                guard.reserve(session, "p").unwrap().keep();
            }
            assert!(guard.table.lock().entries.is_empty());
        }
    }

    #[test]
    fn the_picture_used_longest_ago_is_forgotten_first() {
        let guard = RepeatGuard::new(1);
        let one = session("a");
        for number in 0..MAX_KEYS {
            guard
                .reserve(Some(&one), &number.to_string())
                .unwrap()
                .keep();
        }
        assert!(
            guard.reserve(Some(&one), "0").is_err(),
            "a refusal is a use too"
        );
        guard.reserve(Some(&one), "new").unwrap().keep();
        let table = guard.table.lock();
        assert_eq!(
            (table.entries.len(), table.by_use.len()),
            (MAX_KEYS, MAX_KEYS)
        );
        drop(table);
        assert!(guard.reserve(Some(&one), "0").is_err());
        guard.reserve(Some(&one), "1").unwrap().keep();
    }
}
