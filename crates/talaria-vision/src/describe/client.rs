//! Asks one backend once.

use std::error::Error;
use std::time::Duration;

use http::header::RETRY_AFTER;
use parking_lot::Mutex;
use reqwest::redirect::Policy;
use talaria_types::{Deadline, runtime};

use super::backend::Backend;
use super::preset::ZAI;
use super::reply::{HttpReply, Numbers, Reading, one_line, read};
use super::request::{Ask, request};
use super::verdict::{Fault, FaultKind, Verdict};

/// Most bytes of an answer.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// Most bytes of an error that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How long a connection may take to come about.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long a connection is kept for another question, and how many of a host.
const IDLE_TIME: Duration = Duration::from_secs(20);
const MAX_IDLE: usize = 4;
/// Hosts of z.ai and of its twin in China, whatever the provider is called.
const ZAI_HOSTS: [&str; 2] = ["z.ai", "bigmodel.cn"];
/// How many models are remembered to take no temperature.
const MAX_REMEMBERED: usize = 256;

/// Asks backends over HTTP.
///
/// It keeps connections for a while, so all questions come from one loop. Redirects are not
/// followed and proxies of the environment not used: a key goes where the operator sent it.
/// Dropping a question closes its connection.
#[derive(Debug)]
pub struct BackendClient {
    client: Result<reqwest::Client, String>,
    /// Models that have refused the temperature.
    plain: Mutex<Vec<String>>,
}

impl Default for BackendClient {
    fn default() -> Self {
        Self::new()
    }
}

impl BackendClient {
    /// A client. Setting it up reads the system's certificates, which is better done before
    /// anybody waits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            client: set_up(),
            plain: Mutex::default(),
        }
    }

    /// Asks a backend and reads its answer until the deadline.
    ///
    /// A model that refuses the sampling temperature is asked again without, within the same
    /// deadline, and from then on always without.
    pub async fn ask(&self, backend: &Backend, ask: &Ask<'_>, deadline: Deadline) -> Verdict {
        let asking = async {
            let remembered = backend.identity().model;
            let with_temperature = !self.plain.lock().contains(&remembered);
            let reading = self.ask_once(backend, ask, with_temperature).await;
            if !(with_temperature && reading.refuses_temperature) {
                return reading.verdict;
            }
            self.remember(remembered);
            self.ask_once(backend, ask, false).await.verdict
        };
        tokio::time::timeout_at(deadline.instant(), asking)
            .await
            .unwrap_or_else(|_| Verdict::failed(FaultKind::Timeout, ""))
    }

    fn remember(&self, model: String) {
        let mut plain = self.plain.lock();
        if plain.len() >= MAX_REMEMBERED {
            plain.remove(0);
        }
        plain.push(model);
    }

    async fn ask_once(&self, backend: &Backend, ask: &Ask<'_>, with_temperature: bool) -> Reading {
        let failed = |fault| Reading {
            verdict: Verdict::Failed(fault),
            refuses_temperature: false,
        };
        let client = match &self.client {
            Ok(client) => client,
            Err(words) => return failed(Fault::new(FaultKind::Misconfigured, words)),
        };
        let request = match request(backend, ask, with_temperature) {
            Ok(request) => request,
            Err(words) => return failed(Fault::new(FaultKind::Misconfigured, &words)),
        };
        let sent = client
            .post(request.url)
            .headers(request.headers)
            .body(request.body)
            .send()
            .await;
        match sent {
            Ok(response) => receive(response, backend).await,
            Err(error) => failed(unreachable(error)),
        }
    }
}

fn set_up() -> Result<reqwest::Client, String> {
    crate::tls::set_up();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .user_agent(concat!("talaria/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIME)
        .pool_idle_timeout(IDLE_TIME)
        .pool_max_idle_per_host(MAX_IDLE)
        .build()
        .map_err(|error| cause_of(&error))
}

/// Bytes of a secret at least that is hidden in a description, too.
const LEAST_IN_ANSWER: usize = 8;

/// Reads an answer up to its bound and says what it came to.
async fn receive(mut response: reqwest::Response, backend: &Backend) -> Reading {
    let status = response.status().as_u16();
    let is_good = response.status().is_success();
    let most = if is_good {
        MAX_ANSWER_BYTES
    } else {
        MAX_ERROR_BYTES
    };
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(ToOwned::to_owned)
    };
    // A header that is no text is a value that means nothing.
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .map(|value| value.to_str().unwrap_or_default().to_owned());
    let retry_after_ms = header("retry-after-ms");
    let mut body = Vec::new();
    let failed = |kind, words: &str| Reading {
        verdict: Verdict::Failed(Fault::new(kind, words).with_status(status)),
        refuses_temperature: false,
    };
    loop {
        match response.chunk().await {
            Ok(None) => break,
            Ok(Some(chunk)) if body.len() + chunk.len() > most => {
                if is_good {
                    let words = format!("it is larger than {most} bytes");
                    return failed(FaultKind::Oversize, &words);
                }
                let rest = most.saturating_sub(body.len());
                body.extend_from_slice(chunk.get(..rest).unwrap_or(&chunk));
                break;
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            // What an error says is worth reading also where it breaks off.
            Err(_) if !is_good => break,
            Err(error) => {
                let words = format!("the answer broke off: {}", cause_of(&error));
                return failed(FaultKind::Unreachable, &words);
            }
        }
    }
    let reply = HttpReply {
        status,
        retry_after: retry_after.as_deref(),
        retry_after_ms: retry_after_ms.as_deref(),
        body: &body,
        now: runtime::wall_clock(),
    };
    let mut reading = read(&reply, numbers(backend));
    let secrets = secrets(backend);
    match &mut reading.verdict {
        Verdict::Answer(text) | Verdict::Reasoned(text) => {
            // A short value in an address may as well be a word of a description.
            let long = |secret: &&String| secret.len() >= LEAST_IN_ANSWER;
            let long: Vec<String> = secrets.iter().filter(long).cloned().collect();
            *text = hidden(text, &long);
        }
        Verdict::Failed(fault) => clean(fault, &reply, &secrets, numbers(backend)),
    }
    reading
}

/// Takes what nobody else is to read out of the words of a failure.
fn clean(fault: &mut Fault, reply: &HttpReply<'_>, secrets: &[String], numbers: Numbers) {
    let text = String::from_utf8_lossy(reply.body);
    // Words are cut, and half a secret is found no more: they are taken from a body without.
    if secrets.iter().any(|secret| text.contains(secret)) {
        let body = hidden(&text, secrets);
        let again = HttpReply {
            body: body.as_bytes(),
            ..*reply
        };
        if let Verdict::Failed(clean) = read(&again, numbers).verdict {
            fault.words = clean.words;
            fault.provider_code = clean.provider_code;
        }
    }
    fault.words = hidden(&fault.words, secrets);
}

/// Whose numbered codes a backend's are.
fn numbers(backend: &Backend) -> Numbers {
    let host = backend.endpoint.host_str().unwrap_or_default();
    let is_host = |known| host == known || host.ends_with(&format!(".{known}"));
    if backend.provider == ZAI || ZAI_HOSTS.into_iter().any(is_host) {
        Numbers::Zai
    } else {
        Numbers::Any
    }
}

/// What providers like to quote and nobody else is to read: the key, and what is secret in the
/// address.
fn secrets(backend: &Backend) -> Vec<String> {
    let key = backend.key.as_ref().map(|key| key.expose().to_owned());
    let password = backend.endpoint.password().map(ToOwned::to_owned);
    let query = backend.endpoint.query_pairs();
    let values = query.map(|(_, value)| value.into_owned());
    let all = key.into_iter().chain(password).chain(values);
    all.filter(|secret| secret.len() > 3).collect()
}

fn hidden(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        text = text.replace(secret.as_str(), "***");
    }
    text
}

fn unreachable(error: reqwest::Error) -> Fault {
    let kind = if error.is_builder() {
        FaultKind::Misconfigured
    } else {
        FaultKind::Unreachable
    };
    Fault::new(kind, &cause_of(&error.without_url()))
}

/// The last cause of an error, which is the one that tells something.
fn cause_of(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    one_line(&cause.to_string())
}

#[cfg(test)]
mod tests;
