//! What probes found, and which are under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talaria_types::runtime;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Finding, Question, Server};

/// How long an answer holds. From half of it on it is asked for anew while the old one answers.
const LIFETIME: Duration = Duration::from_secs(60);
/// How long it holds that there is none: the server may just be starting.
const LIFETIME_OF_NOTHING: Duration = Duration::from_secs(20);
/// Most findings kept; models come out of requests.
const MOST_FINDINGS: usize = 256;
/// Most endpoints that are probed at a time.
const MOST_RUNNING: usize = 16;

/// Findings by endpoint and model, and the probe of each endpoint that runs.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    found: HashMap<Key, (Finding, Instant)>,
    /// By endpoint; a closed channel is a probe that ended.
    running: HashMap<String, watch::Receiver<()>>,
}

/// Endpoint and, where it matters to the answer, model.
type Key = (String, Option<String>);

/// What to do about a question.
pub(super) enum Begin {
    /// It is answered; with a ticket, probe anew beside.
    Known(Finding, Option<Ticket>),
    /// A probe of this endpoint runs; ask again when it has ended.
    Running(Running),
    /// Probe.
    Start(Ticket),
    /// Too many run.
    Full,
}

/// The right to probe an endpoint. Dropping it ends the probe for everybody who waits.
pub(super) struct Ticket {
    cache: Arc<Cache>,
    question: Question,
    done: watch::Sender<()>,
}

/// A probe under way.
pub(super) struct Running(watch::Receiver<()>);

impl Cache {
    /// Looks a question up and takes the endpoint's place if it is free.
    pub(super) fn begin(self: &Arc<Self>, question: &Question) -> Begin {
        let now = runtime::now();
        let mut state = self.0.lock();
        let known = keys(question).into_iter().find_map(|key| {
            let (finding, since) = state.found.get(&key)?;
            let age = now.saturating_duration_since(*since);
            let lifetime = lifetime(finding);
            (age < lifetime).then(|| (finding.clone(), age < lifetime / 2))
        });
        match known {
            Some((finding, true)) => Begin::Known(finding, None),
            Some((finding, _)) => Begin::Known(finding, self.start(&mut state, question).ok()),
            None => match self.start(&mut state, question) {
                Ok(ticket) => Begin::Start(ticket),
                Err(Some(running)) => Begin::Running(running),
                Err(None) => Begin::Full,
            },
        }
    }

    /// Takes the endpoint's place.
    ///
    /// # Errors
    /// Who has it; nobody where too many run.
    fn start(
        self: &Arc<Self>,
        state: &mut State,
        question: &Question,
    ) -> Result<Ticket, Option<Running>> {
        let is_running = |receiver: &watch::Receiver<()>| receiver.has_changed().is_ok();
        state.running.retain(|_, receiver| is_running(receiver));
        let endpoint = question.root.as_str();
        if let Some(receiver) = state.running.get(endpoint) {
            return Err(Some(Running(receiver.clone())));
        }
        if state.running.len() >= MOST_RUNNING {
            return Err(None);
        }
        let (done, receiver) = watch::channel(());
        state.running.insert(endpoint.to_owned(), receiver);
        Ok(Ticket {
            cache: Arc::clone(self),
            question: question.clone(),
            done,
        })
    }
}

impl Ticket {
    /// Waits for it as anybody else.
    pub(super) fn watch(&self) -> Running {
        Running(self.done.subscribe())
    }

    /// Keeps what was found.
    pub(super) fn finish(self, finding: Finding) {
        let now = runtime::now();
        let mut state = self.cache.0.lock();
        if state.found.len() >= MOST_FINDINGS {
            state.found.retain(|_, (finding, since)| {
                now.saturating_duration_since(*since) < lifetime(finding)
            });
        }
        if state.found.len() >= MOST_FINDINGS {
            let oldest = state.found.iter().min_by_key(|(_, (_, since))| *since);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                state.found.remove(&key);
            }
        }
        let [of_model, of_endpoint] = keys(&self.question);
        // Only Ollama serves several models at one address.
        let key = if finding.server == Server::Ollama {
            of_model
        } else {
            of_endpoint
        };
        state.found.insert(key, (finding, now));
    }
}

impl Running {
    /// Until it has ended.
    pub(super) async fn ended(&mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

fn lifetime(finding: &Finding) -> Duration {
    if finding.sees.is_some() {
        LIFETIME
    } else {
        LIFETIME_OF_NOTHING
    }
}

/// Where an answer may stand: under the model, or under the endpoint alone.
fn keys(question: &Question) -> [Key; 2] {
    let endpoint = question.root.as_str().to_owned();
    [
        (endpoint.clone(), Some(question.model.clone())),
        (endpoint, None),
    ]
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::probe::Hint;

    fn question(endpoint: &str, model: &str) -> Question {
        Question {
            root: Url::parse(endpoint).unwrap(),
            hint: Hint::Nothing,
            model: model.to_owned(),
        }
    }

    fn finding(server: Server, sees: Option<bool>) -> Finding {
        Finding {
            server,
            sees,
            detail: String::new(),
        }
    }

    fn started(cache: &Arc<Cache>, question: &Question) -> Ticket {
        match cache.begin(question) {
            Begin::Start(ticket) => ticket,
            Begin::Known(..) | Begin::Running(_) | Begin::Full => panic!("was not started"),
        }
    }

    /// What a question meets: `known`, `known, refresh`, `running`, `start` or `full`.
    fn meets(cache: &Arc<Cache>, question: &Question) -> &'static str {
        match cache.begin(question) {
            Begin::Known(_, None) => "known",
            Begin::Known(_, Some(_)) => "known, refresh",
            Begin::Running(_) => "running",
            Begin::Start(_) => "start",
            Begin::Full => "full",
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_hold_for_their_lifetime_and_are_renewed_from_half_of_it_on() {
        for (sees, lifetime) in [(Some(true), LIFETIME), (None, LIFETIME_OF_NOTHING)] {
            let cache = Arc::<Cache>::default();
            let question = question("http://a/", "m");
            started(&cache, &question).finish(finding(Server::LlamaCpp, sees));
            assert_eq!(meets(&cache, &question), "known");
            tokio::time::advance(lifetime / 2).await;
            assert_eq!(meets(&cache, &question), "known, refresh");
            tokio::time::advance(lifetime / 2).await;
            assert_eq!(meets(&cache, &question), "start");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_under_way_is_not_begun_twice() {
        let cache = Arc::<Cache>::default();
        let question = question("http://a/", "m");
        started(&cache, &question).finish(finding(Server::Ollama, Some(true)));
        tokio::time::advance(LIFETIME / 2).await;
        let Begin::Known(_, Some(renewal)) = cache.begin(&question) else {
            panic!("is not renewed");
        };
        assert_eq!(meets(&cache, &question), "known");
        renewal.finish(finding(Server::Ollama, Some(false)));
        let Begin::Known(renewed, None) = cache.begin(&question) else {
            panic!("is not known");
        };
        assert_eq!(renewed.sees, Some(false));
    }

    #[tokio::test]
    async fn a_probe_that_dies_frees_its_endpoint_and_wakes_who_waits() {
        let cache = Arc::<Cache>::default();
        let question = question("http://a/", "m");
        let ticket = started(&cache, &question);
        let mut running = ticket.watch();
        assert_eq!(meets(&cache, &question), "running");
        drop(ticket);
        running.ended().await;
        assert_eq!(meets(&cache, &question), "start");
    }

    #[tokio::test]
    async fn only_ollama_s_answers_are_those_of_one_model() {
        for (server, other) in [
            (Server::Ollama, "start"),
            (Server::LlamaCpp, "known"),
            (Server::Unknown, "known"),
        ] {
            let cache = Arc::<Cache>::default();
            started(&cache, &question("http://a/", "m")).finish(finding(server, Some(true)));
            assert_eq!(meets(&cache, &question("http://a/", "m")), "known");
            assert_eq!(
                meets(&cache, &question("http://a/", "n")),
                other,
                "{server:?}"
            );
            assert_eq!(meets(&cache, &question("http://b/", "m")), "start");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn findings_and_probes_are_bounded() {
        let cache = Arc::<Cache>::default();
        for number in 0..MOST_FINDINGS + 10 {
            let question = question("http://a/", &number.to_string());
            started(&cache, &question).finish(finding(Server::Ollama, Some(true)));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(cache.0.lock().found.len(), MOST_FINDINGS);
        assert_eq!(meets(&cache, &question("http://a/", "0")), "start");
        assert_eq!(meets(&cache, &question("http://a/", "200")), "known");

        let kept: Vec<_> = (0..MOST_RUNNING)
            .map(|number| started(&cache, &question(&format!("http://b{number}/"), "m")))
            .collect();
        assert_eq!(meets(&cache, &question("http://c/", "m")), "full");
        drop(kept);
        assert_eq!(meets(&cache, &question("http://c/", "m")), "start");
    }
}
