//! Descriptions that were made a moment ago. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::analysis::Analysis;
use super::messages::Key;

/// Descriptions that are kept.
const MAX_ENTRIES: usize = 256;
/// Longest description that is kept.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// What was answered lately.
#[derive(Debug)]
pub(super) struct Cache {
    ttl: Duration,
    entries: HashMap<Key, (Instant, Analysis)>,
    /// In the order they were put in, which is that in which they expire.
    order: VecDeque<(Instant, Key)>,
}

impl Cache {
    /// Nothing; never anything where the time is zero.
    pub(super) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            entries: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// What was answered, where that is still fresh.
    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<Analysis> {
        self.expire(now);
        let (_, analysis) = self.entries.get(key)?;
        Some(Analysis {
            cached: true,
            coalesced: false,
            elapsed_ms: 0,
            ..analysis.clone()
        })
    }

    /// Keeps a description. Failures and mere reasoning are not kept.
    pub(super) fn put(&mut self, key: Key, analysis: Analysis, now: Instant) {
        let is_worth_it = analysis
            .answer
            .as_ref()
            .is_some_and(|it| !it.is_reasoning && it.text.len() <= MAX_TEXT_BYTES);
        if self.ttl.is_zero() || !is_worth_it {
            return;
        }
        self.expire(now);
        while self.order.len() >= MAX_ENTRIES {
            self.drop_oldest();
        }
        self.order.push_back((now, key.clone()));
        self.entries.insert(key, (now, analysis));
    }

    fn expire(&mut self, now: Instant) {
        while let Some((since, _)) = self.order.front()
            && now.saturating_duration_since(*since) >= self.ttl
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((since, key)) = self.order.pop_front() else {
            return;
        };
        // One that was put in again has a newer place.
        if self
            .entries
            .get(&key)
            .is_some_and(|(kept, _)| *kept == since)
        {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use talaria_types::runtime;

    use super::super::analysis::Description;
    use super::*;

    fn key(number: usize) -> Key {
        Key {
            sha256: number.to_string(),
            region: None,
            prompt: String::new(),
        }
    }

    fn answered(text: &str) -> Analysis {
        let mut analysis = Analysis::of(Vec::new());
        analysis.answer = Some(Description {
            text: text.to_owned(),
            via: "a/b".to_owned(),
            scale_note: None,
            is_reasoning: false,
        });
        analysis
    }

    #[test]
    fn a_description_is_kept_for_its_time() {
        let (ttl, now) = (Duration::from_secs(60), runtime::now().into_std());
        let mut cache = Cache::new(ttl);
        cache.put(key(1), answered("a cat"), now);
        let found = cache
            .get(&key(1), now + ttl - Duration::from_millis(1))
            .unwrap();
        assert!(found.cached && found.answer == answered("a cat").answer);
        assert_eq!(cache.get(&key(2), now), None);
        assert_eq!(cache.get(&key(1), now + ttl), None);
        assert!(cache.entries.is_empty() && cache.order.is_empty());
    }

    #[test]
    fn one_that_was_made_anew_outlives_the_old_one() {
        let (ttl, now) = (Duration::from_secs(60), runtime::now().into_std());
        let mut cache = Cache::new(ttl);
        cache.put(key(1), answered("old"), now);
        cache.put(key(1), answered("new"), now + ttl / 2);
        let found = cache.get(&key(1), now + ttl).unwrap();
        assert_eq!(found.answer, answered("new").answer);
    }

    #[test]
    fn failures_reasoning_and_long_texts_are_not_kept() {
        let now = runtime::now().into_std();
        let mut cache = Cache::new(Duration::from_secs(60));
        cache.put(key(1), Analysis::of(Vec::new()), now);
        let mut reasoning = answered("hmm");
        reasoning.answer.as_mut().unwrap().is_reasoning = true;
        cache.put(key(2), reasoning, now);
        cache.put(key(3), answered(&"x".repeat(MAX_TEXT_BYTES + 1)), now);
        assert!(cache.entries.is_empty());
        let mut off = Cache::new(Duration::ZERO);
        off.put(key(1), answered("a cat"), now);
        assert!(off.entries.is_empty());
    }

    #[test]
    fn the_oldest_makes_room() {
        let now = runtime::now().into_std();
        let mut cache = Cache::new(Duration::from_secs(60));
        for number in 0..=MAX_ENTRIES {
            cache.put(key(number), answered("a cat"), now);
        }
        assert_eq!(cache.entries.len(), MAX_ENTRIES);
        assert!(cache.get(&key(0), now).is_none() && cache.get(&key(1), now).is_some());
    }
}
