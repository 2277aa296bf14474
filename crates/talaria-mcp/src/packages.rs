//! Whether a package that a launcher is about to run is known malware (specification 6.6).
//!
//! Only advisories about malware count, and whoever cannot be asked is taken to have nothing
//! against it: a registry that is down must not keep servers from starting.

mod spec;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Client;
use serde_json::{Value, json};
use talaria_types::runtime::{self, BlockingPool};
use talaria_types::{Deadline, ErrorCode, Failure};
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;

use crate::http::{set_up_tls, shared_tls, with_proxies};
use spec::Package;

/// One question.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// All of a command line, whoever asks.
const CHECK_TIMEOUT: Duration = Duration::from_secs(12);

/// How long an answer counts.
const ANSWER_AGE: Duration = Duration::from_secs(3600);

/// How long a package counts as asked about that was asked about in vain.
const IN_VAIN_AGE: Duration = Duration::from_secs(600);

/// After a question that came to nothing, nobody is asked for so long.
const SILENCE: Duration = Duration::from_secs(60);

const MAX_ANSWERS: usize = 256;

/// Of an answer; the longest is a few megabytes.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

const MAX_PAGES: usize = 8;

/// Longest part of an advisory's name that is shown.
const MAX_ID_CHARACTERS: usize = 40;
/// How advisories about malware are named.
const MALWARE: &str = "MAL-";

/// Looks packages up; one for the whole service, cheap to clone.
#[derive(Clone, Debug)]
pub struct PackageCheck(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    url: String,
    environment: Arc<BTreeMap<String, String>>,
    /// Made with the first question.
    client: OnceCell<Client>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: HashMap<Package, Answer>,
    silent_until: Option<Instant>,
}

#[derive(Debug)]
enum Answer {
    /// Somebody is asking; the sender goes away when that has ended.
    Asked(watch::Receiver<()>),
    Known {
        until: Instant,
        malware: Option<String>,
    },
}

/// What is to be done about a package.
enum Turn {
    Known(Option<String>),
    Wait(watch::Receiver<()>),
    Ask(watch::Sender<()>),
    Skip,
}

impl PackageCheck {
    /// Asks this service, through the proxies of this environment.
    #[must_use]
    pub fn new(url: &str, environment: &Arc<BTreeMap<String, String>>) -> Self {
        Self(Arc::new(Inner {
            url: url.to_owned(),
            environment: Arc::clone(environment),
            client: OnceCell::new(),
            state: Mutex::default(),
        }))
    }

    /// Refuses a command line that runs known malware.
    ///
    /// # Errors
    /// `server_misconfigured`.
    pub(crate) async fn check(
        &self,
        command: &str,
        args: &[String],
        deadline: Deadline,
        blocking: &BlockingPool,
    ) -> Result<(), Failure> {
        // The other half of the time is the server's own.
        let until = Deadline::after(CHECK_TIMEOUT.min(deadline.remaining() / 2));
        for package in spec::packages(command, args) {
            let looking = self.look_up(&package, blocking);
            match tokio::time::timeout_at(until.instant(), Box::pin(looking)).await {
                Ok(Some(advisory)) => {
                    let detail = format!(
                        "BLOCKED: Package {} ({}) is known malware ({advisory}); it was not started",
                        package.name,
                        package.ecosystem.as_str()
                    );
                    return Err(Failure::new(ErrorCode::ServerMisconfigured, detail));
                }
                Ok(None) => {}
                // Who asks goes on asking as long as that may take; who has no time does not wait.
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn look_up(&self, package: &Package, blocking: &BlockingPool) -> Option<String> {
        loop {
            match self.turn(package) {
                Turn::Known(malware) => return malware,
                Turn::Skip => return None,
                // It ends with the sender, whether there is an answer then or not.
                Turn::Wait(mut asked) => while asked.changed().await.is_ok() {},
                Turn::Ask(asking) => {
                    let answer = self.ask(package, blocking).await;
                    let answer = answer.inspect_err(|error| {
                        tracing::warn!(
                            package = package.name,
                            error,
                            "whether a package is malware cannot be looked up; it is taken not to be"
                        );
                    });
                    if answer.is_err() {
                        self.fall_silent();
                    }
                    self.note(package, answer.as_ref().ok());
                    drop(asking);
                    return answer.ok().flatten();
                }
            }
        }
    }

    fn turn(&self, package: &Package) -> Turn {
        let now = runtime::now();
        let mut state = self.0.state.lock();
        match state.answers.get(package) {
            Some(Answer::Known { until, malware }) if now < *until => {
                return Turn::Known(malware.clone());
            }
            Some(Answer::Asked(asked)) if asked.has_changed().is_ok() => {
                return Turn::Wait(asked.clone());
            }
            Some(_) | None => {}
        }
        if state.silent_until.is_some_and(|until| now < until) {
            return Turn::Skip;
        }
        state.make_room(package);
        let (asking, asked) = watch::channel(());
        state.answers.insert(package.clone(), Answer::Asked(asked));
        Turn::Ask(asking)
    }

    /// Remembers an answer, or that there was none: a server that is started again does not wait
    /// for one a second time.
    fn note(&self, package: &Package, answer: Option<&Option<String>>) {
        let age = if answer.is_some() {
            ANSWER_AGE
        } else {
            IN_VAIN_AGE
        };
        let known = Answer::Known {
            until: runtime::now() + age,
            malware: answer.cloned().flatten(),
        };
        self.0.state.lock().answers.insert(package.clone(), known);
    }

    fn fall_silent(&self) {
        self.0.state.lock().silent_until = Some(runtime::now() + SILENCE);
    }

    /// The advisory that calls a package malware, if there is one.
    async fn ask(
        &self,
        package: &Package,
        blocking: &BlockingPool,
    ) -> Result<Option<String>, String> {
        let client = self.client(blocking).await?;
        let mut query = json!({
            "package": { "name": package.name, "ecosystem": package.ecosystem.as_str() },
        });
        let fields = query.as_object_mut().ok_or_else(String::new)?;
        if let Some(version) = &package.version {
            fields.insert("version".to_owned(), version.as_str().into());
        }
        for _ in 0..MAX_PAGES {
            let page = self.page(client, fields).await?;
            if let Some(advisory) = malware(&page) {
                return Ok(Some(advisory));
            }
            match page.get("next_page_token").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => {
                    fields.insert("page_token".to_owned(), token.into());
                }
                Some(_) | None => break,
            }
        }
        Ok(None)
    }

    /// The client; its certificates are read from the disk.
    async fn client(&self, blocking: &BlockingPool) -> Result<&Client, String> {
        let make = || async {
            let environment = Arc::clone(&self.0.environment);
            let deadline = Deadline::after(ASK_TIMEOUT);
            let made = blocking.run(deadline, move || client(&environment)).await;
            made.and_then(|client| client)
                .map_err(|failure| failure.to_string())
        };
        self.0.client.get_or_try_init(make).await
    }

    async fn page(
        &self,
        client: &Client,
        query: &serde_json::Map<String, Value>,
    ) -> Result<Value, String> {
        let failed = |error: reqwest::Error| error.without_url().to_string();
        let body = serde_json::to_vec(query).map_err(|error| error.to_string())?;
        let request = client
            .post(&self.0.url)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body);
        let mut response = request.send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(format!("HTTP {}", response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                return Err("the answer is too large".to_owned());
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    }
}

impl State {
    /// The answer that would be asked for again first is forgotten.
    fn make_room(&mut self, package: &Package) {
        if self.answers.len() < MAX_ANSWERS || self.answers.contains_key(package) {
            return;
        }
        let known = self
            .answers
            .iter()
            .filter_map(|(package, answer)| match answer {
                Answer::Known { until, .. } => Some((*until, package)),
                Answer::Asked(_) => None,
            });
        if let Some(oldest) = known
            .min_by_key(|(until, _)| *until)
            .map(|(_, package)| package.clone())
        {
            self.answers.remove(&oldest);
        }
    }
}

fn client(environment: &BTreeMap<String, String>) -> Result<Client, Failure> {
    set_up_tls();
    let builder = Client::builder()
        .timeout(ASK_TIMEOUT)
        // A connection belongs to the loop that opened it, and any server's loop may ask.
        .pool_max_idle_per_host(0);
    let builder = match shared_tls() {
        Ok(tls) => builder.tls_backend_preconfigured(rustls::ClientConfig::clone(&tls)),
        Err(_) => builder.tls_certs_only([]),
    };
    with_proxies(builder, environment)?
        .build()
        .map_err(|error| {
            let detail = "the HTTP client cannot be set up";
            Failure::new(ErrorCode::Internal, detail).caused_by(error)
        })
}

fn malware(page: &Value) -> Option<String> {
    let advisories = page.get("vulns")?.as_array()?;
    let mut ids = advisories
        .iter()
        .filter(|advisory| advisory.get("withdrawn").is_none())
        .filter_map(|advisory| advisory.get("id")?.as_str());
    let id = ids.find(|id| id.starts_with(MALWARE))?;
    // It stands in messages, and whoever was asked may be anybody.
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
    Some(
        id.chars()
            .filter(is_plain)
            .take(MAX_ID_CHARACTERS)
            .collect(),
    )
}

#[cfg(test)]
mod tests;
