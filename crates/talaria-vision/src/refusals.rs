//! Routes whose provider refused pictures in a session. What a replica remembers is its own
//! (design decision 17); nothing is written down.

use std::collections::VecDeque;

use parking_lot::Mutex;
use talaria_types::{Route, SessionKey};

/// How many are remembered; the longest unused one is forgotten first.
const MOST: usize = 1_024;

/// Session, provider and model.
type Key = (SessionKey, String, String);

/// The refusals of this process.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<VecDeque<Key>>);

impl Refusals {
    /// Remembers one. Without a session nothing is remembered: it would hold for everybody.
    pub(crate) fn remember(&self, session: Option<&SessionKey>, route: &Route) {
        let Some(key) = key(session, route) else {
            return;
        };
        let mut keys = self.0.lock();
        keys.retain(|known| *known != key);
        keys.push_back(key);
        if keys.len() > MOST {
            keys.pop_front();
        }
    }

    /// Whether this one is remembered; asking keeps it.
    pub(crate) fn holds(&self, session: Option<&SessionKey>, route: &Route) -> bool {
        let Some(key) = key(session, route) else {
            return false;
        };
        let mut keys = self.0.lock();
        let Some(place) = keys.iter().position(|known| *known == key) else {
            return false;
        };
        if let Some(key) = keys.remove(place) {
            keys.push_back(key);
        }
        true
    }
}

fn key(session: Option<&SessionKey>, route: &Route) -> Option<Key> {
    let plain = |name: &str| name.trim().to_lowercase();
    Some((
        session?.clone(),
        plain(&route.provider),
        plain(&route.model),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(model: &str) -> Route {
        Route {
            provider: "Anthropic".to_owned(),
            model: model.to_owned(),
            api: None,
        }
    }

    fn session(name: &str) -> SessionKey {
        SessionKey::from(name)
    }

    #[test]
    fn a_refusal_binds_its_session_provider_and_model() {
        let refusals = Refusals::default();
        let (one, two) = (session("one"), session("two"));
        refusals.remember(Some(&one), &route("m"));
        let other_api = Route {
            provider: " anthropic".to_owned(),
            api: Some("anthropic".to_owned()),
            ..route("M")
        };
        assert!(refusals.holds(Some(&one), &other_api));
        assert!(!refusals.holds(Some(&two), &route("m")));
        assert!(!refusals.holds(Some(&one), &route("n")));
        assert!(!refusals.holds(None, &route("m")));
    }

    #[test]
    fn without_a_session_nothing_is_remembered() {
        let refusals = Refusals::default();
        refusals.remember(None, &route("m"));
        assert!(!refusals.holds(None, &route("m")));
        assert!(refusals.0.lock().is_empty());
    }

    #[test]
    fn the_longest_unused_is_forgotten_first() {
        let refusals = Refusals::default();
        let session = session("s");
        for number in 0..MOST {
            refusals.remember(Some(&session), &route(&number.to_string()));
        }
        assert!(refusals.holds(Some(&session), &route("0")));
        refusals.remember(Some(&session), &route("new"));
        assert_eq!(refusals.0.lock().len(), MOST);
        assert!(refusals.holds(Some(&session), &route("0")));
        assert!(!refusals.holds(Some(&session), &route("1")));
        assert!(refusals.holds(Some(&session), &route("new")));
    }
}
