//! What was learnt of how servers want to be spoken to, kept from one session to the next.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use talaria_config::TransportConfig;
use talaria_types::ServerName;

/// Servers that are remembered; beyond that somebody is forgotten, which costs a question.
const MAX_SERVERS: usize = 4096;

/// Shared by all connections of the service; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Habits(Arc<Mutex<HashMap<ServerName, (TransportConfig, Habit)>>>);

/// What is known of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Habit {
    /// It speaks the older HTTP+SSE.
    pub(crate) is_legacy_http: bool,
    /// It speaks Streamable HTTP, as far as is known.
    pub(crate) is_streamable: bool,
    /// It has spoken MCP, in whatever form.
    pub(crate) has_spoken: bool,
    /// It dies of `server/discover`, or does not answer it.
    pub(crate) is_not_asked: bool,
}

impl Habits {
    /// What is known of a server, as long as it is configured as it was.
    pub(crate) fn of(&self, server: &ServerName, transport: &TransportConfig) -> Habit {
        let known = self.0.lock();
        match known.get(server) {
            Some((of, habit)) if of == transport => *habit,
            Some(_) | None => Habit::default(),
        }
    }

    /// Remembers.
    pub(crate) fn learn(&self, server: &ServerName, transport: &TransportConfig, habit: Habit) {
        let mut known = self.0.lock();
        if habit == Habit::default() {
            known.remove(server);
            return;
        }
        if known.len() >= MAX_SERVERS
            && !known.contains_key(server)
            && let Some(somebody) = known.keys().next().cloned()
        {
            known.remove(&somebody);
        }
        known.insert(server.clone(), (transport.clone(), habit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_configured_anew_is_a_stranger() {
        let habits = Habits::default();
        let server = ServerName::from("s");
        let (old, new) = (
            TransportConfig::http("http://a/"),
            TransportConfig::http("http://b/"),
        );
        let habit = Habit {
            is_legacy_http: true,
            ..Habit::default()
        };
        habits.learn(&server, &old, habit);
        assert_eq!(habits.of(&server, &old), habit);
        assert_eq!(habits.of(&server, &new), Habit::default());
        assert_eq!(habits.of(&ServerName::from("t"), &old), Habit::default());
        habits.learn(&server, &old, Habit::default());
        assert_eq!(habits.of(&server, &old), Habit::default());
    }
}
